/* Whether all or some elements of the middle of (outer, n, inner) are nonzero. */
#include "short_rows.h"

#define SHORT 32  /* elements of a row that is turned */
#define BLOCK 512 /* elements of a row, after which it may be over */

typedef struct {
    const void *a;
    uint8_t *out;
    int64_t n, inner;
} Truths;

/* Of a row, whether `is_all` of it is not: some element is zero, or for `any` one is not. */
#define TRUTH(T, suffix)                                                                       \
    INLINE int is_decided_##suffix(const T *a, int64_t n, int is_all) {                        \
        for (int64_t start = 0; start < n; start += BLOCK) {                                   \
            const int64_t end = start + BLOCK < n ? start + BLOCK : n;                         \
            int found = 0;                                                                     \
            if (is_all) {                                                                      \
                _Pragma("omp simd reduction(| : found)")                                       \
                for (int64_t i = start; i < end; i++) found |= a[i] == 0;                      \
            } else {                                                                           \
                _Pragma("omp simd reduction(| : found)")                                       \
                for (int64_t i = start; i < end; i++) found |= a[i] != 0;                      \
            }                                                                                  \
            if (found) return 1;                                                               \
        }                                                                                      \
        return 0;                                                                              \
    }                                                                                          \
    INLINE void truths_of_columns_##suffix(uint8_t *restrict out, const T *restrict a, int64_t n, int64_t inner, \
                                           int is_all) {                                       \
        memset(out, is_all, (size_t)inner);                                                    \
        for (int64_t i = 0; i < n; i++) {                                                      \
            const T *restrict row = a + i * inner;                                             \
            if (is_all) {                                                                      \
                _Pragma("omp simd") for (int64_t j = 0; j < inner; j++)                        \
                    out[j] &= (uint8_t)(row[j] != 0);                                          \
            } else {                                                                           \
                _Pragma("omp simd") for (int64_t j = 0; j < inner; j++)                        \
                    out[j] |= (uint8_t)(row[j] != 0);                                          \
            }                                                                                  \
        }                                                                                      \
    }                                                                                          \
    INLINE void truths_each_##suffix(const Truths *c, int64_t begin, int64_t end, int is_all) {     \
        for (int64_t outer = begin; outer < end; outer++) {                                    \
            const T *a = (const T *)c->a + outer * c->n * c->inner;                            \
            uint8_t *restrict out = c->out + outer * c->inner;                                 \
            if (c->inner == 1) {                                                               \
                *out = (uint8_t)(is_decided_##suffix(a, c->n, is_all) ^ is_all);               \
                continue;                                                                      \
            }                                                                                  \
            truths_of_columns_##suffix(out, a, c->n, c->inner, is_all);                        \
        }                                                                                      \
    }                                                                                          \
    INLINE void truths_turned_##suffix(const Truths *c, int64_t begin, int64_t end, int is_all) { \
        const int64_t n = c->n, most = rows_at_once(n * (int64_t)sizeof(T));                   \
        T turned[TURNED / sizeof(T)];                                                          \
        for (int64_t row = begin, rows; row < end; row += rows) {                              \
            rows = end - row < most ? end - row : most;                                        \
            turn_rows(turned, (const T *)c->a + row * n, rows, n, sizeof(T));                  \
            truths_of_columns_##suffix(c->out + row, turned, n, rows, is_all);                 \
        }                                                                                      \
    }                                                                                          \
    INLINE void truths_##suffix(const Truths *c, int64_t begin, int64_t end, int is_all) {     \
        if (c->inner == 1 && c->n > 1 && c->n <= SHORT && end - begin >= FEWEST_TURNED)        \
            truths_turned_##suffix(c, begin, end, is_all);                                     \
        else truths_each_##suffix(c, begin, end, is_all);                                      \
    }                                                                                          \
    WIDE static void all_step_##suffix(const void *context, int64_t begin, int64_t end) {      \
        truths_##suffix(context, begin, end, 1);                                               \
    }                                                                                          \
    WIDE static void any_step_##suffix(const void *context, int64_t begin, int64_t end) {      \
        truths_##suffix(context, begin, end, 0);                                               \
    }                                                                                          \
    static void all_##suffix(const Args *k) {                                                  \
        const Truths c = {k->p[1], k->p[0], k->n[1], k->n[2]};                                 \
        split(all_step_##suffix, &c, k->n[0], team(k, k->n[0] * c.n * c.inner));               \
    }                                                                                          \
    static void any_##suffix(const Args *k) {                                                  \
        const Truths c = {k->p[1], k->p[0], k->n[1], k->n[2]};                                 \
        split(any_step_##suffix, &c, k->n[0], team(k, k->n[0] * c.n * c.inner));               \
    }

TRUTH(uint8_t, b8)
TRUTH(float, f32)
TRUTH(double, f64)

const Row truth_rows[] = {
    {"all_b8", "wriii", "b02,b012", all_b8},     {"any_b8", "wriii", "b02,b012", any_b8},
    {"all_f32", "wriii", "b02,w012", all_f32},   {"any_f32", "wriii", "b02,w012", any_f32},
    {"all_f64", "wriii", "b02,d012", all_f64},   {"any_f64", "wriii", "b02,d012", any_f64},
    {NULL, NULL, NULL, NULL},
};
