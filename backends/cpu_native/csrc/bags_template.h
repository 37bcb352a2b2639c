/* Bags of rows, for one type. */

typedef struct {
    T *out;
    int64_t *bag, *sizes, *winners;
    const T *table, *factors;
    const int64_t *index, *starts;
    int64_t rows, count, bags, width, padding;
    int is_mean;
    Flag *outside, *descends; /* become 1 where a step finds an index, or an offset, out of range */
} NAME(Bags);

/* The larger of each column and the row that it comes from: the first of several, and a NaN if it is
   the very first. */
static void NAME(outdo)(T *restrict out, int64_t *restrict winners, const T *restrict row, int64_t width,
                        int64_t place, int is_first) {
    for (int64_t j = 0; j < width; j++) {
        if (!is_first && !(row[j] > out[j])) continue;
        out[j] = row[j];
        winners[j] = place;
    }
}

/* Bags [begin, end), each in the order of its indices, whatever the threads. */
WIDE static void NAME(bags_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Bags) *c = context;
    const int64_t width = c->width;
    for (int64_t b = begin; b < end; b++) {
        T *restrict out = c->out + b * width;
        int64_t *winners = c->winners ? c->winners + b * width : NULL;
        memset(out, 0, (size_t)width * sizeof(T));
        if (winners) memset(winners, 0, (size_t)width * sizeof(int64_t));
        const int64_t first = b ? (int64_t)place_of(c->starts + b) : 0;
        const int64_t last = b + 1 < c->bags ? (int64_t)place_of(c->starts + b + 1) : c->count;
        int64_t size = 0;
        if (first < 0 || first > last || last > c->count) {
            *c->descends = 1;
            return;
        }
        for (int64_t i = first; i < last; i++) {
            const uint64_t place = place_of(c->index + i);
            c->bag[i] = b;
            if ((int64_t)place == c->padding) continue;
            if (place >= (uint64_t)c->rows) {
                *c->outside = 1;
                return;
            }
            const T *restrict row = c->table + (int64_t)place * width;
            size++;
            if (winners) {
                NAME(outdo)(out, winners, row, width, (int64_t)place, size == 1);
            } else if (c->factors) {
                const T factor = c->factors[i];
#pragma omp simd
                for (int64_t j = 0; j < width; j++) out[j] = FMA(row[j], factor, out[j]);
            } else {
#pragma omp simd
                for (int64_t j = 0; j < width; j++) out[j] += row[j];
            }
        }
        c->sizes[b] = size;
        if (c->is_mean && size > 1) {
            const T divisor = (T)size;
#pragma omp simd
            for (int64_t j = 0; j < width; j++) out[j] /= divisor;
        }
    }
}

static void NAME(bags)(const Args *k) {
    Flag outside = 0, descends = 0;
    NAME(Bags) c = {.out = k->p[0], .bag = k->p[1], .sizes = k->p[2], .winners = k->p[3], .table = k->p[4],
                    .index = k->p[5], .starts = k->p[6], .factors = k->p[7], .rows = k->n[0],
                    .count = k->n[1], .bags = k->n[2], .width = k->n[3], .is_mean = k->n[4] == 1,
                    .padding = k->n[5], .outside = &outside, .descends = &descends};
    split(NAME(bags_step), &c, c.bags, team(k, times(c.count, c.width)));
    if (outside) *k->error = "index out of range";
    if (descends) *k->failure = "embedding_bag: offsets have to ascend";
}
