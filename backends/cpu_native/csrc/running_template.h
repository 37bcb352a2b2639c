/* Where the greatest element so far is, or the least: the last of equal ones, and after a NaN the last of these.
   `outer` rows of `n` lines of `inner` elements are cut into blocks of some neighbours. */
#define NEIGHBOURS 256

typedef struct {
    int64_t *out;
    const T *a;
    int64_t n, inner, blocks;
    int largest;
} NAME(Running);

INLINE int NAME(is_next)(T next, T best, int largest) {
    return (largest ? next >= best : next <= best) | IS_NAN(next);
}

INLINE void NAME(running_line)(const NAME(Running) * c, int64_t row, int largest) {
    const T *restrict a = c->a + row * c->n;
    int64_t *restrict out = c->out + row * c->n;
    T best = a[0];
    int64_t place = 0;
    for (int64_t i = 0; i < c->n; i++) {
        const T next = a[i];
        const int is_next = NAME(is_next)(next, best, largest);
        best = is_next ? next : best;
        place = is_next ? i : place;
        out[i] = place;
    }
}

INLINE void NAME(running_block)(const NAME(Running) * c, int64_t number, int largest) {
    const int64_t first = number % c->blocks * NEIGHBOURS, outer = number / c->blocks;
    const int64_t rest = c->inner - first, width = rest < NEIGHBOURS ? rest : NEIGHBOURS;
    const T *a = c->a + outer * c->n * c->inner + first;
    int64_t *out = c->out + outer * c->n * c->inner + first, places[NEIGHBOURS];
    T best[NEIGHBOURS];
    memcpy(best, a, (size_t)width * sizeof(T));
    memset(places, 0, sizeof places);
    for (int64_t i = 0; i < c->n; i++, a += c->inner, out += c->inner)
#pragma omp simd
        for (int64_t j = 0; j < width; j++) {
            const T next = a[j], before = best[j];
            const int is_next = NAME(is_next)(next, before, largest);
            best[j] = is_next ? next : before;
            out[j] = places[j] = is_next ? i : places[j];
        }
}

WIDE static void NAME(running_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Running) *c = context;
    for (int64_t number = begin; number < end; number++) {
        if (c->inner == 1 && c->largest) NAME(running_line)(c, number, 1);
        else if (c->inner == 1) NAME(running_line)(c, number, 0);
        else if (c->largest) NAME(running_block)(c, number, 1);
        else NAME(running_block)(c, number, 0);
    }
}

static void NAME(running_place)(const Args *k) {
    const int64_t outer = k->n[0], n = k->n[1], inner = k->n[2];
    const NAME(Running) c = {.a = k->p[1], .out = k->p[0], .n = n, .inner = inner,
                             .blocks = (inner + NEIGHBOURS - 1) / NEIGHBOURS, .largest = k->n[3] != 0};
    split(NAME(running_step), &c, outer * c.blocks, team(k, outer * n * inner));
}
#undef NEIGHBOURS
