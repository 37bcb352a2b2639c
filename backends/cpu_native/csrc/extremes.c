/* The least and the greatest of floats. */
#define TEMPLATE "extremes_template.h"
#include "native.h"

/* A place on the way: as wide as what is compared.  Lines of floats are fewer than 2^31, or not asked for. */
typedef int32_t Place_f32;
typedef int64_t Place_f64;
#include "both.h"

const Row extremes_rows[] = {
    {"amax_f32", "wriii", "t02,t012", amax_f32},      {"amax_f64", "wriii", "t02,t012", amax_f64},
    {"amin_f32", "wriii", "t02,t012", amin_f32},      {"amin_f64", "wriii", "t02,t012", amin_f64},
    {"amax_at_f32", "wwriii", "t02,d02,t012", amax_at_f32}, {"amax_at_f64", "wwriii", "t02,d02,t012", amax_at_f64},
    {"amin_at_f32", "wwriii", "t02,d02,t012", amin_at_f32}, {"amin_at_f64", "wwriii", "t02,d02,t012", amin_at_f64},
    {NULL, NULL, NULL, NULL},
};
