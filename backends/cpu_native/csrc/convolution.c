/* Convolutions of float32 images with AVX-512, without a copy of the image or of the weight.

   Where windows are one pixel apart, what the pixels of a vector need of a tap lies beside each other, in whole
   lines of the image: sums are of all positions of a line, and those of windows that are none are not written.
   Pixels of the padding are lanes that are not read and add nothing, whatever the weight is.  Libraries fill blocks of sixteen channels instead, which
   images of few channels have not. */
#include "turning.h"

#if HAS_AVX512
#define MOST_VECTORS 4 /* of a panel */
#define MOST_TAPS 32   /* in a line, and lines */
#define FARTHEST (1 << 20) /* pixels in a dimension, and how far taps and padding reach */
#define PART (1 << 20) /* multiplications per thread below which a second is not worth waking */

/* out[n, o, y, x] = bias[o] + the sum of weight[o, c, i, j] image[n, c, y + i down - above, x + j right - left]
   for each group. */
typedef struct {
    float *out;
    const float *image, *weight, *bias;
    int64_t groups, features, channels, height, width, lines, taps, out_height, out_width;
    int64_t down, right, above, left;
    int64_t seen; /* pixels of a line; the rest of it is none */
    int64_t units, panels; /* vectors of positions, and how many times some of them are computed at once */
    int rectifies;
} Convolution;

/* Some features of a panel of positions: which of its numbers are pixels for each line and each tap of a line,
   and which are written where. */
typedef struct {
    const Convolution *c;
    const float *image, *weight, *bias;
    float *out;
    __mmask16 of_line[MOST_TAPS][MOST_VECTORS], of_tap[MOST_TAPS][MOST_VECTORS], inside[MOST_VECTORS];
    int64_t places[MOST_VECTORS];
} Part;

/* `rows` and `vectors` are constants where this is inlined, and the sums stay in registers. */
FORCED void convolve(const Part *p, int rows, int vectors) {
    const Convolution *c = p->c;
    const int64_t plane = c->height * c->width, size = c->channels * c->lines * c->taps;
    const int64_t result = c->out_height * c->out_width;
    const float *restrict weight = p->weight;
    __m512 sums[12][MOST_VECTORS];
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) sums[i][v] = _mm512_setzero_ps();
    for (int64_t channel = 0; channel < c->channels; channel++)
        for (int64_t line = 0; line < c->lines; line++) {
            const float *restrict image = p->image + channel * plane + line * c->down * c->width;
            for (int64_t tap = 0; tap < c->taps; tap++, weight++, image += c->right) {
                __m512 x[MOST_VECTORS];
                __mmask16 read[MOST_VECTORS];
#pragma GCC unroll 4
                for (int v = 0; v < vectors; v++) {
                    read[v] = p->of_line[line][v] & p->of_tap[tap][v];
                    x[v] = _mm512_maskz_loadu_ps(read[v], image + LANES * v);
                    __asm__("" : "+v"(x[v])); /* read once, and not by each instruction */
                }
#pragma GCC unroll 12
                for (int i = 0; i < rows; i++) {
                    const __m512 factor = _mm512_set1_ps(weight[i * size]);
#pragma GCC unroll 4
                    for (int v = 0; v < vectors; v++)
                        sums[i][v] = _mm512_mask3_fmadd_ps(factor, x[v], sums[i][v], read[v]);
                }
            }
        }
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            __m512 y = sums[i][v];
            if (p->bias != NULL) y += _mm512_set1_ps(p->bias[i]);
            if (c->rectifies) y = _mm512_max_ps(_mm512_setzero_ps(), y);
            _mm512_mask_storeu_ps(p->out + i * result + p->places[v], lanes(__builtin_popcount(p->inside[v])),
                                  _mm512_maskz_compress_ps(p->inside[v], y));
        }
}

FORCED void next_rows(Part *p, int rows, int vectors) {
    const Convolution *c = p->c;
    convolve(p, rows, vectors);
    p->weight += rows * c->channels * c->lines * c->taps;
    p->out += rows * c->out_height * c->out_width;
    if (p->bias != NULL) p->bias += rows;
}

/* The features in parts that are as equal as can be, of no more sums than the registers hold. */
FORCED void all_rows(Part *p, int vectors) {
    const int64_t features = p->c->features;
    const int64_t most = vectors == 4 ? 6 : 12, parts = (features + most - 1) / most;
    for (int64_t part = 0; part < parts; part++) {
        const int64_t rows = features * (part + 1) / parts - features * part / parts;
        if (vectors == 4) {
            switch (rows) {
                case 1: next_rows(p, 1, vectors); break;
                case 2: next_rows(p, 2, vectors); break;
                case 3: next_rows(p, 3, vectors); break;
                case 4: next_rows(p, 4, vectors); break;
                case 5: next_rows(p, 5, vectors); break;
                default: next_rows(p, 6, vectors);
            }
            continue;
        }
        int64_t rest = rows;
        for (; rest >= 8; rest -= 8) next_rows(p, 8, vectors);
        if (rest >= 4) next_rows(p, 4, vectors), rest -= 4;
        if (rest >= 2) next_rows(p, 2, vectors), rest -= 2;
        if (rest >= 1) next_rows(p, 1, vectors);
    }
}

