/* Small convolutions by windows of one pixel: each pixel of the result is a product of the weight with the
   channels of that pixel.  Libraries copy both operands before they multiply them. */
#include "avx512.h"
#include "native.h"

typedef struct {
    const float *x, *w, *bias;
    float *out;
    int64_t channels, features, pixels;
} Pixels;

WIDE static void image_of_any(const Pixels *c, const float *x, float *out) {
    const int64_t pixels = c->pixels;
    for (int64_t o = 0; o < c->features; o++, out += pixels) {
        const float start = c->bias != NULL ? c->bias[o] : 0;
        for (int64_t p = 0; p < pixels; p++) out[p] = start;
        for (int64_t k = 0; k < c->channels; k++) {
            const float factor = c->w[o * c->channels + k];
            const float *restrict from = x + k * pixels;
            float *restrict to = out;
#pragma omp simd
            for (int64_t p = 0; p < pixels; p++) to[p] += factor * from[p];
        }
    }
}

#if HAS_AVX512
#define ROWS 4    /* features, and */
#define VECTORS 4 /* vectors of pixels, whose sums stay in registers */
#define FORCED static inline __attribute__((always_inline)) AVX512

/* `rows` and `vectors` are constants where this is inlined; `last` are the lanes of the last vector. */
FORCED void tile(const Pixels *c, const float *x, float *out, int64_t first, int rows, int vectors, __mmask16 last) {
    __m512 sums[ROWS][VECTORS];
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) sums[i][v] = _mm512_set1_ps(c->bias != NULL ? c->bias[first + i] : 0);
    const float *w = c->w + first * c->channels;
    for (int64_t k = 0; k < c->channels; k++, x += c->pixels, w++) {
        __m512 y[VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            y[v] = _mm512_maskz_loadu_ps(v == vectors - 1 ? last : (__mmask16)0xFFFF, x + 16 * v);
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++) {
            const __m512 factor = _mm512_set1_ps(w[i * c->channels]);
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++) sums[i][v] = _mm512_fmadd_ps(factor, y[v], sums[i][v]);
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            _mm512_mask_storeu_ps(out + (first + i) * c->pixels + 16 * v,
                                  v == vectors - 1 ? last : (__mmask16)0xFFFF, sums[i][v]);
}

FORCED void tiles(const Pixels *c, const float *x, float *out, int vectors, __mmask16 last) {
    int64_t first = 0;
    for (; first + ROWS <= c->features; first += ROWS) tile(c, x, out, first, ROWS, vectors, last);
    for (; first < c->features; first++) tile(c, x, out, first, 1, vectors, last);
}

AVX512 static void image_of_vectors(const Pixels *c, const float *x, float *out) {
    for (int64_t p = 0; p < c->pixels; p += 16 * VECTORS) {
        const int64_t left = c->pixels - p < 16 * VECTORS ? c->pixels - p : 16 * VECTORS;
        const int64_t rest = (left - 1) % 16 + 1;
        const __mmask16 last = (__mmask16)((1u << rest) - 1);
        switch ((left + 15) / 16) {
            case 1: tiles(c, x + p, out + p, 1, last); break;
            case 2: tiles(c, x + p, out + p, 2, last); break;
            case 3: tiles(c, x + p, out + p, 3, last); break;
            default: tiles(c, x + p, out + p, 4, last);
        }
    }
}
#endif

static void images(const void *context, int64_t begin, int64_t end) {
    const Pixels *c = context;
    for (int64_t n = begin; n < end; n++) {
        const float *x = c->x + n * c->channels * c->pixels;
        float *out = c->out + n * c->features * c->pixels;
#if HAS_AVX512
        if (has_avx512()) {
            image_of_vectors(c, x, out);
            continue;
        }
#endif
        image_of_any(c, x, out);
    }
}

static void pixels(const Args *k) {
    const Pixels c = {k->p[1], k->p[2], k->p[3], k->p[0], k->n[1], k->n[2], k->n[3]};
    if (c.features > 0 && c.pixels > 0) /* or there may be any number of images of nothing */
        split(images, &c, k->n[0], team(k, times(times(k->n[0], c.channels), times(c.features, c.pixels)) / 16));
}

const Row pixels_rows[] = {
    {"pixels_f32", "wrroiiii", "t023,t013,t12,t2", pixels},
    {NULL, NULL, NULL, NULL},
};
