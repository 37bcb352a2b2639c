/* The gradient of the weight of a convolution of float32 images with AVX-512: windows are one pixel apart, so
   that for a tap the pixels and the gradients of a line lie beside each other.  Lines of both have one length;
   behind a line's windows there is no gradient, and nothing is read. */
#include "turning.h"

#if HAS_AVX512
#define ROWS 8        /* features at once, four where taps are many */
#define MOST_TAPS 5    /* at once */
#define ENOUGH 64      /* vectors of positions whose sums are added to the result at once */
#define PART (1 << 20) /* multiplications per thread below which a second is not worth waking */

typedef struct {
    float *out;
    const float *grad, *image;
    int64_t images, groups, features, channels, height, width, lines, taps, out_height, down, right;
    int64_t units;             /* vectors of positions */
    const __mmask16 *begins; /* which of their lanes a window begins at */
} Gradient;

typedef struct {
    const Gradient *c;
    const float *grad, *image;
    float *out;
    int64_t images;
} Strip; /* what some features' taps of one line of one channel are of some images */

FORCED void sums_of_taps(const Strip *s, int rows, int taps) {
    const Gradient *c = s->c;
    const int64_t size = c->channels * c->lines * c->taps, plane = c->out_height * c->width;
    __m512 sums[ROWS][MOST_TAPS];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 5
        for (int j = 0; j < taps; j++) sums[i][j] = _mm512_setzero_ps();
    for (int64_t n = 0; n < s->images; n++) {
        const float *restrict grad = s->grad + n * c->groups * c->features * plane;
        const float *restrict image = s->image + n * c->groups * c->channels * c->height * c->width;
        for (int64_t unit = 0; unit < c->units; unit++) {
            const int64_t at = unit * LANES;
            const __mmask16 read = c->begins[unit];
            __m512 x[MOST_TAPS];
#pragma GCC unroll 5
            for (int j = 0; j < taps; j++) {
                x[j] = _mm512_maskz_loadu_ps(read, image + at + j * c->right);
                __asm__("" : "+v"(x[j])); /* read once, and not by each instruction */
            }
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++) {
                __m512 g = _mm512_maskz_loadu_ps(read, grad + i * plane + at);
                __asm__("" : "+v"(g));
#pragma GCC unroll 5
                for (int j = 0; j < taps; j++) sums[i][j] = _mm512_fmadd_ps(g, x[j], sums[i][j]);
            }
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 5
        for (int j = 0; j < taps; j++) s->out[i * size + j] += _mm512_reduce_add_ps(sums[i][j]);
}

FORCED void strip(Strip s, int rows) {
    int64_t left = s.c->taps;
    while (left > 0) {
        const int taps = left >= 5 ? 5 : left == 4 ? 2 : (int)left;
        switch (taps) {
            case 1: sums_of_taps(&s, rows, 1); break;
            case 2: sums_of_taps(&s, rows, 2); break;
            case 3: sums_of_taps(&s, rows, 3); break;
            default:
                if (rows < 8) sums_of_taps(&s, rows, 5);
                else {
                    Strip lower = s;
                    lower.grad += 4 * s.c->out_height * s.c->width;
                    lower.out += 4 * s.c->channels * s.c->lines * s.c->taps;
                    sums_of_taps(&s, 4, 5);
                    sums_of_taps(&lower, 4, 5);
                }
        }
        s.image += taps * s.c->right, s.out += taps, left -= taps;
    }
}

/* The blocks of features [begin, end), counted over the groups. */
AVX512 static void strips(const void *context, int64_t begin, int64_t end) {
    const Gradient *c = context;
    const int64_t blocks = (c->features + ROWS - 1) / ROWS, size = c->channels * c->lines * c->taps;
    const int64_t plane = c->height * c->width, out_plane = c->out_height * c->width;
    const int64_t some = c->units >= ENOUGH ? 1 : (ENOUGH + c->units - 1) / c->units;
    for (int64_t n = 0; n < c->images; n += some)
        for (int64_t number = begin; number < end; number++) {
            const int64_t group = number / blocks, first = number % blocks * ROWS;
            const int64_t rows = c->features - first < ROWS ? c->features - first : ROWS;
            const int64_t feature = group * c->features + first;
            for (int64_t channel = 0; channel < c->channels; channel++)
                for (int64_t line = 0; line < c->lines; line++) {
                    Strip s = {.c = c, .images = c->images - n < some ? c->images - n : some,
                               .grad = c->grad + (n * c->groups * c->features + feature) * out_plane,
                               .image = c->image + ((n * c->groups + group) * c->channels + channel) * plane + line * c->down * c->width,
                               .out = c->out + feature * size + (channel * c->lines + line) * c->taps};
                    int64_t rest = rows;
                    while (rest > 0) {
                        const int now = rest >= 8 ? 8 : rest >= 4 ? 4 : rest >= 2 ? 2 : 1;
                        switch (now) {
                            case 8: strip(s, 8); break;
                            case 4: strip(s, 4); break;
                            case 2: strip(s, 2); break;
                            default: strip(s, 1);
                        }
                        s.grad += now * out_plane, s.out += now * size, rest -= now;
                    }
                }
        }
}

/* Images, groups, features and channels of a group, lines and columns of an image and of the weight, lines of
   the gradient, and distances of taps. */
static void convolution_weight(const Args *args) {
    const int64_t *n = args->n;
    Gradient c = {.out = args->p[0], .grad = args->p[1], .image = args->p[2], .images = n[0], .groups = n[1],
                        .features = n[2], .channels = n[3], .height = n[4], .width = n[5], .lines = n[6],
                        .taps = n[7], .out_height = n[8], .down = n[9], .right = n[10]};
    int64_t high, wide;
    if (c.groups < 1 || c.features < 1 || c.channels < 1 || c.lines < 1 || c.taps < 1 || c.down < 0 || c.right < 0 ||
        __builtin_mul_overflow(c.lines - 1, c.down, &high) || __builtin_mul_overflow(c.taps - 1, c.right, &wide) ||
        c.out_height < 1 || c.height - c.out_height != high || wide >= c.width) {
        *args->failure = "windows that leave the image";
        return;
    }
    const int64_t positions = c.out_height * c.width, out_width = c.width - wide;
    c.units = (positions + LANES - 1) / LANES;
    __mmask16 *const begins = calloc((size_t)c.units, sizeof *begins);
    if (begins == NULL) {
        *args->failure = "no memory";
        return;
    }
    for (int64_t at = 0; at < positions; at++)
        if (at % c.width < out_width) begins[at / LANES] |= (__mmask16)(1u << at % LANES);
    c.begins = begins;
    const int64_t size = times(c.features, times(c.channels, c.lines * c.taps));
    memset(c.out, 0, (size_t)(c.groups * size) * sizeof(float));
    const int64_t work = times(times(c.images * c.groups, size), c.out_height * c.width) / PART;
    split(strips, &c, c.groups * ((c.features + ROWS - 1) / ROWS),
          work < 1 ? 1 : work < args->threads ? (int)work : args->threads);
    free(begins);
}
#endif

const Row convolution_weight_rows[] = {
#if HAS_AVX512
    {"convolution_weight", "wrriiiiiiiiiii", "w12367,w01285,w01345", convolution_weight},
#endif
    {NULL, NULL, NULL, NULL},
};
