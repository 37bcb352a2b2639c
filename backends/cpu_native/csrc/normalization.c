/* Layer and batch normalisation, forward and backward. */
#define TEMPLATE "normalization_template.h"
#include "both.h"

#define BOTH(name, arguments, extents)                         \
    {#name "_f32", arguments, extents, name##_f32}, {#name "_f64", arguments, extents, name##_f64}

const Row normalization_rows[] = {
    BOTH(layer_norm, "wwwrooiif", "t01,t0,t0,t01,t1,t1"),
    BOTH(layer_norm_backward, "wwwwrrorriii", "t01,t1,t1,2t0/21,t01,t01,t1,t0,t0"),
    BOTH(batch_norm_train, "wwwrooiiif", "t012,t1,t1,t012,t1,t1"),
    BOTH(batch_norm, "wroorriii", "t012,t012,t1,t1,t1,t1"),
    BOTH(batch_norm_backward, "wwwrrorriii", "t012,t1,t1,t012,t012,t1,t1,t1"),
    BOTH(batch_norm_pixels_train, "wwwwrooiiif", "t01,t1,t1,2d0/21,t01,t1,t1"),
    BOTH(batch_norm_pixels, "wroorrii", "t01,t01,t1,t1,t1,t1"),
    BOTH(batch_norm_pixels_backward, "wwwwrrorriii", "t01,t1,t1,2d0/21,t01,t01,t1,t1,t1"),
    {NULL, NULL, NULL, NULL},
};
