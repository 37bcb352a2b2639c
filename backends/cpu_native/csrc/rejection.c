/* Gamma, Dirichlet, binomial and Poisson numbers, drawn one after the other by rejection.

   The streams are those of flambeau/ops/randomness/rejection.py and random.py, bit for bit: steps round
   to the type of the parameters where theirs do, and no multiplication is fused with an addition. */
#include <float.h>

#include "native.h"
#include "twister.h"

/* Uniforms are made in blocks, the first of which are small; what is left of one goes back at the end.
   The normal number that waits is in spare[0] if spare[1] is not 0, and goes back there. */
#define UNIFORMS 256
#define FIRST_UNIFORMS 16
typedef struct {
    Twister *twister, before; /* the state before a block, where that needs other words than it has */
    double units[UNIFORMS];
    int taken, made, is_new;
    double *spare;
} Source;

static void begin(Source *s, const Args *k) {
    s->twister = (Twister *)(intptr_t)k->n[0];
    s->taken = s->made = 0;
    s->spare = k->p[1];
}

static double more(Source *s) {
    uint32_t words[2 * UNIFORMS];
    int block = s->made ? 2 * s->made : FIRST_UNIFORMS;
    if (block > UNIFORMS) block = UNIFORMS;
    s->is_new = s->twister->position > WORDS - 2 * block;
    if (s->is_new) s->before = *s->twister;
    draw(s->twister, words, 2 * block);
    for (int i = 0; i < block; i++) {
        uint64_t pair = ((uint64_t)words[2 * i] << 32 | words[2 * i + 1]) & 0x1FFFFFFFFFFFFFull;
        s->units[i] = (double)(int64_t)pair * 0x1p-53;
    }
    s->made = block;
    s->taken = 1;
    return s->units[0];
}

static inline double unit(Source *s) { return s->taken < s->made ? s->units[s->taken++] : more(s); }

static void give_back(Source *s) {
    if (s->taken == s->made) return;
    if (!s->is_new) {
        s->twister->position -= 2 * (s->made - s->taken);
        return;
    }
    uint32_t words[2 * UNIFORMS];
    *s->twister = s->before;
    draw(s->twister, words, 2 * s->taken);
}

static double normal(Source *s) {
    if (s->spare[1] != 0) {
        s->spare[1] = 0;
        return s->spare[0];
    }
    double angle = 2.0 * 3.14159265358979323846 * unit(s);
    double radius = sqrt(-2.0 * log1p(-unit(s)));
    s->spare[0] = radius * sin(angle);
    s->spare[1] = 1;
    return radius * cos(angle);
}

/* Marsaglia and Tsang. */
#define GAMMA(T, S)                                                                          \
    static double gamma_##S(Source *s, T alpha) {                                            \
        double scale = 1;                                                                    \
        if (alpha < 1) {                                                                     \
            if (alpha == 0) return 0;                                                        \
            scale = pow(1 - unit(s), (T)1 / alpha);                                          \
            alpha += 1;                                                                      \
        }                                                                                    \
        const T shifted = alpha - 1.0f / 3.0f;                                               \
        const double d = shifted, c = 1 / sqrt(9 * d);                                       \
        for (;;) {                                                                           \
            const double x = normal(s), y = 1 + c * x;                                       \
            if (y <= 0) continue;                                                            \
            const double v = y * y * y, u = 1 - unit(s), square = x * x;                     \
            if (u < 1 - (double)0.0331f * square * square ||                                 \
                log(u) < 0.5 * square + d * (1 - v + log(v)))                                \
                return scale * d * v;                                                        \
        }                                                                                    \
    }                                                                                        \
    static void standard_gamma_##S(const Args *k) {                                          \
        Source s;                                                                            \
        T *out = k->p[0];                                                                    \
        const T *alpha = k->p[2], least = LEAST_##S;                                         \
        begin(&s, k);                                                                        \
        for (int64_t i = 0; i < k->n[1]; i++) {                                              \
            const T value = (T)gamma_##S(&s, alpha[i]);                                      \
            out[i] = value > least ? value : least;                                          \
        }                                                                                    \
        give_back(&s);                                                                       \
    }
#define LEAST_f32 FLT_MIN
#define LEAST_f64 DBL_MIN
GAMMA(float, f32)
GAMMA(double, f64)

