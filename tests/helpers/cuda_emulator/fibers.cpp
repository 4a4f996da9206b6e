// Threads of a block as fibers: each has a stack, and runs until it waits or ends.
#include <sys/mman.h>

#include <vector>

#include "runtime.h"

#if !defined(__x86_64__)
#error "switch_stacks is written for x86-64"
#endif

namespace emulator {
Thread* current;
char* stacks;

namespace {
void (*kernel)(void**);
void** arguments;
std::vector<char*> free_stacks;
void* scheduler_stack;
}  // namespace

// Push what a call preserves, keep the stack pointer in *save, and go on where `to` stopped.
asm(R"(
    .text
    .globl emulator_switch_stacks
    .hidden emulator_switch_stacks
emulator_switch_stacks:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    pop %rcx
    jmp *%rcx
)");
extern "C" void emulator_switch_stacks(void** save, void* to);

void yield() { emulator_switch_stacks(&current->stack_pointer, scheduler_stack); }

void stop_thread() {
    for (;;) yield();
}

static void run_thread() {
    kernel(arguments);
    current->state = ENDED;
    stop_thread();
}

static void prepare_stack(Thread& thread) {
    thread.stack = free_stacks.back();
    free_stacks.pop_back();
    // Stacks that all begin at one offset would share the same few cache lines.
    const size_t offset = (thread.stack - stacks) / STACK_BYTES * 320 & 8191;
    void** top = (void**)(thread.stack + STACK_BYTES - offset);
    *--top = nullptr;
    *--top = (void*)run_thread;
    for (int i = 0; i < 6; ++i) *--top = nullptr;  // the registers that a switch restores
    thread.stack_pointer = top;
}

void resume(Thread& thread) {
    if (thread.state == NEW) prepare_stack(thread);
    thread.state = READY;
    current = &thread;
    inside_kernel = true;
    emulator_switch_stacks(&scheduler_stack, thread.stack_pointer);
    inside_kernel = false;
    if (thread.state == ENDED) free_stacks.push_back(thread.stack);
}

void prepare_fibers(void (*of_launch)(void**), void** arguments_of_launch) {
    kernel = of_launch;
    arguments = arguments_of_launch;
    if (!stacks)
        stacks = (char*)mmap(nullptr, MOST_FIBERS * STACK_BYTES, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    free_stacks.clear();
    for (unsigned i = MOST_FIBERS; i-- > 0;) free_stacks.push_back(stacks + i * STACK_BYTES);
}
}  // namespace emulator
