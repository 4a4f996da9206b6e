// Split criteria: the formulas of gputree/criteria.py, operation for operation. Compiled with
// --fmad=false, so that every score has the same bits as on the CPU; the reasons are there.
//
// One of GINI, WIDE_GINI, ENTROPY, MANY_CLASS_ENTROPY and SQUARED_ERROR is defined. Statistics
// are anything with an operator[] that gives int64 channels.
#ifdef MANY_CLASS_ENTROPY
#define ANY_ENTROPY
#elif defined(ENTROPY)
#define ANY_ENTROPY
#endif
#define LOG2_E 1.4426950408889634
#define BOUND_MARGIN 1e-9

struct Criterion {
    i64 n_classes;
    double unit;
    double scale;  // SQUARED_ERROR: unit of squares; MANY_CLASS_ENTROPY: fixed-point units of a bit
};

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

// ------------------------------------------------------------------ classes
#if !REGRESSION
template <class Statistics>
__device__ i64 weight_in(const Criterion& criterion, const Statistics& statistics) {
    i64 weight = 0;
    for (i64 k = 0; k < criterion.n_classes; ++k) weight += statistics[k];
    return weight;
}

template <class Total>
__device__ bool is_pure(const Criterion& criterion, const Total& total) {
    i64 present = 0;
    for (i64 k = 0; k < criterion.n_classes; ++k) present += total[k] > 0;
    return present < 2;
}
#endif

// ------------------------------------------------------------------ gini
#ifdef GINI
struct State {
    i64 weight_left, weight_right, square_left, square_right;
};

template <class Left, class Total>
__device__ State begin(const Criterion& criterion, const Left& left, const Total& total) {
    State state = {0, 0, 0, 0};
    for (i64 k = 0; k < criterion.n_classes; ++k) {
        const i64 a = left[k];
        const i64 b = total[k] - a;
        state.weight_left += a;
        state.weight_right += b;
        state.square_left += a * a;
        state.square_right += b * b;
    }
    return state;
}

template <class Left, class Total>
__device__ void move(
    const Criterion&, State& state, Left& left, const Total& total, Target target, i64 weight
) {
    const i64 a = left[target];
    const i64 b = total[target] - a;
    left[target] = a + weight;
    state.square_left += weight * (2 * a + weight);
    state.square_right -= weight * (2 * b - weight);
    state.weight_left += weight;
    state.weight_right -= weight;
}

template <class Left, class Total>
__device__ double score(const Criterion&, const State& state, const Left&, const Total&) {
    return double(state.square_left) / double(state.weight_left) +
           double(state.square_right) / double(state.weight_right);
}
#endif

#if defined(WIDE_GINI) || defined(ENTROPY)
struct State {
    i64 weight_left, weight_right;
};

template <class Left, class Total>
__device__ State begin(const Criterion& criterion, const Left& left, const Total& total) {
    State state = {0, 0};
    for (i64 k = 0; k < criterion.n_classes; ++k) {
        state.weight_left += left[k];
        state.weight_right += total[k] - left[k];
    }
    return state;
}

template <class Left, class Total>
__device__ void move(
    const Criterion&, State& state, Left& left, const Total&, Target target, i64 weight
) {
    left[target] += weight;
    state.weight_left += weight;
    state.weight_right -= weight;
}
#endif

#ifdef WIDE_GINI
template <class Left, class Total>
__device__ double score(
    const Criterion& criterion, const State& state, const Left& left, const Total& total
) {
    double square_left = 0.0, square_right = 0.0;
    for (i64 k = 0; k < criterion.n_classes; ++k) {
        const double a = double(i64(left[k]));
        const double b = double(total[k] - left[k]);
        square_left += a * a;
        square_right += b * b;
    }
    return square_left / double(state.weight_left) + square_right / double(state.weight_right);
}
#endif

#if defined(GINI) || defined(WIDE_GINI)
template <class Total>
__device__ double gain(const Criterion& criterion, double value, const Total& total) {
    double weight = 0.0, square = 0.0;
    for (i64 k = 0; k < criterion.n_classes; ++k) {
        const double a = double(i64(total[k]));
        weight += a;
        square += a * a;
    }
    return (value - square / weight) / weight;
}

