/* Adding by index, and weighted sums of elements at given places. */

typedef struct {
    T *out;
    const T *a, *weight;
    const int64_t *index;
    int64_t size, inner, count, taps, channels, rows;
    Flag *outside; /* becomes 1 where a step finds an index out of range */
} NAME(Places);

/* out[index[i]][j] += a[i][j] for columns [begin, end): in the order of i, whatever the threads. */
WIDE static void NAME(add_rows_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Places) *c = context;
    for (int64_t i = 0; i < c->count; i++) {
        const uint64_t place = place_of(c->index + i);
        if (place >= (uint64_t)c->size) {
            *c->outside = 1;
            break;
        }
        T *restrict out = c->out + (int64_t)place * c->inner;
        const T *restrict a = c->a + i * c->inner;
#pragma omp simd
        for (int64_t j = begin; j < end; j++) out[j] += a[j];
    }
}

/* The same of each of `outer` matrices, by one index. */
static void NAME(add_rows)(const Args *k) {
    Flag outside = 0;
    NAME(Places) c = {.out = k->p[0], .index = k->p[1], .a = k->p[2], .count = k->n[1],
                      .inner = k->n[2], .size = k->n[3], .outside = &outside};
    const int threads = team(k, c.count * c.inner);
    if (c.count < 1 || c.inner < 1) return;
    for (int64_t o = 0; o < k->n[0]; o++, c.out += c.size * c.inner, c.a += c.count * c.inner)
        split(NAME(add_rows_step), &c, c.inner, c.inner >= 16 * threads ? threads : 1);
    if (outside) *k->error = "index out of range";
}

/* out[index[i]][more[i]][j] += a[i][j], in the order of i. */
static void NAME(add_pairs)(const Args *k) {
    const int64_t *index = k->p[1], *more = k->p[2], inner = k->n[1], rows = k->n[3];
    for (int64_t i = 0; i < k->n[0]; i++) {
        const uint64_t first = place_of(index + i), second = place_of(more + i);
        if (first >= (uint64_t)k->n[2] || second >= (uint64_t)rows) {
            *k->error = "index out of range";
            return;
        }
        T *restrict out = (T *)k->p[0] + ((int64_t)first * rows + (int64_t)second) * inner;
        const T *restrict a = (const T *)k->p[3] + i * inner;
        for (int64_t j = 0; j < inner; j++) out[j] += a[j];
    }
}

/* out[o][index[o][i][j]][j] += a[o][i][j]. */
static void NAME(scatter_add_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Places) *c = context;
    int outside = 0;
    for (int64_t o = begin; o < end; o++) {
        T *restrict out = c->out + o * c->size * c->inner;
        for (int64_t i = 0; i < c->count; i++) {
            const int64_t row = (o * c->count + i) * c->inner;
            for (int64_t j = 0; j < c->inner; j++) {
                const uint64_t place = place_of(c->index + row + j);
                if (place < (uint64_t)c->size) out[(int64_t)place * c->inner + j] += c->a[row + j];
                else outside = 1;
            }
        }
    }
    if (outside) *c->outside = 1;
}

static void NAME(scatter_add)(const Args *k) {
    Flag outside = 0;
    NAME(Places) c = {.out = k->p[0], .index = k->p[1], .a = k->p[2], .size = k->n[1],
                      .count = k->n[2], .inner = k->n[3], .outside = &outside};
    split(NAME(scatter_add_step), &c, k->n[0], team(k, k->n[0] * c.count * c.inner));
    if (outside) *k->error = "index out of range";
}

/* out[n][c][q] = sum over t of weight[n][t][q] a[n][c][index[n][t][q]], a plane (n, c) at a time. */
WIDE static void NAME(tap_sum_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Places) *c = context;
    for (int64_t plane = begin; plane < end; plane++) {
        const T *restrict a = c->a + plane * c->size;
        T *restrict out = c->out + plane * c->count;
        const int64_t first = plane / c->channels * c->taps * c->count;
        for (int64_t q = 0; q < c->count; q++) out[q] = 0;
        for (int64_t t = 0; t < c->taps; t++) {
            const T *restrict weight = c->weight + first + t * c->count;
            const int64_t *restrict index = c->index + first + t * c->count;
#pragma omp simd
            for (int64_t q = 0; q < c->count; q++) {
                const uint64_t place = (uint64_t)index[q];
                out[q] += weight[q] * a[place < (uint64_t)c->size ? (int64_t)place : 0];
            }
        }
    }
}

static void NAME(tap_spread_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Places) *c = context;
    for (int64_t plane = begin; plane < end; plane++) {
        const T *restrict g = c->a + plane * c->count;
        T *restrict out = c->out + plane * c->size;
        const int64_t first = plane / c->channels * c->taps * c->count;
        memset(out, 0, (size_t)c->size * sizeof(T));
        for (int64_t t = 0; t < c->taps; t++) {
            const T *restrict weight = c->weight + first + t * c->count;
            const int64_t *restrict index = c->index + first + t * c->count;
            for (int64_t q = 0; q < c->count; q++) {
                const uint64_t place = place_of(index + q);
                if (place < (uint64_t)c->size) out[place] += weight[q] * g[q];
            }
        }
    }
}

/* out[n][t][q] = sum over c of weight[n][c][q] a[n][c][index[n][t][q]], a line (n, t) at a time. */
WIDE static void NAME(tap_dot_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Places) *c = context;
    for (int64_t line = begin; line < end; line++) {
        T *restrict out = c->out + line * c->count;
        const int64_t *restrict index = c->index + line * c->count;
        for (int64_t q = 0; q < c->count; q++) out[q] = 0;
        for (int64_t channel = 0; channel < c->channels; channel++) {
            const int64_t plane = line / c->taps * c->channels + channel;
            const T *restrict g = c->weight + plane * c->count, *restrict a = c->a + plane * c->size;
#pragma omp simd
            for (int64_t q = 0; q < c->count; q++) {
                const uint64_t place = (uint64_t)index[q];
                out[q] += g[q] * a[place < (uint64_t)c->size ? (int64_t)place : 0];
            }
        }
    }
}

INLINE NAME(Places) NAME(taps)(const Args *k) {
    return (NAME(Places)){.out = k->p[0], .a = k->p[1], .index = k->p[2], .weight = k->p[3],
                          .channels = k->n[1], .size = k->n[2], .taps = k->n[4] > 0 ? k->n[3] : 0,
                          .count = k->n[4]};
}

static void NAME(tap_sum)(const Args *k) {
    NAME(Places) c = NAME(taps)(k);
    if (!are_in_range(k, c.index, k->n[0] * c.taps * c.count, c.size)) return;
    int64_t planes = k->n[0] * c.channels;
    split(NAME(tap_sum_step), &c, planes, team(k, planes * c.taps * c.count));
}

static void NAME(tap_spread)(const Args *k) {
    NAME(Places) c = NAME(taps)(k);
    if (!are_in_range(k, c.index, k->n[0] * c.taps * c.count, c.size)) return;
    int64_t planes = k->n[0] * c.channels;
    split(NAME(tap_spread_step), &c, planes, team(k, planes * c.taps * c.count));
}

static void NAME(tap_dot)(const Args *k) {
    NAME(Places) c = NAME(taps)(k);
    if (!are_in_range(k, c.index, k->n[0] * c.taps * c.count, c.size)) return;
    int64_t lines = k->n[0] * c.taps;
    split(NAME(tap_dot_step), &c, lines, team(k, lines * c.channels * c.count));
}
