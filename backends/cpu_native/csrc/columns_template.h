/* softmax and log_softmax over the middle of (outer, n, inner), and their gradients: TILE columns of neighbours
   at a time, line by line.  Sums of RUN terms are taken in T, their sums in double. */

typedef struct {
    const T *a, *b;
    T *out;
    int64_t n, inner, tiles;
} NAME(Columns);

/* The first column of a piece of the work, and how many there are. */
INLINE int64_t NAME(first_of)(const NAME(Columns) * c, int64_t piece, int64_t *width) {
    const int64_t first = piece % c->tiles * TILE, rest = c->inner - first;
    *width = rest < TILE ? rest : TILE;
    return piece / c->tiles * c->n * c->inner + first;
}

/* The greatest of each column, or NaN where there is one. */
INLINE void NAME(tops)(T *restrict top, const T *restrict a, int64_t n, int64_t inner, int64_t width) {
    memcpy(top, a, (size_t)width * sizeof(T));
    for (int64_t i = 1; i < n; i++) {
        const T *restrict row = a + i * inner;
#pragma omp simd
        for (int64_t j = 0; j < width; j++) top[j] = (row[j] > top[j]) | (row[j] != row[j]) ? row[j] : top[j];
    }
}

/* sums[j] of the `term` of each line, which reads a[at + j] and may write. */
#define SUM_OF_LINES(term)                                                             \
    for (int64_t j = 0; j < width; j++) sums[j] = 0;                                   \
    for (int64_t start = 0; start < n; start += RUN) {                                 \
        const int64_t last = n - start < RUN ? n : start + RUN;                        \
        T some[TILE] = {0};                                                            \
        for (int64_t i = start; i < last; i++) {                                       \
            const int64_t at = i * inner;                                              \
            _Pragma("omp simd") for (int64_t j = 0; j < width; j++) some[j] += (term); \
        }                                                                              \
        _Pragma("omp simd") for (int64_t j = 0; j < width; j++) sums[j] += some[j];    \
    }

#define EACH(result)                                                                          \
    for (int64_t i = 0; i < n; i++) {                                                         \
        const int64_t at = i * inner;                                                         \
        _Pragma("omp simd") for (int64_t j = 0; j < width; j++) out[at + j] = (result);       \
    }

#define COLUMNS(name, body)                                                                       \
    WIDE static void NAME(name##_step)(const void *context, int64_t begin, int64_t end) {         \
        const NAME(Columns) *c = context;                                                         \
        const int64_t n = c->n, inner = c->inner;                                                 \
        for (int64_t piece = begin; piece < end; piece++) {                                       \
            int64_t width;                                                                        \
            const int64_t first = NAME(first_of)(c, piece, &width);                               \
            const T *restrict a = c->a + first, *restrict b = c->b != NULL ? c->b + first : NULL; \
            T *restrict out = c->out + first, of[TILE];                                           \
            double sums[TILE];                                                                    \
            (void)b;                                                                              \
            body                                                                                  \
        }                                                                                         \
    }

COLUMNS(softmax_columns, {
    NAME(tops)(of, a, n, inner, width);
    SUM_OF_LINES(out[at + j] = EXP(a[at + j] - of[j]))
    for (int64_t j = 0; j < width; j++) of[j] = (T)(1 / sums[j]);
    EACH(out[at + j] * of[j])
})

COLUMNS(log_softmax_columns, {
    NAME(tops)(of, a, n, inner, width);
    SUM_OF_LINES(EXP(out[at + j] = a[at + j] - of[j]))
    /* Taken off last: greatest + log of the sum rounds to the greatest if it is large. */
    _Pragma("omp simd") for (int64_t j = 0; j < width; j++) of[j] = NAME(log_of)((T)sums[j]);
    EACH(out[at + j] - of[j])
})

COLUMNS(softmax_backward_columns, {
    SUM_OF_LINES(a[at + j] * b[at + j])
    for (int64_t j = 0; j < width; j++) of[j] = (T)sums[j];
    EACH(b[at + j] * (a[at + j] - of[j]))
})

COLUMNS(log_softmax_backward_columns, {
    SUM_OF_LINES(a[at + j])
    for (int64_t j = 0; j < width; j++) of[j] = (T)sums[j];
    EACH(a[at + j] - EXP(b[at + j]) * of[j])
})
#undef COLUMNS
#undef EACH
#undef SUM_OF_LINES

static void NAME(over_columns)(const Args *k, Step step, int has_two) {
    const int64_t outer = k->n[0], n = k->n[1], inner = k->n[2];
    const NAME(Columns) c = {.a = k->p[1], .b = has_two ? k->p[2] : NULL, .out = k->p[0],
                             .n = n, .inner = inner, .tiles = (inner + TILE - 1) / TILE};
    if (n > 0) split(step, &c, outer * c.tiles, team(k, outer * n * inner));
}

static void NAME(softmax_columns)(const Args *k) { NAME(over_columns)(k, NAME(softmax_columns_step), 0); }
static void NAME(log_softmax_columns)(const Args *k) { NAME(over_columns)(k, NAME(log_softmax_columns_step), 0); }
static void NAME(softmax_backward_columns)(const Args *k) {
    NAME(over_columns)(k, NAME(softmax_backward_columns_step), 1);
}
static void NAME(log_softmax_backward_columns)(const Args *k) {
    NAME(over_columns)(k, NAME(log_softmax_backward_columns_step), 1);
}
