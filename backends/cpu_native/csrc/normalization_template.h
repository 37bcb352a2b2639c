/* Normalisation in two passes: the mean, then the squares about it. */

typedef struct {
    T *out, *mean, *invstd, *over_weight, *over_bias, *parts;
    const T *x, *g, *weight, *bias;
    double *sums; /* of each plane the gradients, and their products with what they belong to */
    int64_t rows, n, images, channels, block, groups, each;
    double eps;
} NAME(Norm);

INLINE T NAME(total)(const T *a, int64_t n) {
    T p = 0;
#pragma omp simd reduction(+ : p)
    for (int64_t i = 0; i < n; i++) p += a[i];
    return p;
}

INLINE T NAME(squares)(const T *a, int64_t n, T mean) {
    T p = 0;
#pragma omp simd reduction(+ : p)
    for (int64_t i = 0; i < n; i++) p += (a[i] - mean) * (a[i] - mean);
    return p;
}

WIDE static void NAME(layer_norm_portable)(const void *context, int64_t begin, int64_t end) {
    const NAME(Norm) *c = context;
    const int64_t n = c->n;
    const T *weight = c->weight, *bias = c->bias;
    for (int64_t row = begin; row < end; row++) {
        const T *restrict x = c->x + row * n;
        T *restrict out = c->out + row * n;
        const T mean = NAME(total)(x, n) / (T)n;
        const T scale = 1 / SQRT(NAME(squares)(x, n, mean) / (T)n + (T)c->eps);
        c->mean[row] = mean;
        c->invstd[row] = scale;
        if (weight != NULL && bias != NULL) {
#pragma omp simd
            for (int64_t i = 0; i < n; i++) out[i] = (x[i] - mean) * scale * weight[i] + bias[i];
        } else if (weight != NULL) {
#pragma omp simd
            for (int64_t i = 0; i < n; i++) out[i] = (x[i] - mean) * scale * weight[i];
        } else if (bias != NULL) {
#pragma omp simd
            for (int64_t i = 0; i < n; i++) out[i] = (x[i] - mean) * scale + bias[i];
        } else {
#pragma omp simd
            for (int64_t i = 0; i < n; i++) out[i] = (x[i] - mean) * scale;
        }
    }
}

/* Rows by vectors where the processor has them (normalization.c). */
static void NAME(layer_norm_step)(const void *context, int64_t begin, int64_t end);
static void NAME(layer_norm_backward_rows)(const NAME(Norm) *c, T *over, int64_t begin, int64_t end);

static void NAME(layer_norm)(const Args *k) {
    NAME(Norm) c = {.out = k->p[0], .mean = k->p[1], .invstd = k->p[2], .x = k->p[3],
                    .weight = k->p[4], .bias = k->p[5], .rows = k->n[0], .n = k->n[1],
                    .eps = k->x[0]};
    split(NAME(layer_norm_step), &c, c.rows, team(k, c.rows * c.n));
}

/* The gradient of rows by x, whose sums for weight and bias are added to those of `over`. */
WIDE static void NAME(layer_norm_backward_portable)(const NAME(Norm) *c, T *over, int64_t begin, int64_t end) {
    const int64_t n = c->n;
    T *restrict over_weight = over, *restrict over_bias = over + n;
    for (int64_t row = begin; row < end; row++) {
        const T *restrict x = c->x + row * n, *restrict g = c->g + row * n;
        T *restrict out = c->out + row * n;
        const T mean = c->mean[row], scale = c->invstd[row];
        T sum = 0, dot = 0;
        if (c->weight != NULL) {
            const T *restrict weight = c->weight;
#pragma omp simd reduction(+ : sum, dot)
            for (int64_t i = 0; i < n; i++) {
                T h = (x[i] - mean) * scale, p = g[i] * weight[i];
                sum += p;
                dot += p * h;
                over_weight[i] += g[i] * h;
                over_bias[i] += g[i];
            }
            const T centre = sum / (T)n, slope = dot / (T)n;
#pragma omp simd
            for (int64_t i = 0; i < n; i++)
                out[i] = scale * (g[i] * weight[i] - centre - (x[i] - mean) * scale * slope);
        } else {
#pragma omp simd reduction(+ : sum, dot)
            for (int64_t i = 0; i < n; i++) {
                T h = (x[i] - mean) * scale;
                sum += g[i];
                dot += g[i] * h;
                over_weight[i] += g[i] * h;
                over_bias[i] += g[i];
            }
            const T centre = sum / (T)n, slope = dot / (T)n;
#pragma omp simd
            for (int64_t i = 0; i < n; i++)
                out[i] = scale * (g[i] - centre - (x[i] - mean) * scale * slope);
        }
    }
}

