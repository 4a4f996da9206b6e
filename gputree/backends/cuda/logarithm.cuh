// A reproducible logarithm: gputree/criteria/shared.py, operation for operation.
#define LOG2_E 1.4426950408889634

__device__ inline double log2_of(double x) {
    const i64 bits = __double_as_longlong(x);
    i64 exponent = (bits >> 52) - 1023;
    double m = __longlong_as_double((bits & 0x000FFFFFFFFFFFFFll) | 0x3FF0000000000000ll);
    if (m > 1.4142135623730951) {
        m = m * 0.5;
        exponent += 1;
    }
    const double s = (m - 1.0) / (m + 1.0);
    const double z = s * s;
    double p = 1.0 / 21.0;
    p = p * z + 1.0 / 19.0;
    p = p * z + 1.0 / 17.0;
    p = p * z + 1.0 / 15.0;
    p = p * z + 1.0 / 13.0;
    p = p * z + 1.0 / 11.0;
    p = p * z + 1.0 / 9.0;
    p = p * z + 1.0 / 7.0;
    p = p * z + 0.2;
    p = p * z + 1.0 / 3.0;
    p = p * z;
    return double(exponent) + (s + s * p) * (2.0 * LOG2_E);
}

__device__ inline double xlog2x(double x) { return x > 0.0 ? x * log2_of(x) : 0.0; }
