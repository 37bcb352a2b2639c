/* Comparisons, whose results are bytes: of what is not ordered all are false but "is not equal". */
#include "elements.h"

#define COMPARISON(name, T, S, relation)                                                          \
    WIDE static void name##_loop_##S(void *to, const void *first, const void *second, int64_t n,  \
                                     const double *numbers, int streams) {                        \
        const T *restrict a = first, *restrict b = second;                                        \
        uint8_t *restrict out = to;                                                               \
        (void)numbers, (void)streams;                                                             \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) out[i] = a[i] relation b[i];          \
    }                                                                                             \
    static void name##_##S(const Args *k) {                                                       \
        pointwise(k, name##_loop_##S, 1, (Operand){k->p[1], k->n[1], sizeof(T), 0},               \
                  (Operand){k->p[2], k->n[2], sizeof(T), 0});                                     \
    }
#define OF_ALL(name, relation)                \
    COMPARISON(name, float, f32, relation)    \
    COMPARISON(name, double, f64, relation)   \
    COMPARISON(name, int64_t, i64, relation)
OF_ALL(eq, ==)
OF_ALL(ne, !=)
OF_ALL(lt, <)
OF_ALL(le, <=)
OF_ALL(gt, >)
OF_ALL(ge, >=)

#define ROW(name, S) {#name "_" #S, "wrriii", "b0,t0|1,t0|2", name##_##S}
#define ROWS(name) ROW(name, f32), ROW(name, f64), ROW(name, i64)

const Row comparing_rows[] = {
    ROWS(eq), ROWS(ne), ROWS(lt), ROWS(le), ROWS(gt), ROWS(ge), {NULL, NULL, NULL, NULL},
};
