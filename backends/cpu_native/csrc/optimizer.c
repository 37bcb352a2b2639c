/* Optimiser steps in place, one pass over the memory of a parameter. */
#define TEMPLATE "optimizer_template.h"
#include "both.h"

const Row optimizer_rows[] = {
    {"sgd_f32", "wriiff", "=t0,t0", sgd_f32},
    {"sgd_f64", "wriiff", "=t0,t0", sgd_f64},
    {"sgd_momentum_f32", "wrwiiiffff", "=t0,t0,t0", sgd_momentum_f32},
    {"sgd_momentum_f64", "wrwiiiffff", "=t0,t0,t0", sgd_momentum_f64},
    {"adam_f32", "wrwwWiifffffffff", "=t0,t0,t0,t0,t0", adam_f32},
    {"adam_f64", "wrwwWiifffffffff", "=t0,t0,t0,t0,t0", adam_f64},
    {"nadam_f32", "wrwwiiffffffffff", "=t0,t0,t0,t0", nadam_f32},
    {"nadam_f64", "wrwwiiffffffffff", "=t0,t0,t0,t0", nadam_f64},
    {"radam_f32", "wrwwiiifffffffffff", "=t0,t0,t0,t0", radam_f32},
    {"radam_f64", "wrwwiiifffffffffff", "=t0,t0,t0,t0", radam_f64},
    {"adamax_f32", "wrwwiiffffff", "=t0,t0,t0,t0", adamax_f32},
    {"adamax_f64", "wrwwiiffffff", "=t0,t0,t0,t0", adamax_f64},
    {"rmsprop_f32", "wrwWWiiffffff", "=t0,t0,t0,t0,t0", rmsprop_f32},
    {"rmsprop_f64", "wrwWWiiffffff", "=t0,t0,t0,t0,t0", rmsprop_f64},
    {"adagrad_f32", "wrwiifff", "=t0,t0,t0", adagrad_f32},
    {"adagrad_f64", "wrwiifff", "=t0,t0,t0", adagrad_f64},
    {"adadelta_f32", "wrwwiifffff", "=t0,t0,t0,t0", adadelta_f32},
    {"adadelta_f64", "wrwwiifffff", "=t0,t0,t0,t0", adadelta_f64},
    {"asgd_f32", "wrwiiffff", "=t0,t0,t0", asgd_f32},
    {"asgd_f64", "wrwiiffff", "=t0,t0,t0", asgd_f64},
    {"rprop_f32", "wrwwiiffff", "=t0,t0,t0,t0", rprop_f32},
    {"rprop_f64", "wrwwiiffff", "=t0,t0,t0,t0", rprop_f64},
    {NULL, NULL, NULL, NULL},
};
