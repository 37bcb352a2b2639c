/* Maximum with positions, and mean, over windows of planes; their gradients. */
#include "avx512.h"

/* Windows of floats that are one or two apart have functions of their own; so have those of two by
   two that share nothing. */
static void quartered_step(const void *context, int64_t begin, int64_t end);
static void few_columns_step(const void *context, int64_t begin, int64_t end);
#define WIDEST 16 /* windows */
static void windows_step(const void *context, int64_t begin, int64_t end);
/* The greatest number of a window of a volume, and its place. */
typedef void Box(const void *context, const void *volume, const int64_t *from, const int64_t *to, void *value,
                 int64_t *place);
static Box max_box_v;
/* The sum of `rows` rows of n numbers, which begin `apart` from each other. */
static float sum_box_v(const float *x, int64_t rows, int64_t n, int64_t apart);
#if HAS_AVX512
#define IS_QUARTERED has_avx512()
#else
#define IS_QUARTERED 0
#endif

/* How far windows of `taps` reach along a dimension of `size`; 0 if no number says it. */
INLINE int reach(int64_t count, int64_t step, int64_t taps, int64_t apart, int64_t pad, int64_t size, int64_t *far) {
    int64_t within;
    return taps >= 0 && pad >= 0 && !__builtin_mul_overflow(count, step, far) &&
           !__builtin_mul_overflow(taps, apart, &within) && !__builtin_add_overflow(*far, within, far) &&
           !__builtin_add_overflow(*far, apart, far) && !__builtin_add_overflow(*far, pad, far) &&
           !__builtin_add_overflow(*far, size, far);
}

#define TEMPLATE "pooling_template.h"
#include "both.h"

#if HAS_AVX512
#define MASK_OF(count) ((__mmask16)((count) >= 16 ? 0xFFFF : (1u << ((count) > 0 ? (count) : 0)) - 1))

/* sum_box_f32, sixteen numbers at once. */
AVX512 static float sum_box_v(const float *x, int64_t rows, int64_t n, int64_t apart) {
    __m512 sum = _mm512_setzero_ps();
    for (int64_t row = 0; row < rows; row++, x += apart)
        for (int64_t i = 0; i < n; i += 16) sum += _mm512_maskz_loadu_ps(MASK_OF(n - i), x + i);
    return _mm512_reduce_add_ps(sum);
}

/* max_box_f32 of windows without gaps in a line: sixteen numbers are compared at once, of which seldom
   one is greater, or a NaN. */
AVX512 static void max_box_v(const void *context, const void *volume, const int64_t *from, const int64_t *to,
                             void *value, int64_t *place) {
    const Boxes_f32 *c = context;
    const float *x = volume;
    float best = -INFINITY;
    int64_t at = (from[0] * c->size[1] + from[1]) * c->size[2] + from[2];
    for (int64_t i = from[0]; i < to[0]; i += c->step[0]) {
        for (int64_t j = from[1]; j < to[1]; j += c->step[1]) {
            const int64_t line = (i * c->size[1] + j) * c->size[2], end = line + to[2];
            for (int64_t k = line + from[2]; k < end; k += 16) {
                const __mmask16 lanes = MASK_OF(end - k);
                const __m512 numbers = _mm512_maskz_loadu_ps(lanes, x + k);
                unsigned better = _mm512_mask_cmp_ps_mask(lanes, numbers, _mm512_set1_ps(best), _CMP_NLE_UQ);
                for (; better; better &= better - 1) {
                    const int64_t next = k + __builtin_ctz(better);
                    const float number = x[next];
                    if (number > best || number != number) best = number, at = next;
                }
            }
        }
    }
    *(float *)value = best;
    *place = at;
}

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

/* Rows of up to eight windows: 32 elements, of several rows, have eight windows. */
AVX512 static void few_columns_step(const void *context, int64_t begin, int64_t end) {
    const Pool_f32 *c = context;
    const int32_t w = (int32_t)c->w, plane = (int32_t)(c->h * c->w); /* a power of two */
    int32_t at[16] = {0};
    for (int32_t i = 0; i < 8; i++)
        at[i] = i / (int32_t)c->ow * 2 * w + i % (int32_t)c->ow * 2;
    const __m512i first = _mm512_loadu_si512(at);
    const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(1));
    const __m512i third = _mm512_add_epi32(first, _mm512_set1_epi32(w));
    const __m512i fourth = _mm512_add_epi32(second, _mm512_set1_epi32(w));
    for (int64_t i = begin * c->ow; i < end * c->ow; i += 8) {
        const int64_t count = end * c->ow - i;
        const __mmask16 all = MASK_OF(count) & 0xFF;
        const float *x = c->x + 4 * i;
        const __m512 a = _mm512_maskz_loadu_ps(MASK_OF(4 * count), x);
        const __m512 b = _mm512_maskz_loadu_ps(MASK_OF(4 * count - 16), x + 16);
        __m512 best = _mm512_permutex2var_ps(a, first, b);
        __m512i place = first;
        TRY(_mm512_permutex2var_ps(a, second, b), second);
        TRY(_mm512_permutex2var_ps(a, third, b), third);
        TRY(_mm512_permutex2var_ps(a, fourth, b), fourth);
        place = _mm512_add_epi32(place, _mm512_set1_epi32((int32_t)(4 * i & (plane - 1))));
        place = _mm512_and_epi32(place, _mm512_set1_epi32(plane - 1));
        _mm512_mask_storeu_ps(c->out + i, all, best);
        _mm512_mask_storeu_epi64(c->places + i, (__mmask8)all,
                                 _mm512_cvtepi32_epi64(_mm512_castsi512_si256(place)));
    }
}

