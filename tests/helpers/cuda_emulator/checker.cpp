// Checks every access of a kernel that was compiled with thread-sanitizer instrumentation: its
// hooks are implemented here. Reported are accesses outside the arrays given to the kernel, reads
// of what nothing has written, and two accesses of one place, one of them a write, that no barrier
// orders.
#include <link.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "runtime.h"

namespace emulator {
namespace {
constexpr uint32_t MANY = 0x7fffffff;     // several threads
constexpr uint32_t OF_WARP = 0x40000000;  // several threads of this warp
constexpr uint32_t NO_BLOCK = 0;
constexpr uint32_t SEVERAL_BLOCKS = 0xffffffff;

struct Access {  // the last one of its kind
    uint32_t block, thread, barriers, warp_barriers;
    bool atomic;
};
struct Place {
    Access write, read;
};
struct Region {
    char* begin;
    size_t bytes;
    uint32_t granule;
    bool shared, read_only;
    unsigned char* defined;  // bytes of a device array that were ever written; null where all were
    std::string name;
    Place* places;
};
struct Span {
    char *begin, *end;
};

std::vector<Region> regions;
std::vector<Span> static_shared;
std::vector<Span> image;  // the library itself: its constants may be read
}  // namespace

static uint32_t warp_of(uint32_t thread) {
    return thread == MANY ? MANY : thread & OF_WARP ? thread & ~OF_WARP : thread / 32;
}

// Whether a barrier lies between `access` and the running thread's next one.
static bool is_ordered(const Access& access, bool shared) {
    if (access.block == NO_BLOCK || (shared && access.block != block_number)) return true;
    if (access.block != block_number) return false;
    if (access.thread == current->linear || access.barriers < barriers_passed) return true;
    return warp_of(access.thread) == current->warp &&
           access.warp_barriers < warp_barriers[current->warp];
}

static void record_read(Access& read, bool shared) {
    if (is_ordered(read, shared)) {
        read.block = block_number;
        read.thread = current->linear;
    } else {
        const bool one_warp = read.block == block_number && warp_of(read.thread) == current->warp;
        read.thread = one_warp ? OF_WARP | current->warp : MANY;
        if (read.block != block_number) read.block = SEVERAL_BLOCKS;
    }
    read.barriers = barriers_passed;
    read.warp_barriers = warp_barriers[current->warp];
}

static void report_race(const char* kind, const Region& region, size_t i, const Access& other,
                        const void* pc) {
    fail("pc 0x%zx: race (%s) on %s[%zu], block (%u,%u,%u) thread %u versus block #%u thread %d: "
         "no barrier in between",
         size_t(pc), kind, region.name.c_str(), i, block_index.x, block_index.y, block_index.z,
         current->linear, other.block, other.thread & OF_WARP ? -1 : int(other.thread));
    stop_thread();
}

static void report_undefined(const Region& region, size_t i, const void* pc) {
    fail("pc 0x%zx: read of undefined memory, %s[%zu], block (%u,%u,%u) thread %u: nothing was "
         "written there",
         size_t(pc), region.name.c_str(), i, block_index.x, block_index.y, block_index.z,
         current->linear);
    stop_thread();
}

// Shared memory is undefined at the beginning of each block.
static void check_defined(const Region& region, size_t offset, unsigned size, const void* pc) {
    for (size_t i = offset; i < offset + size; ++i) {
        const bool defined = region.shared ? region.places[i].write.block == block_number
                                           : !region.defined || region.defined[i];
        if (!defined) report_undefined(region, i / region.granule, pc);
    }
}

static void check_place(Region& region, size_t i, bool write, bool atomic, const void* pc) {
    Place& place = region.places[i];
    if (!(atomic && place.write.atomic) && !is_ordered(place.write, region.shared))
        report_race(write ? "write after write" : "read after write", region, i, place.write, pc);
    if (write && !is_ordered(place.read, region.shared))
        report_race("write after read", region, i, place.read, pc);
    if (write)
        place.write = {block_number, current->linear, barriers_passed,
                       warp_barriers[current->warp], atomic};
    else
        record_read(place.read, region.shared);
}

static void check(const void* address, unsigned size, bool write, bool atomic, const void* pc) {
    char* begin = (char*)address;
    if (!current || failed) return;
    if (begin >= stacks && begin < stacks + MOST_THREADS * STACK_BYTES) return;
    for (Region& region : regions) {
        if (begin < region.begin || begin + size > region.begin + region.bytes) continue;
        if (write && region.read_only) {
            fail("pc 0x%zx: write to read-only %s", size_t(pc), region.name.c_str());
            stop_thread();
        }
        const size_t offset = begin - region.begin;
        const size_t first = offset / region.granule;
        const size_t last = (offset + size - 1) / region.granule;
        if ((!write || atomic) && (region.shared || region.defined))
            check_defined(region, offset, size, pc);
        for (size_t i = first; i <= last; ++i) check_place(region, i, write, atomic, pc);
        if (write && region.defined) memset(region.defined + offset, 1, size);
        return;
    }
    for (const Span& span : image)
        if (begin >= span.begin && begin + size <= span.end) return;
    fail("pc 0x%zx: out of bounds %s of %u bytes at %p, block (%u,%u,%u) thread %u", size_t(pc),
         write ? "write" : "read", size, address, block_index.x, block_index.y, block_index.z,
         current->linear);
    stop_thread();
}

void check_atomic(const void* place, unsigned size, const void* pc) {
    check(place, size, true, true, pc);
}

static size_t bytes_of_places(size_t bytes, uint32_t granule) {
    return (bytes / granule + 1) * sizeof(Place);
}

// Places begin as zeros: never accessed. Only pages of those that are take memory, so arrays
// may be huge.
static void add_region(void* begin, size_t bytes, uint32_t granule, bool shared, bool read_only,
                       unsigned char* defined, std::string name) {
    if (!bytes) return;
    void* places = mmap(nullptr, bytes_of_places(bytes, granule), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (places == MAP_FAILED)
        fail("no room to check the accesses of %s, %zu bytes", name.c_str(), bytes);
    else
        regions.push_back({(char*)begin, bytes, granule, shared, read_only, defined,
                           std::move(name), (Place*)places});
}

void begin_checks(const Buffer* buffers, int count, char* shared, size_t shared_bytes) {
    for (int i = 0; i < count; ++i)
        add_region(buffers[i].begin, buffers[i].bytes, buffers[i].granule, false,
                   buffers[i].read_only, buffers[i].defined, "array " + std::to_string(i));
    add_region(shared, shared_bytes, 1, true, false, nullptr, "dynamic shared memory");
    for (const Span& span : static_shared)
        add_region(span.begin, span.end - span.begin, 1, true, false, nullptr, "shared memory");
}

void end_checks() {
    for (const Region& region : regions)
        munmap(region.places, bytes_of_places(region.bytes, region.granule));
    regions.clear();
}

void fill_static_shared(int byte) {
    for (const Span& span : static_shared) memset(span.begin, byte, span.end - span.begin);
}

// Remember the loaded segments of the library that holds `own`.
static int find_image(dl_phdr_info* info, size_t, void* own) {
    std::vector<Span> segments;
    bool mine = false;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
        char* begin = (char*)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        char* end = begin + info->dlpi_phdr[i].p_memsz;
        segments.push_back({begin, end});
        mine = mine || ((char*)own >= begin && (char*)own < end);
    }
    if (mine) image = segments;
    return mine;
}
}  // namespace emulator

