// Types and constants that all kernels share. Kernels are compiled without any header.
typedef unsigned char u8;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

#define ALL_LANES 0xffffffffu

#ifndef WEIGHTED
#define WEIGHTED 0
#endif
#ifndef CATEGORIES
#define CATEGORIES 0
#endif
#ifndef WIDE
#define WIDE 0
#endif
#ifndef REGRESSION
#define REGRESSION 0
#endif
#if REGRESSION
typedef i64 Target;  // weight x target, in units
#else
typedef i32 Target;  // class
#endif

// A statistic of a histogram cell: counts of rows need 32 bits, sums 64.
#if WEIGHTED || REGRESSION
typedef i64 Cell;
#else
typedef u32 Cell;
#endif

__device__ __forceinline__ double infinity() { return __longlong_as_double(0x7ff0000000000000ll); }

// max and min as in Python: of two equal numbers, or with a NaN, the first.
__device__ __forceinline__ double greater_of(double a, double b) { return b > a ? b : a; }
__device__ __forceinline__ double lesser_of(double a, double b) { return b < a ? b : a; }

__device__ __forceinline__ i64 weight_of(const i64* weight, i64 row) {
    return WEIGHTED ? weight[row] : 1;
}

// The first of first .. last that `is_behind`, as are all after it; `last` if none is.
__device__ __forceinline__ i64 first_behind(i64 first, i64 last, const auto& is_behind) {
    while (first < last) {
        const i64 middle = first + (last - first) / 2;
        if (is_behind(middle)) last = middle;
        else first = middle + 1;
    }
    return first;
}
