// Gini impurity: gputree/criteria/gini.py.
#ifdef GINI
struct State {
    i64 weight_left, weight_right, square_left, square_right;
};

__device__ State begin(const Criterion& criterion, const auto& left, const auto& total) {
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

__device__ void move(
    const Criterion&, State& state, auto& left, const auto& total, Target target, i64 weight
) {
    const i64 a = left[target];
    const i64 b = total[target] - a;
    left[target] = a + weight;
    state.square_left += weight * (2 * a + weight);
    state.square_right -= weight * (2 * b - weight);
    state.weight_left += weight;
    state.weight_right -= weight;
}

__device__ double score(const Criterion&, const State& state, const auto&, const auto&) {
    return double(state.square_left) / double(state.weight_left) +
           double(state.square_right) / double(state.weight_right);
}
#endif

#ifdef WIDE_GINI
__device__ double score(
    const Criterion& criterion, const State& state, const auto& left, const auto& total
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
__device__ double gain(const Criterion& criterion, double value, const auto& total) {
    double weight = 0.0, square = 0.0;
    for (i64 k = 0; k < criterion.n_classes; ++k) {
        const double a = double(i64(total[k]));
        weight += a;
        square += a * a;
    }
    return (value - square / weight) / weight;
}

// Score of a cut of two classes, a and b of them on the left; `whole` if a side is empty.
__device__ double corner_score(double a, double b, double n_a, double n_b, double whole) {
    const double rest_a = n_a - a, rest_b = n_b - b;
    const double left = a + b, right = rest_a + rest_b;
    const double product = left * right;
    const double squares = (a * a + b * b) * right + (rest_a * rest_a + rest_b * rest_b) * left;
    return product > 0.0 ? squares / product : whole;
}

// Highest score of two classes at the corners: each entirely left or entirely right.
__device__ double highest_corner(const auto& left, const auto& cells, const auto& total) {
    const double a = double(i64(left[0])), b = double(i64(left[1]));
    const double n_a = double(i64(total[0])), n_b = double(i64(total[1]));
    const double end_a = a + double(i64(cells[0])), end_b = b + double(i64(cells[1]));
    const double whole = (n_a * n_a + n_b * n_b) / (n_a + n_b);
    return greater_of(
        greater_of(
            corner_score(a, b, n_a, n_b, whole), corner_score(end_a, b, n_a, n_b, whole)
        ),
        greater_of(
            corner_score(a, end_b, n_a, n_b, whole), corner_score(end_a, end_b, n_a, n_b, whole)
        )
    );
}

__device__ double bound(
    const Criterion& criterion, const auto& left, const auto& cells, const auto& total
) {
    if (criterion.n_classes == 2) return highest_corner(left, cells, total);
    double a0 = 0.0, b = 0.0, n = 0.0, q_left = 0.0, q_right = 0.0, widest = 0.0;
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
        widest = greater_of(widest, width);
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
        value += widest;
    else
        value += ratio_left + greater_of(most_left, 0.0) * (1.0 / a0 - factor_left);
    if (free_right)
        value += widest;
    else
        value += ratio_right + greater_of(most_right, 0.0) * (1.0 / r1 - factor_right);
    return value;
}

// Highest score at the corners: each class present entirely left or entirely right. The first corner
// is the one where each class joins the side that has more than its proportion of it; if it reaches
// `needed`, no other is computed. Then all follow a Gray code: one class crosses at a time.
#define MOST_CORNER_CLASSES 8
#define OWN_TIGHTEN
__device__ double tighten(
    const Criterion& criterion, const auto& left, const auto& cells, const auto& total,
    double value, double needed
) {
    if (criterion.n_classes == 2) return value;  // they are the bound already
    i64 present = 0;
    double middle = 0.0, n = 0.0;
    for (i64 k = 0; k < criterion.n_classes; ++k) {
        present += cells[k] > 0;
        middle += double(i64(left[k])) + 0.5 * double(i64(cells[k]));
        n += double(i64(total[k]));
    }
    if (present > MOST_CORNER_CLASSES) return value;
    double a = 0.0, square_left = 0.0, square_right = 0.0;
    for (i64 k = 0; k < criterion.n_classes; ++k) {
        double weight_left = double(i64(left[k]));
        const double width = double(i64(cells[k]));
        const double whole = double(i64(total[k]));
        weight_left += (weight_left + 0.5 * width) * n > whole * middle ? width : 0.0;
        a += weight_left;
        square_left += weight_left * weight_left;
        square_right += (whole - weight_left) * (whole - weight_left);
    }
    if (0.0 < a && a < n && square_left / a + square_right / (n - a) >= needed) return value;
    a = square_left = square_right = 0.0;
    for (i64 k = 0; k < criterion.n_classes; ++k) {
        const double start = double(i64(left[k]));
        const double whole = double(i64(total[k]));
        a += start;
        square_left += start * start;
        square_right += (whole - start) * (whole - start);
    }
    double best = 0.0, off_left = 0.0, off_right = 0.0;
    u32 crossed = 0;
    for (int corner = 1; corner <= 1 << present; ++corner) {
        const double share_left = a > 0.0 ? (square_left + off_left) / a : 0.0;
        const double share_right = n > a ? (square_right + off_right) / (n - a) : 0.0;
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
        const double before_left = square_left, before_right = square_right;
        square_left += width * (2.0 * start + width);
        square_right -= width * (2.0 * rest - width);
        off_left += 0x1p-51 * greater_of(before_left, square_left);
        off_right += 0x1p-51 * greater_of(before_right, square_right);
    }
    return lesser_of(best, value);
}
#endif
