/* Medians and other elements of an order. */
#include "native.h"

/* What is sought: the k-th, the median or the first NaN, or the median of what is no NaN. */
enum { KTH, MEDIAN, MEDIAN_OF_NUMBERS };

#define JOINED(a, b) a##_##b
#define NAMED(a, b) JOINED(a, b)
#define NAME(x) NAMED(x, SUFFIX)
#define IS_NAN(x) ((x) != (x))
#define T float
#define SUFFIX f32
#include "selecting_template.h"
#undef T
#undef SUFFIX
#define T double
#define SUFFIX f64
#include "selecting_template.h"
#undef T
#undef SUFFIX
#undef IS_NAN
#define IS_NAN(x) ((void)(x), 0)
#define T int32_t
#define SUFFIX i32
#include "selecting_template.h"
#undef T
#undef SUFFIX
#define T int64_t
#define SUFFIX i64
#include "selecting_template.h"

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