/* Blocks of rows, whose sums for weight and bias go to a row of `parts` each: the blocks, hence the
   rounding, do not depend on the threads. */
static void NAME(layer_norm_backward_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Norm) *c = context;
    const int64_t n = c->n;
    for (int64_t block = begin; block < end; block++) {
        T *over = c->parts + block * 2 * n;
        for (int64_t i = 0; i < 2 * n; i++) over[i] = 0;
        const int64_t last = (block + 1) * c->block < c->rows ? (block + 1) * c->block : c->rows;
        NAME(layer_norm_backward_rows)(c, over, block * c->block, last);
    }
}

static void NAME(layer_norm_backward)(const Args *k) {
    NAME(Norm) c = {.out = k->p[0], .over_weight = k->p[1], .over_bias = k->p[2], .parts = k->p[3],
                    .g = k->p[4], .x = k->p[5], .weight = k->p[6], .mean = k->p[7],
                    .invstd = k->p[8], .rows = k->n[0], .n = k->n[1], .block = k->n[2]};
    const int64_t blocks = c.rows / c.block + (c.rows % c.block > 0);
    split(NAME(layer_norm_backward_step), &c, blocks, team(k, c.rows * c.n));
    for (int64_t i = 0; i < c.n; i++) {
        double weight = 0, bias = 0;
        for (int64_t block = 0; block < blocks; block++) {
            weight += c.parts[block * 2 * c.n + i];
            bias += c.parts[(block * 2 + 1) * c.n + i];
        }
        c.over_weight[i] = (T)weight;
        c.over_bias[i] = (T)bias;
    }
}

/* Two sums over a channel's planes of all images, which may be too short for sums of their own: lanes of
   some two thousand elements, whose sums go to double. */
#define LANES (int)(64 / sizeof(T))
#define BLOCK 2048
#define OVER_PLANES(name, first, second)                                                          \
    INLINE void NAME(name)(const T *x, const T *g, int64_t images, int64_t stride, int64_t n,     \
                           T mean, double *sums) {                                                \
        const int64_t step = BLOCK / (n + 1) + 1;                                                 \
        (void)mean;                                                                               \
        sums[0] = sums[1] = 0;                                                                    \
        for (int64_t start = 0; start < images; start += step) {                                  \
            const int64_t last = images - start < step ? images : start + step;                   \
            T lanes0[LANES] = {0}, lanes1[LANES] = {0}, rest0 = 0, rest1 = 0;                     \
            for (int64_t i = start; i < last; i++) {                                              \
                const T *restrict a = x + i * stride, *restrict b = g + i * stride;               \
                int64_t j = 0;                                                                    \
                for (; j + LANES <= n; j += LANES) {                                              \
                    _Pragma("omp simd") for (int l = 0; l < LANES; l++) {                         \
                        const T y = a[j + l], h = b[j + l];                                       \
                        (void)h;                                                                  \
                        lanes0[l] += first;                                                       \
                        lanes1[l] += second;                                                      \
                    }                                                                             \
                }                                                                                 \
                for (; j < n; j++) {                                                              \
                    const T y = a[j], h = b[j];                                                   \
                    (void)h;                                                                      \
                    rest0 += first;                                                               \
                    rest1 += second;                                                              \
                }                                                                                 \
            }                                                                                     \
            _Pragma("omp simd reduction(+ : rest0, rest1)") for (int l = 0; l < LANES; l++) {     \
                rest0 += lanes0[l];                                                               \
                rest1 += lanes1[l];                                                               \
            }                                                                                     \
            sums[0] += rest0;                                                                     \
            sums[1] += rest1;                                                                     \
        }                                                                                         \
    }
OVER_PLANES(total_of_planes, y, 0)
OVER_PLANES(squares_of_planes, (y - mean) * (y - mean), 0)
OVER_PLANES(slopes_of_planes, h, h *(y - mean))
#undef OVER_PLANES
#undef BLOCK

