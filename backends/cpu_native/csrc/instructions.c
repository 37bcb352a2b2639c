/* The instructions of programs by their names. */
#include "borrowed.h"
#include "chains.h"

#define COMPARISON(name, relation)                                                                \
    WIDE static void name##_loop(void *to, const void *first, const void *second, int64_t n,      \
                                 const double *numbers, int streams) {                            \
        const float *a = first, *b = second;                                                      \
        float *out = to;                                                                          \
        (void)numbers, (void)streams;                                                             \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) out[i] = a[i] relation b[i] ? 1 : 0;  \
    }
COMPARISON(eq, ==)
COMPARISON(ne, !=)
COMPARISON(lt, <)
COMPARISON(le, <=)
COMPARISON(gt, >)
COMPARISON(ge, >=)

/* Of two zeros NumPy takes the second, whose functions small arrays have. */
#define LATTER(name, relation)                                                                    \
    WIDE static void name##_loop(void *to, const void *first, const void *second, int64_t n,      \
                                 const double *numbers, int streams) {                            \
        const float *a = first, *b = second;                                                      \
        float *out = to;                                                                          \
        (void)numbers, (void)streams;                                                             \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                                       \
            out[i] = a[i] relation b[i] || a[i] != a[i] ? a[i] : b[i];                            \
    }
LATTER(latter_maximum, >)
LATTER(latter_minimum, <)

/* A NaN of a row is its extremum. */
#define PRAGMA(text) _Pragma(#text)
#define EXTREMUM(name, relation)                                                                  \
    WIDE static void name##_of_rows(float *out, const float *a, int64_t rows, int64_t columns,    \
                                    double divisor) {                                             \
        (void)divisor;                                                                            \
        for (int64_t i = 0; i < rows; i++, a += columns) {                                        \
            float found = a[0];                                                                   \
            int is_nan = 0;                                                                       \
            PRAGMA(omp simd reduction(name : found) reduction(| : is_nan))                        \
            for (int64_t j = 0; j < columns; j++) {                                               \
                found = a[j] relation found ? a[j] : found;                                       \
                is_nan |= a[j] != a[j];                                                           \
            }                                                                                     \
            out[i] = is_nan ? NAN : found;                                                        \
        }                                                                                         \
    }
EXTREMUM(max, >)
EXTREMUM(min, <)

/* Of sub: sub_rows takes a value a row as second operand, rows_sub as first. */
static int find_by_row(Instruction *i, const char *name) {
    static const char *const known[] = {"add", "sub", "mul", "div", "maximum", "minimum"};
    const int is_first = strncmp(name, "rows_", 5) == 0;
    for (size_t j = 0; j < sizeof known / sizeof known[0]; j++) {
        const size_t length = strlen(known[j]);
        if (is_first ? strcmp(name + 5, known[j])
                     : strncmp(name, known[j], length) || strcmp(name + length, "_rows"))
            continue;
        i->way = is_first ? BY_FIRST : BY_SECOND;
        i->loop = loop_of(known[j]);
        i->number = number_loop_of(known[j], is_first);
        return 1;
    }
    return 0;
}

int find_instruction(Instruction *i, const char *name) {
    static const struct {
        const char *name;
        int way;
        Loop loop;
        Reducer reducer;
    } own[] = {
        {"eq", EACH, eq_loop, NULL},        {"ne", EACH, ne_loop, NULL},
        {"lt", EACH, lt_loop, NULL},        {"le", EACH, le_loop, NULL},
        {"gt", EACH, gt_loop, NULL},        {"ge", EACH, ge_loop, NULL},
        {"latter_maximum", EACH, latter_maximum_loop, NULL},
        {"latter_minimum", EACH, latter_minimum_loop, NULL},
        {"where", CHOOSE, NULL, NULL},      {"expand", EXPAND, NULL, NULL},
        {"multiply_add", MULTIPLY_ADD, NULL, NULL},
        {"sum", REDUCE, NULL, sum_of_rows}, {"amax", REDUCE, NULL, max_of_rows},
        {"amin", REDUCE, NULL, min_of_rows},
    };
    i->way = EACH;
    i->function = find_function(name);
    if ((i->loop = loop_of(name)) != NULL || (i->loop = borrowed_loop_of(name)) != NULL) return 1;
    if (find_by_row(i, name)) return 1;
    for (size_t j = 0; j < sizeof own / sizeof own[0]; j++) {
        if (strcmp(name, own[j].name)) continue;
        i->way = own[j].way, i->loop = own[j].loop, i->reducer = own[j].reducer;
        return 1;
    }
    return 0;
}