template <class Left, class Cells, class Total>
__device__ double bound(
    const Criterion& criterion, const Left& left, const Cells& cells, const Total& total
) {
    double a0 = 0.0, b = 0.0, n = 0.0, q_left = 0.0, q_right = 0.0, greatest = 0.0;
    for (i64 k = 0; k < criterion.n_classes; ++k) {
        const double width = double(i64(cells[k]));
        const double start = double(i64(left[k]));
        const double whole = double(i64(total[k]));
        const double middle = start + 0.5 * width;
        a0 += start;
        b += width;
        n += whole;
        q_left += middle * middle;
        q_right += (whole - middle) * (whole - middle);
        greatest = greater_of(greatest, width);
    }
    const double a1 = a0 + b;
    const double r0 = n - a0;
    const double r1 = n - a1;
    const double ratio_left = q_left / (a0 + 0.5 * b);
    const double ratio_right = q_right / (n - a0 - 0.5 * b);
    const bool free_left = a0 == 0.0, free_right = r1 == 0.0;
    const double factor_left = free_left ? 0.0 : 1.0 / a1;
    const double factor_right = free_right ? 0.0 : 1.0 / r0;
    double both = 0.0, most_left = 0.0, most_right = 0.0;
    for (i64 k = 0; k < criterion.n_classes; ++k) {
        const double start = double(i64(left[k]));
        const double end = start + double(i64(cells[k]));
        const double whole = double(i64(total[k]));
        const double left_start = start * (start - ratio_left);
        const double left_end = end * (end - ratio_left);
        const double right_start = (whole - start) * (whole - start - ratio_right);
        const double right_end = (whole - end) * (whole - end - ratio_right);
        both += greater_of(
            left_start * factor_left + right_start * factor_right,
            left_end * factor_left + right_end * factor_right
        );
        most_left += greater_of(left_start, left_end);
        most_right += greater_of(right_start, right_end);
    }
    double value = both;
    if (free_left)
        value += greatest;
    else
        value += ratio_left + greater_of(most_left, 0.0) * (1.0 / a0 - factor_left);
    if (free_right)
        value += greatest;
    else
        value += ratio_right + greater_of(most_right, 0.0) * (1.0 / r1 - factor_right);
    return value;
}

// The greatest score at the corners: each class present wholly left or wholly right. Corners
// follow a Gray code, one class crossing at a time.
#define MOST_CORNER_CLASSES 8
template <class Left, class Cells, class Total>
__device__ double tighten(
    const Criterion& criterion, const Left& left, const Cells& cells, const Total& total,
    double value
) {
    i64 present = 0;
    double a = 0.0, n = 0.0, square_left = 0.0, square_right = 0.0;
    for (i64 k = 0; k < criterion.n_classes; ++k) {
        present += cells[k] > 0;
        const double start = double(i64(left[k]));
        const double whole = double(i64(total[k]));
        a += start;
        n += whole;
        square_left += start * start;
        square_right += (whole - start) * (whole - start);
    }
    if (present > MOST_CORNER_CLASSES) return value;
    double best = 0.0;
    u32 crossed = 0;
    for (int corner = 1; corner <= 1 << present; ++corner) {
        const double share_left = a > 0.0 ? square_left / a : 0.0;
        const double share_right = n > a ? square_right / (n - a) : 0.0;
        best = greater_of(best, share_left + share_right);
        const int bit = __ffs(corner) - 1;
        i64 k = -1;
        for (int i = 0; i <= (bit < present ? bit : present - 1); ++i) {
            k += 1;
            while (cells[k] == 0) k += 1;
        }
        double width = double(i64(cells[k]));
        double start = double(i64(left[k]));
        if (crossed >> bit & 1) {
            start += width;
            width = -width;
        }
        const double rest = double(i64(total[k])) - start;
        crossed ^= 1u << bit;
        a += width;
        square_left += width * (2.0 * start + width);
        square_right -= width * (2.0 * rest - width);
    }
    return lesser_of(best, value);
}
#else
template <class Left, class Cells, class Total>
__device__ double tighten(const Criterion&, const Left&, const Cells&, const Total&, double value) {
    return value;
}
#endif

// ------------------------------------------------------------------ entropy
#ifdef MANY_CLASS_ENTROPY
struct State {
    i64 weight_left, weight_right, terms;
};

