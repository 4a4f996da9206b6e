// The words of CUDA C++ for g++: kernel source, unmodified, compiles behind this header.
//
// Threads are fibers that one host thread runs in turn; they switch at barriers and warp
// collectives, in random order at atomics, too. A plain read-modify-write is therefore atomic. What
// a GPU leaves undefined is missing here on purpose (__activemask), and only CUDA's own atomic
// overloads exist.
#pragma once
#include <cfloat>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <math.h>
#include <stdio.h>
#include <type_traits>
#include <utility>

#define __global__ __attribute__((visibility("default")))
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __grid_constant__
#define __launch_bounds__(...)
#define __restrict__ __restrict
// A copy a block: the scheduler finds those of "thread_local" variables. "used": else
// folded to its zero initial value, which a GPU does not give. The builder rewrites "extern
// __shared__".
#define __shared__ static thread_local __attribute__((used))
#define __CUDA_ARCH__ 900
#define EMULATOR_API extern "C" __attribute__((visibility("default")))
#define EMULATOR_WORD static inline __attribute__((no_sanitize("thread"), unused))

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
};
struct uchar4 {
    unsigned char x, y, z, w;
};

namespace emulator {
// ------------------------------------------------------------------ threads
struct Thread {  // one CUDA thread
    void* stack_pointer;
    char* stack;
    uint3 index;
    unsigned linear, lane, warp;
    int state;
    // the collective it waits in: what, where, with whom, its value and its result
    int operation, line;
    unsigned mask, source;
    uint64_t value, answer;
};
enum Operation {
    SYNCWARP = 1,
    SHUFFLE,
    BALLOT,
    ANY,
    ALL,
    MATCH_ANY,
    REDUCE_ADD,
    REDUCE_MIN,
    REDUCE_MAX,
    REDUCE_SIGNED_MIN,
    REDUCE_SIGNED_MAX,
    BARRIER = 32,
    BARRIER_COUNT,
    BARRIER_AND,
    BARRIER_OR
};
#pragma GCC visibility push(hidden)
extern Thread* current;
extern uint3 block_index;
extern dim3 block_size, grid_size;
extern int checking, interleaving;
uint64_t collective(int operation, unsigned mask, uint64_t value, unsigned source, int line);
int barrier(int operation, int predicate, int line);
void pause();  // let other threads go on
void* dynamic_shared();
void check_atomic(const void* place, unsigned size, const void* pc);
void trap(const char* why, int line);
#pragma GCC visibility pop

template <class T>
EMULATOR_WORD uint64_t pack(T value) {
    static_assert(sizeof(T) <= 8, "a collective takes at most 64 bits");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}
template <class To, class From>
EMULATOR_WORD To bits_as(From value) {
    To result;
    memcpy(&result, &value, sizeof result);
    return result;
}
template <class T>
EMULATOR_WORD T shuffle(unsigned mask, T value, unsigned source, int line) {
    static_assert(std::is_arithmetic<T>::value, "__shfl_*_sync takes arithmetic types only");
    return bits_as<T>(collective(SHUFFLE, mask, pack(value), source, line));
}
template <class T>
EMULATOR_WORD T shuffle_from(int line, unsigned mask, T value, int source, int width = 32) {
    const unsigned lane = current->lane;
    return shuffle(mask, value, (lane & ~(width - 1)) | (source & (width - 1)), line);
}
template <class T>
EMULATOR_WORD T shuffle_up(int line, unsigned mask, T value, unsigned by, int width = 32) {
    const unsigned lane = current->lane;
    return shuffle(mask, value, (lane & (width - 1)) < by ? lane : lane - by, line);
}
template <class T>
EMULATOR_WORD T shuffle_down(int line, unsigned mask, T value, unsigned by, int width = 32) {
    const unsigned lane = current->lane;
    const bool beyond = (lane & (width - 1)) + by >= unsigned(width);
    return shuffle(mask, value, beyond ? lane : lane + by, line);
}
template <class T>
EMULATOR_WORD T shuffle_xor(int line, unsigned mask, T value, int with, int width = 32) {
    const unsigned lane = current->lane, source = lane ^ with;
    return shuffle(mask, value, source >= (lane & ~(width - 1)) + width ? lane : source, line);
}
EMULATOR_WORD int reduce(int, int operation, unsigned mask, int value, int line) {
    return int(collective(operation, mask, uint64_t(int64_t(value)), 0, line));
}
EMULATOR_WORD unsigned reduce(int operation, int, unsigned mask, unsigned value, int line) {
    return unsigned(collective(operation, mask, value, 0, line));
}
EMULATOR_WORD unsigned whole_warp(unsigned mask = 0xffffffffu) { return mask; }

// ------------------------------------------------------------------ launches
// A kernel is called as the driver does it: with pointers to the values of its parameters.
// Its signature is a word a parameter: c (const pointer), m (pointer) or v (value), and the type
// as NumPy writes it; or s (struct), and its size.
template <class T>
char letter() {
    if (std::is_same<T, bool>::value) return '?';
    if (std::is_floating_point<T>::value) return sizeof(T) == 4 ? 'f' : 'd';
    static_assert(std::is_arithmetic<T>::value, "kernel parameters are numbers, or pointers to them");
    const char* letters = std::is_unsigned<T>::value ? "BHIQ" : "bhiq";
    return letters[sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3];
}
template <class... A>
struct Call {
    template <void (*Kernel)(A...), size_t... I>
    __attribute__((no_sanitize("thread"))) static void unpack(void** a, std::index_sequence<I...>) {
        Kernel(*(std::remove_reference_t<A>*)a[I]...);
    }
    template <void (*Kernel)(A...)>
    __attribute__((no_sanitize("thread"))) static void run(void** arguments) {
        unpack<Kernel>(arguments, std::index_sequence_for<A...>{});
    }
    template <class T>
    static void describe(char*& end) {
        using Pointed = std::remove_pointer_t<T>;
        if constexpr (std::is_class<T>::value) {
            end += sprintf(end, "s%zu ", sizeof(T));
        } else {
            *end++ = !std::is_pointer<T>::value ? 'v' : std::is_const<Pointed>::value ? 'c' : 'm';
            *end++ = letter<std::remove_cv_t<Pointed>>();
            *end++ = ' ';
        }
    }
    static const char* signature() {
        static char text[12 * sizeof...(A) + 1];
        char* end = text;
        (describe<A>(end), ...);
        *end = 0;
        return text;
    }
};
template <class... A>
Call<A...> call_of(void (*)(A...));
}  // namespace emulator

