/* The least and the greatest over the middle of (outer, n, inner), and where they stand.  A number
   takes the place of the best if it is beyond it, or a NaN: nothing is beyond a NaN. */
#define BEATS(x, relation, best) (((x)relation(best)) | ((x) != (x)))
#define LANES (256 / (int)sizeof(T))
#define COLUMNS 256 /* whose extrema are sought at a time, line by line: of several the first, and the first NaN */

typedef struct {
    const T *a;
    T *out;
    int64_t *places, n, inner;
} NAME(Extremes);

#define EXTREME_OF(name, relation)                                                               \
    INLINE T NAME(name##_of)(const T *restrict a, int64_t n) {                                   \
        T best = a[0];                                                                           \
        int64_t i = 0;                                                                           \
        if (n >= 2 * LANES) {                                                                    \
            T lanes[LANES];                                                                      \
            for (int j = 0; j < LANES; j++) lanes[j] = a[j];                                     \
            for (i = LANES; i + LANES <= n; i += LANES)                                          \
                _Pragma("omp simd") for (int j = 0; j < LANES; j++)                              \
                    lanes[j] = BEATS(a[i + j], relation, lanes[j]) ? a[i + j] : lanes[j];        \
            for (int j = 0; j < LANES; j++) best = BEATS(lanes[j], relation, best) ? lanes[j] : best; \
        }                                                                                        \
        for (; i < n; i++) best = BEATS(a[i], relation, best) ? a[i] : best;                     \
        return best;                                                                             \
    }                                                                                            \
    WIDE static void NAME(name##_step)(const void *context, int64_t begin, int64_t end) {        \
        const NAME(Extremes) *c = context;                                                       \
        for (int64_t outer = begin; outer < end; outer++) {                                      \
            const T *a = c->a + outer * c->n * c->inner;                                         \
            T *restrict out = c->out + outer * c->inner;                                         \
            if (c->inner == 1) {                                                                 \
                *out = NAME(name##_of)(a, c->n);                                                 \
                continue;                                                                        \
            }                                                                                    \
            memcpy(out, a, (size_t)c->inner * sizeof(T));                                        \
            for (int64_t i = 1; i < c->n; i++) {                                                 \
                const T *restrict row = a + i * c->inner;                                        \
                _Pragma("omp simd") for (int64_t j = 0; j < c->inner; j++)                       \
                    out[j] = BEATS(row[j], relation, out[j]) ? row[j] : out[j];                  \
            }                                                                                    \
        }                                                                                        \
    }                                                                                            \
    INLINE void NAME(name##_places_of_row)(const NAME(Extremes) * c, int64_t row) {               \
        const T *a = c->a + row * c->n, best = NAME(name##_of)(a, c->n);                         \
        int64_t i = 0;                                                                           \
        if (best != best) {                                                                      \
            while (a[i] == a[i] && i < c->n - 1) i++;                                            \
        } else {                                                                                 \
            while (a[i] != best && i < c->n - 1) i++;                                            \
        }                                                                                        \
        c->out[row] = a[i];                                                                      \
        c->places[row] = i;                                                                      \
    }                                                                                            \
    INLINE void NAME(name##_places_of_columns)(const NAME(Extremes) * c, int64_t outer) {        \
        for (int64_t first = 0; first < c->inner; first += COLUMNS) {                            \
            const int64_t rest = c->inner - first, width = rest < COLUMNS ? rest : COLUMNS;      \
            const T *a = c->a + outer * c->n * c->inner + first;                                 \
            T best[COLUMNS];                                                                     \
            NAME(Place) places[COLUMNS] = {0};                                                         \
            memcpy(best, a, (size_t)width * sizeof(T));                                          \
            for (int64_t i = 1; i < c->n; i++) {                                                 \
                const T *restrict row = a + i * c->inner;                                        \
                _Pragma("omp simd") for (int64_t j = 0; j < width; j++) {                        \
                    const T x = row[j], y = best[j];                                             \
                    const int is_first = (x relation y) | ((x != x) & (y == y));                 \
                    best[j] = is_first ? x : y;                                                  \
                    places[j] = is_first ? (NAME(Place))i : places[j];                                 \
                }                                                                                \
            }                                                                                    \
            memcpy(c->out + outer * c->inner + first, best, (size_t)width * sizeof(T));          \
            for (int64_t j = 0; j < width; j++) c->places[outer * c->inner + first + j] = places[j]; \
        }                                                                                        \
    }                                                                                            \
    WIDE static void NAME(name##_places)(const void *context, int64_t begin, int64_t end) {      \
        const NAME(Extremes) *c = context;                                                       \
        for (int64_t outer = begin; outer < end; outer++) {                                      \
            if (c->inner == 1) NAME(name##_places_of_row)(c, outer);                             \
            else NAME(name##_places_of_columns)(c, outer);                                       \
        }                                                                                        \
    }                                                                                            \
    static void NAME(name)(const Args *k) {                                                      \
        const NAME(Extremes) c = {k->p[1], k->p[0], NULL, k->n[1], k->n[2]};                     \
        if (c.n > 0) split(NAME(name##_step), &c, k->n[0], team(k, k->n[0] * c.n * c.inner));    \
    }                                                                                            \
    static void NAME(name##_at)(const Args *k) {                                                 \
        const NAME(Extremes) c = {k->p[2], k->p[0], k->p[1], k->n[1], k->n[2]};                  \
        if (c.n > 0) split(NAME(name##_places), &c, k->n[0], team(k, k->n[0] * c.n * c.inner));  \
    }

EXTREME_OF(amax, >)
EXTREME_OF(amin, <)
#undef EXTREME_OF
#undef BEATS
#undef LANES
#undef COLUMNS
