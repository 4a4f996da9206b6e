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
struct Variable {
    size_t offset, bytes;
};

std::vector<Region> arrays;
std::vector<Region> of_blocks;  // shared memory, the same number for each block
std::vector<Variable> static_shared;
size_t static_bytes;
std::vector<Span> image;  // the library itself: its constants may be read

// Of a launch, in the order of library.py: loads of device arrays, their bytes, stores and atomics
// there, and all accesses of shared memory.
enum Kind { LOADS, LOADED_BYTES, STORES, ATOMICS, SHARED, KINDS };
uint64_t accesses[KINDS];
}  // namespace

static uint32_t warp_of(uint32_t thread) {
    return thread == MANY ? MANY : thread & OF_WARP ? thread & ~OF_WARP : thread / 32;
}

// Whether a barrier lies between `access` and the running thread's next one.
static bool is_ordered(const Access& access, bool shared) {
    if (access.block == NO_BLOCK || (shared && access.block != block->number)) return true;
    if (access.block != block->number) return false;
    if (access.thread == current->linear || access.barriers < block->barriers_passed) return true;
    return warp_of(access.thread) == current->warp &&
           access.warp_barriers < block->warp_barriers[current->warp];
}

static void record_read(Access& read, bool shared) {
    if (is_ordered(read, shared)) {
        read.block = block->number;
        read.thread = current->linear;
    } else {
        const bool one_warp = read.block == block->number && warp_of(read.thread) == current->warp;
        read.thread = one_warp ? OF_WARP | current->warp : MANY;
        if (read.block != block->number) read.block = SEVERAL_BLOCKS;
    }
    read.barriers = block->barriers_passed;
    read.warp_barriers = block->warp_barriers[current->warp];
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
        const bool defined = region.shared ? region.places[i].write.block == block->number
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
        place.write = {block->number, current->linear, block->barriers_passed,
                       block->warp_barriers[current->warp], atomic};
    else
        record_read(place.read, region.shared);
}

// The array, or the shared memory of the block that runs, that holds all of these bytes.
static Region* find_region(const char* begin, unsigned size) {
    std::vector<Region>* regions = &arrays;
    size_t first = 0, last = arrays.size();
    if (begin >= shared.begin && begin < shared.begin + shared.blocks * shared.bytes) {
        const size_t share = of_blocks.size() / shared.blocks;
        regions = &of_blocks;
        first = (block->shared - shared.begin) / shared.bytes * share;
        last = first + share;
    }
    for (size_t i = first; i < last; ++i) {
        Region& region = (*regions)[i];
        if (begin >= region.begin && begin + size <= region.begin + region.bytes) return &region;
    }
    return nullptr;
}

static void count_access(bool shared, unsigned size, bool write, bool atomic) {
    ++accesses[shared ? SHARED : atomic ? ATOMICS : write ? STORES : LOADS];
    if (!shared && !write) accesses[LOADED_BYTES] += size;
}

static void check(const void* address, unsigned size, bool write, bool atomic, const void* pc) {
    char* begin = (char*)address;
    if (!current || failed) return;
    if (begin >= stacks && begin < stacks + MOST_FIBERS * STACK_BYTES) return;
    if (Region* found = find_region(begin, size)) {
        Region& region = *found;
        if (write && region.read_only) {
            fail("pc 0x%zx: write to read-only %s", size_t(pc), region.name.c_str());
            stop_thread();
        }
        count_access(region.shared, size, write, atomic);
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
static void add_region(std::vector<Region>& regions, void* begin, size_t bytes, uint32_t granule,
                       bool read_only, unsigned char* defined, std::string name) {
    if (!bytes) return;
    void* places = mmap(nullptr, bytes_of_places(bytes, granule), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (places == MAP_FAILED)
        fail("no room to check the accesses of %s, %zu bytes", name.c_str(), bytes);
    else
        regions.push_back({(char*)begin, bytes, granule, &regions == &of_blocks, read_only, defined,
                           std::move(name), (Place*)places});
}

void begin_checks(const Buffer* buffers, int count) {
    memset(accesses, 0, sizeof accesses);
    for (int i = 0; i < count; ++i)
        add_region(arrays, buffers[i].begin, buffers[i].bytes, buffers[i].granule,
                   buffers[i].read_only, buffers[i].defined, "array " + std::to_string(i));
    for (unsigned b = 0; b < shared.blocks; ++b) {
        char* begin = shared.begin + b * shared.bytes;
        add_region(of_blocks, begin + aligned(shared.static_bytes), shared.dynamic_bytes, 1, false,
                   nullptr, "dynamic shared memory");
        for (const Variable& one : static_shared)
            add_region(of_blocks, begin + one.offset, one.bytes, 1, false, nullptr, "shared memory");
    }
}

void end_checks() {
    for (std::vector<Region>* regions : {&arrays, &of_blocks}) {
        for (const Region& region : *regions)
            munmap(region.places, bytes_of_places(region.bytes, region.granule));
        regions->clear();
    }
}

size_t static_shared_bytes() { return static_bytes; }

// Remember the loaded segments of the library that holds `address`, and the size of that of its
// "thread_local" variables.
static int find_image(dl_phdr_info* info, size_t, void* address) {
    std::vector<Span> segments;
    size_t thread_local_bytes = 0;
    bool mine = false;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        if (info->dlpi_phdr[i].p_type == PT_TLS) thread_local_bytes = info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
        char* begin = (char*)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        char* end = begin + info->dlpi_phdr[i].p_memsz;
        segments.push_back({begin, end});
        mine = mine || ((char*)address >= begin && (char*)address < end);
    }
    if (mine) image = segments;
    if (mine) static_bytes = thread_local_bytes;
    return mine;
}
}  // namespace emulator

EMULATOR_API void emulator_anchor() {}

EMULATOR_API const uint64_t* emulator_accesses() { return emulator::accesses; }

EMULATOR_API void emulator_set_shared(const size_t* offset, const size_t* bytes, int count) {
    using namespace emulator;
    dl_iterate_phdr(find_image, (void*)&emulator_anchor);
    static_shared.clear();
    for (int i = 0; i < count; ++i) static_shared.push_back({offset[i], bytes[i]});
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
