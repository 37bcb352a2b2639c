/* The least and the greatest over the middle of (outer, n, inner), and where they stand.  A number
   takes the place of the best if it is beyond it, or a NaN: nothing is beyond a NaN. */
#define LANES (64 / (int)sizeof(T))
#define COLUMNS 256   /* whose extrema are sought at a time, line by line: of several the first, and the first NaN */
#define LONGEST 1024  /* of a short row: of longer ones four vectors are compared beside each other */
#define PARTS 16       /* of one row */
#define FOLDED (2 * LANES) /* numbers of a row, beyond which its vectors are compared before rows are turned */

typedef struct {
    const T *a;
    T *out;
    int64_t *places, n, inner;
} NAME(Extremes);

/* The first place of what is the extremum of a row; the last of a row that somebody writes to meanwhile. */
INLINE int64_t NAME(place_in)(const T *a, int64_t n, T best) {
    int64_t i = 0;
    if (IS_NAN(best)) {
        while (!IS_NAN(a[i]) && i < n - 1) i++;
        return i;
    }
    for (; i + LANES < n; i += LANES) {
        int found = 0;
#pragma omp simd reduction(| : found)
        for (int j = 0; j < LANES; j++) found |= a[i + j] == best;
        if (found) break;
    }
    while (a[i] != best && i < n - 1) i++;
    return i;
}

