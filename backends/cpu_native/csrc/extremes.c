/* The least and the greatest of numbers. */
#define NUMBERS "extremes_template.h"
#include "short_rows.h"

/* A place on the way: as wide as what is compared.  Lines of floats are fewer than 2^31, or not asked for. */
typedef int32_t Place_f32, Place_i32;
typedef int64_t Place_f64, Place_i64;
#include "numbers.h"

typedef int32_t Place_b8;
#define IS_NAN(x) ((void)(x), 0)
#define T uint8_t
#define SUFFIX b8
#include NUMBERS
#undef T
#undef SUFFIX
#undef IS_NAN

#define ALL(name, arguments, extents)                                                             \
    {name "_f32", arguments, extents, EACH(f32)}, {name "_f64", arguments, extents, EACH(f64)},   \
        {name "_i32", arguments, extents, EACH(i32)}, {name "_i64", arguments, extents, EACH(i64)},   \
        {name "_b8", arguments, extents, EACH(b8)}

const Row extremes_rows[] = {
#define EACH(suffix) amax_##suffix
    ALL("amax", "wriii", "t02,t012"),
#undef EACH
#define EACH(suffix) amin_##suffix
    ALL("amin", "wriii", "t02,t012"),
#undef EACH
#define EACH(suffix) amax_at_##suffix
    ALL("amax_at", "wwriii", "t02,d02,t012"),
#undef EACH
#define EACH(suffix) amin_at_##suffix
    ALL("amin_at", "wwriii", "t02,d02,t012"),
#undef EACH
    {NULL, NULL, NULL, NULL},
};
