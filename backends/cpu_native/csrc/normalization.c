/* Layer and batch normalisation, forward and backward. */
#define TEMPLATE "normalization_template.h"
#include "both.h"

#define BOTH(name, arguments) {#name "_f32", arguments, name##_f32}, {#name "_f64", arguments, name##_f64}

const Row normalization_rows[] = {
    BOTH(layer_norm, "wwwrooiif"),
    BOTH(layer_norm_backward, "wwwwrrorriii"),
    BOTH(batch_norm_train, "wwwrooiiif"),
    BOTH(batch_norm, "wroorriii"),
    BOTH(batch_norm_backward, "wwwrrorriii"),
    {NULL, NULL, NULL},
};
