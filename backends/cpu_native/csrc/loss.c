/* Losses over classes. */
#include "exp_rows.h"

#define TEMPLATE "loss_template.h"
#include "both.h"

const Row loss_rows[] = {
    {"cross_entropy_f32", "wwwrriii", cross_entropy_f32},
    {"cross_entropy_f64", "wwwrriii", cross_entropy_f64},
    {"cross_entropy_backward_f32", "wrrrriii", cross_entropy_backward_f32},
    {"cross_entropy_backward_f64", "wrrrriii", cross_entropy_backward_f64},
    {NULL, NULL, NULL},
};