/* A plane, a whole vector after the other. */
#define OVER_PLANE(result)                                                                        \
    do {                                                                                          \
        int64_t j = 0;                                                                            \
        for (; j + LANES <= n; j += LANES) {                                                      \
            _Pragma("omp simd") for (int l = 0; l < LANES; l++) {                                 \
                const int64_t at = j + l;                                                         \
                to[at] = result;                                                                  \
            }                                                                                     \
        }                                                                                         \
        for (int64_t at = j; at < n; at++) to[at] = result;                                       \
    } while (0)

WIDE static void NAME(batch_norm_train_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Norm) *c = context;
    const int64_t n = c->n, stride = c->channels * n, images = n > 0 ? c->images : 0;
    const double count = (double)(c->images * n);
    for (int64_t channel = begin; channel < end; channel++) {
        const T *x = c->x + channel * n;
        T *out = c->out + channel * n;
        double sums[2];
        NAME(total_of_planes)(x, x, images, stride, n, 0, sums);
        const T mean = (T)(sums[0] / count);
        NAME(squares_of_planes)(x, x, images, stride, n, mean, sums);
        const T invstd = (T)(1 / sqrt(sums[0] / count + c->eps));
        const T scale = c->weight != NULL ? invstd * c->weight[channel] : invstd;
        const T shift = c->bias != NULL ? c->bias[channel] : 0;
        c->mean[channel] = mean;
        c->invstd[channel] = invstd;
        for (int64_t i = 0; i < images; i++) {
            const T *restrict from = x + i * stride;
            T *restrict to = out + i * stride;
            OVER_PLANE((from[at] - mean) * scale + shift);
        }
    }
}

static void NAME(batch_norm_train)(const Args *k) {
    NAME(Norm) c = {.out = k->p[0], .mean = k->p[1], .invstd = k->p[2], .x = k->p[3],
                    .weight = k->p[4], .bias = k->p[5], .images = k->n[0], .channels = k->n[1],
                    .n = k->n[2], .eps = k->x[0]};
    split(NAME(batch_norm_train_step), &c, c.channels, team(k, c.images * c.channels * c.n));
}

WIDE static void NAME(batch_norm_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Norm) *c = context;
    const int64_t n = c->n;
    for (int64_t plane = begin; plane < end; plane++) {
        const int64_t channel = plane % c->channels;
        const T *restrict x = c->x + plane * n;
        T *restrict to = c->out + plane * n;
        const T mean = c->mean[channel];
        const T scale = c->invstd[channel] * (c->weight != NULL ? c->weight[channel] : 1);
        const T shift = c->bias != NULL ? c->bias[channel] : 0;
        OVER_PLANE((x[at] - mean) * scale + shift);
    }
}

static void NAME(batch_norm)(const Args *k) {
    NAME(Norm) c = {.out = k->p[0], .x = k->p[1], .weight = k->p[2], .bias = k->p[3],
                    .mean = k->p[4], .invstd = k->p[5], .channels = k->n[1], .n = k->n[2]};
    const int64_t planes = c.n > 0 ? k->n[0] * c.channels : 0;
    split(NAME(batch_norm_step), &c, planes, team(k, planes * c.n));
}

WIDE static void NAME(batch_norm_backward_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Norm) *c = context;
    const int64_t n = c->n, stride = c->channels * n, images = n > 0 ? c->images : 0;
    const double count = (double)(c->images * n);
    for (int64_t channel = begin; channel < end; channel++) {
        const T *x = c->x + channel * n, *g = c->g + channel * n;
        T *out = c->out + channel * n;
        const T mean = c->mean[channel], invstd = c->invstd[channel];
        double sums[2];
        NAME(slopes_of_planes)(x, g, images, stride, n, mean, sums);
        const double sum = sums[0], dot = sums[1] * invstd;
        c->over_bias[channel] = (T)sum;
        c->over_weight[channel] = (T)dot;
        const T scale = c->weight != NULL ? invstd * c->weight[channel] : invstd;
        const T centre = (T)(sum / count), slope = (T)(dot / count * invstd);
        for (int64_t i = 0; i < images; i++) {
            const T *restrict a = x + i * stride, *restrict b = g + i * stride;
            T *restrict to = out + i * stride;
            OVER_PLANE(scale * (b[at] - centre - (a[at] - mean) * slope));
        }
    }
}