__device__ inline i64 fixed_xlog2x(const Criterion& criterion, i64 weight) {
    return i64(rint(xlog2x(double(weight) * criterion.unit) * criterion.scale));
}

template <class Left, class Total>
__device__ State begin(const Criterion& criterion, const Left& left, const Total& total) {
    State state = {0, 0, 0};
    for (i64 k = 0; k < criterion.n_classes; ++k) {
        const i64 a = left[k];
        const i64 b = total[k] - a;
        state.weight_left += a;
        state.weight_right += b;
        if (a > 0) state.terms += fixed_xlog2x(criterion, a);
        if (b > 0) state.terms += fixed_xlog2x(criterion, b);
    }
    return state;
}

template <class Left, class Total>
__device__ void move(
    const Criterion& criterion, State& state, Left& left, const Total& total, Target target,
    i64 weight
) {
    const i64 a = left[target];
    const i64 b = total[target] - a;
    left[target] = a + weight;
    state.terms += fixed_xlog2x(criterion, a + weight) - fixed_xlog2x(criterion, a);
    state.terms += fixed_xlog2x(criterion, b - weight) - fixed_xlog2x(criterion, b);
    state.weight_left += weight;
    state.weight_right -= weight;
}

template <class Left, class Total>
__device__ double score(
    const Criterion& criterion, const State& state, const Left&, const Total&
) {
    const double weight_left = double(state.weight_left) * criterion.unit;
    const double weight_right = double(state.weight_right) * criterion.unit;
    const double value = double(state.terms) / criterion.scale;
    return value - (xlog2x(weight_left) + xlog2x(weight_right));
}
#endif

#ifdef ENTROPY
template <class Left, class Total>
__device__ double score(
    const Criterion& criterion, const State& state, const Left& left, const Total& total
) {
    double value = 0.0;
    for (i64 k = 0; k < criterion.n_classes; ++k) {
        const double a = double(i64(left[k])) * criterion.unit;
        const double b = double(total[k] - left[k]) * criterion.unit;
        value += xlog2x(a) + xlog2x(b);
    }
    const double weight_left = double(state.weight_left) * criterion.unit;
    const double weight_right = double(state.weight_right) * criterion.unit;
    return value - (xlog2x(weight_left) + xlog2x(weight_right));
}
#endif

#ifdef ANY_ENTROPY
template <class Total>
__device__ double margin(const Criterion& criterion, double value, const Total& total) {
    return BOUND_MARGIN * (double(weight_in(criterion, total)) * criterion.unit - value);
}

template <class Total>
__device__ double gain(const Criterion& criterion, double value, const Total& total) {
    double weight = 0.0, within = 0.0;
    for (i64 k = 0; k < criterion.n_classes; ++k) {
        const double a = double(i64(total[k])) * criterion.unit;
        weight += a;
        within += xlog2x(a);
    }
    return (value - (within - xlog2x(weight))) / weight;
}

template <class Left, class Cells, class Total>
__device__ double bound(
    const Criterion& criterion, const Left& left, const Cells& cells, const Total& total
) {
    double middle = 0.0, whole = 0.0;
    for (i64 k = 0; k < criterion.n_classes; ++k) {
        middle += double(i64(left[k])) + 0.5 * double(i64(cells[k]));
        whole += double(i64(total[k]));
    }
    middle *= criterion.unit;
    whole *= criterion.unit;
    const double slope_left = log2_of(middle) + LOG2_E;
    const double slope_right = log2_of(whole - middle) + LOG2_E;
    double value = whole * LOG2_E;
    for (i64 k = 0; k < criterion.n_classes; ++k) {
        const double t = double(i64(total[k])) * criterion.unit;
        double a = double(i64(left[k])) * criterion.unit;
        const double start = xlog2x(a) + xlog2x(t - a) - slope_left * a - slope_right * (t - a);
        if (cells[k] == 0) {
            value += start;
        } else {
            a = double(left[k] + i64(cells[k])) * criterion.unit;
            const double end = xlog2x(a) + xlog2x(t - a) - slope_left * a - slope_right * (t - a);
            value += greater_of(start, end);
        }
    }
    return value;
}
#else
template <class Total>
__device__ double margin(const Criterion&, double value, const Total&) {
    return BOUND_MARGIN * value;
}
#endif

// ------------------------------------------------------------------ squared error
#ifdef SQUARED_ERROR
struct State {
    i64 weight_left, whole, deviation, centre;
    double rest;
};

