/* Losses over classes. */
#include "exp_rows.h"

#define TEMPLATE "loss_template.h"
#include "both.h"

const Row loss_rows[] = {
    {"cross_entropy_f32", "wwwrriii", "t01,t,t,t01,d0", cross_entropy_f32},
    {"cross_entropy_f64", "wwwrriii", "t01,t,t,t01,d0", cross_entropy_f64},
    {"cross_entropy_backward_f32", "wrrrriii", "t01,t,t,t01,d0", cross_entropy_backward_f32},
    {"cross_entropy_backward_f64", "wrrrriii", "t01,t,t,t01,d0", cross_entropy_backward_f64},
    {NULL, NULL, NULL, NULL},
};
