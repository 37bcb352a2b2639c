/* The formulas are those of flambeau.ops.layers.recurrent.  A sequence has rows of `size` states, a step
   `count` of them from row `start` on; states (B, size) begin at row 0. */

/* The slopes of the gates, from their values. */
#define BY_SIGMOID(y) ((y) * (1 - (y)))
#define BY_TANH(y) (1 - (y) * (y))

typedef struct {
    T *gates, *cells, *cell, *out;
    const T *x;
    int64_t size;
} NAME(Lstm);

WIDE static void NAME(lstm_rows)(const void *context, int64_t begin, int64_t end) {
    const NAME(Lstm) *c = context;
    const int64_t size = c->size;
#if HAS_AVX512
    if (sizeof(T) == sizeof(float) && has_avx512()) {
        lstm_rows_v(context, begin, end);
        return;
    }
#endif
    for (int64_t row = begin; row < end; row++) {
        T *restrict i = c->gates + row * 4 * size, *restrict f = i + size, *restrict g = f + size,
          *restrict o = g + size;
        const T *restrict x = c->x + row * 4 * size;
        T *restrict cells = c->cells + row * size, *restrict cell = c->cell + row * size;
        T *restrict out = c->out + row * size;
#pragma omp simd
        for (int64_t j = 0; j < size; j++) {
            i[j] = SIGMOID(i[j] + x[j]);
            f[j] = SIGMOID(f[j] + x[size + j]);
            g[j] = TANH(g[j] + x[2 * size + j]);
            o[j] = SIGMOID(o[j] + x[3 * size + j]);
            T next = cell[j] * f[j] + i[j] * g[j];
            cell[j] = cells[j] = next;
            out[j] = TANH(next) * o[j];
        }
    }
}

/* `gates` holds h·W and becomes the gates; `out` is (B, size) if projected, else the sequence. */
static void NAME(lstm_step)(const Args *k) {
    const int64_t start = k->n[0], count = k->n[1], size = k->n[2];
    NAME(Lstm) c = {.gates = (T *)k->p[0] + start * 4 * size, .cells = (T *)k->p[1] + start * size,
                    .cell = k->p[2], .out = (T *)k->p[3] + k->n[3] * size,
                    .x = (const T *)k->p[4] + start * 4 * size, .size = size};
    split(NAME(lstm_rows), &c, count, team(k, count * size * 4));
}

typedef struct {
    T *grad, *over_cell, *over;
    const T *grad_output, *grad_cells, *grad_gates, *gates, *cells, *before;
    int64_t size;
} NAME(LstmBackward);

WIDE static void NAME(lstm_backward_rows)(const void *context, int64_t begin, int64_t end) {
    const NAME(LstmBackward) *c = context;
    const int64_t size = c->size;
    for (int64_t row = begin; row < end; row++) {
        const T *restrict i = c->gates + row * 4 * size, *restrict f = i + size,
                *restrict g = f + size, *restrict o = g + size;
        const T *restrict cells = c->cells + row * size, *restrict before = c->before + row * size;
        T *restrict grad = c->grad + row * 4 * size;
        T *restrict over_cell = c->over_cell + row * size, *restrict over = c->over + row * size;
        if (c->grad_output != NULL) {
            const T *restrict more = c->grad_output + row * size;
#pragma omp simd
            for (int64_t j = 0; j < size; j++) over[j] += more[j];
        }
        if (c->grad_cells != NULL) {
            const T *restrict more = c->grad_cells + row * size;
#pragma omp simd
            for (int64_t j = 0; j < size; j++) over_cell[j] += more[j];
        }
        int64_t done = 0;
#if HAS_AVX512
        if (sizeof(T) == sizeof(float) && has_avx512()) {
            lstm_slopes_v(grad, over_cell, over, i, cells, before, size);
            done = size;
        }
#endif
#pragma omp simd
        for (int64_t j = done; j < size; j++) {
            T squashed = TANH(cells[j]);
            T over_c = over_cell[j] + over[j] * (BY_TANH(squashed) * o[j]);
            grad[j] = over_c * (BY_SIGMOID(i[j]) * g[j]);
            grad[size + j] = over_c * (BY_SIGMOID(f[j]) * before[j]);
            grad[2 * size + j] = over_c * (BY_TANH(g[j]) * i[j]);
            grad[3 * size + j] = over[j] * (BY_SIGMOID(o[j]) * squashed);
            over_cell[j] = over_c * f[j];
        }
        if (c->grad_gates != NULL) {
            const T *restrict more = c->grad_gates + row * 4 * size;
#pragma omp simd
            for (int64_t j = 0; j < 4 * size; j++) {
                T slope = j / size == 2 ? BY_TANH(i[j]) : BY_SIGMOID(i[j]);
                grad[j] += more[j] * slope;
            }
        }
    }
}

