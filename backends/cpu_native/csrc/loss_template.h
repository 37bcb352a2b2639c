/* Cross-entropy of rows of scores. */

typedef struct {
    T *out;
    const T *x;
    const int64_t *target;
    int64_t n, ignore;
    T share;
} NAME(Classes);

static void NAME(cross_entropy_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Classes) *c = context;
    NAME(log_softmax_rows)(c->out + begin * c->n, c->x + begin * c->n, end - begin, c->n);
}

static int NAME(targets_fit)(const Args *k, const NAME(Classes) * c) {
    for (int64_t row = 0; row < k->n[0]; row++)
        if (c->target[row] != c->ignore && !in_range(k, c->target + row, 1, c->n)) return 0;
    return 1;
}

/* The mean of -log_probs[target] over the rows that count, and their number. */
static void NAME(cross_entropy)(const Args *k) {
    NAME(Classes) c = {k->p[0], k->p[3], k->p[4], k->n[1], k->n[2], 0};
    int64_t rows = k->n[0], counted = 0;
    if (!NAME(targets_fit)(k, &c)) return;
    split(NAME(cross_entropy_step), &c, rows, team(k, rows * c.n));
    double total = 0;
    for (int64_t row = 0; row < rows; row++) {
        const uint64_t target = place_of(c.target + row);
        if (target == (uint64_t)c.ignore || target >= (uint64_t)c.n) continue;
        total -= c.out[row * c.n + (int64_t)target];
        counted++;
    }
    *(T *)k->p[1] = (T)(total / (double)counted);
    *(T *)k->p[2] = (T)counted;
}

WIDE static void NAME(cross_entropy_backward_step)(const void *context, int64_t begin,
                                                   int64_t end) {
    const NAME(Classes) *c = context;
    const int64_t n = c->n;
    const T share = c->share;
    for (int64_t row = begin; row < end; row++) {
        const T *restrict x = c->x + row * n;
        T *restrict out = c->out + row * n;
        const uint64_t target = place_of(c->target + row);
        if (target == (uint64_t)c->ignore || target >= (uint64_t)n) {
            memset(out, 0, (size_t)n * sizeof(T));
            continue;
        }
        NAME(exp_times)(out, x, n, share);
        out[target] = (EXP(x[target]) - 1) * share;
    }
}

static void NAME(cross_entropy_backward)(const Args *k) {
    const T grad = *(const T *)k->p[1], count = *(const T *)k->p[4];
    NAME(Classes) c = {k->p[0], k->p[2], k->p[3], k->n[1], k->n[2], grad / count};
    if (!NAME(targets_fit)(k, &c)) return;
    split(NAME(cross_entropy_backward_step), &c, k->n[0], team(k, k->n[0] * c.n));
}
