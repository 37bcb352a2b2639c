/* Sums, products and norms over the middle of (outer, n, inner), and running sums along it. */

/* Sums beside each other, 256 bytes of them, hide the latency of an addition; rows shorter than LONG have a
   vector of them only, as joining more would take longer.  Runs of RUN elements are summed in A, their sums
   in double: rounding errors grow with RUN only.  Products of less than SHORT factors are taken in order,
   for it decides whether large ones overflow before a small one comes. */
#define RUN 2048
#define LONG 256

#define PRAGMA(text) _Pragma(#text)
#define FOLDED(name, A, RUNS, SHORT, start_value, combine, term)                                  \
    INLINE double NAME(name##_run)(const T *a, int64_t n, double about) {                         \
        enum { LANES = 256 / sizeof(A) };                                                         \
        (void)about;                                                                              \
        double total = start_value;                                                               \
        for (int64_t start = 0, count; start < n; start += count) {                               \
            count = n - start < RUNS ? n - start : RUNS;                                          \
            const T *b = a + start;                                                               \
            A rest = start_value;                                                                 \
            int64_t i = 0;                                                                        \
            for (; i < count && count < SHORT; i++) {                                             \
                A x = b[i];                                                                       \
                rest = rest combine(term);                                                        \
            }                                                                                     \
            if (count >= LONG) {                                                                  \
                A lanes[LANES];                                                                   \
                for (int j = 0; j < LANES; j++) lanes[j] = start_value;                           \
                for (; i + LANES <= count; i += LANES) {                                          \
                    PRAGMA(omp simd)                                                              \
                    for (int j = 0; j < LANES; j++) {                                             \
                        A x = b[i + j];                                                           \
                        lanes[j] = lanes[j] combine(term);                                        \
                    }                                                                             \
                }                                                                                 \
                PRAGMA(omp simd reduction(combine : rest))                                        \
                for (int j = 0; j < LANES; j++) rest = rest combine lanes[j];                     \
                total = total combine(double) rest;                                               \
                rest = start_value;                                                               \
            }                                                                                     \
            PRAGMA(omp simd reduction(combine : rest))                                            \
            for (int64_t k = i; k < count; k++) {                                                 \
                A x = b[k];                                                                       \
                rest = rest combine(term);                                                        \
            }                                                                                     \
            total = total combine(double) rest;                                                   \
        }                                                                                         \
        return total;                                                                             \
    }

FOLDED(sum, T, RUN, 0, 0.0, +, x)
FOLDED(nansum, T, RUN, 0, 0.0, +, x == x ? x : 0)
FOLDED(norm2, T, RUN, 0, 0.0, +, x *x)
FOLDED(prod, double, INT64_MAX, 64, 1.0, *, x)
FOLDED(exact, double, RUN, 0, 0.0, +, x)
FOLDED(squares, double, RUN, 0, 0.0, +, (x - about) * (x - about))
#undef FOLDED
#undef PRAGMA

typedef struct {
    const T *a;
    T *out;
    int64_t n, inner, tiles, tile;
    double divisor;
    const T *b;
    int64_t chunk;
    double *parts;
} NAME(Reduction);

/* Each sum of a contiguous row, of chunks of one row, and of columns, TILE of them at a time (a page of
   floats; half of it if threads share the work), four rows of them in A if that cannot overflow.  The
   chunks do not depend on the threads, hence the result does not either.  Columns of FEW elements in all are
   summed in order, and so few factors multiplied: as a program would that adds one after the other. */
#define FEW 512
#define MOST_OTHERS 1024 /* elements of a row that is turned */
#define MOST_IN_ORDER (128 / (int)sizeof(T)) /* elements of a row; a vector of sums of longer ones is turned */
#define TILE 1024
#define CHUNK 16384
#define CHUNKS 64

static int64_t NAME(chunk_of)(int64_t n) {
    const int64_t part = (n + CHUNKS - 1) / CHUNKS;
    return part <= CHUNK ? CHUNK : (part + RUN - 1) / RUN * RUN;
}

