/* Products of few rows with a matrix that many of them meet: it is packed once, where BLAS would
   pack it for each.  Products of matrices of few numbers. */
#include "product.h"

#include "turning.h"

#define TEMPLATE "product_template.h"

/* Whether fused multiply-add is an instruction here, and not a call of the C library. */
static int is_fused(void) {
#if defined(__x86_64__) && defined(__GNUC__)
    return __builtin_cpu_supports("fma") != 0;
#elif defined(__aarch64__)
    return 1;
#else
    return 0;
#endif
}

#define MOST_ROWS 6    /* whose sums fit into 16 registers beside it */
#if HAS_AVX512
#define MOST_ROWS_V 12
#define LOAD(p) _Generic(p, const float *: _mm512_loadu_ps, const double *: _mm512_loadu_pd)(p)
#define SPREAD(x) _Generic(x, float: _mm512_set1_ps, double: _mm512_set1_pd)(x)
#define FUSED(a, b, c) _Generic(c, __m512: _mm512_fmadd_ps, __m512d: _mm512_fmadd_pd)(a, b, c)

/* Packs a matrix of float32 of which the numbers of each line or of each column lie beside each other. */
AVX512 static void pack_v(float *out, const float *a, int64_t columns, int64_t depth, int64_t right, int64_t down) {
    for (int64_t j0 = 0; j0 < columns; j0 += LANES, out += depth * LANES) {
        const int64_t count = columns - j0 < LANES ? columns - j0 : LANES;
        if (right == 1) {
            for (int64_t i = 0; i < depth; i++)
                _mm512_storeu_ps(out + i * LANES, _mm512_maskz_loadu_ps(lanes(count), a + j0 + i * down));
        } else {
            turned(out, LANES, a + j0 * right, right, count, depth, LANES, NULL, 0);
        }
    }
}

typedef __m512 Vector_f32;
typedef __m512d Vector_f64;
#endif
#include "both.h"

#define BOTH(name, arguments, extents)                         \
    {#name "_f32", arguments, extents, name##_f32}, {#name "_f64", arguments, extents, name##_f64}

const Row product_rows[] = {
    BOTH(pack, "wriiii", "t0^1,t01"),
    BOTH(packed_product, "wrriii", "t02,t01,t12^"),
    BOTH(few, "wrriiiiii", "t013,t412,t523"),
    {NULL, NULL, NULL, NULL},
};