/* Which lanes of the vectors of a panel are pixels, and which are written. */
AVX512 static void look(Part *p, int64_t first, int vectors) {
    const Convolution *c = p->c;
    int64_t y = first / c->width, x = first % c->width;
    memset(p->of_line, 0, sizeof p->of_line[0] * (size_t)c->lines);
    memset(p->of_tap, 0, sizeof p->of_tap[0] * (size_t)c->taps);
    for (int v = 0; v < vectors; v++) {
        p->inside[v] = 0;
        p->places[v] = y * c->out_width + (x < c->out_width ? x : c->out_width);
        /* The lanes of one line at a time. */
        for (int lane = 0; lane < LANES && y < c->out_height;) {
            const int64_t rest = c->width - x < LANES - lane ? c->width - x : LANES - lane;
            const __mmask16 all = (__mmask16)(lanes(rest) << lane);
            const int64_t kept = c->out_width - x < rest ? c->out_width - x : rest;
            if (kept > 0) p->inside[v] |= (__mmask16)(lanes(kept) << lane);
            for (int64_t i = 0; i < c->lines; i++) {
                const int64_t at = y + i * c->down - c->above;
                if (at >= 0 && at < c->height) p->of_line[i][v] |= all;
            }
            for (int64_t j = 0; j < c->taps; j++) {
                const int64_t at = x + j * c->right - c->left, low = at < 0 ? -at : 0;
                const int64_t high = c->seen - at < rest ? c->seen - at : rest;
                if (low < high) p->of_tap[j][v] |= (__mmask16)((lanes(high) & ~lanes(low)) << lane);
            }
            lane += (int)rest;
            x += rest;
            if (x == c->width) x = 0, y++;
        }
    }
}

/* The panels [begin, end), counted over the groups of all images. */
AVX512 static void panels(const void *context, int64_t begin, int64_t end) {
    const Convolution *c = context;
    const int64_t plane = c->height * c->width, result = c->out_height * c->out_width;
    const int64_t size = c->features * c->channels * c->lines * c->taps, whole = c->units / MOST_VECTORS;
    Part p = {.c = c};
    for (int64_t number = begin; number < end; number++) {
        const int64_t stack = number / c->panels, panel = number % c->panels, group = stack % c->groups;
        /* The last ones are of two vectors or of one. */
        const int vectors = panel < whole ? MOST_VECTORS : panel == whole && (c->units & 2) ? 2 : 1;
        const int64_t unit = panel <= whole ? panel * MOST_VECTORS : c->units - 1, first = unit * LANES;
        p.image = c->image + stack * c->channels * plane + first - c->above * c->width - c->left;
        p.weight = c->weight + group * size;
        p.bias = c->bias == NULL ? NULL : c->bias + group * c->features;
        p.out = c->out + stack * c->features * result;
        look(&p, first, vectors);
        switch (vectors) {
            case 1: all_rows(&p, 1); break;
            case 2: all_rows(&p, 2); break;
            default: all_rows(&p, 4);
        }
    }
}

/* Whether places of `taps` in a dimension can be counted, the first `before` pixels ahead of the image. */
static int is_counted(int64_t size, int64_t taps, int64_t out, int64_t step, int64_t before) {
    return size > 0 && size <= FARTHEST && taps > 0 && taps <= MOST_TAPS && out > 0 && out <= FARTHEST &&
           step >= 0 && step <= FARTHEST / MOST_TAPS && before >= 0 && before <= FARTHEST;
}

/* Images, groups, features and channels of a group, lines and columns of an image, of the weight and of the
   result, distances of taps, padding above and on the left, how many columns of the image are pixels, and
   whether relu is made of the result. */
static void convolution(const Args *args) {
    const int64_t *n = args->n;
    Convolution c = {.out = args->p[0], .image = args->p[1], .weight = args->p[2], .bias = args->p[3],
                     .groups = n[1], .features = n[2], .channels = n[3], .height = n[4], .width = n[5],
                     .lines = n[6], .taps = n[7], .out_height = n[8], .out_width = n[9], .down = n[10],
                     .right = n[11], .above = n[12], .left = n[13], .seen = n[14],
                     .rectifies = n[15] != 0};
    if (c.groups < 1 || c.features < 1 || c.channels < 1 ||
        c.out_width > c.width || c.seen < 1 || c.seen > c.width || !is_counted(c.height, c.lines, c.out_height, c.down, c.above) ||
        !is_counted(c.width, c.taps, c.out_width, c.right, c.left)) {
        *args->failure = "a convolution of another kind";
        return;
    }
    c.units = (c.out_height * c.width - c.width + c.out_width + LANES - 1) / LANES;
    c.panels = c.units / MOST_VECTORS + ((c.units & 2) != 0) + (c.units & 1);
    const int64_t size = times(c.features, times(c.channels, c.lines * c.taps));
    const int64_t work = times(n[0] * c.groups * c.units * LANES, size) / PART;
    split(panels, &c, n[0] * c.groups * c.panels, work < 1 ? 1 : work < args->threads ? (int)work : args->threads);
}
#endif

const Row convolution_rows[] = {
#if HAS_AVX512
    {"convolution", "wrroiiiiiiiiiiiiiiii", "w01289,w01345,w12367,w12", convolution},
#endif
    {NULL, NULL, NULL, NULL},
};
