/* Reductions and running sums. */
#define TEMPLATE "reduction_template.h"
#include "both.h"

const Row reduction_rows[] = {
    {"sum_f32", "wriiif", sum_f32},       {"sum_f64", "wriiif", sum_f64},
    {"prod_f32", "wriii", prod_f32},      {"prod_f64", "wriii", prod_f64},
    {"norm2_f32", "wriii", norm2_f32},    {"norm2_f64", "wriii", norm2_f64},
    {"cumsum_f32", "wriii", cumsum_f32},  {"cumsum_f64", "wriii", cumsum_f64},
    {NULL, NULL, NULL},
};
