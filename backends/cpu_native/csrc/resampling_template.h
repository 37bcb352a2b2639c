/* Lines of (outer, size, inner), each a sum of some with weights, to (outer, count, inner). */

typedef struct {
    const T *x, *weights;
    T *out;
    const int64_t *ends, *places; /* where the terms of each line end, and what line each is of */
    int64_t size, count, inner, terms;
    Flag *outside; /* becomes 1 where a step finds a place out of range */
} NAME(Resampling);

/* Where the terms of line i begin and end; 0 if nowhere. */
INLINE int NAME(terms_of)(const NAME(Resampling) * c, int64_t i, uint64_t *begin, uint64_t *end) {
    *begin = i > 0 ? place_of(c->ends + i - 1) : 0, *end = place_of(c->ends + i);
    return *begin <= *end && *end <= (uint64_t)c->terms;
}

WIDE static void NAME(resample_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Resampling) *c = context;
    const int64_t n = c->inner;
    for (int64_t line = begin; line < end; line++) {
        const T *x = c->x + line / c->count * c->size * n;
        T *restrict out = c->out + line * n;
        uint64_t k, last;
        if (!NAME(terms_of)(c, line % c->count, &k, &last)) goto outside;
        if (k == last) memset(out, 0, (size_t)n * sizeof(T));
        for (int is_first = 1; k < last; is_first = 0) {
            const uint64_t place = place_of(c->places + k);
            const T weight = c->weights[k++];
            if (place >= (uint64_t)c->size) goto outside;
            const T *restrict a = x + (int64_t)place * n;
            if (!is_first || k == last) {
                if (is_first)
#pragma omp simd
                    for (int64_t j = 0; j < n; j++) out[j] = a[j] * weight;
                else
#pragma omp simd
                    for (int64_t j = 0; j < n; j++) out[j] += a[j] * weight;
                continue;
            }
            /* Two terms at once, as linear interpolation has them. */
            const uint64_t next = place_of(c->places + k);
            const T other = c->weights[k++];
            if (next >= (uint64_t)c->size) goto outside;
            const T *restrict b = x + (int64_t)next * n;
#pragma omp simd
            for (int64_t j = 0; j < n; j++) out[j] = a[j] * weight + b[j] * other;
        }
    }
    return;
outside:
    *c->outside = 1;
}

/* The same of numbers that stand side by side: `line` is a row of the result. */
static void NAME(resample_rows_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Resampling) *c = context;
    for (int64_t line = begin; line < end; line++) {
        const T *x = c->x + line * c->size;
        T *out = c->out + line * c->count;
        for (int64_t i = 0; i < c->count; i++) {
            uint64_t k, last;
            T sum = 0;
            if (!NAME(terms_of)(c, i, &k, &last)) goto outside;
            for (int is_first = 1; k < last; k++, is_first = 0) {
                const uint64_t place = place_of(c->places + k);
                if (place >= (uint64_t)c->size) goto outside;
                const T term = x[place] * c->weights[k];
                sum = is_first ? term : sum + term;
            }
            out[i] = sum;
        }
    }
    return;
outside:
    *c->outside = 1;
}

static void NAME(resample)(const Args *k) {
    const int64_t *n = k->n;
    Flag outside = 0;
    const NAME(Resampling) c = {.out = k->p[0], .x = k->p[1], .ends = k->p[2], .places = k->p[3],
                                .weights = k->p[4], .size = n[1], .count = n[2], .inner = n[3],
                                .terms = n[4], .outside = &outside};
    if (n[0] < 1 || c.count < 1 || c.inner < 1) return;
    const int threads = team(k, n[0] * c.count * c.inner);
    if (c.inner == 1) split(NAME(resample_rows_step), &c, n[0], threads);
    else split(NAME(resample_step), &c, n[0] * c.count, threads);
    if (outside) *k->error = "index out of range";
}
