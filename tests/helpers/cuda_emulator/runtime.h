// What the parts of the emulator's runtime share.
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
    unsigned char* defined;  // a flag a byte: whether it was ever written; null where all were
};

enum State { NEW, READY, IN_COLLECTIVE, AT_BARRIER, ENDED };  // of a thread

// ------------------------------------------------------------------ fibers.cpp
extern char* stacks;
void prepare_fibers(void (*kernel)(void**), void** arguments);  // all threads of a launch run it
void resume(Thread& thread);                                    // until it waits or ends
void yield();
[[noreturn]] void stop_thread();

// ------------------------------------------------------------------ faults.cpp
// A failed launch reports its first failure; the failing thread never goes on.
extern bool failed;
extern volatile bool inside_kernel;
void fail(const char* format, ...);
void forget_failure();
void catch_signals(int seconds);  // of processor time that the launch may take
void release_signals();

// ------------------------------------------------------------------ collectives.cpp
const char* name_of(int operation);
// Answer the collectives whose lanes have all arrived; returns whether any was.
bool answer_collectives(Thread* warp, unsigned lanes);

// ------------------------------------------------------------------ scheduler.cpp
// Order of accesses: barriers of the block so far, __syncwarp of each warp so far, blocks run.
extern unsigned barriers_passed, block_number;
extern unsigned warp_barriers[MOST_THREADS / 32];

// ------------------------------------------------------------------ checker.cpp
void begin_checks(const Buffer* buffers, int count, char* shared, size_t shared_bytes);
void end_checks();
void fill_static_shared(int byte);
#pragma GCC visibility pop
}  // namespace emulator
