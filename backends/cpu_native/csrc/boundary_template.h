/* The adjoint of `boundary`: what was read from an entry is added there. */

typedef struct {
    const T *grad;
    T *out;
    const int64_t *ends[2], *lines[2]; /* where those of each plane and row end, and which lines read them */
    const int64_t *places;
    int64_t n[3], o[3], inner, head, start, length;
    Flag *outside;
} NAME(BoundaryBackward);

/* Which of `lines` read entry i: those from `*begin` to before `*end`; 0 if they are nowhere. */
INLINE int NAME(readers_of)(const int64_t *ends, int64_t i, int64_t count, uint64_t *begin, uint64_t *end) {
    *begin = i > 0 ? place_of(ends + i - 1) : 0, *end = place_of(ends + i);
    return *begin <= *end && *end <= (uint64_t)count;
}

/* Adds a line of the gradient at its places, of which the middle is added already. */
INLINE int NAME(add_at_places)(const NAME(BoundaryBackward) * c, const T *grad, T *out, int64_t from, int64_t to) {
    const int64_t inner = c->inner;
    for (int64_t i = from; i < to; i++) {
        const uint64_t place = place_of(c->places + i);
        if (place >= (uint64_t)c->n[2]) return 0;
        const T *g = grad + i * inner;
        T *sum = out + (int64_t)place * inner;
        if (inner == 1) sum[0] += g[0];
        else
#pragma omp simd
            for (int64_t e = 0; e < inner; e++) sum[e] += g[e];
    }
    return 1;
}

WIDE static void NAME(boundary_backward_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(BoundaryBackward) *c = context;
    const int64_t *n = c->n, *o = c->o, inner = c->inner;
    const int64_t first = c->start * inner, count = c->length * inner, bytes = inner * (int64_t)sizeof(T);
    int64_t j = begin % n[1], i = begin / n[1] % n[0], outer = begin / n[1] / n[0];
    for (int64_t line = begin; line < end; line++) {
        T *restrict out = c->out + line * n[2] * inner;
        uint64_t plane, last_plane, first_row, last_row;
        if (!NAME(readers_of)(c->ends[0], i, o[0], &plane, &last_plane)) goto outside;
        if (!NAME(readers_of)(c->ends[1], j, o[1], &first_row, &last_row)) goto outside;
        int is_first = 1;
        for (; plane < last_plane; plane++) {
            const uint64_t p = place_of(c->lines[0] + plane);
            if (p >= (uint64_t)o[0]) goto outside;
            for (uint64_t row = first_row; row < last_row; row++) {
                const uint64_t r = place_of(c->lines[1] + row);
                if (r >= (uint64_t)o[1]) goto outside;
                const T *restrict grad = c->grad + ((outer * o[0] + (int64_t)p) * o[1] + (int64_t)r) * o[2] * inner;
                const T *restrict middle = grad + c->head * inner;
                if (is_first) {
                    memset(out, 0, (size_t)(c->start * bytes));
                    memcpy(out + first, middle, (size_t)(c->length * bytes));
                    memset(out + first + count, 0, (size_t)((n[2] - c->start - c->length) * bytes));
                    is_first = 0;
                } else {
#pragma omp simd
                    for (int64_t e = 0; e < count; e++) out[first + e] += middle[e];
                }
                if (!NAME(add_at_places)(c, grad, out, 0, c->head)) goto outside;
                if (!NAME(add_at_places)(c, grad, out, c->head + c->length, o[2])) goto outside;
            }
        }
        if (is_first) memset(out, 0, (size_t)(n[2] * bytes));
        if (++j == n[1]) {
            j = 0;
            if (++i == n[0]) i = 0, outer++;
        }
    }
    return;
outside:
    *c->outside = 1;
}

static void NAME(boundary_backward)(const Args *k) {
    const int64_t *n = k->n;
    Flag outside = 0;
    const NAME(BoundaryBackward) c = {.grad = k->p[1], .out = k->p[0], .ends = {k->p[2], k->p[4]},
                                      .lines = {k->p[3], k->p[5]}, .places = k->p[6], .n = {n[1], n[2], n[3]},
                                      .o = {n[4], n[5], n[6]}, .inner = n[7], .head = n[8], .start = n[9],
                                      .length = n[10], .outside = &outside};
    if (n[0] < 1 || c.n[0] < 1 || c.n[1] < 1 || c.n[2] < 1 || c.inner < 1) return;
    if (!is_middle(c.n, c.o, c.head, c.start, c.length)) outside = 1;
    else split(NAME(boundary_backward_step), &c, n[0] * c.n[0] * c.n[1],
               team(k, n[0] * c.n[0] * c.n[1] * c.n[2] * c.inner));
    if (outside) *k->error = "index out of range";
}
