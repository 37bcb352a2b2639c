/* Arrays of floats in another precision.

   float16 and bfloat16 are made of float32, of which they are the nearest, ties to even; float64 is
   rounded to float32 first, as PyTorch does it.  A NaN keeps its sign and the bits that fit, and is quiet. */
#include "avx512.h"
#include "halves.h"
#include "pieces.h"
#include "stream.h"

#define PIECE 1024 /* elements converted at a time, by way of others */
#define LONG_PIECE 4096
#define MANY 65536

typedef struct {
    Convert first, second; /* by way of float32 if there are two */
    char *out;
    const char *a;
    int64_t out_size, size;
    int streams, is_backward;
} Cast;

static void cast_step(const void *context, int64_t begin, int64_t end) {
    const Cast *c = context;
    _Alignas(64) float between[PIECE];
    const int64_t length = c->second == NULL && end - begin >= MANY ? LONG_PIECE : PIECE;
    const Pieces all = pieces_of(c->out, c->out_size, begin, end, length, c->is_backward);
    for (int64_t j = 0; j < all.count; j++) {
        const Piece piece = piece_of(&all, j);
        const int64_t i = piece.begin, count = piece.end - i;
        char *out = c->out + i * c->out_size;
        if (c->second == NULL) {
            c->first(out, c->a + i * c->size, count, c->streams);
        } else {
            c->first(between, c->a + i * c->size, count, 0);
            c->second(out, between, count, c->streams);
        }
    }
    if (c->streams) end_of_stream();
}

static void cast(const Args *k, Convert first, int64_t size, Convert second, int64_t out_size) {
    const int64_t count = k->n[0];
    Cast c = {first, second, k->p[0], k->p[1], out_size, size, is_streamed(count * out_size, count * size), 0};
    c.is_backward = count > PIECE && goes_back(count * (out_size + size));
    split(cast_step, &c, count, team(k, count));
}

#define PORTABLE(name, FROM, TO, formula)                                              \
    WIDE static void name##_portable(void *to, const void *from, int64_t n, int streams) { \
        const FROM *restrict a = from;                                                 \
        TO *restrict out = to;                                                         \
        (void)streams;                                                                 \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) out[i] = formula(a[i]);    \
    }
PORTABLE(f32_f64, float, double, (double))
PORTABLE(f64_f32, double, float, (float))
PORTABLE(f32_f16, float, uint16_t, to_f16)
PORTABLE(f16_f32, uint16_t, float, from_f16)
PORTABLE(f32_bf16, float, uint16_t, to_bf16)
PORTABLE(bf16_f32, uint16_t, float, from_bf16)

#if HAS_AVX512
#include <cpuid.h>

/* Sixteen numbers at a time, of which `load` makes what is stored; the rest by `formula`. */
#define VECTORS(name, FROM, TO, store, stream, load, formula)                                   \
    AVX512 static void name##_v(void *to, const void *from, int64_t n, int streams) {           \
        const FROM *a = from;                                                                   \
        TO *out = to;                                                                           \
        int64_t i = 0;                                                                          \
        if (streams && ((uintptr_t)out & 63) == 0)                                              \
            for (; i + 16 <= n; i += 16) stream((void *)(out + i), load);                       \
        else                                                                                    \
            for (; i + 16 <= n; i += 16) store((void *)(out + i), load);                        \
        for (; i < n; i++) out[i] = formula(a[i]);                                              \
    }
#define FLOATS _mm512_loadu_ps(a + i)
#define HALVES _mm256_loadu_si256((const __m256i *)(const void *)(a + i))
#define NEAREST_HALVES _mm512_cvtps_ph(FLOATS, _MM_FROUND_TO_NEAREST_INT)
VECTORS(f32_f16, float, uint16_t, _mm256_storeu_si256, _mm256_stream_si256, NEAREST_HALVES, to_f16)
VECTORS(f16_f32, uint16_t, float, _mm512_storeu_ps, _mm512_stream_ps, _mm512_cvtph_ps(HALVES), from_f16)

INLINE AVX512 __m256i nearest_bf16(__m512 x) {
    const __m512i bits = _mm512_castps_si512(x), high = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_epi32(high, _mm512_set1_epi32(1));
    const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
    const __m512i quiet = _mm512_or_epi32(high, _mm512_set1_epi32(0x40));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_mask_blend_epi32(is_nan, _mm512_srli_epi32(sum, 16), quiet));
}
#define WIDENED _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(HALVES), 16))
VECTORS(f32_bf16, float, uint16_t, _mm256_storeu_si256, _mm256_stream_si256, nearest_bf16(FLOATS), to_bf16)
VECTORS(bf16_f32, uint16_t, float, _mm512_storeu_ps, _mm512_stream_ps, WIDENED, from_bf16)