/* The sum of `size` vectors of `width` numbers, four levels deep: each takes 2^power of the one below. */
#define WIDEST 16
static void in_levels(double *total, const double *row, int64_t size, int width) {
    double level[4][WIDEST] = {{0}};
    int bits = 0;
    while (((int64_t)1 << bits) < size) bits++;
    const int power = bits / 4 > 4 ? bits / 4 : 4;
    const int64_t step = (int64_t)1 << power;
    int64_t done = 0;
    while (done + step <= size) {
        for (int64_t end = done + step; done < end; done++)
            for (int j = 0; j < width; j++) level[0][j] += row[done * width + j];
        for (int l = 1; l < 4; l++) {
            for (int j = 0; j < width; j++) {
                level[l][j] += level[l - 1][j];
                level[l - 1][j] = 0;
            }
            if (done & ((step - 1) << (l * power))) break;
        }
    }
    for (; done < size; done++)
        for (int j = 0; j < width; j++) level[0][j] += row[done * width + j];
    for (int j = 0; j < width; j++) {
        total[j] = level[0][j];
        for (int l = 1; l < 4; l++) total[j] += level[l][j];
    }
}

/* Vectors of `lanes` numbers, four side by side; their sum is in the first of them. */
static void side_by_side(double *total, const double *row, int64_t vectors, int lanes) {
    in_levels(total, row, vectors / 4, 4 * lanes);
    for (int64_t i = vectors / 4 * 4; i < vectors; i++)
        for (int j = 0; j < lanes; j++) total[j] += row[i * lanes + j];
    for (int other = 1; other < 4; other++)
        for (int j = 0; j < lanes; j++) total[j] += total[other * lanes + j];
}

static double row_sum(const double *row, int64_t size) {
    double part[WIDEST], total = 0;
    if (size < 4) {
        side_by_side(part, row, size, 1);
        return part[0];
    }
    side_by_side(part, row, size / 4, 4);
    for (int64_t i = size / 4 * 4; i < size; i++) total += row[i];
    for (int j = 0; j < 4; j++) total += part[j];
    return total;
}

#define DIRICHLET(T, S, MOST)                                                                \
    static void sample_dirichlet_##S(const Args *k) {                                        \
        Source s;                                                                            \
        T *out = k->p[0];                                                                    \
        const T *alpha = k->p[2], least = LEAST_##S, most = MOST;                            \
        double *row = k->p[3];                                                               \
        const int64_t columns = k->n[2], rows = columns > 0 ? k->n[1] : 0;                   \
        begin(&s, k);                                                                        \
        for (int64_t i = 0; i < rows; i++, out += columns, alpha += columns) {               \
            for (int64_t j = 0; j < columns; j++) {                                          \
                const double value = gamma_f64(&s, alpha[j]);                                \
                row[j] = value > DBL_MIN ? value : DBL_MIN;                                  \
            }                                                                                \
            const double total = row_sum(row, columns);                                      \
            for (int64_t j = 0; j < columns; j++) {                                          \
                T value = (T)(row[j] / total);                                               \
                value = value > least ? value : least;                                       \
                out[j] = value < most ? value : most;                                        \
            }                                                                                \
        }                                                                                    \
        give_back(&s);                                                                       \
    }
DIRICHLET(float, f32, 1 - 0x1p-24f)
DIRICHLET(double, f64, 1 - 0x1p-53)

