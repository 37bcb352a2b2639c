/* Medians and other elements of an order, and short rows in order. */
#include "kth_key.h"

/* What is sought: the k-th, the median or the first NaN, or the median of what is no NaN. */
enum { KTH, MEDIAN, MEDIAN_OF_NUMBERS };

#define FEW_SORTED 32 /* elements of a row that is sorted by insertion */

#define NUMBERS "selecting_template.h"
#include "numbers.h"

const Row selecting_rows[] = {
    {"select_f32", "wwwriiiii", "t02,d02,t012,t012", select_f32},
    {"select_f64", "wwwriiiii", "t02,d02,t012,t012", select_f64},
    {"select_i32", "wwwriiiii", "t02,d02,t012,t012", select_i32},
    {"select_i64", "wwwriiiii", "t02,d02,t012,t012", select_i64},
    {"mode_f32", "wwrriii", "t02,d02,t012,t012", mode_f32},
    {"mode_f64", "wwrriii", "t02,d02,t012,t012", mode_f64},
    {"mode_i32", "wwrriii", "t02,d02,t012,t012", mode_i32},
    {"mode_i64", "wwrriii", "t02,d02,t012,t012", mode_i64},
    {"mode_few_f32", "wwriii", "t02,d02,t012", mode_few_f32},
    {"mode_few_f64", "wwriii", "t02,d02,t012", mode_few_f64},
    {"mode_few_i32", "wwriii", "t02,d02,t012", mode_few_i32},
    {"mode_few_i64", "wwriii", "t02,d02,t012", mode_few_i64},
    {"sort_few_f32", "wwriiii", "t012,d012,t012", sort_few_f32},
    {"sort_few_f64", "wwriiii", "t012,d012,t012", sort_few_f64},
    {"sort_few_i32", "wwriiii", "t012,d012,t012", sort_few_i32},
    {"sort_few_i64", "wwriiii", "t012,d012,t012", sort_few_i64},
    {NULL, NULL, NULL, NULL},
};
