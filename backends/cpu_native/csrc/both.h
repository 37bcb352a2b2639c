/* Includes the file TEMPLATE for float and for double.

   In it T is the type, NAME(x) is x_f32 or x_f64, and EXP, LOG, SQRT, ABS, FMA, TANH, SIGMOID are the
   functions of that type. */
#include "naming.h"
#include "vector_math.h"

#define T float
#define SUFFIX f32
#define EXP exp_f
#define LOG logf
#define SQRT sqrtf
#define ABS fabsf
#define FMA fmaf
#define TANH tanh_f
#define SIGMOID sigmoid_f
#include TEMPLATE
#undef T
#undef SUFFIX
#undef EXP
#undef LOG
#undef SQRT
#undef ABS
#undef FMA
#undef TANH
#undef SIGMOID

#define T double
#define SUFFIX f64
#define EXP exp_d
#define LOG log
#define SQRT sqrt
#define ABS fabs
#define FMA fma
#define TANH tanh_d
#define SIGMOID sigmoid_d
#include TEMPLATE
#undef T
#undef SUFFIX
#undef EXP
#undef LOG
#undef SQRT
#undef ABS
#undef FMA
#undef TANH
#undef SIGMOID
