// What the scheduler and the checker of memory accesses share.
#pragma once
#include "cuda.h"
#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

namespace emulator {
#pragma GCC visibility push(hidden)
constexpr unsigned MOST_THREADS = 1024;
constexpr size_t STACK_BYTES = 64 * 1024;

struct Buffer {  // a device array passed to the kernel; laid out as in library.py
    void* begin;
    size_t bytes;
    uint32_t granule;  // bytes that one access touches
    int read_only;
};

// A failed launch reports its first failure; the failing thread never goes on.
void fail(const char* format, ...);
[[noreturn]] void stop_thread();
extern bool failed;

// Order of accesses: barriers of the block so far, __syncwarp of each warp so far, blocks run.
extern unsigned barriers_passed, block_number;
extern unsigned warp_barriers[MOST_THREADS / 32];
extern char* stacks;

void begin_checks(const Buffer* buffers, int count, char* shared, size_t shared_bytes);
void end_checks();
void poison_static_shared();
#pragma GCC visibility pop
}  // namespace emulator
