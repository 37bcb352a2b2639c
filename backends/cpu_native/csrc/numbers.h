/* Includes the file NUMBERS for float, double, int32_t and int64_t.

   In it T is the type, NAME(x) is x_f32, x_f64, x_i32 or x_i64, and IS_NAN(x) tells a NaN. */
#include "naming.h"

#define IS_NAN(x) ((x) != (x))
#define T float
#define SUFFIX f32
#include NUMBERS
#undef T
#undef SUFFIX

#define T double
#define SUFFIX f64
#include NUMBERS
#undef T
#undef SUFFIX
#undef IS_NAN

#define IS_NAN(x) ((void)(x), 0)
#define T int32_t
#define SUFFIX i32
#include NUMBERS
#undef T
#undef SUFFIX

#define T int64_t
#define SUFFIX i64
#include NUMBERS
#undef T
#undef SUFFIX
#undef IS_NAN