/* `over` (B, size), the gradient of h, gets that of the output added if there is one. */
static void NAME(lstm_step_backward)(const Args *k) {
    const int64_t start = k->n[0], count = k->n[1], size = k->n[2];
    const T *output = k->p[3], *cells = k->p[4], *gates = k->p[5];
    NAME(LstmBackward) c = {.grad = (T *)k->p[0] + start * 4 * size, .over_cell = k->p[1],
                            .over = k->p[2],
                            .grad_output = output == NULL ? NULL : output + start * size,
                            .grad_cells = cells == NULL ? NULL : cells + start * size,
                            .grad_gates = gates == NULL ? NULL : gates + start * 4 * size,
                            .gates = (const T *)k->p[6] + start * 4 * size,
                            .cells = (const T *)k->p[7] + start * size,
                            .before = (const T *)k->p[8] + start * size, .size = size};
    split(NAME(lstm_backward_rows), &c, count, team(k, count * size * 4));
}

typedef struct {
    T *gates, *h, *out;
    const T *inner, *x, *bias;
    int64_t size;
} NAME(Gru);

WIDE static void NAME(gru_rows)(const void *context, int64_t begin, int64_t end) {
    const NAME(Gru) *c = context;
    const int64_t size = c->size;
    for (int64_t row = begin; row < end; row++) {
        T *restrict r = c->gates + row * 4 * size, *restrict z = r + size, *restrict n = z + size,
          *restrict q = n + size;
        T *restrict h = c->h + row * size, *restrict out = c->out + row * size;
        const T *restrict inner = c->inner + row * 3 * size, *restrict x = c->x + row * 3 * size;
        const T *restrict bias = c->bias;
        /* h·W + b_h first, in the places of r, z and q. */
        if (bias != NULL) {
#pragma omp simd
            for (int64_t j = 0; j < size; j++) {
                r[j] = inner[j] + bias[j];
                z[j] = inner[size + j] + bias[size + j];
                q[j] = inner[2 * size + j] + bias[2 * size + j];
            }
        } else {
            memcpy(r, inner, (size_t)(2 * size) * sizeof(T));
            memcpy(q, inner + 2 * size, (size_t)size * sizeof(T));
        }
#pragma omp simd
        for (int64_t j = 0; j < size; j++) {
            r[j] = SIGMOID(r[j] + x[j]);
            z[j] = SIGMOID(z[j] + x[size + j]);
            n[j] = TANH(r[j] * q[j] + x[2 * size + j]);
            h[j] = out[j] = (h[j] - n[j]) * z[j] + n[j];
        }
    }
}

static void NAME(gru_step)(const Args *k) {
    const int64_t start = k->n[0], count = k->n[1], size = k->n[2];
    NAME(Gru) c = {.gates = (T *)k->p[0] + start * 4 * size, .h = k->p[1],
                   .out = (T *)k->p[2] + start * size, .inner = k->p[3],
                   .x = (const T *)k->p[4] + start * 3 * size, .bias = k->p[5], .size = size};
    split(NAME(gru_rows), &c, count, team(k, count * size * 4));
}

typedef struct {
    T *outer, *inner, *over;
    const T *grad_output, *grad_gates, *gates, *before;
    int64_t size;
} NAME(GruBackward);