static void NAME(batch_norm_backward)(const Args *k) {
    NAME(Norm) c = {.out = k->p[0], .over_weight = k->p[1], .over_bias = k->p[2], .g = k->p[3],
                    .x = k->p[4], .weight = k->p[5], .mean = k->p[6], .invstd = k->p[7],
                    .images = k->n[0], .channels = k->n[1], .n = k->n[2]};
    split(NAME(batch_norm_backward_step), &c, c.channels, team(k, c.images * c.channels * c.n));
}

/* Groups of `each` neighbouring planes of n elements, which are rows to take statistics of.  Planes of one
   element are channels side by side. */
WIDE static void NAME(group_norm_portable)(const void *context, int64_t begin, int64_t end) {
    const NAME(Norm) *c = context;
    const int64_t n = c->n, each = c->each;
    const double count = (double)(each * n);
    for (int64_t row = begin; row < end; row++) {
        const T *x = c->x + row * each * n;
        double sums[2];
        const int64_t planes = n == 1 ? 1 : each, size = n == 1 ? each : n;
        NAME(total_of_planes)(x, x, planes, size, size, 0, sums);
        const T mean = (T)(sums[0] / count);
        NAME(squares_of_planes)(x, x, planes, size, size, mean, sums);
        const T invstd = (T)(1 / sqrt(sums[0] / count + c->eps));
        c->mean[row] = mean;
        c->invstd[row] = invstd;
        if (n == 1) {
            const int64_t first = row % c->groups * each;
            const T *weight = c->weight, *bias = c->bias;
            T *restrict to = c->out + row * each;
#pragma omp simd
            for (int64_t i = 0; i < each; i++) {
                const T scale = weight != NULL ? invstd * weight[first + i] : invstd;
                to[i] = (x[i] - mean) * scale + (bias != NULL ? bias[first + i] : 0);
            }
            continue;
        }
        for (int64_t i = 0; i < each; i++) {
            const int64_t channel = row % c->groups * each + i;
            const T *restrict from = x + i * n;
            T *restrict to = c->out + (row * each + i) * n;
            const T scale = c->weight != NULL ? invstd * c->weight[channel] : invstd;
            const T shift = c->bias != NULL ? c->bias[channel] : 0;
            OVER_PLANE((from[at] - mean) * scale + shift);
        }
    }
}

WIDE static void NAME(group_norm_backward_portable)(const void *context, int64_t begin, int64_t end) {
    const NAME(Norm) *c = context;
    const int64_t n = c->n, each = c->each;
    const double count = (double)(each * n);
    for (int64_t row = begin; row < end; row++) {
        const T mean = c->mean[row], invstd = c->invstd[row];
        const int64_t first = row % c->groups * each;
        double sum = 0, dot = 0;
        if (n == 1) {
            const T *restrict a = c->x + row * each, *restrict b = c->g + row * each, *weight = c->weight;
            T *restrict to = c->out + row * each;
            double *restrict sums = c->sums + 2 * row * each;
#pragma omp simd reduction(+ : sum, dot)
            for (int64_t i = 0; i < each; i++) {
                const double g = (double)b[i], h = g * (double)((a[i] - mean) * invstd);
                const double by = weight != NULL ? (double)weight[first + i] : 1;
                sums[2 * i] = g;
                sums[2 * i + 1] = h;
                sum += by * g;
                dot += by * h;
            }
            const T centre = (T)(sum / count), slope = (T)(dot / count * (double)invstd);
#pragma omp simd
            for (int64_t i = 0; i < each; i++) {
                const T p = weight != NULL ? b[i] * weight[first + i] : b[i];
                to[i] = invstd * (p - centre - (a[i] - mean) * slope);
            }
            continue;
        }
        for (int64_t i = 0; i < each; i++) {
            const int64_t plane = row * each + i;
            double *sums = c->sums + 2 * plane;
            NAME(slopes_of_planes)(c->x + plane * n, c->g + plane * n, 1, n, n, mean, sums);
            const double weight = c->weight != NULL ? (double)c->weight[first + i] : 1;
            sums[1] *= (double)invstd;
            sum += weight * sums[0];
            dot += weight * sums[1];
        }
        const T centre = (T)(sum / count), slope = (T)(dot / count * (double)invstd);
        for (int64_t i = 0; i < each; i++) {
            const int64_t start = (row * each + i) * n;
            const T *restrict a = c->x + start, *restrict b = c->g + start;
            T *restrict to = c->out + start;
            const T weight = c->weight != NULL ? c->weight[first + i] : 1;
            OVER_PLANE(invstd * (b[at] * weight - centre - (a[at] - mean) * slope));
        }
    }
}

