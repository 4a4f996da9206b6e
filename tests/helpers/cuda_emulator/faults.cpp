// What goes wrong in a kernel: the first failure of a launch, with its place, is its message.
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "runtime.h"

namespace emulator {
bool failed;
volatile bool inside_kernel;

namespace {
std::string message;
volatile int caught;
size_t caught_at;
const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGVTALRM};
struct sigaction previous[5];
}  // namespace

void fail(const char* format, ...) {
    if (failed) return;
    char text[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    message = text;
    failed = true;
}

void trap(const char* why, int line) {
    fail("line %d: %s", line, why);
    stop_thread();
}

static const char* describe_fault() {
    switch (caught) {
        case SIGVTALRM: return "time limit (endless loop?)";
        case SIGFPE: return "integer division by zero";
        case SIGILL:
            return "undefined behaviour (shift, signed overflow, float to integer, array index)";
        default: return "illegal memory access";
    }
}

static void land() {
    inside_kernel = false;
    fail("pc 0x%zx: block (%u,%u,%u) thread %u: %s", caught_at + 1, block_index.x, block_index.y,
         block_index.z, current->linear, describe_fault());
    stop_thread();
}

// A fault of a kernel becomes a launch error: the thread goes on in `land`, on a fresh stack.
static void on_signal(int number, siginfo_t*, void* context) {
    if (!inside_kernel) {
        if (number != SIGVTALRM) signal(number, SIG_DFL);
        return;
    }
    auto* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
    caught = number;
    caught_at = size_t(registers[REG_RIP]);
    registers[REG_RIP] = greg_t(land);
    registers[REG_RSP] = greg_t(size_t(current->stack + STACK_BYTES) & ~size_t(15)) - 8;
}

void catch_signals(int seconds) {
    static char* own_stack = (char*)malloc(65536);
    stack_t alternative{};
    alternative.ss_sp = own_stack;
    alternative.ss_size = 65536;
    sigaltstack(&alternative, nullptr);
    struct sigaction action{};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int i = 0; i < 5; ++i) sigaction(SIGNALS[i], &action, &previous[i]);
    itimerval timer{{0, 50000}, {seconds, 0}};
    setitimer(ITIMER_VIRTUAL, &timer, nullptr);
}

void release_signals() {
    itimerval timer{};
    setitimer(ITIMER_VIRTUAL, &timer, nullptr);
    for (int i = 0; i < 5; ++i) sigaction(SIGNALS[i], &previous[i], nullptr);
}

void forget_failure() {
    failed = false;
    message.clear();
}
}  // namespace emulator

EMULATOR_API const char* emulator_message() { return emulator::message.c_str(); }