#define REDUCTION(name, A, is_grouped, few, start_value, combine, term, finish)                                  \
    static void NAME(few_##name)(const Args *k) {                                                 \
        const int64_t n = k->n[1], inner = k->n[2];                                               \
        for (int64_t outer = 0; outer < k->n[0]; outer++) {                                       \
            const T *a = (const T *)k->p[1] + outer * n * inner;                                  \
            T *restrict out = (T *)k->p[0] + outer * inner;                                       \
            memcpy(out, a, (size_t)inner * sizeof(T));                                            \
            for (int64_t i = 1; i < n; i++)                                                       \
                for (int64_t j = 0; j < inner; j++) {                                             \
                    const T x = a[i * inner + j];                                                 \
                    out[j] = out[j] combine(term);                                                \
                }                                                                                 \
        }                                                                                         \
    }                                                                                             \
    WIDE static void NAME(name##_rows)(const void *context, int64_t begin, int64_t end) {         \
        const NAME(Reduction) *c = context;                                                       \
        for (int64_t row = begin; row < end; row++) {                                             \
            double total = NAME(name##_run)(c->a + row * c->n, c->n, 0);                          \
            c->out[row] = (T)(finish);                                                            \
        }                                                                                         \
    }                                                                                             \
    WIDE static void NAME(name##_chunks)(const void *context, int64_t begin, int64_t end) {       \
        const NAME(Reduction) *c = context;                                                       \
        for (int64_t chunk = begin; chunk < end; chunk++) {                                       \
            int64_t start = chunk * c->chunk, left = c->n - start;                                \
            c->parts[chunk] = NAME(name##_run)(c->a + start, left < c->chunk ? left : c->chunk, 0); \
        }                                                                                         \
    }                                                                                             \
    WIDE static void NAME(name##_columns)(const void *context, int64_t begin, int64_t end) {      \
        const NAME(Reduction) *c = context;                                                       \
        for (int64_t piece = begin; piece < end; piece++) {                                       \
            int64_t outer = piece / c->tiles, first = piece % c->tiles * c->tile;                 \
            int64_t width = c->inner - first < c->tile ? c->inner - first : c->tile;              \
            const T *a = c->a + outer * c->n * c->inner + first;                                  \
            double totals[TILE];                                                                  \
            for (int64_t j = 0; j < width; j++) totals[j] = start_value;                          \
            int64_t i = 0;                                                                        \
            for (; is_grouped && i + 4 <= c->n; i += 4) {                                                       \
                const T *row0 = a + i * c->inner, *row1 = row0 + c->inner;                        \
                const T *row2 = row1 + c->inner, *row3 = row2 + c->inner;                         \
                _Pragma("omp simd") for (int64_t j = 0; j < width; j++) {                         \
                    A x = row0[j], p0 = term, p1;                                                 \
                    x = row1[j];                                                                  \
                    p0 = p0 combine(term);                                                        \
                    x = row2[j];                                                                  \
                    p1 = term;                                                                    \
                    x = row3[j];                                                                  \
                    p1 = p1 combine(term);                                                        \
                    totals[j] = totals[j] combine(double)(p0 combine p1);                         \
                }                                                                                 \
            }                                                                                     \
            for (; i < c->n; i++) {                                                               \
                const T *row = a + i * c->inner;                                                  \
                _Pragma("omp simd") for (int64_t j = 0; j < width; j++) {                         \
                    double x = row[j];                                                            \
                    totals[j] = totals[j] combine(term);                                          \
                }                                                                                 \
            }                                                                                     \
            T *out = c->out + outer * c->inner + first;                                           \
            _Pragma("omp simd") for (int64_t j = 0; j < width; j++) {                             \
                double total = totals[j];                                                         \
                out[j] = (T)(finish);                                                             \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    /* Sums beside each other of a row, a vector of them. */                                      \
    INLINE void NAME(name##_folded)(A *restrict out, const T *restrict a, int64_t n) {            \
        enum { LANES = 64 / sizeof(A) };                                                          \
        A lanes[LANES];                                                                           \
        int64_t i = LANES;                                                                        \
        _Pragma("omp simd") for (int j = 0; j < LANES; j++) {                                     \
            const A x = a[j];                                                                     \
            lanes[j] = term;                                                                      \
        }                                                                                         \
        for (; i + LANES <= n; i += LANES)                                                        \
            _Pragma("omp simd") for (int j = 0; j < LANES; j++) {                                 \
                const A x = a[i + j];                                                             \
                lanes[j] = lanes[j] combine(term);                                                \
            }                                                                                     \
        const int rest = (int)(n - i);                                                            \
        _Pragma("omp simd") for (int j = 0; j < LANES; j++) {                                     \
            const A x = j < rest ? (A)a[i + j] : (A)start_value;                                  \
            out[j] = lanes[j] combine(term);                                                      \
        }                                                                                         \
    }                                                                                             \
    /* Of some rows, by turning them, or the sums of each. */                                     \
    WIDE static void NAME(name##_turned)(const void *context, int64_t begin, int64_t end) {       \
        enum { LANES = 64 / sizeof(A) };                                                          \
        const NAME(Reduction) *c = context;                                                       \
        const int64_t n = c->n;                                                                   \
        const int is_folded = n > MOST_IN_ORDER;                                                  \
        const int64_t most = rows_at_once(is_folded ? 64 : n * (int64_t)sizeof(T));               \
        for (int64_t row = begin, rows; row < end; row += rows) {                                 \
            rows = end - row < most ? end - row : most;                                           \
            const T *a = c->a + row * n;                                                          \
            T *out = c->out + row;                                                                \
            if (!is_folded) {                                                                     \
                T turned[TURNED / sizeof(T)];                                                     \
                NAME(Reduction) some = *c;                                                        \
                turn_rows(turned, a, rows, n, sizeof(T));                                         \
                some.a = turned, some.out = out, some.inner = some.tile = rows, some.tiles = 1;   \
                NAME(name##_columns)(&some, 0, 1);                                                \
                continue;                                                                         \
            }                                                                                     \
            A folded[TURNED / sizeof(A)], turned[TURNED / sizeof(A)];                             \
            double totals[MOST_TURNED];                                                           \
            for (int64_t i = 0; i < rows; i++) NAME(name##_folded)(folded + i * LANES, a + i * n, n); \
            turn_rows(turned, folded, rows, LANES, sizeof(A));                                    \
            for (int64_t j = 0; j < rows; j++) totals[j] = start_value;                           \
            for (int64_t i = 0; i < LANES; i++)                                                   \
                _Pragma("omp simd") for (int64_t j = 0; j < rows; j++)                            \
                    totals[j] = totals[j] combine turned[i * rows + j];                           \
            _Pragma("omp simd") for (int64_t j = 0; j < rows; j++) {                              \
                const double total = totals[j];                                                   \
                out[j] = (T)(finish);                                                             \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    static void NAME(name)(const Args *k) {                                                       \
        int64_t outer = k->n[0], n = k->n[1], inner = k->n[2];                                    \
        int64_t work = outer * n * inner, tile = team(k, work) > 1 ? TILE / 2 : TILE;             \
        int64_t tiles = (inner + tile - 1) / tile;                                                \
        double parts[CHUNKS], total = start_value;                                                \
        if (work > 0 && work < FEW && (few)) {                                                    \
            NAME(few_##name)(k);                                                                  \
            return;                                                                               \
        }                                                                                         \
        NAME(Reduction) whole = {.a = k->p[1], .out = k->p[0], .n = n, .inner = inner,            \
                                 .tiles = tiles, .tile = tile, .divisor = k->x[0],                \
                                 .chunk = NAME(chunk_of)(n),                                      \
                                 .parts = parts};                                                 \
        const NAME(Reduction) *c = &whole;                                                        \
        if (inner != 1) {                                                                         \
            split(NAME(name##_columns), c, outer * tiles, team(k, work));                         \
        } else if (n > 1 && n < LONG) {                                                          \
            split(NAME(name##_turned), c, outer, team(k, work));                                  \
        } else if (outer != 1 || n <= CHUNK) {                                                    \
            split(NAME(name##_rows), c, outer, team(k, work));                                    \
        } else {                                                                                  \
            int64_t chunks = (n + c->chunk - 1) / c->chunk;                                       \
            split(NAME(name##_chunks), c, chunks, team(k, work));                                 \
            for (int64_t i = 0; i < chunks; i++) total = total combine parts[i];                  \
            whole.out[0] = (T)(finish);                                                           \
        }                                                                                         \
    }

REDUCTION(sum, T, 1, inner != 1 && k->x[0] == 1, 0.0, +, x, total / c->divisor)
REDUCTION(nansum, T, 1, 0, 0.0, +, (x == x ? x : 0), total)
REDUCTION(prod, double, 0, n < 64, 1.0, *, x, total)
REDUCTION(norm2, T, 1, 0, 0.0, +, x *x, sqrt(total))
#undef REDUCTION

/* The sum of squared differences of two arrays, over `divisor`. */
WIDE static void NAME(distance_chunks)(const void *context, int64_t begin, int64_t end) {
    const NAME(Reduction) *c = context;
    const T *restrict a = c->a, *restrict b = c->b;
    for (int64_t chunk = begin; chunk < end; chunk++) {
        const int64_t stop = (chunk + 1) * c->chunk < c->n ? (chunk + 1) * c->chunk : c->n;
        double total = 0;
        for (int64_t start = chunk * c->chunk; start < stop; start += RUN) {
            const int64_t last = start + RUN < stop ? start + RUN : stop;
            T sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int64_t i = start; i < last; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
            total += sum;
        }
        c->parts[chunk] = total;
    }
}

static void NAME(distance)(const Args *k) {
    const int64_t n = k->n[0];
    double parts[CHUNKS], total = 0;
    NAME(Reduction) c = {.a = k->p[1], .b = k->p[2], .n = n, .chunk = NAME(chunk_of)(n),
                         .parts = parts};
    const int64_t chunks = (n + c.chunk - 1) / c.chunk;
    split(NAME(distance_chunks), &c, chunks, team(k, n));
    for (int64_t i = 0; i < chunks; i++) total += parts[i];
    *(T *)k->p[0] = (T)(total / k->x[0]);
}

/* The variance of rows, in double: of runs the mean and the sum of squares about it, joined by the
   formula of Chan, Golub and LeVeque (1983).  A run is read twice, from the nearest cache. */
INLINE void NAME(join)(double *count, double *mean, double *squares, double more, double other_mean,
                       double other_squares) {
    const double all = *count + more, step = other_mean - *mean;
    *squares += other_squares + step * step * (*count * more / all);
    *mean += step * (more / all);
    *count = all;
}

WIDE static void NAME(moments)(const T *a, int64_t n, double *mean, double *squares) {
    double seen = 0;
    *mean = *squares = 0;
    for (int64_t start = 0, count; start < n; start += count) {
        count = n - start < RUN ? n - start : RUN;
        const double middle = NAME(exact_run)(a + start, count, 0) / (double)count;
        const double about = NAME(squares_run)(a + start, count, middle);
        NAME(join)(&seen, mean, squares, (double)count, middle, about);
    }
}

static void NAME(var_rows)(const void *context, int64_t begin, int64_t end) {
    const NAME(Reduction) *c = context;
    for (int64_t row = begin; row < end; row++) {
        double mean, squares;
        NAME(moments)(c->a + row * c->n, c->n, &mean, &squares);
        c->out[row] = (T)(squares / c->divisor);
    }
}

static void NAME(var_chunks)(const void *context, int64_t begin, int64_t end) {
    const NAME(Reduction) *c = context;
    for (int64_t chunk = begin; chunk < end; chunk++) {
        const int64_t start = chunk * c->chunk, left = c->n - start;
        NAME(moments)(c->a + start, left < c->chunk ? left : c->chunk, &c->parts[2 * chunk],
                      &c->parts[2 * chunk + 1]);
    }
}

static void NAME(var)(const Args *k) {
    const int64_t rows = k->n[0], n = k->n[1];
    double parts[2 * CHUNKS], seen = 0, mean = 0, squares = 0;
    NAME(Reduction) c = {.a = k->p[1], .out = k->p[0], .n = n, .divisor = k->x[0],
                         .chunk = NAME(chunk_of)(n), .parts = parts};
    if (rows != 1 || n <= CHUNK) {
        split(NAME(var_rows), &c, rows, team(k, rows * n));
        return;
    }
    const int64_t chunks = (n + c.chunk - 1) / c.chunk;
    split(NAME(var_chunks), &c, chunks, team(k, n));
    for (int64_t i = 0; i < chunks; i++) {
        const int64_t left = n - i * c.chunk;
        NAME(join)(&seen, &mean, &squares, (double)(left < c.chunk ? left : c.chunk), parts[2 * i],
                   parts[2 * i + 1]);
    }
    c.out[0] = (T)(squares / c.divisor);
}

/* Running sums and products, in double: along columns TILE of them at a time, line by line.  Along rows a sum of
   floats waits for the last one once in AHEAD elements, eight, whose own sums are taken meanwhile: they cannot
   overflow, and neither can products of four. */
#define RUNNING(name, start_value, combine, AHEAD)                                                         \
    WIDE static void NAME(name##_rows)(const void *context, int64_t begin, int64_t end) {           \
        const NAME(Reduction) *c = context;                                                         \
        for (int64_t row = begin; row < end; row++) {                                               \
            const T *restrict a = c->a + row * c->n;                                                \
            T *restrict out = c->out + row * c->n;                                                  \
            double total = start_value;                                                             \
            int64_t i = 0;                                                                          \
            for (; sizeof(T) < sizeof(double) && i + AHEAD <= c->n; i += AHEAD) {                   \
                double some[AHEAD] = {a[i]};                                                        \
                for (int j = 1; j < AHEAD; j++) some[j] = some[j - 1] combine a[i + j];             \
                for (int j = 0; j < AHEAD; j++) out[i + j] = (T)(total combine some[j]);            \
                total = total combine some[AHEAD - 1];                                              \
            }                                                                                       \
            for (; i < c->n; i++) {                                                                 \
                total = total combine a[i];                                                         \
                out[i] = (T)total;                                                                  \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
    WIDE static void NAME(name##_columns)(const void *context, int64_t begin, int64_t end) {        \
        const NAME(Reduction) *c = context;                                                         \
        for (int64_t outer = begin; outer < end; outer++) {                                         \
            const T *a = c->a + outer * c->n * c->inner;                                            \
            T *out = c->out + outer * c->n * c->inner;                                              \
            for (int64_t first = 0; first < c->inner; first += TILE) {                              \
                const int64_t rest = c->inner - first, width = rest < TILE ? rest : TILE;           \
                double totals[TILE];                                                                \
                for (int64_t j = 0; j < width; j++) totals[j] = start_value;                        \
                for (int64_t i = 0; i < c->n; i++) {                                                \
                    const T *restrict row = a + i * c->inner + first;                               \
                    T *restrict target = out + i * c->inner + first;                                \
                    _Pragma("omp simd") for (int64_t j = 0; j < width; j++)                         \
                        target[j] = (T)(totals[j] = totals[j] combine row[j]);                      \
                }                                                                                   \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
    static void NAME(name)(const Args *k) {                                                         \
        NAME(Reduction) c = {.a = k->p[1], .out = k->p[0], .n = k->n[1], .inner = k->n[2]};         \
        Step step = c.inner == 1 ? NAME(name##_rows) : NAME(name##_columns);                        \
        if (c.n > 0) split(step, &c, k->n[0], team(k, k->n[0] * c.n * c.inner));                    \
    }
RUNNING(cumsum, 0.0, +, 8)
RUNNING(cumprod, 1.0, *, 4)
#undef RUNNING

/* The product of all but each element, along columns: of those before it, then times that of those after it. */
WIDE static void NAME(others_of_columns)(T *restrict out, const T *restrict a, int64_t n, int64_t inner,
                                         int64_t width) {
    double totals[TILE];
    for (int64_t j = 0; j < width; j++) totals[j] = 1;
    for (int64_t i = 0; i < n; i++) {
#pragma omp simd
        for (int64_t j = 0; j < width; j++) {
            out[i * inner + j] = (T)totals[j];
            totals[j] *= a[i * inner + j];
        }
    }
    for (int64_t j = 0; j < width; j++) totals[j] = 1;
    for (int64_t i = n - 1; i >= 0; i--) {
#pragma omp simd
        for (int64_t j = 0; j < width; j++) {
            out[i * inner + j] *= (T)totals[j];
            totals[j] *= a[i * inner + j];
        }
    }
}

static void NAME(others_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Reduction) *c = context;
    for (int64_t piece = begin; piece < end; piece++) {
        const int64_t first = piece % c->tiles * c->tile, rest = c->inner - first;
        const int64_t at = piece / c->tiles * c->n * c->inner + first;
        NAME(others_of_columns)(c->out + at, c->a + at, c->n, c->inner, rest < c->tile ? rest : c->tile);
    }
}

/* Sixteen rows are turned at least, and turned back. */
static void NAME(others_turned)(const void *context, int64_t begin, int64_t end) {
    const NAME(Reduction) *c = context;
    const int64_t n = c->n, few = rows_at_once(n * (int64_t)sizeof(T)), most = few ? few : 16;
    T turned[16 * MOST_OTHERS], others[16 * MOST_OTHERS];
    for (int64_t row = begin, rows; row < end; row += rows) {
        rows = end - row < most ? end - row : most;
        turn_rows(turned, c->a + row * n, rows, n, sizeof(T));
        NAME(others_of_columns)(others, turned, n, rows, rows);
        turn_rows(c->out + row * n, others, n, rows, sizeof(T));
    }
}

static void NAME(prod_of_others)(const Args *k) {
    const int64_t outer = k->n[0], n = k->n[1], inner = k->n[2];
    const NAME(Reduction) c = {.a = k->p[1], .out = k->p[0], .n = n, .inner = inner,
                               .tiles = (inner + TILE - 1) / TILE, .tile = TILE};
    const int are_turned = inner == 1 && n > 1 && n <= MOST_OTHERS;
    if (n == 0) return;
    if (are_turned) split(NAME(others_turned), &c, outer, team(k, outer * n));
    else split(NAME(others_step), &c, outer * c.tiles, team(k, outer * n * inner));
}
#undef MOST_OTHERS
#undef RUN
#undef FEW
#undef LONG
#undef MOST_IN_ORDER
#undef TILE
#undef CHUNK
#undef CHUNKS
