// The words of PTX that C++ has no operator for; `translator.py` writes the rest.
//
// Registers are local variables, of unsigned integers unless they hold doubles or predicates. Addresses
// of each state space count from its own beginning, but for global and generic ones, which are the
// host's: one that is taken for an address of another space is none of that space, as on a device.
#pragma once
#include "runtime.h"

namespace ptx {
using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long long;  // as CUDA's atomics have it
using s8 = signed char;
using s16 = short;
using s32 = int;
using s64 = long long;
using f64 = double;
using pred = bool;
using namespace emulator;

#define PTX_PURE template <class T> static inline __attribute__((unused))

// ------------------------------------------------------------------ integers
// Machines give all ones where they divide by zero, and do not trap.
PTX_PURE T divide(T a, T b) { return b == 0 ? T(-1) : b == T(-1) && T(-1) < 0 ? T(0 - u64(a)) : a / b; }
PTX_PURE T remainder(T a, T b) { return b == 0 ? a : b == T(-1) && T(-1) < 0 ? T(0) : a % b; }
PTX_PURE T high(T a, T b) {
    constexpr bool is_signed = T(-1) < 0;
    using Wide = std::conditional_t<is_signed, __int128, unsigned __int128>;
    return T((Wide(a) * b) >> 8 * sizeof(T));
}
PTX_PURE u32 clz(T a) { return a ? __builtin_clzll(a) - (64 - 8 * sizeof(T)) : 8 * sizeof(T); }
PTX_PURE u32 popc(T a) { return __builtin_popcountll(a); }
PTX_PURE T brev(T a) {
    T reversed = 0;
    for (unsigned i = 0; i < 8 * sizeof(T); ++i) reversed |= (a >> i & 1) << (8 * sizeof(T) - 1 - i);
    return reversed;
}
// The position of the highest bit that is no sign, or the shift that brings it to the top.
PTX_PURE u32 bfind(T a) {
    using U = std::make_unsigned_t<T>;
    const U bits = a < 0 ? ~U(a) : U(a);
    return bits ? 8 * sizeof(T) - 1 - clz(bits) : ~0u;
}
PTX_PURE u32 bfind_shiftamt(T a) {
    const u32 place = bfind(a);
    return place == ~0u ? place : 8 * sizeof(T) - 1 - place;
}
// Bits of which the place and number are taken as bytes; beyond the top they are the sign's.
PTX_PURE T bfe(T a, u32 place, u32 number) {
    constexpr int top = 8 * sizeof(T) - 1;
    using U = std::make_unsigned_t<T>;
    const int first = place & 255, count = number & 255;
    const bool is_set = T(-1) < 0 && count && U(a) >> (first + count - 1 < top ? first + count - 1 : top) & 1;
    U bits = 0;
    for (int i = 0; i <= top; ++i)
        bits |= U(i < count && first + i <= top ? U(a) >> (first + i) & 1 : is_set) << i;
    return T(bits);
}
PTX_PURE T bfi(T from, T to, u32 place, u32 number) {
    const u32 first = place & 255, count = number & 255;
    for (u32 i = 0; i < count && first + i < 8 * sizeof(T); ++i)
        to = (to & ~(T(1) << (first + i))) | (from >> i & 1) << (first + i);
    return to;
}
static inline __attribute__((unused)) u32 prmt(u32 a, u32 b, u32 selector) {
    const u64 bytes = u64(b) << 32 | a;
    u32 result = 0;
    for (int i = 0; i < 4; ++i) {
        const u32 pick = selector >> 4 * i & 15;
        const u8 byte = u8(bytes >> 8 * (pick & 7));
        result |= u32(pick & 8 ? (byte >> 7 ? 255 : 0) : byte) << 8 * i;
    }
    return result;
}
static inline __attribute__((unused)) u32 lop3(u32 a, u32 b, u32 c, u32 table) {
    u32 result = 0;
    for (int i = 0; i < 8; ++i)
        if (table >> i & 1) result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return result;
}
static inline __attribute__((unused)) u32 shf_l(u32 low, u32 top, u32 by) {
    return u32((u64(top) << 32 | low) << by >> 32);
}
static inline __attribute__((unused)) u32 shf_r(u32 low, u32 top, u32 by) {
    return u32((u64(top) << 32 | low) >> by);
}

// ------------------------------------------------------------------ doubles
// The other one where one is NaN; -0 is less than 0.
static inline __attribute__((unused)) bool is_below(f64 a, f64 b) {
    return a < b || (a == b && __builtin_signbit(a) && !__builtin_signbit(b));
}
PTX_PURE T min(T a, T b) {
    if constexpr (std::is_same<T, f64>::value) {
        if (a != a || b != b) return a == a ? a : b == b ? b : __builtin_nan("");
        return is_below(b, a) ? b : a;
    }
    return b < a ? b : a;
}
PTX_PURE T max(T a, T b) {
    if constexpr (std::is_same<T, f64>::value) {
        if (a != a || b != b) return a == a ? a : b == b ? b : __builtin_nan("");
        return is_below(a, b) ? b : a;
    }
    return a < b ? b : a;
}
static inline __attribute__((unused)) f64 round_n(f64 a) { return __builtin_rint(a); }
static inline __attribute__((unused)) f64 round_z(f64 a) { return __builtin_trunc(a); }
static inline __attribute__((unused)) f64 round_m(f64 a) { return __builtin_floor(a); }
static inline __attribute__((unused)) f64 round_p(f64 a) { return __builtin_ceil(a); }
// The nearest of the type; of NaN, the one with the highest bit alone.
PTX_PURE T to_integer(f64 a) {
    constexpr int bits = 8 * sizeof(T) - (T(-1) < 0);
    constexpr T most = T(~0ull >> (64 - bits)), least = T(-1) < 0 ? -most - 1 : 0;
    if (a != a) return T(1ull << (8 * sizeof(T) - 1));
    return a <= f64(least) ? least : a >= __builtin_ldexp(1.0, bits) ? most : T(a);
}

// ------------------------------------------------------------------ memory
// Where an access of so many bytes is, which must be a multiple of them.
struct Room {  // parameters or local memory of a thread
    char* begin;
    u64 bytes;
};
EMULATOR_WORD void require(bool is_met, const char* why, int line) {
    if (__builtin_expect(!is_met, 0)) emulator::trap(why, line);
}
EMULATOR_WORD void* generic_place(u64 address, unsigned size, int line) {
    require(address % size == 0, "misaligned address", line);
    return (void*)address;
}
EMULATOR_WORD void* global_place(u64 address, unsigned size, int line) {
    using emulator::shared;
    const bool is_shared = address - u64(shared.begin) < shared.blocks * shared.bytes;
    require(!is_shared, "shared memory as global memory", line);
    return generic_place(address, size, line);
}
EMULATOR_WORD void* place_within(Room area, u64 address, unsigned size, const char* why, int line) {
    require(address <= area.bytes && size <= area.bytes - address, why, line);
    return generic_place(u64(area.begin) + address, size, line);
}
EMULATOR_WORD void* shared_place(u64 address, unsigned size, int line) {
    const Room area{emulator::block->shared, emulator::shared.bytes};
    return place_within(area, address, size, "outside of shared memory", line);
}
EMULATOR_WORD u64 shared_begin() { return u64(emulator::block->shared); }
EMULATOR_WORD u64 shared_offset(const void* variable) {
    return u64((const char*)variable - emulator::block->shared);
}

// ------------------------------------------------------------------ threads
#define PTX_INDEX(NAME, VALUE)                             \
    EMULATOR_WORD u32 NAME##_x() { return (VALUE).x; }     \
    EMULATOR_WORD u32 NAME##_y() { return (VALUE).y; }     \
    EMULATOR_WORD u32 NAME##_z() { return (VALUE).z; }
PTX_INDEX(tid, emulator::current->index)
PTX_INDEX(ntid, emulator::block_size)
PTX_INDEX(ctaid, emulator::block_index)
PTX_INDEX(nctaid, emulator::grid_size)
EMULATOR_WORD u32 laneid() { return emulator::current->lane; }

// The lane that a shuffle reads, itself where there is none, and whether there is one.
enum Direction { up, down, bfly, idx };
EMULATOR_WORD u32 shfl(Direction direction, u32 value, u32 by, u32 clamp, u32 mask, pred* is_there,
                       int line) {
    const u32 lane = emulator::current->lane, segment = clamp >> 8 & 31, b = by & 31;
    const u32 least = lane & segment, last = least | (clamp & 31 & ~segment);
    const int from = direction == up     ? int(lane) - int(b)
                     : direction == down ? int(lane + b)
                     : direction == bfly ? int(lane ^ b)
                                         : int(least | (b & ~segment));
    const bool is_within = direction == up ? from >= int(last) : from <= int(last);
    if (is_there) *is_there = is_within;
    return u32(emulator::collective(emulator::SHUFFLE, mask, value, is_within ? from : lane, line));
}
}  // namespace ptx