AVX512 static void f32_f64_v(void *to, const void *from, int64_t n, int streams) {
    const float *a = from;
    double *out = to;
    int64_t i = 0;
    if (streams && ((uintptr_t)out & 63) == 0)
        for (; i + 8 <= n; i += 8) _mm512_stream_pd(out + i, _mm512_cvtps_pd(_mm256_loadu_ps(a + i)));
    for (; i < n; i++) out[i] = a[i];
}
AVX512 static void f64_f32_v(void *to, const void *from, int64_t n, int streams) {
    const double *a = from;
    float *out = to;
    int64_t i = 0;
    if (streams && ((uintptr_t)out & 31) == 0)
        for (; i + 8 <= n; i += 8) _mm256_stream_ps(out + i, _mm512_cvtpd_ps(_mm512_loadu_pd(a + i)));
    for (; i < n; i++) out[i] = (float)a[i];
}

/* Eight at a time, for processors of 2013 and later: the instructions are a set of their own. */
#define F16C __attribute__((target("avx,f16c")))
F16C static void f32_f16_c(void *to, const void *from, int64_t n, int streams) {
    const float *a = from;
    uint16_t *out = to;
    int64_t i = 0;
    (void)streams;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((void *)(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(a + i), 0));
    for (; i < n; i++) out[i] = to_f16(a[i]);
}
F16C static void f16_f32_c(void *to, const void *from, int64_t n, int streams) {
    const uint16_t *a = from;
    float *out = to;
    int64_t i = 0;
    (void)streams;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(a + i))));
    for (; i < n; i++) out[i] = from_f16(a[i]);
}
static int has_f16c(void) {
    unsigned a, b, c = 0, d;
    return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#define CHOSEN(name) (has_avx512() ? name##_v : name##_portable)
#define CHOSEN_HALF(name) (has_avx512() ? name##_v : has_f16c() ? name##_c : name##_portable)
#else
#define CHOSEN(name) name##_portable
#define CHOSEN_HALF(name) name##_portable
#endif

Convert widening(int is_bfloat) { return is_bfloat ? CHOSEN(bf16_f32) : CHOSEN_HALF(f16_f32); }
Convert narrowing(int is_bfloat) { return is_bfloat ? CHOSEN(f32_bf16) : CHOSEN_HALF(f32_f16); }

#define FIRST(name, from, first, to) \
    static void name(const Args *k) { cast(k, first, sizeof(from), NULL, sizeof(to)); }
#define BOTH(name, from, first, second, to) \
    static void name(const Args *k) { cast(k, first, sizeof(from), second, sizeof(to)); }
FIRST(cast_f32_f64, float, CHOSEN(f32_f64), double)
FIRST(cast_f64_f32, double, CHOSEN(f64_f32), float)
FIRST(cast_f32_f16, float, CHOSEN_HALF(f32_f16), uint16_t)
FIRST(cast_f16_f32, uint16_t, CHOSEN_HALF(f16_f32), float)
FIRST(cast_f32_bf16, float, CHOSEN(f32_bf16), uint16_t)
FIRST(cast_bf16_f32, uint16_t, CHOSEN(bf16_f32), float)
BOTH(cast_f64_f16, double, CHOSEN(f64_f32), CHOSEN_HALF(f32_f16), uint16_t)
BOTH(cast_f16_f64, uint16_t, CHOSEN_HALF(f16_f32), CHOSEN(f32_f64), double)
BOTH(cast_f64_bf16, double, CHOSEN(f64_f32), CHOSEN(f32_bf16), uint16_t)
BOTH(cast_bf16_f64, uint16_t, CHOSEN(bf16_f32), CHOSEN(f32_f64), double)
BOTH(cast_bf16_f16, uint16_t, CHOSEN(bf16_f32), CHOSEN_HALF(f32_f16), uint16_t)
BOTH(cast_f16_bf16, uint16_t, CHOSEN_HALF(f16_f32), CHOSEN(f32_bf16), uint16_t)

const Row casting_rows[] = {
    {"cast_f32_f64", "wri", "d0,w0", cast_f32_f64}, {"cast_f64_f32", "wri", "w0,d0", cast_f64_f32},
    {"cast_f32_f16", "wri", "h0,w0", cast_f32_f16}, {"cast_f16_f32", "wri", "w0,h0", cast_f16_f32},
    {"cast_f32_bf16", "wri", "h0,w0", cast_f32_bf16}, {"cast_bf16_f32", "wri", "w0,h0", cast_bf16_f32},
    {"cast_f64_f16", "wri", "h0,d0", cast_f64_f16}, {"cast_f16_f64", "wri", "d0,h0", cast_f16_f64},
    {"cast_f64_bf16", "wri", "h0,d0", cast_f64_bf16}, {"cast_bf16_f64", "wri", "d0,h0", cast_bf16_f64},
    {"cast_bf16_f16", "wri", "h0,h0", cast_bf16_f16}, {"cast_f16_bf16", "wri", "h0,h0", cast_f16_bf16},
    {NULL, NULL, NULL, NULL},
};
