typedef struct {
    T *out;
    const T *x, *y, *grad, *found;
    int64_t rows, others, n, blocks, order;
} NAME(Distances);

/* Some more columns of a row, with each of `tile` rows side by side. */
INLINE void NAME(reach)(T *restrict out, const T *restrict x, const T *restrict turned, int64_t depth, const int tile,
                        const int64_t order) {
    T sums[WIDEST_TILE];
    for (int j = 0; j < tile; j++) sums[j] = out[j];
    for (int64_t m = 0; m < depth; m++) {
        const T from = x[m];
        const T *restrict to = turned + m * tile;
#pragma omp simd
        for (int j = 0; j < tile; j++) {
            const T d = from - to[j], size = ABS(d);
            if (order == TWO) sums[j] = FMA(d, d, sums[j]);
            else if (order == ONE) sums[j] += size;
            else sums[j] = size > sums[j] || size != size ? size : sums[j];
        }
    }
    for (int j = 0; j < tile; j++) out[j] = sums[j];
}

/* The distances of some rows from `tile` others, of which `count` are there. */
INLINE void NAME(reach_tile)(const NAME(Distances) *c, T *out, const T *x, const T *y, int64_t rows, int64_t count,
                             const int tile, const int64_t order) {
    T turned[DEEP * WIDEST_TILE], sums[ROWS_AT_ONCE * WIDEST_TILE];
    memset(sums, 0, sizeof sums);
    for (int64_t first = 0; first < c->n; first += DEEP) {
        const int64_t depth = c->n - first < DEEP ? c->n - first : DEEP;
        if (count < tile) memset(turned, 0, sizeof turned);
        for (int64_t j = 0; j < count; j++)
            for (int64_t m = 0; m < depth; m++) turned[m * tile + j] = y[j * c->n + first + m];
        for (int64_t i = 0; i < rows; i++)
            NAME(reach)(sums + i * tile, x + i * c->n + first, turned, depth, tile, order);
    }
    for (int64_t i = 0; i < rows; i++) {
        T *restrict to = out + i * c->others;
        const T *restrict from = sums + i * tile;
#pragma omp simd
        for (int64_t j = 0; j < count; j++) to[j] = order == TWO ? SQRT(from[j]) : from[j];
    }
}