EMULATOR_API void emulator_anchor() {}

EMULATOR_API void emulator_set_shared(const size_t* address, const size_t* bytes, int count) {
    using namespace emulator;
    dl_iterate_phdr(find_image, (void*)&emulator_anchor);
    static_shared.clear();
    for (int i = 0; i < count; ++i)
        static_shared.push_back({(char*)address[i], (char*)address[i] + bytes[i]});
}

// ------------------------------------------------------------------ hooks of the compiler
#define HERE __builtin_return_address(0)
#define HOOK(NAME, BYTES, WRITE) \
    void __tsan_##NAME(void* place) { emulator::check(place, BYTES, WRITE, false, HERE); }
#define HOOKS(BYTES)                              \
    HOOK(read##BYTES, BYTES, false)               \
    HOOK(write##BYTES, BYTES, true)               \
    HOOK(unaligned_read##BYTES, BYTES, false)     \
    HOOK(unaligned_write##BYTES, BYTES, true)     \
    HOOK(volatile_read##BYTES, BYTES, false)      \
    HOOK(volatile_write##BYTES, BYTES, true)
extern "C" {
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
void __tsan_read_range(void* place, size_t n) {
    emulator::check(place, unsigned(n), false, false, HERE);
}
void __tsan_write_range(void* place, size_t n) {
    emulator::check(place, unsigned(n), true, false, HERE);
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
}
