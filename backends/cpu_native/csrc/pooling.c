/* Maximum with positions, and mean, over windows of planes; their gradients. */
#define TEMPLATE "pooling_template.h"
#include "both.h"

const Row pooling_rows[] = {
    {"max_pool2d_f32", "wwriiiiiiiiiiiii", max_pool2d_f32},
    {"max_pool2d_f64", "wwriiiiiiiiiiiii", max_pool2d_f64},
    {"max_pool2d_backward_f32", "wrriii", max_pool2d_backward_f32},
    {"max_pool2d_backward_f64", "wrriii", max_pool2d_backward_f64},
    {"avg_pool2d_f32", "wriiiiiiiiiiiif", avg_pool2d_f32},
    {"avg_pool2d_f64", "wriiiiiiiiiiiif", avg_pool2d_f64},
    {"avg_pool2d_backward_f32", "wriiiiiiiiiiiif", avg_pool2d_backward_f32},
    {"avg_pool2d_backward_f64", "wriiiiiiiiiiiif", avg_pool2d_backward_f64},
    {NULL, NULL, NULL},
};