__device__ __forceinline__ i64 floor_divide(i64 a, i64 b) {  // b > 0
    const i64 quotient = a / b;
    return quotient * b > a ? quotient - 1 : quotient;
}

// Narrow an interval to where a target may truly lie: one that had to be rounded is off by
// `resolution` times two units, and by what rounding its weight makes of it.
__device__ __forceinline__ void narrow(
    double& low, double& high, Target target, i64 weight, double resolution
) {
    const double value = double(floor_divide(target, weight));
    const double error = resolution * (2.0 + fabs(value) * 8.881784197001252e-16);  // 2**-50
    low = greater_of(low, value - error);
    high = lesser_of(high, value + error);
}

template <class Statistics>
__device__ i64 weight_in(const Criterion&, const Statistics& statistics) {
    return statistics[0];
}

template <class Total>
__device__ bool is_pure(const Criterion&, const Total&) {
    return false;
}

template <class Left, class Total>
__device__ State begin(const Criterion&, const Left& left, const Total& total) {
    const i64 weight = total[0];
    const i64 centre = floor_divide(total[1], weight);
    const double rest = double(total[1] - centre * weight) / double(weight);
    return {left[0], weight, left[1] - centre * left[0], centre, rest};
}

template <class Left, class Total>
__device__ void move(
    const Criterion&, State& state, Left&, const Total&, Target target, i64 weight
) {
    state.weight_left += weight;
    state.deviation += target - state.centre * weight;
}

template <class Left, class Total>
__device__ double score(const Criterion&, const State& state, const Left&, const Total&) {
    const double a = double(state.weight_left);
    const double d = double(state.deviation) - a * state.rest;
    return (d * d) / (a * double(state.whole - state.weight_left));
}

template <class Total>
__device__ double gain(const Criterion& criterion, double value, const Total&) {
    return value * criterion.unit * criterion.unit;
}

template <class Left, class Cells, class Total>
__device__ double bound(
    const Criterion& criterion, const Left& left, const Cells& cells, const Total& total
) {
    const i64 weight = total[0];
    const i64 centre = floor_divide(total[1], weight);
    const double rest = double(total[1] - centre * weight) / double(weight);
    const double n = double(weight);
    const double a0 = double(i64(left[0]));
    const double b = double(cells[0]);
    const double d0 = double(left[1] - centre * left[0]) - a0 * rest;
    const double s = double(cells[1] - centre * cells[0]) - b * rest;
    const double mean = s / b;
    const double own = double(cells[1]);
    double spread =
        (double(cells[2]) + b) * criterion.scale * (1.0 + 1e-12) - own * (own / b);
    spread = greater_of(spread + 1e-12 * own * (own / b), 0.0);
    const double half = 0.5 * sqrt(spread * b);
    const bool free_left = a0 == 0.0, free_right = a0 + b == n;
    double most_left = 0.0, most_right = 0.0, most_both = 0.0;
    for (int i = 0; i < 4; ++i) {
        const bool outer = i == 0 || i == 3;
        const double step = double(i) - 1.5;
        double share = outer ? 0.5 + step : 0.5 + step * 0.41421356237309503;
        share = lesser_of(greater_of(share, 0.0), 1.0);
        const double height = outer ? half * 0.41421356237309503 : half;
        const double c = share * b;
        const double a = a0 + c;
        const double r = n - a;
        const double d =
            greater_of(fabs(d0 + mean * c + height), fabs(d0 + mean * c - height));
        if (!free_left) most_left = greater_of(most_left, d * d / a);
        if (!free_right) most_right = greater_of(most_right, d * d / r);
        if (!free_left && !free_right) most_both = greater_of(most_both, d * d / a + d * d / r);
    }
    const double alone = spread + s * mean;
    if (free_left && free_right) return 2.0 * alone / n;
    if (free_left) return (alone + most_right) / n;
    if (free_right) return (alone + most_left) / n;
    return most_both / n;
}
#endif

// ------------------------------------------------------------------ rows
// Number of rows behind the statistics of so many channels.
template <class Statistics>
__device__ i64 rows_in(const Criterion& criterion, const Statistics& statistics, i64 channels) {
    return WEIGHTED ? i64(statistics[channels - 1]) : weight_in(criterion, statistics);
}
