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
#pragma omp simd
        for (int64_t j = 0; j < size; j++) {
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
#undef BY_SIGMOID
#undef BY_TANH
