/* Losses over classes. */
#include "softmax_rows.h"

/* out = exp(x) times a number. */
#define EXP_TIMES(T, E, name)                                                    \
    WIDE static void name(T *restrict out, const T *restrict x, int64_t n, T by) { \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) out[i] = E(x[i]) * by; \
    }
EXP_TIMES(float, exp_f, exp_times_portable)
EXP_TIMES(double, exp_d, exp_times_f64)

#if HAS_AVX512
AVX512 static void exp_times_v(float *out, const float *x, int64_t n, float by) {
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 some = n - i >= 16 ? 0xFFFF : (__mmask16)((1u << (n - i)) - 1);
        _mm512_mask_storeu_ps(out + i, some, exp_v(_mm512_maskz_loadu_ps(some, x + i)) * _mm512_set1_ps(by));
    }
}
static inline void exp_times_f32(float *out, const float *x, int64_t n, float by) {
    if (has_avx512()) exp_times_v(out, x, n, by);
    else exp_times_portable(out, x, n, by);
}
#else
#define exp_times_f32 exp_times_portable
#endif

#define PARTS 64 /* at most, of whose sums one is the sum of a batch */

#define TEMPLATE "loss_template.h"
#include "both.h"

const Row loss_rows[] = {
    {"cross_entropy_f32", "wwwrriii", "t01,t,t,t01,d0", cross_entropy_f32},
    {"cross_entropy_f64", "wwwrriii", "t01,t,t,t01,d0", cross_entropy_f64},
    {"cross_entropy_backward_f32", "wrrrriiii", "t012,t,t012,d02,t", cross_entropy_backward_f32},
    {"cross_entropy_backward_f64", "wrrrriiii", "t012,t,t012,d02,t", cross_entropy_backward_f64},
    {"nll_loss_f32", "wwrroiiiiii", "t3,t,t012,d02,t1", nll_loss_f32},
    {"nll_loss_f64", "wwrroiiiiii", "t3,t,t012,d02,t1", nll_loss_f64},
    {"nll_loss_backward_f32", "wrroriiiiii", "t012,t3,d02,t1,t", nll_loss_backward_f32},
    {"nll_loss_backward_f64", "wrroriiiiii", "t012,t3,d02,t1,t", nll_loss_backward_f64},
    {"multi_margin_loss_f32", "wwrroiiiif", "t2,4b01,t01,d0,t1", multi_margin_loss_f32},
    {"multi_margin_loss_f64", "wwrroiiiif", "t2,4b01,t01,d0,t1", multi_margin_loss_f64},
    {"multilabel_margin_loss_f32", "wwwrriiii", "t2,4b01,b1,t01,d01", multilabel_margin_loss_f32},
    {"multilabel_margin_loss_f64", "wwwrriiii", "t2,4b01,b1,t01,d01", multilabel_margin_loss_f64},
    {NULL, NULL, NULL, NULL},
};