#define EMULATOR_KERNEL(NAME)                                                           \
    EMULATOR_API __attribute__((no_sanitize("thread"))) void emulator_call_##NAME(void** a) { \
        decltype(emulator::call_of(NAME))::run<NAME>(a);                                \
    }                                                                                   \
    EMULATOR_API const char* emulator_signature_##NAME() {                              \
        return decltype(emulator::call_of(NAME))::signature();                          \
    }

// ------------------------------------------------------------------ words
#define threadIdx (emulator::current->index)
#define blockIdx (emulator::block_index)
#define blockDim (emulator::block_size)
#define gridDim (emulator::grid_size)
static constexpr int warpSize = 32;

#define __syncthreads() ((void)emulator::barrier(emulator::BARRIER, 0, __LINE__))
#define __syncthreads_count(p) (emulator::barrier(emulator::BARRIER_COUNT, !!(p), __LINE__))
#define __syncthreads_and(p) (emulator::barrier(emulator::BARRIER_AND, !!(p), __LINE__))
#define __syncthreads_or(p) (emulator::barrier(emulator::BARRIER_OR, !!(p), __LINE__))
#define EMULATOR_VOTE(OPERATION, mask, value) \
    emulator::collective(emulator::OPERATION, mask, value, 0, __LINE__)
#define __syncwarp(...) ((void)EMULATOR_VOTE(SYNCWARP, emulator::whole_warp(__VA_ARGS__), 0))
#define __ballot_sync(m, p) ((unsigned)EMULATOR_VOTE(BALLOT, m, !!(p)))
#define __any_sync(m, p) ((int)EMULATOR_VOTE(ANY, m, !!(p)))
#define __all_sync(m, p) ((int)EMULATOR_VOTE(ALL, m, !!(p)))
#define __match_any_sync(m, v) ((unsigned)EMULATOR_VOTE(MATCH_ANY, m, emulator::pack(v)))
#define __shfl_sync(...) emulator::shuffle_from(__LINE__, __VA_ARGS__)
#define __shfl_up_sync(...) emulator::shuffle_up(__LINE__, __VA_ARGS__)
#define __shfl_down_sync(...) emulator::shuffle_down(__LINE__, __VA_ARGS__)
#define __shfl_xor_sync(...) emulator::shuffle_xor(__LINE__, __VA_ARGS__)
#define EMULATOR_REDUCE(UNSIGNED, SIGNED, m, v) \
    emulator::reduce(emulator::UNSIGNED, emulator::SIGNED, m, v, __LINE__)