#define REACHING(name, order)                                                                               \
    WIDE static void NAME(name)(const void *context, int64_t begin, int64_t end) {                          \
        const NAME(Distances) *c = context;                                                                 \
        for (int64_t block = begin; block < end; block++) {                                                 \
            const int64_t first = block % c->blocks * ROWS_AT_ONCE, row = block / c->blocks * c->rows + first; \
            const int64_t rows = c->rows - first < ROWS_AT_ONCE ? c->rows - first : ROWS_AT_ONCE;           \
            const T *x = c->x + row * c->n, *y = c->y + block / c->blocks * c->others * c->n;               \
            T *out = c->out + row * c->others;                                                              \
            for (int64_t j = 0; j < c->others;) {                                                           \
                const int64_t left = c->others - j;                                                         \
                if (left > 32) {                                                                            \
                    const int64_t count = left < WIDEST_TILE ? left : WIDEST_TILE;                          \
                    NAME(reach_tile)(c, out + j, x, y + j * c->n, rows, count, WIDEST_TILE, order);         \
                    j += count;                                                                             \
                } else {                                                                                    \
                    const int64_t count = left < 16 ? left : 16;                                            \
                    NAME(reach_tile)(c, out + j, x, y + j * c->n, rows, count, 16, order);                  \
                    j += count;                                                                             \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }
REACHING(sums_of_magnitudes, ONE)
REACHING(roots_of_squares, TWO)
REACHING(greatest_magnitudes, 0)
#undef REACHING

static int NAME(distances_of)(const Args *k, NAME(Distances) *c) {
    c->rows = k->n[1], c->others = k->n[2], c->n = k->n[3], c->order = k->n[4];
    c->blocks = c->rows / ROWS_AT_ONCE + (c->rows % ROWS_AT_ONCE > 0);
    return k->n[0] > 0 && c->rows > 0;
}

static int NAME(threads_of)(const Args *k, const NAME(Distances) *c) {
    return team(k, times(times(k->n[0] * c->rows, c->others), c->n));
}

static void NAME(cdist)(const Args *k) {
    NAME(Distances) c = {.out = k->p[0], .x = k->p[1], .y = k->p[2]};
    if (!NAME(distances_of)(k, &c) || c.others < 1) return;
    const Step step = c.order == ONE   ? NAME(sums_of_magnitudes)
                      : c.order == TWO ? NAME(roots_of_squares)
                                       : NAME(greatest_magnitudes);
    split(step, &c, k->n[0] * c.blocks, NAME(threads_of)(k, &c));
}

/* What the distances from some others add to `width` columns of the gradient of a row. */
INLINE void NAME(pull)(T *restrict out, const T *restrict x, const T *restrict y, const T *restrict weights,
                       const T *restrict found, int64_t count, int64_t step, const int64_t width, const int64_t order) {
    T sums[WIDEST_TILE] = {0};
    for (int64_t j = 0; j < count; j++, y += step) {
        const T weight = weights[j], most = found[j];
        (void)most;
#pragma omp simd
        for (int64_t m = 0; m < width; m++) {
            const T d = x[m] - y[m], sign = (T)(d > 0) - (T)(d < 0);
            if (order == TWO) sums[m] = FMA(weight, d, sums[m]);
            else if (order == ONE) sums[m] = FMA(weight, sign, sums[m]);
            else sums[m] = FMA(weight, ABS(d) == most ? sign : 0, sums[m]);
        }
    }
    for (int64_t m = 0; m < width; m++) out[m] += sums[m];
}

INLINE void NAME(pull_rows)(const NAME(Distances) *c, int64_t begin, int64_t end, const int64_t order) {
    T weights[DEEP];
    for (int64_t row = begin; row < end; row++) {
        const T *x = c->x + row * c->n, *y = c->y + row / c->rows * c->others * c->n;
        const T *grad = c->grad + row * c->others, *found = c->found + row * c->others;
        T *out = c->out + row * c->n;
        memset(out, 0, (size_t)c->n * sizeof(T));
        for (int64_t first = 0; first < c->others; first += DEEP) {
            const int64_t count = c->others - first < DEEP ? c->others - first : DEEP;
            for (int64_t j = 0; j < count; j++) {
                const T g = grad[first + j], d = found[first + j];
                weights[j] = order != TWO ? g : d == 0 ? 0 : g / d;
            }
            for (int64_t m = 0; m < c->n;) {
                const int64_t left = c->n - m, width = left >= WIDEST_TILE ? WIDEST_TILE : left >= 16 ? 16 : left;
                const T *from = y + first * c->n + m;
                if (width == WIDEST_TILE) NAME(pull)(out + m, x + m, from, weights, found + first, count, c->n, WIDEST_TILE, order);
                else if (width == 16) NAME(pull)(out + m, x + m, from, weights, found + first, count, c->n, 16, order);
                else NAME(pull)(out + m, x + m, from, weights, found + first, count, c->n, width, order);
                m += width;
            }
        }
    }
}

#define PULLING(name, order)                                                       \
    WIDE static void NAME(name)(const void *context, int64_t begin, int64_t end) { \
        NAME(pull_rows)(context, begin, end, order);                               \
    }
PULLING(pull_signs, ONE)
PULLING(pull_slopes, TWO)
PULLING(pull_greatest, 0)
#undef PULLING

static void NAME(cdist_backward)(const Args *k) {
    NAME(Distances) c = {.out = k->p[0], .grad = k->p[1], .x = k->p[2], .y = k->p[3], .found = k->p[4]};
    if (!NAME(distances_of)(k, &c) || c.n < 1) return;
    const Step step = c.order == ONE ? NAME(pull_signs) : c.order == TWO ? NAME(pull_slopes) : NAME(pull_greatest);
    split(step, &c, k->n[0] * c.rows, NAME(threads_of)(k, &c));
}