/* What Stirling's formula leaves of log k! at k + 1. */
static double stirling_end(double k) {
    static const double ends[] = {
        0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
        0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
        0.00925546218271273, 0.00833056343336287};
    if (k >= 0 && k < 10) return ends[(int)k];
    const double square = (k + 1) * (k + 1);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

/* Waiting times between successes for small means, else Hormann's BTRS. */
#define BINOMIAL(T, S, SQRT, FLOOR, LOG1P)                                                   \
    static T by_waiting_##S(Source *s, T count, T prob) {                                    \
        const double failure = (T)LOG1P;                                                     \
        double passed = 0;                                                                   \
        for (T found = 0;; found += 1) {                                                     \
            passed += ceil(log(unit(s)) / failure);                                          \
            if (passed > count) return found;                                                \
        }                                                                                    \
    }                                                                                        \
    static T by_rejection_##S(Source *s, T count, T prob) {                                  \
        const T failure = 1 - prob, mean = count * prob, spread = mean * failure;            \
        const T ratio = prob / failure, more_counts = count + 1, first = more_counts * prob; \
        const double deviation = SQRT(spread), b = 1.15 + 2.53 * deviation;                  \
        const double a = -0.0873 + 0.0248 * b + 0.01 * prob, centre = mean + 0.5;            \
        const double bound = 0.92 - 4.2 / b, odds = ratio;                                   \
        const double alpha = (2.83 + 5.1 / b) * deviation, mode = FLOOR(first);              \
        for (;;) {                                                                           \
            const double u = unit(s) - 0.5, v = unit(s), close = 0.5 - fabs(u);              \
            const T k = (T)floor((2 * a / close + b) * u + centre);                          \
            if (k < 0 || k > count) continue;                                                \
            if (close >= 0.07 && v <= bound) return k;                                       \
            const T rest = count - k, left = rest + 1, above = k + 1;                        \
            const double level = log(v * alpha / (a / (close * close) + b));                 \
            const double most = (mode + 0.5) * log((mode + 1) / (odds * (count - mode + 1))) \
                + more_counts * log((count - mode + 1) / left)                               \
                + (k + 0.5) * log(odds * left / above)                                       \
                + stirling_end(mode) + stirling_end(count - mode)                            \
                - stirling_end(k) - stirling_end(rest);                                      \
            if (level <= most) return k;                                                     \
        }                                                                                    \
    }                                                                                        \
    static T successes_##S(Source *s, T count, T prob) {                                     \
        if (count <= 0 || prob <= 0) return 0;                                               \
        if (prob >= 1) return count;                                                         \
        if (isnan(count) || isnan(prob)) return (T)NAN;                                      \
        const T rarer = prob <= (T)0.5 ? prob : (T)1 - prob, mean = count * rarer;           \
        const T found = mean >= 10 ? by_rejection_##S(s, count, rarer)                       \
                                   : by_waiting_##S(s, count, rarer);                        \
        return prob <= (T)0.5 ? found : count - found;                                       \
    }                                                                                        \
    static void binomial_##S(const Args *k) {                                                \
        Source s;                                                                            \
        T *out = k->p[0];                                                                    \
        const T *count = k->p[2], *prob = k->p[3];                                           \
        begin(&s, k);                                                                        \
        for (int64_t i = 0; i < k->n[1]; i++) out[i] = successes_##S(&s, count[i], prob[i]); \
        give_back(&s);                                                                       \
    }
BINOMIAL(float, f32, sqrtf, floorf, log1p(-(double)prob))
BINOMIAL(double, f64, sqrt, floor, log1p(-prob))

/* Products of uniforms for rates below 10 (Knuth), else Hormann's PTRS. */
static double events(Source *s, double rate) {
    if (!(rate > 0)) return 0;
    if (rate < 10) {
        const double bound = exp(-rate);
        double product = 1;
        for (double count = 0;; count++) {
            product *= unit(s);
            if (product <= bound) return count;
        }
    }
    const double root = sqrt(rate), log_rate = log(rate), b = 0.931 + 2.53 * root;
    const double a = -0.059 + 0.02483 * b, inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    const double bound = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        const double u = unit(s) - 0.5, v = unit(s), close = 0.5 - fabs(u);
        if (close == 0) continue;
        const double k = floor((2 * a / close + b) * u + rate + 0.43);
        if (close >= 0.07 && v <= bound) return k;
        if (k < 0 || (close < 0.013 && v > close)) continue;
        const double level = log(v) + log(inverse_alpha) - log(a / (close * close) + b);
        if (level <= -rate + k * log_rate - lgamma(k + 1)) return k;
    }
}

#define POISSON(T, S)                                                                        \
    static void poisson_##S(const Args *k) {                                                 \
        Source s;                                                                            \
        T *out = k->p[0];                                                                    \
        const T *rate = k->p[2];                                                             \
        int64_t refused = 0;                                                                 \
        for (int64_t i = 0; i < k->n[1]; i++) refused += !(rate[i] >= 0);                    \
        if (refused) {                                                                       \
            *k->failure = "a rate is negative or nan";                                       \
            return;                                                                          \
        }                                                                                    \
        begin(&s, k);                                                                        \
        for (int64_t i = 0; i < k->n[1]; i++) out[i] = (T)events(&s, rate[i]);               \
        give_back(&s);                                                                       \
    }
POISSON(float, f32)
POISSON(double, f64)

#define ROWS(S)                                                                              \
    {"standard_gamma_" #S, "wawri", "t1,2d,t1", standard_gamma_##S},                         \
    {"sample_dirichlet_" #S, "wawrwii", "t12,2d,t12,d2", sample_dirichlet_##S},              \
    {"binomial_" #S, "wawrri", "t1,2d,t1,t1", binomial_##S},                                 \
    {"poisson_" #S, "wawri", "t1,2d,t1", poisson_##S}

const Row rejection_rows[] = {
    ROWS(f32),
    ROWS(f64),
    {NULL, NULL, NULL, NULL},
};