WIDE static void NAME(gru_backward_rows)(const void *context, int64_t begin, int64_t end) {
    const NAME(GruBackward) *c = context;
    const int64_t size = c->size;
    for (int64_t row = begin; row < end; row++) {
        const T *restrict r = c->gates + row * 4 * size, *restrict z = r + size,
                *restrict n = z + size, *restrict q = n + size;
        const T *restrict before = c->before + row * size;
        T *restrict outer = c->outer + row * 3 * size, *restrict inner = c->inner + row * 3 * size;
        T *restrict over = c->over + row * size;
        const T *restrict more = c->grad_gates == NULL ? NULL : c->grad_gates + row * 4 * size;
        if (c->grad_output != NULL) {
            const T *restrict extra = c->grad_output + row * size;
#pragma omp simd
            for (int64_t j = 0; j < size; j++) over[j] += extra[j];
        }
#pragma omp simd
        for (int64_t j = 0; j < size; j++) {
            T over_n = over[j] * ((1 - z[j]) * BY_TANH(n[j]));
            outer[2 * size + j] = over_n;
            inner[size + j] = over[j] * ((before[j] - n[j]) * BY_SIGMOID(z[j]));
        }
        if (more != NULL) {
#pragma omp simd
            for (int64_t j = 0; j < size; j++) {
                outer[2 * size + j] += more[2 * size + j] * BY_TANH(n[j]);
                inner[size + j] += more[size + j] * BY_SIGMOID(z[j]);
            }
        }
#pragma omp simd
        for (int64_t j = 0; j < size; j++) {
            T over_n = outer[2 * size + j];
            inner[j] = over_n * (q[j] * BY_SIGMOID(r[j]));
            inner[2 * size + j] = over_n * r[j];
            over[j] *= z[j];
        }
        if (more != NULL) {
#pragma omp simd
            for (int64_t j = 0; j < size; j++) {
                inner[j] += more[j] * BY_SIGMOID(r[j]);
                inner[2 * size + j] += more[3 * size + j];
            }
        }
        memcpy(outer, inner, (size_t)(2 * size) * sizeof(T));
    }
}

/* `over` becomes the part of the gradient of h that does not pass through the product. */
static void NAME(gru_step_backward)(const Args *k) {
    const int64_t start = k->n[0], count = k->n[1], size = k->n[2];
    const T *output = k->p[3], *gates = k->p[4];
    NAME(GruBackward) c = {.outer = (T *)k->p[0] + start * 3 * size,
                           .inner = (T *)k->p[1] + start * 3 * size, .over = k->p[2],
                           .grad_output = output == NULL ? NULL : output + start * size,
                           .grad_gates = gates == NULL ? NULL : gates + start * 4 * size,
                           .gates = (const T *)k->p[5] + start * 4 * size,
                           .before = (const T *)k->p[6] + start * size, .size = size};
    split(NAME(gru_backward_rows), &c, count, team(k, count * size * 4));
}
/* Whole sequences.  `steps` holds the first row and the number of rows of each step in the order of the
   recurrence; the weight is packed with `filled` columns. */
static int NAME(is_packed)(const Args *k, int64_t columns, int64_t filled) {
    if (filled % (int64_t)(PANEL_BYTES / sizeof(T)) == 0 && filled >= columns) return 1;
    *k->failure = "the packed weight has other columns";
    return 0;
}

/* Reads step `i`, once; 0 if its rows are not there. */
static int NAME(read_step)(const Args *k, const volatile int64_t *steps, int64_t i, int64_t *start, int64_t *rows) {
    const int64_t total = k->n[0], batch = k->n[1];
    *start = steps[2 * i];
    *rows = steps[2 * i + 1];
    if (*start >= 0 && *rows >= 0 && *rows <= batch && *start <= total && *rows <= total - *start) return 1;
    *k->error = "a step has rows that are not there";
    return 0;
}

