/* Medians and other elements of an order. */
#include "kth_key.h"

/* What is sought: the k-th, the median or the first NaN, or the median of what is no NaN. */
enum { KTH, MEDIAN, MEDIAN_OF_NUMBERS };

#define NUMBERS "selecting_template.h"
#include "numbers.h"

const Row selecting_rows[] = {
    {"select_place_f32", "wwriiiii", "d02,w012,w012", select_place_f32},
    {"select_place_f64", "wwriiiii", "d02,d012,d012", select_place_f64},
    {"select_place_i32", "wwriiiii", "d02,w012,w012", select_place_i32},
    {"select_place_i64", "wwriiiii", "d02,d012,d012", select_place_i64},
    {"mode_place_f32", "wwriii", "d02,w012,w012", mode_place_f32},
    {"mode_place_f64", "wwriii", "d02,d012,d012", mode_place_f64},
    {"mode_place_i32", "wwriii", "d02,w012,w012", mode_place_i32},
    {"mode_place_i64", "wwriii", "d02,d012,d012", mode_place_i64},
    {NULL, NULL, NULL, NULL},
};
