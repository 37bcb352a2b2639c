/* Optimiser steps in place, one pass over the memory of a parameter. */
#define TEMPLATE "optimizer_template.h"
#include "both.h"

const Row optimizer_rows[] = {
    {"sgd_f32", "wriiff", sgd_f32},
    {"sgd_f64", "wriiff", sgd_f64},
    {"sgd_momentum_f32", "wrwiiiffff", sgd_momentum_f32},
    {"sgd_momentum_f64", "wrwiiiffff", sgd_momentum_f64},
    {"adam_f32", "wrwwWiifffffffff", adam_f32},
    {"adam_f64", "wrwwWiifffffffff", adam_f64},
    {"nadam_f32", "wrwwiiffffffffff", nadam_f32},
    {"nadam_f64", "wrwwiiffffffffff", nadam_f64},
    {"radam_f32", "wrwwiiiffffffff", radam_f32},
    {"radam_f64", "wrwwiiiffffffff", radam_f64},
    {"adamax_f32", "wrwwiiffffff", adamax_f32},
    {"adamax_f64", "wrwwiiffffff", adamax_f64},
    {"rmsprop_f32", "wrwWWiiffffff", rmsprop_f32},
    {"rmsprop_f64", "wrwWWiiffffff", rmsprop_f64},
    {"adagrad_f32", "wrwiifff", adagrad_f32},
    {"adagrad_f64", "wrwiifff", adagrad_f64},
    {"adadelta_f32", "wrwwiifffff", adadelta_f32},
    {"adadelta_f64", "wrwwiifffff", adadelta_f64},
    {"asgd_f32", "wrwiiffff", asgd_f32},
    {"asgd_f64", "wrwiiffff", asgd_f64},
    {"rprop_f32", "wrwwiiffff", rprop_f32},
    {"rprop_f64", "wrwwiiffff", rprop_f64},
    {NULL, NULL, NULL},
};
