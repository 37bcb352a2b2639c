/* Optimiser steps in place, one pass over the memory of a parameter. */
#define TEMPLATE "optimizer_template.h"
#include "both.h"

const Row optimizer_rows[] = {
    {"sgd_f32", "wriiff", sgd_f32},
    {"sgd_f64", "wriiff", sgd_f64},
    {"sgd_momentum_f32", "wrwiiiffff", sgd_momentum_f32},
    {"sgd_momentum_f64", "wrwiiiffff", sgd_momentum_f64},
    {"adam_f32", "wrwwiiifffffffff", adam_f32},
    {"adam_f64", "wrwwiiifffffffff", adam_f64},
    {NULL, NULL, NULL},
};
