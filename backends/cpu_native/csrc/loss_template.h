/* Cross-entropy of rows of scores, and the losses of logarithms of probabilities.

   Where classes lie `inner` elements behind one another, as those of images do, rows are counted as pixels of
   all planes are: row r is pixel r % inner of image r / inner. */

typedef struct {
    T *out;
    const T *x, *weight;
    const int64_t *target;
    double *sums;
    int64_t n, inner, ignore, rows, part;
    T share;
} NAME(Classes);

static void NAME(cross_entropy_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Classes) *c = context;
    NAME(log_softmax_rows)(c->out + begin * c->n, c->x + begin * c->n, end - begin, c->n);
}

static int NAME(classes_fit)(const Args *k, const NAME(Classes) *c, int64_t rows) {
    if (lie_within(c->target, rows, c->n)) return 1;
    for (int64_t row = 0; row < rows; row++)
        if (c->target[row] != c->ignore && !in_range(k, c->target + row, 1, c->n)) return 0;
    return 1;
}

/* For each row of some that counts its class and the place of that; for each other one without. */
#define EACH_ROW(c, begin, end, one, other)                                                            \
    for (int64_t row = begin, image = row / (c)->inner; row < (end); image++) {                        \
        const int64_t first = image * (c)->n * (c)->inner;                                             \
        const int64_t after = (image + 1) * (c)->inner, last = after < (end) ? after : (end);          \
        for (int64_t i = row - image * (c)->inner; row < last; i++, row++) {                           \
            const uint64_t target = place_of((c)->target + row);                                       \
            if (target == (uint64_t)(c)->ignore || target >= (uint64_t)(c)->n) {                       \
                other;                                                                                 \
                continue;                                                                              \
            }                                                                                          \
            const int64_t at = first + (int64_t)target * (c)->inner + i;                               \
            one;                                                                                       \
        }                                                                                              \
    }

/* The mean of -log_probs[target] over the rows that count, and their number. */
static void NAME(cross_entropy)(const Args *k) {
    NAME(Classes) c = {.out = k->p[0], .x = k->p[3], .target = k->p[4], .n = k->n[1], .ignore = k->n[2]};
    int64_t rows = k->n[0], counted = 0;
    if (!NAME(classes_fit)(k, &c, k->n[0])) return;
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

/* Cross-entropy's gradient, an image after the other: of rows each is one. */
static void NAME(cross_entropy_backward_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Classes) *c = context;
    const int64_t n = c->n, inner = c->inner;
    for (int64_t image = begin; image < end; image++) {
        const T *x = c->x + image * n * inner;
        T *out = c->out + image * n * inner;
        if (inner == 1 && place_of(c->target + image) == (uint64_t)c->ignore) {
            memset(out, 0, (size_t)n * sizeof(T));
            continue;
        }
        NAME(exp_times)(out, x, n * inner, c->share);
        for (int64_t i = 0; i < inner; i++) {
            const uint64_t target = place_of(c->target + image * inner + i);
            if (target == (uint64_t)c->ignore || target >= (uint64_t)n) {
                for (int64_t j = 0; j < n; j++) out[j * inner + i] = 0;
                continue;
            }
            out[(int64_t)target * inner + i] -= c->share;
        }
    }
}

static void NAME(cross_entropy_backward)(const Args *k) {
    const T grad = *(const T *)k->p[1], count = *(const T *)k->p[4];
    NAME(Classes) c = {.out = k->p[0], .x = k->p[2], .target = k->p[3], .n = k->n[1],
                      .inner = k->n[2], .ignore = k->n[3], .share = grad / count};
    if (c.n < 1 || c.inner < 1 || !NAME(classes_fit)(k, &c, k->n[0] * c.inner)) return;
    split(NAME(cross_entropy_backward_step), &c, k->n[0], team(k, k->n[0] * c.n * c.inner));
}