/* The bits of the columns from `column` on, two vectors of them, that lie in a row of `w`. */
INLINE uint32_t columns_inside(int64_t column, int64_t w) {
    const int64_t before = column < 0 ? -column : 0, beyond = w - column;
    if (before >= 32 || beyond <= 0) return 0;
    const uint32_t low = 0xFFFFFFFFu << before;
    return beyond >= 32 ? low : low & ((1u << beyond) - 1);
}

/* Every other bit, from the first on. */
INLINE __mmask16 even_bits(uint32_t bits) {
    bits &= 0x55555555u;
    bits = (bits | bits >> 1) & 0x33333333u;
    bits = (bits | bits >> 2) & 0x0F0F0F0Fu;
    bits = (bits | bits >> 4) & 0x00FF00FFu;
    return (__mmask16)(bits | bits >> 8);
}

AVX512 static void windows_step(const void *context, int64_t begin, int64_t end) {
    const Pool_f32 *c = context;
    const int64_t h = c->h, w = c->w, ow = c->ow, kh = c->kh, kw = c->kw;
    const int64_t apart = c->sw, dw = c->dw;
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i ways = apart == 2 ? even : _mm512_srli_epi32(even, 1);
    uint32_t inside[WIDEST];
    __mmask16 there[WIDEST];
    int64_t masked = -1; /* the windows that these are of */
    for (int64_t line = begin; line < end; line++) {
        const int64_t frame = line / c->oh, top = line % c->oh * c->sh - c->ph, depth = frame % c->od * c->sd - c->pd;
        const float *x = c->x + frame / c->od * c->d * h * w;
        int64_t upper, lower, front, back;
        taps_inside_f32(top, c->dh, kh, h, &upper, &lower);
        taps_inside_f32(depth, c->dd, c->kd, c->d, &front, &back);
        if (front >= back) upper = lower;
        for (int64_t i = 0; i < ow; i += 16) {
            const __mmask16 all = MASK_OF(ow - i);
            const int64_t left = i * apart - c->pw;
            if (masked != i) {
                for (int64_t right = 0; right < kw; right++) {
                    inside[right] = columns_inside(left + right * c->dw, w);
                    there[right] = all & (apart == 2 ? even_bits(inside[right])
                                                     : (__mmask16)inside[right]);
                }
                masked = i;
            }
            __m512 best = _mm512_set1_ps(-INFINITY);
            __m512i place = _mm512_setzero_si512();
            __mmask16 empty = all;
            for (int64_t down = upper, ahead = front; down < lower; ) {
                const int64_t row = (depth + ahead * c->dd) * h + top + down * c->dh;
                if (++down == lower && ++ahead < back) down = upper;
                for (int64_t right = 0; right < kw; right++) {
                    const int64_t start = row * w + left + right * dw;
                    __m512 v = _mm512_maskz_loadu_ps((__mmask16)inside[right], x + start);
                    if (apart == 2)
                        v = _mm512_permutex2var_ps(
                            v, even,
                            _mm512_maskz_loadu_ps((__mmask16)(inside[right] >> 16), x + start + 16));
                    /* As max_tap has it. */
                    const __mmask16 anyway =
                        _kand_mask16(there[right],
                                     _kor_mask16(empty, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q)));
                    const __mmask16 better = _kor_mask16(
                        anyway, _mm512_mask_cmp_ps_mask(there[right], v, best, _CMP_GT_OQ));
                    empty = _kandn_mask16(there[right], empty);
                    best = _mm512_mask_mov_ps(best, better, v);
                    place = _mm512_mask_add_epi32(place, better, ways,
                                                  _mm512_set1_epi32((int32_t)start));
                }
            }
            int64_t *places = c->places + line * ow + i;
            _mm512_mask_storeu_ps(c->out + line * ow + i, all, best);
            _mm512_mask_storeu_epi64(places, (__mmask8)all,
                                     _mm512_cvtepi32_epi64(_mm512_castsi512_si256(place)));
            _mm512_mask_storeu_epi64(places + 8, (__mmask8)(all >> 8),
                                     _mm512_cvtepi32_epi64(_mm512_extracti32x8_epi32(place, 1)));
            for (int64_t j = 0; empty && j < 16; j++)
                if (empty >> j & 1) places[j] = nowhere_f32(c, top, left + j * apart);
        }
    }
}
#else
static float sum_box_v(const float *x, int64_t rows, int64_t n, int64_t apart) {
    return sum_box_f32(x, rows, n, apart);
}

