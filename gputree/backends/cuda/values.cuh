// Values as integers: CuPy compiles with -ftz=true, so float32 arithmetic and comparisons
// would lose subnormal numbers, which other devices keep.
#if VALUE_BITS == 32
typedef u32 Bits;
#define INFINITY_BITS 0x7f800000u
#else
typedef u64 Bits;
#define INFINITY_BITS 0x7ff0000000000000ull
#endif
#define SIGN_BIT (Bits(1) << (VALUE_BITS - 1))
#define MISSING_KEY (~Bits(0))

// An integer that grows with the value; both zeros are one, missing values are last.
__device__ __forceinline__ Bits key_of(Bits bits) {
    if ((bits & ~SIGN_BIT) > INFINITY_BITS) return MISSING_KEY;
    if (bits == SIGN_BIT) return SIGN_BIT;
    return bits & SIGN_BIT ? ~bits : bits | SIGN_BIT;
}

// The value of a key, as float64.
__device__ __forceinline__ double value_of(Bits key) {
    const Bits bits = key & SIGN_BIT ? key & ~SIGN_BIT : ~key;
#if VALUE_BITS == 64
    return __longlong_as_double(i64(bits));
#else
    const i64 exponent = bits >> 23 & 0xff, mantissa = bits & 0x7fffff;
    const double size = exponent == 0
                            ? double(mantissa) * 1.401298464324817e-45  // 2**-149: subnormal
                            : __longlong_as_double((exponent + 1023 - 127) << 52 | mantissa << 29);
    return bits & SIGN_BIT ? -size : size;
#endif
}

// Threshold between two neighbouring values: the midpoint, or `low` if that rounds up.
__device__ __forceinline__ double midpoint(double low, double high) {
    const double middle = 0.5 * low + 0.5 * high;
    return middle < high ? middle : low;
}