#define __reduce_add_sync(m, v) EMULATOR_REDUCE(REDUCE_ADD, REDUCE_ADD, m, v)
#define __reduce_min_sync(m, v) EMULATOR_REDUCE(REDUCE_MIN, REDUCE_SIGNED_MIN, m, v)
#define __reduce_max_sync(m, v) EMULATOR_REDUCE(REDUCE_MAX, REDUCE_SIGNED_MAX, m, v)
#define __threadfence() __asm__ volatile("" ::: "memory")
#define __threadfence_block() __asm__ volatile("" ::: "memory")
#define __trap() emulator::trap("__trap()", __LINE__)
#undef assert
#define assert(c) ((c) ? (void)0 : emulator::trap("assert(" #c ")", __LINE__))

template <class T>
static inline T __ldg(const T* place) {
    return *place;
}
EMULATOR_WORD int __popc(unsigned x) { return __builtin_popcount(x); }
EMULATOR_WORD int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
EMULATOR_WORD int __ffs(int x) { return __builtin_ffs(x); }
EMULATOR_WORD int __ffsll(long long x) { return __builtin_ffsll(x); }
EMULATOR_WORD int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
EMULATOR_WORD int __clzll(long long x) {
    return x ? __builtin_clzll((unsigned long long)(x)) : 64;
}
EMULATOR_WORD int __float_as_int(float x) { return emulator::bits_as<int>(x); }
EMULATOR_WORD float __int_as_float(int x) { return emulator::bits_as<float>(x); }
EMULATOR_WORD unsigned __float_as_uint(float x) { return emulator::bits_as<unsigned>(x); }
EMULATOR_WORD float __uint_as_float(unsigned x) { return emulator::bits_as<float>(x); }
EMULATOR_WORD long long __double_as_longlong(double x) { return emulator::bits_as<long long>(x); }
EMULATOR_WORD double __longlong_as_double(long long x) { return emulator::bits_as<double>(x); }

template <class A, class B>
EMULATOR_WORD constexpr std::common_type_t<A, B> min(A a, B b) {
    using C = std::common_type_t<A, B>;
    return C(b) < C(a) ? C(b) : C(a);
}
template <class A, class B>
EMULATOR_WORD constexpr std::common_type_t<A, B> max(A a, B b) {
    using C = std::common_type_t<A, B>;
    return C(a) < C(b) ? C(b) : C(a);
}

// ------------------------------------------------------------------ atomics
#define EMULATOR_ATOMIC(NAME, T, RESULT)                                               \
    EMULATOR_WORD T NAME(T* place, T value) {                                          \
        if (__builtin_expect(emulator::checking, 0))                                   \
            emulator::check_atomic(place, sizeof(T), __builtin_return_address(0));     \
        T old = *place;                                                                \
        *place = (T)(RESULT);                                                          \
        if (__builtin_expect(emulator::interleaving, 0)) emulator::pause();            \
        return old;                                                                    \
    }
#define EMULATOR_ATOMICS(NAME, RESULT)              \
    EMULATOR_ATOMIC(NAME, int, RESULT)              \
    EMULATOR_ATOMIC(NAME, unsigned, RESULT)         \
    EMULATOR_ATOMIC(NAME, unsigned long long, RESULT)
EMULATOR_ATOMICS(atomicAdd, old + value)
EMULATOR_ATOMIC(atomicAdd, float, old + value)
EMULATOR_ATOMIC(atomicAdd, double, old + value)
EMULATOR_ATOMIC(atomicSub, int, old - value)
EMULATOR_ATOMIC(atomicSub, unsigned, old - value)
EMULATOR_ATOMICS(atomicMin, value < old ? value : old)
EMULATOR_ATOMIC(atomicMin, long long, value < old ? value : old)
EMULATOR_ATOMICS(atomicMax, value > old ? value : old)
EMULATOR_ATOMIC(atomicMax, long long, value > old ? value : old)
EMULATOR_ATOMICS(atomicAnd, old& value)
EMULATOR_ATOMICS(atomicOr, old | value)
EMULATOR_ATOMICS(atomicXor, old ^ value)
EMULATOR_ATOMICS(atomicExch, value)
#define EMULATOR_CAS(T)                                                                \
    EMULATOR_WORD T atomicCAS(T* place, T expected, T value) {                         \
        if (__builtin_expect(emulator::checking, 0))                                   \
            emulator::check_atomic(place, sizeof(T), __builtin_return_address(0));     \
        T old = *place;                                                                \
        if (old == expected) *place = value;                                           \
        if (__builtin_expect(emulator::interleaving, 0)) emulator::pause();            \
        return old;                                                                    \
    }
EMULATOR_CAS(int)
EMULATOR_CAS(unsigned)
EMULATOR_CAS(unsigned long long)