/* Planes by vectors where the processor has them (normalization.c). */
static void NAME(group_norm_step)(const void *context, int64_t begin, int64_t end);
static void NAME(group_norm_backward_step)(const void *context, int64_t begin, int64_t end);

static void NAME(group_norm)(const Args *k) {
    NAME(Norm) c = {.out = k->p[0], .mean = k->p[1], .invstd = k->p[2], .x = k->p[3],
                    .weight = k->p[4], .bias = k->p[5], .images = k->n[0], .groups = k->n[1],
                    .each = k->n[2], .n = k->n[3], .eps = k->x[0]};
    c.rows = c.images * c.groups;
    split(NAME(group_norm_step), &c, c.rows, team(k, c.rows * c.each * c.n));
}

static void NAME(group_norm_backward)(const Args *k) {
    NAME(Norm) c = {.out = k->p[0], .over_weight = k->p[1], .over_bias = k->p[2], .sums = k->p[3],
                    .g = k->p[4], .x = k->p[5], .weight = k->p[6], .mean = k->p[7],
                    .invstd = k->p[8], .images = k->n[0], .groups = k->n[1], .each = k->n[2],
                    .n = k->n[3]};
    c.rows = c.images * c.groups;
    split(NAME(group_norm_backward_step), &c, c.rows, team(k, c.rows * c.each * c.n));
    const int64_t channels = c.groups * c.each;
    for (int64_t channel = 0; channel < channels; channel++) {
        double weight = 0, bias = 0;
        for (int64_t image = 0; image < c.images; image++) {
            bias += c.sums[2 * (image * channels + channel)];
            weight += c.sums[2 * (image * channels + channel) + 1];
        }
        c.over_weight[channel] = (T)weight;
        c.over_bias[channel] = (T)bias;
    }
}
#undef OVER_PLANE
#undef LANES

/* Batches whose channels lie side by side: (pixels, channels).  A piece of the work is a block of pixels and
   TILE of their channels; the blocks do not depend on the threads.  Several pixels of few channels are a line,
   as wide as some vectors.  Sums of RUN lines are taken in T, their sums in double. */
#define TILE 256 /* channels */
#define LINE 64
#define RUN 128

typedef struct {
    T *out;
    const T *x, *g, *weight, *bias, *mean, *invstd;
    double *parts; /* of each block the sums of each channel, then its second sums */
    int64_t pixels, channels, block, tiles, folded; /* so many pixels are a line */
} NAME(Pixels);

/* Some pixels, of some channels. */
static NAME(Pixels) NAME(pixels)(int64_t pixels, int64_t channels, int64_t block) {
    return (NAME(Pixels)){.pixels = pixels, .channels = channels, .block = block,
                          .tiles = channels / TILE + (channels % TILE > 0),
                          .folded = channels < LINE ? LINE / channels : 1};
}

static int64_t NAME(pieces)(const NAME(Pixels) * c) {
    return (c->pixels / c->block + (c->pixels % c->block > 0)) * c->tiles;
}

/* A piece: its first pixel, how many there are, the first channel, and how many there are. */
INLINE int64_t NAME(piece)(const NAME(Pixels) * c, int64_t piece, int64_t *pixels, int64_t *channel, int64_t *width) {
    const int64_t first = piece / c->tiles * c->block, left = c->channels - (*channel = piece % c->tiles * TILE);
    *width = left < TILE ? left : TILE;
    *pixels = c->pixels - first < c->block ? c->pixels - first : c->block;
    return first;
}

/* Repeats the numbers of `width` channels for each pixel of a line. */
INLINE void NAME(repeat)(T *numbers, int64_t width, int64_t folded) {
    for (int64_t j = width; j < width * folded; j++) numbers[j] = numbers[j - width];
}

