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

/* By how much scores exceed -base in all, but those that are `right`; which do is counted, and all of them by
   `pull`.  What is no number exceeds nothing. */
INLINE double NAME(excess)(int32_t *restrict counts, const T *restrict x, const unsigned char *restrict right,
                           int64_t n, T base, int64_t *pull) {
    double total = 0;
    int64_t pulled = 0;
#pragma omp simd reduction(+ : total, pulled)
    for (int64_t i = 0; i < n; i++) {
        const T z = base + x[i];
        const int wins = (z > 0) & !(right && right[i]);
        total += wins ? z : 0;
        counts[i] += wins;
        pulled += wins;
    }
    *pull += pulled;
    return total;
}
WIDE static double NAME(excess_of_all)(int32_t *counts, const T *x, int64_t n, T base, int64_t *pull) {
    return NAME(excess)(counts, x, NULL, n, base, pull);
}
WIDE static double NAME(excess_of_others)(int32_t *counts, const T *x, const unsigned char *right, int64_t n,
                                          T base, int64_t *pull) {
    return NAME(excess)(counts, x, right, n, base, pull);
}

/* Rows of scores with right classes that are to win by a margin. */
typedef struct {
    T *out;
    const T *x;
    const int64_t *targets;
    int32_t *counts;
    int64_t rows, n, kind;
    double total;
} NAME(Margins);

static int NAME(are_margins)(const Args *k, const NAME(Margins) *c) {
    if (c->n >= 1 && (c->kind != 0 || k->n[2] >= c->rows)) {
        memset(c->counts, 0, (size_t)(c->rows * c->n) * sizeof(*c->counts));
        return 1;
    }
    *k->failure = "no classes, or fewer results than rows";
    return 0;
}

/* The loss of a row: an element of its own, or a part of their sum or mean. */
INLINE void NAME(give)(NAME(Margins) * c, int64_t row, double loss) {
    if (c->kind == 0) c->out[row] = (T)(loss / (double)c->n);
    else c->total += loss / (double)c->n;
}

INLINE void NAME(end)(const NAME(Margins) * c) {
    if (c->kind) *c->out = (T)(c->total / (c->kind == 2 ? (double)c->rows : 1));
}

static void NAME(multi_margin_loss)(const Args *k) {
    NAME(Margins) c = {.out = k->p[0], .counts = k->p[1], .x = k->p[2], .targets = k->p[3],
                       .rows = k->n[0], .n = k->n[1], .kind = k->n[3]};
    const T *weight = k->p[4];
    if (!NAME(are_margins)(k, &c)) return;
    for (int64_t row = 0; row < c.rows; row++) {
        const uint64_t place = place_of(c.targets + row);
        if (place >= (uint64_t)c.n) {
            *k->error = "target out of range";
            return;
        }
        const int64_t t = (int64_t)place, after = t + 1;
        const T *x = c.x + row * c.n, base = (T)k->x[0] - x[t];
        int32_t *counts = c.counts + row * c.n;
        int64_t pull = 0;
        double sum = NAME(excess_of_all)(counts, x, t, base, &pull);
        sum += NAME(excess_of_all)(counts + after, x + after, c.n - after, base, &pull);
        counts[t] = (int32_t)-pull;
        NAME(give)(&c, row, weight ? sum * weight[t] : sum);
    }
    NAME(end)(&c);
}

/* The same of rows with several right classes, those before the first negative number. */
static void NAME(multilabel_margin_loss)(const Args *k) {
    NAME(Margins) c = {.out = k->p[0], .counts = k->p[1], .x = k->p[3], .targets = k->p[4],
                       .rows = k->n[0], .n = k->n[1], .kind = k->n[3]};
    unsigned char *right = k->p[2];
    if (!NAME(are_margins)(k, &c)) return;
    for (int64_t row = 0; row < c.rows; row++) {
        const T *x = c.x + row * c.n;
        int32_t *counts = c.counts + row * c.n;
        double sum = 0;
        memset(right, 0, (size_t)c.n);
        for (int pass = 0; pass < 2; pass++) {
            for (int64_t j = 0; j < c.n; j++) {
                const int64_t t = (int64_t)place_of(c.targets + row * c.n + j);
                if (t < 0) break;
                if (t >= c.n) {
                    *k->error = "target out of range";
                    return;
                }
                if (pass == 0) {
                    right[t] = 1;
                    continue;
                }
                int64_t pull = 0;
                sum += NAME(excess_of_others)(counts, x, right, c.n, 1 - x[t], &pull);
                counts[t] -= (int32_t)pull;
            }
        }
        NAME(give)(&c, row, sum);
    }
    NAME(end)(&c);
}
