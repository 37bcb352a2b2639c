/* Rectifiers with a slope for each channel, and their gradients. */
#include "native.h"

#define TEMPLATE "prelu_template.h"
#include "both.h"

#define BOTH(name, arguments, extents)                         \
    {#name "_f32", arguments, extents, name##_f32}, {#name "_f64", arguments, extents, name##_f64}

const Row prelu_rows[] = {
    BOTH(prelu, "wrriii", "t012,t012,t1"),
    BOTH(prelu_backward, "wrrriii", "t012,t012,t012,t1"),
    BOTH(prelu_weight_grad, "wrrriii", "t012,t012,t012,t1"),
    {NULL, NULL, NULL, NULL},
};
