/* Gated linear units: the first half of each row times the sigmoid of the second, and their gradient. */
#include "native.h"

#define TEMPLATE "gating_template.h"
#include "both.h"

const Row gating_rows[] = {
    {"glu_f32", "wrii", "t01,2t01", glu_f32},
    {"glu_f64", "wrii", "t01,2t01", glu_f64},
    {"glu_backward_f32", "wrrii", "2t01,t01,2t01", glu_backward_f32},
    {"glu_backward_f64", "wrrii", "2t01,t01,2t01", glu_backward_f64},
    {NULL, NULL, NULL, NULL},
};