#define EXTREME_OF(name, relation)                                                               \
    INLINE T NAME(name##_better)(T x, T best) {                                                  \
        const T one = x relation best ? x : best;                                                \
        return IS_NAN(x) ? x : one;                                                              \
    }                                                                                            \
    INLINE T NAME(name##_of)(const T *restrict a, int64_t n) {                                   \
        T lanes[4 * LANES], best = a[0];                                                         \
        if (n < 8 * LANES) {                                                                     \
            for (int64_t i = 0; i < n; i++) best = NAME(name##_better)(a[i], best);              \
            return best;                                                                         \
        }                                                                                        \
        memcpy(lanes, a + n - 4 * LANES, sizeof lanes); /* of which some may be seen twice */    \
        for (int64_t i = 0; i + 4 * LANES < n; i += 4 * LANES)                                   \
            _Pragma("omp simd") for (int j = 0; j < 4 * LANES; j++)                              \
                lanes[j] = NAME(name##_better)(a[i + j], lanes[j]);                              \
        for (int width = 2 * LANES; width > 0; width /= 2)                                       \
            _Pragma("omp simd") for (int j = 0; j < width; j++)                                  \
                lanes[j] = NAME(name##_better)(lanes[j + width], lanes[j]);                      \
        return lanes[0];                                                                         \
    }                                                                                            \
    INLINE void NAME(name##_of_columns)(T *restrict out, const T *restrict a, int64_t n, int64_t inner) { \
        memcpy(out, a, (size_t)inner * sizeof(T));                                               \
        for (int64_t i = 1; i < n; i++) {                                                        \
            const T *restrict row = a + i * inner;                                               \
            _Pragma("omp simd") for (int64_t j = 0; j < inner; j++)                              \
                out[j] = NAME(name##_better)(row[j], out[j]);                                    \
        }                                                                                        \
    }                                                                                            \
    INLINE void NAME(name##_folded)(T *restrict out, const T *restrict a, int64_t n) {           \
        T lanes[LANES];                                                                          \
        memcpy(lanes, a + n - LANES, sizeof lanes);                                              \
        for (int64_t i = 0; i + LANES < n; i += LANES)                                           \
            _Pragma("omp simd") for (int j = 0; j < LANES; j++)                                  \
                lanes[j] = NAME(name##_better)(a[i + j], lanes[j]);                              \
        _Pragma("omp simd") for (int j = 0; j < LANES; j++) out[j] = lanes[j];                   \
    }                                                                                            \
    INLINE void NAME(name##_of_turned)(T *out, const T *a, int64_t rows, int64_t n) {            \
        T folded[TURNED / sizeof(T)], turned[TURNED / sizeof(T)];                                \
        if (n > FOLDED) {                                                                        \
            for (int64_t i = 0; i < rows; i++) NAME(name##_folded)(folded + i * LANES, a + i * n, n); \
            a = folded, n = LANES;                                                               \
        }                                                                                        \
        turn_rows(turned, a, rows, n, sizeof(T));                                                \
        NAME(name##_of_columns)(out, turned, n, rows);                                           \
    }                                                                                            \
    INLINE void NAME(name##_places_of_columns)(T *out, int64_t *found, const T *a, int64_t n,    \
                                               int64_t inner) {                                  \
        for (int64_t first = 0; first < inner; first += COLUMNS) {                               \
            const int64_t rest = inner - first, width = rest < COLUMNS ? rest : COLUMNS;         \
            T best[COLUMNS];                                                                     \
            NAME(Place) places[COLUMNS] = {0};                                                   \
            memcpy(best, a + first, (size_t)width * sizeof(T));                                  \
            for (int64_t i = 1; i < n; i++) {                                                    \
                const T *restrict row = a + i * inner + first;                                   \
                _Pragma("omp simd") for (int64_t j = 0; j < width; j++) {                        \
                    const T x = row[j], y = best[j];                                             \
                    const int is_first = (x relation y) | (IS_NAN(x) & !IS_NAN(y));              \
                    best[j] = is_first ? x : y;                                                  \
                    places[j] = is_first ? (NAME(Place))i : places[j];                           \
                }                                                                                \
            }                                                                                    \
            memcpy(out + first, best, (size_t)width * sizeof(T));                                \
            for (int64_t j = 0; j < width; j++) found[first + j] = places[j];                    \
        }                                                                                        \
    }                                                                                            \
    /* Of some rows, by turning them. */                                                         \
    WIDE static void NAME(name##_turned)(const void *context, int64_t begin, int64_t end) {      \
        const NAME(Extremes) *c = context;                                                       \
        const int64_t n = c->n, width = n > FOLDED ? LANES : n, most = rows_at_once(width * (int64_t)sizeof(T)); \
        for (int64_t row = begin; row < end; row += most) {                                      \
            const int64_t rows = end - row < most ? end - row : most;                            \
            const T *a = c->a + row * n;                                                         \
            T *out = c->out + row;                                                               \
            if (c->places != NULL && n <= FOLDED) {                                              \
                T turned[TURNED / sizeof(T)];                                                    \
                turn_rows(turned, a, rows, n, sizeof(T));                                        \
                NAME(name##_places_of_columns)(out, c->places + row, turned, n, rows);           \
                continue;                                                                        \
            }                                                                                    \
            NAME(name##_of_turned)(out, a, rows, n);                                             \
            for (int64_t i = 0; c->places != NULL && i < rows; i++) {                            \
                const int64_t place = NAME(place_in)(a + i * n, n, out[i]);                      \
                c->places[row + i] = place;                                                      \
                out[i] = a[i * n + place];                                                       \
            }                                                                                    \
        }                                                                                        \
    }                                                                                            \
    WIDE static void NAME(name##_step)(const void *context, int64_t begin, int64_t end) {        \
        const NAME(Extremes) *c = context;                                                       \
        const int64_t n = c->n, inner = c->inner;                                                \
        for (int64_t outer = begin; outer < end; outer++) {                                      \
            const T *a = c->a + outer * n * inner;                                               \
            T *out = c->out + outer * inner;                                                     \
            int64_t *places = c->places == NULL ? NULL : c->places + outer * inner;              \
            if (inner == 1 && places == NULL) {                                                  \
                *out = NAME(name##_of)(a, n);                                                    \
            } else if (inner == 1) {                                                             \
                *places = NAME(place_in)(a, n, NAME(name##_of)(a, n));                           \
                *out = a[*places];                                                               \
            } else if (places == NULL) {                                                         \
                NAME(name##_of_columns)(out, a, n, inner);                                       \
            } else {                                                                             \
                NAME(name##_places_of_columns)(out, places, a, n, inner);                        \
            }                                                                                    \
        }                                                                                        \
    }                                                                                            \
    static void NAME(name##_all)(const Args *k, const NAME(Extremes) * c) {                      \
        const int64_t outer = k->n[0];                                                           \
        const int are_turned = c->inner == 1 && outer >= FEWEST_TURNED && c->n > 1 && c->n <= LONGEST; \
        const Step step = are_turned ? NAME(name##_turned) : NAME(name##_step);                  \
        if (c->n > 0) split(step, c, outer, team(k, outer * c->n * c->inner));                   \
    }                                                                                            \
    static void NAME(name)(const Args *k) {                                                      \
        const NAME(Extremes) c = {k->p[1], k->p[0], NULL, k->n[1], k->n[2]};                     \
        if (k->n[0] != 1 || c.inner != 1 || c.n <= PARTS * LONGEST) {                            \
            NAME(name##_all)(k, &c);                                                             \
            return;                                                                              \
        }                                                                                        \
        T parts[PARTS + 1];                                                                      \
        const NAME(Extremes) rows = {c.a, parts, NULL, c.n / PARTS, 1};                          \
        const int64_t rest = c.n - rows.n * PARTS;                                               \
        split(NAME(name##_step), &rows, PARTS, team(k, c.n));                                    \
        parts[PARTS] = rest ? NAME(name##_of)(c.a + c.n - rest, rest) : parts[0];                \
        *c.out = NAME(name##_of)(parts, PARTS + 1);                                              \
    }                                                                                            \
    static void NAME(name##_at)(const Args *k) {                                                 \
        const NAME(Extremes) c = {k->p[2], k->p[0], k->p[1], k->n[1], k->n[2]};                  \
        NAME(name##_all)(k, &c);                                                                 \
    }

EXTREME_OF(amax, >)
EXTREME_OF(amin, <)
#undef EXTREME_OF
#undef LANES
#undef COLUMNS
#undef LONGEST
#undef FOLDED
#undef PARTS