#define OVER_LINES(name, first, second)                                                                   \
    INLINE void NAME(name##_lines)(const T *x, const T *g, int64_t count, int64_t step, int64_t width,    \
                                   const T *mean, double *sums) {                                         \
        (void)mean;                                                                                       \
        for (int64_t start = 0; start < count; start += RUN) {                                            \
            const int64_t last = count - start < RUN ? count : start + RUN;                               \
            T some0[TILE], some1[TILE];                                                                   \
            for (int64_t j = 0; j < width; j++) some0[j] = some1[j] = 0;                                  \
            for (int64_t i = start; i < last; i++) {                                                      \
                const T *restrict a = x + i * step, *restrict b = g + i * step;                           \
                _Pragma("omp simd") for (int64_t j = 0; j < width; j++) {                                 \
                    const T y = a[j], h = b[j];                                                           \
                    (void)h;                                                                              \
                    some0[j] += first;                                                                    \
                    some1[j] += second;                                                                   \
                }                                                                                         \
            }                                                                                             \
            for (int64_t j = 0; j < width; j++) sums[j] += some0[j], sums[TILE + j] += some1[j];          \
        }                                                                                                 \
    }                                                                                                     \
    WIDE static void NAME(name##_pixels)(const void *context, int64_t begin, int64_t end) {               \
        const NAME(Pixels) *c = context;                                                                  \
        for (int64_t i = begin; i < end; i++) {                                                           \
            int64_t pixels, channel, width;                                                               \
            const int64_t at = NAME(piece)(c, i, &pixels, &channel, &width), folded = c->folded;          \
            const T *x = c->x + at * c->channels + channel, *g = c->g + at * c->channels + channel;       \
            const int64_t lines = pixels / folded, rest = lines * folded;                                 \
            double sums[2 * TILE] = {0};                                                                  \
            T mean[TILE] = {0};                                                                           \
            if (c->mean != NULL) memcpy(mean, c->mean + channel, (size_t)width * sizeof(T));              \
            NAME(repeat)(mean, width, folded);                                                            \
            NAME(name##_lines)(x, g, lines, folded * c->channels, folded * width, mean, sums);            \
            NAME(name##_lines)(x + rest * c->channels, g + rest * c->channels, pixels - rest, c->channels, \
                               width, mean, sums);                                                        \
            double *part = c->parts + i / c->tiles * 2 * c->channels + channel;                           \
            for (int64_t j = 0; j < width; j++) {                                                         \
                double total = sums[j], other = sums[TILE + j];                                           \
                for (int64_t k = 1; k < folded; k++)                                                      \
                    total += sums[k * width + j], other += sums[TILE + k * width + j];                    \
                part[j] = total;                                                                          \
                part[c->channels + j] = other;                                                            \
            }                                                                                             \
        }                                                                                                 \
    }
OVER_LINES(total, y, 0)
OVER_LINES(squares, (y - mean[j]) * (y - mean[j]), 0)
OVER_LINES(slopes, h, h *(y - mean[j]))
#undef OVER_LINES

/* The sums of all blocks, where those of the first are. */
static void NAME(sum_pixels)(const NAME(Pixels) * c, Step step, int threads) {
    const int64_t pieces = NAME(pieces)(c), width = 2 * c->channels;
    split(step, c, pieces, threads);
    for (int64_t block = 1; block < pieces / c->tiles; block++)
        for (int64_t j = 0; j < width; j++) c->parts[j] += c->parts[block * width + j];
}

/* Each pixel of a piece, line by line; `prepared` gives each channel its numbers. */
#define EACH_PIXEL(name, prepared, result)                                                                \
    WIDE static void NAME(name)(const void *context, int64_t begin, int64_t end) {                        \
        const NAME(Pixels) *c = context;                                                                  \
        for (int64_t i = begin; i < end; i++) {                                                           \
            int64_t pixels, channel, width;                                                               \
            const int64_t first = NAME(piece)(c, i, &pixels, &channel, &width), folded = c->folded;       \
            T mean[TILE], scale[TILE], shift[TILE], slope[TILE];                                          \
            for (int64_t j = 0; j < width; j++) {                                                         \
                const int64_t of = channel + j;                                                           \
                mean[j] = c->mean[of];                                                                    \
                scale[j] = c->weight != NULL ? c->invstd[of] * c->weight[of] : c->invstd[of];             \
                prepared;                                                                                 \
            }                                                                                             \
            NAME(repeat)(mean, width, folded), NAME(repeat)(scale, width, folded);                        \
            NAME(repeat)(shift, width, folded), NAME(repeat)(slope, width, folded);                       \
            const int64_t step = c->tiles > 1 ? c->channels : folded * width;                             \
            const int64_t start = first * c->channels + channel, end_of_all = start + pixels * c->channels; \
            for (int64_t at = start; at < end_of_all; at += step) {                                       \
                const int64_t left = end_of_all - at, wide = folded * width, n = left < wide ? left : wide; \
                const T *restrict x = c->x + at, *restrict g = c->g + at;                                 \
                T *restrict to = c->out + at;                                                             \
                (void)g;                                                                                  \
                _Pragma("omp simd") for (int64_t j = 0; j < n; j++) to[j] = result;                       \
            }                                                                                             \
        }                                                                                                 \
    }
EACH_PIXEL(scale_pixels, (shift[j] = c->bias != NULL ? c->bias[of] : 0, slope[j] = 0),
           (x[j] - mean[j]) * scale[j] + shift[j])
EACH_PIXEL(slope_pixels,
           (shift[j] = (T)(c->parts[of] / (double)c->pixels),
            slope[j] = (T)(c->parts[c->channels + of] * c->invstd[of] / (double)c->pixels * c->invstd[of])),
           scale[j] * (g[j] - shift[j] - (x[j] - mean[j]) * slope[j]))
#undef EACH_PIXEL

static void NAME(batch_norm_pixels_train)(const Args *k) {
    if (k->n[0] < 1 || k->n[1] < 1) return;
    NAME(Pixels) c = NAME(pixels)(k->n[0], k->n[1], k->n[2]);
    T *mean = k->p[1], *invstd = k->p[2];
    const int threads = team(k, c.pixels * c.channels);
    c.out = k->p[0], c.parts = k->p[3], c.x = c.g = k->p[4], c.weight = k->p[5], c.bias = k->p[6];
    NAME(sum_pixels)(&c, NAME(total_pixels), threads);
    for (int64_t j = 0; j < c.channels; j++) mean[j] = (T)(c.parts[j] / (double)c.pixels);
    c.mean = mean, c.invstd = invstd;
    NAME(sum_pixels)(&c, NAME(squares_pixels), threads);
    for (int64_t j = 0; j < c.channels; j++) invstd[j] = (T)(1 / sqrt(c.parts[j] / (double)c.pixels + k->x[0]));
    split(NAME(scale_pixels), &c, NAME(pieces)(&c), threads);
}

static void NAME(batch_norm_pixels)(const Args *k) {
    if (k->n[0] < 1 || k->n[1] < 1) return;
    NAME(Pixels) c = NAME(pixels)(k->n[0], k->n[1], RUN);
    c.out = k->p[0], c.x = c.g = k->p[1], c.weight = k->p[2], c.bias = k->p[3], c.mean = k->p[4], c.invstd = k->p[5];
    split(NAME(scale_pixels), &c, NAME(pieces)(&c), team(k, c.pixels * c.channels));
}

static void NAME(batch_norm_pixels_backward)(const Args *k) {
    if (k->n[0] < 1 || k->n[1] < 1) return;
    NAME(Pixels) c = NAME(pixels)(k->n[0], k->n[1], k->n[2]);
    T *over_weight = k->p[1], *over_bias = k->p[2];
    const int threads = team(k, c.pixels * c.channels);
    c.out = k->p[0], c.parts = k->p[3], c.g = k->p[4], c.x = k->p[5];
    c.weight = k->p[6], c.mean = k->p[7], c.invstd = k->p[8];
    NAME(sum_pixels)(&c, NAME(slopes_pixels), threads);
    for (int64_t j = 0; j < c.channels; j++) {
        over_bias[j] = (T)c.parts[j];
        over_weight[j] = (T)(c.parts[c.channels + j] * c.invstd[j]);
    }
    split(NAME(slope_pixels), &c, NAME(pieces)(&c), threads);
}
#undef TILE
#undef LINE
#undef RUN