/* What is made of the rows: 0 for each by itself, 1 for their sum, 2 for their mean by weight. */
static void NAME(nll_loss_each)(const void *context, int64_t begin, int64_t end) {
    const NAME(Classes) *c = context;
    EACH_ROW(c, begin, end, c->out[row] = c->weight != NULL ? -c->x[at] * c->weight[target] : -c->x[at],
             c->out[row] = 0)
}

/* The sums of parts, which do not depend on the threads, and their weights. */
static void NAME(nll_loss_parts)(const void *context, int64_t begin, int64_t end) {
    const NAME(Classes) *c = context;
    for (int64_t part = begin; part < end; part++) {
        const int64_t start = part * c->part, stop = start + c->part < c->rows ? start + c->part : c->rows;
        double sum = 0, weights = 0;
        if (c->weight != NULL) {
            EACH_ROW(c, start, stop,
                     (sum -= (double)(c->x[at] * c->weight[target]), weights += (double)c->weight[target]), (void)0)
        } else {
            EACH_ROW(c, start, stop, (sum -= (double)c->x[at], weights += 1), (void)0)
        }
        c->sums[2 * part] = sum;
        c->sums[2 * part + 1] = weights;
    }
}

static void NAME(nll_loss)(const Args *k) {
    double sums[2 * PARTS], sum = 0, weights = 0;
    NAME(Classes) c = {.out = k->p[0], .x = k->p[2], .target = k->p[3], .weight = k->p[4], .n = k->n[1],
                      .inner = k->n[2], .ignore = k->n[5], .rows = k->n[0] * k->n[2], .sums = sums};
    const int64_t places = k->n[3], kind = k->n[4];
    if (!NAME(classes_fit)(k, &c, c.rows)) return;
    if (c.inner < 1) c.inner = 1; /* of no rows */
    const int threads = team(k, c.rows);
    if (kind == 0) {
        split(NAME(nll_loss_each), &c, places < c.rows ? places : c.rows, threads);
    } else {
        c.part = c.rows / PARTS + 1;
        const int64_t parts = c.rows / c.part + (c.rows % c.part > 0);
        split(NAME(nll_loss_parts), &c, parts, threads);
        for (int64_t part = 0; part < parts; part++) sum += sums[2 * part], weights += sums[2 * part + 1];
        if (places > 0) c.out[0] = (T)(kind == 2 ? sum / weights : sum);
    }
    *(T *)k->p[1] = kind == 0 ? 0 : (T)weights;
}

static void NAME(nll_loss_backward_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Classes) *c = context;
    const int64_t image = c->n * c->inner;
    memset(c->out + begin * image, 0, (size_t)((end - begin) * image) * sizeof(T));
    begin *= c->inner, end *= c->inner;
    if (c->x != NULL) {
        if (end > c->rows) end = c->rows;
        EACH_ROW(c, begin, end, c->out[at] = c->weight != NULL ? -c->x[row] * c->weight[target] : -c->x[row], (void)0)
    } else {
        EACH_ROW(c, begin, end, c->out[at] = c->weight != NULL ? c->share * c->weight[target] : c->share, (void)0)
    }
}

static void NAME(nll_loss_backward)(const Args *k) {
    NAME(Classes) c = {.out = k->p[0], .target = k->p[2], .weight = k->p[3], .n = k->n[1], .inner = k->n[2],
                      .ignore = k->n[5]};
    const T *grad = k->p[1], total = *(const T *)k->p[4];
    const int64_t rows = k->n[0] * c.inner, places = k->n[3], kind = k->n[4];
    if (c.inner < 1 || !NAME(classes_fit)(k, &c, rows) || places < 1) return;
    if (kind == 0) c.x = grad, c.rows = places < rows ? places : rows;
    else c.share = kind == 2 ? -grad[0] / total : -grad[0];
    split(NAME(nll_loss_backward_step), &c, k->n[0], team(k, rows * c.n));
}
#undef EACH_ROW
