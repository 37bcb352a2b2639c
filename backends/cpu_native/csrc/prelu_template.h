/* Rectifiers with a slope for each channel: planes of (images, channels, n). */

typedef struct {
    T *out;
    const T *g, *x, *weight;
    int64_t channels, n;
} NAME(Slopes);

/* Planes of one element are channels side by side. */
#define EACH_PLANE(name, positive, negative)                                                  \
    WIDE static void NAME(name##_step)(const void *context, int64_t begin, int64_t end) {     \
        const NAME(Slopes) *c = context;                                                      \
        const int64_t channels = c->channels, n = c->n;                                       \
        if (channels < 1 || n < 1) return;                                                    \
        for (int64_t image = begin; image < end; image++) {                                   \
            const int64_t first = image * channels * n;                                       \
            const T *restrict x = c->x + first, *restrict g = c->g + first;                   \
            const T *restrict weight = c->weight;                                             \
            T *restrict out = c->out + first;                                                 \
            (void)g;                                                                          \
            if (n == 1) {                                                                     \
                _Pragma("omp simd") for (int64_t i = 0; i < channels; i++) {                  \
                    const T w = weight[i];                                                    \
                    (void)w;                                                                  \
                    out[i] = x[i] > 0 ? positive : negative;                                  \
                }                                                                             \
                continue;                                                                     \
            }                                                                                 \
            for (int64_t j = 0; j < channels; j++) {                                          \
                const T w = weight[j];                                                        \
                (void)w;                                                                      \
                _Pragma("omp simd") for (int64_t i = j * n; i < (j + 1) * n; i++) out[i] =    \
                    x[i] > 0 ? positive : negative;                                           \
            }                                                                                 \
        }                                                                                     \
    }
EACH_PLANE(prelu, x[i], w *x[i])
EACH_PLANE(prelu_backward, g[i], w *g[i])
EACH_PLANE(prelu_weight_grad, 0, g[i] * x[i])
#undef EACH_PLANE

static void NAME(prelu)(const Args *k) {
    const NAME(Slopes) c = {k->p[0], k->p[1], k->p[1], k->p[2], k->n[1], k->n[2]};
    split(NAME(prelu_step), &c, k->n[0], team(k, times(k->n[0], c.channels * c.n)));
}

static void NAME(prelu_backward)(const Args *k) {
    const NAME(Slopes) c = {k->p[0], k->p[1], k->p[2], k->p[3], k->n[1], k->n[2]};
    split(NAME(prelu_backward_step), &c, k->n[0], team(k, times(k->n[0], c.channels * c.n)));
}

static void NAME(prelu_weight_grad)(const Args *k) {
    const NAME(Slopes) c = {k->p[0], k->p[1], k->p[2], k->p[3], k->n[1], k->n[2]};
    split(NAME(prelu_weight_grad_step), &c, k->n[0], team(k, times(k->n[0], c.channels * c.n)));
}
