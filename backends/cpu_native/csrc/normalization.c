/* Layer, group and batch normalisation, forward and backward. */
#define TEMPLATE "normalization_template.h"
#include "both.h"
#include "norm_rows.h"

static void layer_norm_step_f64(const void *context, int64_t begin, int64_t end) {
    layer_norm_portable_f64(context, begin, end);
}

static void layer_norm_backward_rows_f64(const Norm_f64 *c, double *over, int64_t begin, int64_t end) {
    layer_norm_backward_portable_f64(c, over, begin, end);
}

static void group_norm_step_f64(const void *context, int64_t begin, int64_t end) {
    group_norm_portable_f64(context, begin, end);
}

static void group_norm_backward_step_f64(const void *context, int64_t begin, int64_t end) {
    group_norm_backward_portable_f64(context, begin, end);
}

static void group_norm_step_f32(const void *context, int64_t begin, int64_t end) {
#if HAS_AVX512
    if (((const Norm_f32 *)context)->n > 1 && has_avx512()) {
        group_norm_vectors(context, begin, end);
        return;
    }
#endif
    group_norm_portable_f32(context, begin, end);
}

static void group_norm_backward_step_f32(const void *context, int64_t begin, int64_t end) {
#if HAS_AVX512
    if (((const Norm_f32 *)context)->n > 1 && has_avx512()) {
        group_norm_backward_vectors(context, begin, end);
        return;
    }
#endif
    group_norm_backward_portable_f32(context, begin, end);
}

#if HAS_AVX512
AVX512 static void layer_norm_vectors(const Norm_f32 *c, int64_t begin, int64_t end) {
    BY_VECTORS(c->n, layer_norm_rows, c, begin, end);
}

AVX512 static void layer_norm_backward_vectors(const Norm_f32 *c, float *over, int64_t begin, int64_t end) {
    BY_VECTORS(c->n, layer_norm_backward_rows, c, over, begin, end);
}
#endif

static void layer_norm_step_f32(const void *context, int64_t begin, int64_t end) {
    const Norm_f32 *c = context;
#if HAS_AVX512
    if (c->n > 0 && has_avx512()) {
        layer_norm_vectors(c, begin, end);
        return;
    }
#endif
    layer_norm_portable_f32(c, begin, end);
}

static void layer_norm_backward_rows_f32(const Norm_f32 *c, float *over, int64_t begin, int64_t end) {
#if HAS_AVX512
    if (c->n > 0 && has_avx512()) {
        layer_norm_backward_vectors(c, over, begin, end);
        return;
    }
#endif
    layer_norm_backward_portable_f32(c, over, begin, end);
}

#define BOTH(name, arguments, extents)                         \
    {#name "_f32", arguments, extents, name##_f32}, {#name "_f64", arguments, extents, name##_f64}

const Row normalization_rows[] = {
    BOTH(layer_norm, "wwwrooiif", "t01,t0,t0,t01,t1,t1"),
    BOTH(layer_norm_backward, "wwwwrrorriii", "t01,t1,t1,2t0/21,t01,t01,t1,t0,t0"),
    BOTH(group_norm, "wwwrooiiiif", "t0123,t01,t01,t0123,t12,t12"),
    BOTH(group_norm_backward, "wwwwrrorriiii", "t0123,t12,t12,2d012,t0123,t0123,t12,t01,t01"),
    BOTH(batch_norm_train, "wwwrooiiif", "t012,t1,t1,t012,t1,t1"),
    BOTH(batch_norm, "wroorriii", "t012,t012,t1,t1,t1,t1"),
    BOTH(batch_norm_backward, "wwwrrorriii", "t012,t1,t1,t012,t012,t1,t1,t1"),
    BOTH(batch_norm_pixels_train, "wwwwrooiiif", "t01,t1,t1,2d0/21,t01,t1,t1"),
    BOTH(batch_norm_pixels, "wroorrii", "t01,t01,t1,t1,t1,t1"),
    BOTH(batch_norm_pixels_backward, "wwwwrrorriii", "t01,t1,t1,2d0/21,t01,t01,t1,t1,t1"),
    {NULL, NULL, NULL, NULL},
};