static void quartered_step(const void *context, int64_t begin, int64_t end) {
    max_pool2d_step_f32(context, begin, end);
}

static void few_columns_step(const void *context, int64_t begin, int64_t end) {
    max_pool2d_step_f32(context, begin, end);
}

static void windows_step(const void *context, int64_t begin, int64_t end) {
    max_pool2d_step_f32(context, begin, end);
}

static void max_box_v(const void *context, const void *volume, const int64_t *from, const int64_t *to, void *value,
                      int64_t *place) {
    max_box_f32(context, volume, from, to, value, place);
}
#endif

/* Volumes, their three sizes, the windows along each, and the steps within a window. */
#define BOXES "t0456,d0456,t0123,d4,d4,d5,d5,d6,d6"
const Row pooling_rows[] = {
    {"max_pool2d_f32", "wwriiiiiiiiiiiii", "t034,d034,t012", max_pool2d_f32},
    {"max_pool2d_f64", "wwriiiiiiiiiiiii", "t034,d034,t012", max_pool2d_f64},
    {"max_pool3d_f32", "wwriiiiiiiiiiiiiiiiiii", "t0456,d0456,t0123", max_pool3d_f32},
    {"max_pool3d_f64", "wwriiiiiiiiiiiiiiiiiii", "t0456,d0456,t0123", max_pool3d_f64},
    {"max_boxes_f32", "wwrrrrrrriiiiiiiiii", BOXES, max_boxes_f32},
    {"max_boxes_f64", "wwrrrrrrriiiiiiiiii", BOXES, max_boxes_f64},
    {"max_boxes_pixels_f32", "wwrrrrriiiiii", "t0345,d0345,t0125,d3,d3,d4,d4", max_boxes_pixels_f32},
    {"max_boxes_pixels_f64", "wwrrrrriiiiii", "t0345,d0345,t0125,d3,d3,d4,d4", max_boxes_pixels_f64},
    {"max_pool2d_backward_f32", "wrriii", "t01,t02,d02", max_pool2d_backward_f32},
    {"max_pool2d_backward_f64", "wrriii", "t01,t02,d02", max_pool2d_backward_f64},
    {"avg_pool2d_f32", "wriiiiiiiiiiiif", "t034,t012", avg_pool2d_f32},
    {"avg_pool2d_f64", "wriiiiiiiiiiiif", "t034,t012", avg_pool2d_f64},
    {"avg_pool2d_backward_f32", "wriiiiiiiiiiiif", "t012,t034", avg_pool2d_backward_f32},
    {"avg_pool2d_backward_f64", "wriiiiiiiiiiiif", "t012,t034", avg_pool2d_backward_f64},
    {"max_pool2d_pixels_f32", "wwriiiiiiiiiiiiii", "t0345,d0345,t0125", max_pool2d_pixels_f32},
    {"max_pool2d_pixels_f64", "wwriiiiiiiiiiiiii", "t0345,d0345,t0125", max_pool2d_pixels_f64},
    {"max_pool2d_pixels_backward_f32", "wrriiii", "t013,t023,d023", max_pool2d_pixels_backward_f32},
    {"max_pool2d_pixels_backward_f64", "wrriiii", "t013,t023,d023", max_pool2d_pixels_backward_f64},
    {"avg_pool2d_pixels_f32", "wriiiiiiiiiiiiif", "t0345,t0125", avg_pool2d_pixels_f32},
    {"avg_pool2d_pixels_f64", "wriiiiiiiiiiiiif", "t0345,t0125", avg_pool2d_pixels_f64},
    {"avg_pool2d_pixels_backward_f32", "wriiiiiiiiiiiiif", "t0125,t0345", avg_pool2d_pixels_backward_f32},
    {"avg_pool2d_pixels_backward_f64", "wriiiiiiiiiiiiif", "t0125,t0345", avg_pool2d_pixels_backward_f64},
    {NULL, NULL, NULL, NULL},
};
