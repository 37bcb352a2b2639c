/* Maximum with positions, and mean, over windows of planes; their gradients. */
#include "avx512.h"

/* Windows of two by two that share nothing, of floats, have a function of their own. */
static void quartered_step(const void *context, int64_t begin, int64_t end);
#if HAS_AVX512
#define IS_QUARTERED has_avx512()
#else
#define IS_QUARTERED 0
#endif

#define TEMPLATE "pooling_template.h"
#include "both.h"

#if HAS_AVX512
#define MASK_OF(count) ((__mmask16)((count) >= 16 ? 0xFFFF : (1u << ((count) > 0 ? (count) : 0)) - 1))

/* A value takes the place of the best if it is greater, or a NaN. */
#define TRY(value, at)                                                                           \
    do {                                                                                         \
        const __m512 v = (value);                                                                \
        const __mmask16 better = _mm512_cmp_ps_mask(v, best, _CMP_GT_OQ) |                       \
                                 _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);                         \
        best = _mm512_mask_mov_ps(best, better, v);                                              \
        place = _mm512_mask_mov_epi32(place, better, at);                                        \
    } while (0)

AVX512 static void quartered_step(const void *context, int64_t begin, int64_t end) {
    const Pool_f32 *c = context;
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    const __m512i below = _mm512_set1_epi32((int32_t)c->w);
    for (int64_t line = begin; line < end; line++) {
        const int64_t plane = line / c->oh, start = line % c->oh * 2 * c->w;
        const float *x = c->x + plane * c->h * c->w + start;
        float *out = c->out + line * c->ow;
        int64_t *places = c->places + line * c->ow;
        for (int64_t i = 0; i < c->ow; i += 16) {
            const int64_t count = c->ow - i;
            const __mmask16 low = MASK_OF(2 * count), high = MASK_OF(2 * count - 16);
            const float *a = x + 2 * i, *b = a + c->w;
            const __m512 a0 = _mm512_maskz_loadu_ps(low, a), a1 = _mm512_maskz_loadu_ps(high, a + 16);
            const __m512 b0 = _mm512_maskz_loadu_ps(low, b), b1 = _mm512_maskz_loadu_ps(high, b + 16);
            const __m512i first =
                _mm512_add_epi32(even, _mm512_set1_epi32((int32_t)(start + 2 * i)));
            const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(1));
            __m512 best = _mm512_permutex2var_ps(a0, even, a1);
            __m512i place = first;
            TRY(_mm512_permutex2var_ps(a0, odd, a1), second);
            TRY(_mm512_permutex2var_ps(b0, even, b1), _mm512_add_epi32(first, below));
            TRY(_mm512_permutex2var_ps(b0, odd, b1), _mm512_add_epi32(second, below));
            const __mmask16 all = MASK_OF(count);
            _mm512_mask_storeu_ps(out + i, all, best);
            _mm512_mask_storeu_epi64(places + i, (__mmask8)all,
                                     _mm512_cvtepi32_epi64(_mm512_castsi512_si256(place)));
            _mm512_mask_storeu_epi64(places + i + 8, (__mmask8)(all >> 8),
                                     _mm512_cvtepi32_epi64(_mm512_extracti32x8_epi32(place, 1)));
        }
    }
}
#else
static void quartered_step(const void *context, int64_t begin, int64_t end) {
    max_pool2d_step_f32(context, begin, end);
}
#endif

/* Volumes, their three sizes, the windows along each, and the steps within a window. */
#define BOXES "t0456,d0456,t0123,d4,d4,d5,d5,d6,d6"
const Row pooling_rows[] = {
    {"max_pool2d_f32", "wwriiiiiiiiiiiii", "t034,d034,t012", max_pool2d_f32},
    {"max_pool2d_f64", "wwriiiiiiiiiiiii", "t034,d034,t012", max_pool2d_f64},
    {"max_boxes_f32", "wwrrrrrrriiiiiiiiii", BOXES, max_boxes_f32},
    {"max_boxes_f64", "wwrrrrrrriiiiiiiiii", BOXES, max_boxes_f64},
    {"max_pool2d_backward_f32", "wrriii", "t01,t02,d02", max_pool2d_backward_f32},
    {"max_pool2d_backward_f64", "wrriii", "t01,t02,d02", max_pool2d_backward_f64},
    {"avg_pool2d_f32", "wriiiiiiiiiiiif", "t034,t012", avg_pool2d_f32},
    {"avg_pool2d_f64", "wriiiiiiiiiiiif", "t034,t012", avg_pool2d_f64},
    {"avg_pool2d_backward_f32", "wriiiiiiiiiiiif", "t012,t034", avg_pool2d_backward_f32},
    {"avg_pool2d_backward_f64", "wriiiiiiiiiiiif", "t012,t034", avg_pool2d_backward_f64},
    {NULL, NULL, NULL, NULL},
};
