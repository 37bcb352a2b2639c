/* Rows of 2 n numbers, and of n. */
typedef struct {
    const T *x, *grad;
    T *out;
    int64_t n;
} NAME(Gates);

WIDE static void NAME(glu_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Gates) *c = context;
    const int64_t n = c->n;
    for (int64_t row = begin; row < end; row++) {
        const T *a = c->x + 2 * row * n, *b = a + n;
        T *restrict out = c->out + row * n;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) out[i] = a[i] * SIGMOID(b[i]);
    }
}

WIDE static void NAME(glu_backward_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Gates) *c = context;
    const int64_t n = c->n;
    for (int64_t row = begin; row < end; row++) {
        const T *a = c->x + 2 * row * n, *b = a + n, *grad = c->grad + row * n;
        T *restrict first = c->out + 2 * row * n, *restrict second = first + n;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            const T s = SIGMOID(b[i]);
            first[i] = grad[i] * s;
            second[i] = grad[i] * a[i] * (s * (1 - s));
        }
    }
}

static void NAME(glu)(const Args *k) {
    const NAME(Gates) c = {.out = k->p[0], .x = k->p[1], .n = k->n[1]};
    if (c.n > 0) split(NAME(glu_step), &c, k->n[0], team(k, times(k->n[0], k->n[1])));
}

static void NAME(glu_backward)(const Args *k) {
    const NAME(Gates) c = {.out = k->p[0], .grad = k->p[1], .x = k->p[2], .n = k->n[1]};
    if (c.n > 0) split(NAME(glu_backward_step), &c, k->n[0], team(k, times(k->n[0], k->n[1])));
}
