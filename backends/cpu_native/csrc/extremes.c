/* The least and the greatest of floats. */
#define TEMPLATE "extremes_template.h"
#include "both.h"

const Row extremes_rows[] = {
    {"amax_f32", "wriii", "t02,t012", amax_f32},      {"amax_f64", "wriii", "t02,t012", amax_f64},
    {"amin_f32", "wriii", "t02,t012", amin_f32},      {"amin_f64", "wriii", "t02,t012", amin_f64},
    {"amax_at_f32", "wwrii", "t0,d0,t01", amax_at_f32}, {"amax_at_f64", "wwrii", "t0,d0,t01", amax_at_f64},
    {"amin_at_f32", "wwrii", "t0,d0,t01", amin_at_f32}, {"amin_at_f64", "wwrii", "t0,d0,t01", amin_at_f64},
    {NULL, NULL, NULL, NULL},
};