static void NAME(lstm_sequence)(const Args *k) {
    const int64_t size = k->n[2], count = k->n[3], *steps = k->p[7];
    T *gates = k->p[0], *cells = k->p[1], *h = k->p[3], *out = k->p[4];
    const T *x = k->p[5], *packed = k->p[6];
    if (!NAME(is_packed)(k, 4 * size, k->n[4])) return;
    for (int64_t i = 0; i < count; i++) {
        int64_t start, rows;
        if (!NAME(read_step)(k, steps, i, &start, &rows)) return;
        NAME(Lstm) c = {.gates = gates + start * 4 * size, .cells = cells + start * size, .cell = k->p[2],
                        .out = out + start * size, .x = x + start * 4 * size, .size = size};
        NAME(multiply_packed)(k, c.gates, h, packed, rows, size, 4 * size);
        split(NAME(lstm_rows), &c, rows, team(k, rows * size * 4));
        memcpy(h, c.out, (size_t)(rows * size) * sizeof(T));
    }
}

static void NAME(lstm_sequence_backward)(const Args *k) {
    const int64_t size = k->n[2], count = k->n[3], *steps = k->p[10];
    T *grad = k->p[0], *over = k->p[2];
    const T *output = k->p[3], *over_cells = k->p[4], *over_gates = k->p[5];
    const T *gates = k->p[6], *cells = k->p[7], *before = k->p[8], *packed = k->p[9];
    if (!NAME(is_packed)(k, size, k->n[4])) return;
    for (int64_t i = 0; i < count; i++) {
        int64_t start, rows;
        if (!NAME(read_step)(k, steps, i, &start, &rows)) return;
        const int64_t at = start * size;
        NAME(LstmBackward) c = {.grad = grad + 4 * at, .over_cell = k->p[1], .over = over,
                                .grad_output = output == NULL ? NULL : output + at,
                                .grad_cells = over_cells == NULL ? NULL : over_cells + at,
                                .grad_gates = over_gates == NULL ? NULL : over_gates + 4 * at,
                                .gates = gates + 4 * at, .cells = cells + at, .before = before + at,
                                .size = size};
        split(NAME(lstm_backward_rows), &c, rows, team(k, rows * size * 4));
        NAME(multiply_packed)(k, over, c.grad, packed, rows, 4 * size, size);
    }
}

static void NAME(gru_sequence)(const Args *k) {
    const int64_t size = k->n[2], count = k->n[3], *steps = k->p[7];
    T *gates = k->p[0], *h = k->p[1], *out = k->p[2], *inner = k->p[3];
    const T *x = k->p[4], *packed = k->p[6];
    if (!NAME(is_packed)(k, 3 * size, k->n[4])) return;
    for (int64_t i = 0; i < count; i++) {
        int64_t start, rows;
        if (!NAME(read_step)(k, steps, i, &start, &rows)) return;
        NAME(Gru) c = {.gates = gates + start * 4 * size, .h = h, .out = out + start * size, .inner = inner,
                       .x = x + start * 3 * size, .bias = k->p[5], .size = size};
        NAME(multiply_packed)(k, inner, h, packed, rows, size, 3 * size);
        split(NAME(gru_rows), &c, rows, team(k, rows * size * 4));
    }
}

static void NAME(gru_sequence_backward)(const Args *k) {
    const int64_t size = k->n[2], count = k->n[3], *steps = k->p[9];
    T *outer = k->p[0], *inner = k->p[1], *over = k->p[2], *passed = k->p[3];
    const T *output = k->p[4], *over_gates = k->p[5], *gates = k->p[6], *before = k->p[7], *packed = k->p[8];
    if (!NAME(is_packed)(k, size, k->n[4])) return;
    for (int64_t i = 0; i < count; i++) {
        int64_t start, rows;
        if (!NAME(read_step)(k, steps, i, &start, &rows)) return;
        const int64_t at = start * size;
        NAME(GruBackward) c = {.outer = outer + 3 * at, .inner = inner + 3 * at, .over = over,
                               .grad_output = output == NULL ? NULL : output + at,
                               .grad_gates = over_gates == NULL ? NULL : over_gates + 4 * at,
                               .gates = gates + 4 * at, .before = before + at, .size = size};
        split(NAME(gru_backward_rows), &c, rows, team(k, rows * size * 4));
        NAME(multiply_packed)(k, passed, c.inner, packed, rows, 3 * size, size);
        for (int64_t j = 0; j < rows * size; j++) over[j] += passed[j];
    }
}
#undef BY_SIGMOID
#undef BY_TANH
