/* softmax over other dimensions than the last. */
#define TEMPLATE "columns_template.h"
#define TILE 128 /* columns of a piece of the work, of which there are as many however many threads */
#define RUN 256
#include "vector_math.h"

INLINE float log_of_f32(float x) { return log_f(x); }
INLINE double log_of_f64(double x) { return log_d(x); }
#include "both.h"

#define BOTH(name, arguments, extents)                         \
    {#name "_f32", arguments, extents, name##_f32}, {#name "_f64", arguments, extents, name##_f64}

const Row columns_rows[] = {
    BOTH(softmax_columns, "wriii", "t012,t012"),
    BOTH(log_softmax_columns, "wriii", "t012,t012"),
    BOTH(softmax_backward_columns, "wrriii", "t012,t012,t012"),
    BOTH(log_softmax_backward_columns, "wrriii", "t012,t012,t012"),
    {NULL, NULL, NULL, NULL},
};
