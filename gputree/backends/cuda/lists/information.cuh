// Information in integers: gputree/criteria/entropy.py, operation for operation.
struct Information {
    double unit, scale;
    i64 shift, row_bits;
    const i64* terms;
    i64 n_terms;
};

__device__ inline i64 term(const Information& information, i64 weight) {
    const i64 rows = weight >> information.row_bits;
    if (rows < information.n_terms && rows << information.row_bits == weight)
        return information.terms[rows];
    return i64(rint(xlog2x(double(weight) * information.unit) * information.scale));
}

__device__ __forceinline__ i64 in_steps(const Information& information, i64 total) {
    return (total + (i64(1) << information.shift >> 1)) >> information.shift;
}
