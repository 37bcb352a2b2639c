/* Random numbers from the state of NumPy's MT19937, in the order in which the NumPy kernels draw. */
#include "units.h"
#include "vector_math.h"

static void words(const Args *k) { draw(state_of(k), k->p[0], k->n[1]); }

/* Blocks of this many words stay in the level-1 cache between drawing and use. */
#define BLOCK 2048

WIDE static void to_uniform_f32(float *out, const uint32_t *w, int64_t n, float span, float low,
                                float open_end) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float u = fmaf((float)(int32_t)(w[i] & 0xFFFFFF) * 0x1p-24f, span, low);
        out[i] = u == open_end ? low : u; /* rounding may have reached the open end */
    }
}

static void uniform_f32(const Args *k) {
    uint32_t w[BLOCK];
    float *out = k->p[0], low = (float)k->x[0], high = (float)k->x[1];
    for (int64_t start = 0, left; (left = k->n[1] - start) > 0; start += BLOCK) {
        int64_t n = left < BLOCK ? left : BLOCK;
        draw(state_of(k), w, n);
        to_uniform_f32(out + start, w, n, high - low, low, high);
    }
}

WIDE static void to_uniform_f64(double *out, const uint32_t *w, int64_t n, double span, double low,
                                double open_end) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        double u = fma((double)(int64_t)pair(w, i) * 0x1p-53, span, low);
        out[i] = u == open_end ? low : u;
    }
}

static void uniform_f64(const Args *k) {
    uint32_t w[BLOCK];
    double *out = k->p[0], low = k->x[0], high = k->x[1];
    for (int64_t start = 0, left; (left = k->n[1] - start) > 0; start += BLOCK / 2) {
        int64_t n = left < BLOCK / 2 ? left : BLOCK / 2;
        draw(state_of(k), w, 2 * n);
        to_uniform_f64(out + start, w, n, high - low, low, high);
    }
}

#define BERNOULLI(T, S)                                                                          \
    WIDE static void to_bernoulli_##S(T *out, const uint32_t *w, int64_t n, uint64_t bound) {     \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) out[i] = pair(w, i) < bound;         \
    }                                                                                            \
    static void bernoulli_##S(const Args *k) {                                                   \
        uint32_t w[BLOCK];                                                                       \
        T *out = k->p[0];                                                                        \
        for (int64_t start = 0, left; (left = k->n[1] - start) > 0; start += BLOCK / 2) {        \
            int64_t n = left < BLOCK / 2 ? left : BLOCK / 2;                                     \
            draw(state_of(k), w, 2 * n);                                                         \
            to_bernoulli_##S(out + start, w, n, (uint64_t)k->n[2]);                              \
        }                                                                                        \
    }
BERNOULLI(float, f32)
BERNOULLI(double, f64)
BERNOULLI(uint8_t, u8)

/* noise = scale with the probability that BOUND says, else 0; out = a·noise. */
#define DROPOUT(T, S)                                                                            \
    WIDE static void drop_##S(T *restrict out, T *restrict noise, const T *restrict a,            \
                              const uint32_t *w, int64_t n, uint64_t bound, T scale) {            \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) {                                     \
            noise[i] = pair(w, i) < bound ? scale : 0;                                           \
            out[i] = a[i] * noise[i];                                                            \
        }                                                                                        \
    }                                                                                            \
    static void dropout_##S(const Args *k) {                                                     \
        uint32_t w[BLOCK];                                                                       \
        T *out = k->p[0], *noise = k->p[1];                                                      \
        const T *a = k->p[2];                                                                    \
        for (int64_t start = 0, left; (left = k->n[1] - start) > 0; start += BLOCK / 2) {        \
            int64_t n = left < BLOCK / 2 ? left : BLOCK / 2;                                     \
            draw(state_of(k), w, 2 * n);                                                         \
            drop_##S(out + start, noise + start, a + start, w, n, (uint64_t)k->n[2], (T)k->x[0]); \
        }                                                                                        \
    }
DROPOUT(float, f32)
DROPOUT(double, f64)

/* Box and Muller: of 16 words the first 8 give radii, the others angles; the cosines come first.
   Logarithm, sine and cosine are the polynomials of the Cephes library with fused multiply-add, whose
   every rounding belongs to the stream. */
INLINE float radius(uint32_t word) {
    float x = (float)(int32_t)((1u << 24) - (word & 0xFFFFFF)); /* 2^24 (1 - u), exact */
    int32_t bits = float_to_bits(x) - (0x3F3504F3 + (24 << 23));
    float e = (float)(bits >> 23);
    x = bits_to_float((bits & 0x7FFFFF) + 0x3F3504F3) - 1.0f;
    float p = fmaf(x, 7.0376836292e-2f, -1.1514610310e-1f);
    p = fmaf(p, x, 1.1676998740e-1f);
    p = fmaf(p, x, -1.2420140846e-1f);
    p = fmaf(p, x, 1.4249322787e-1f);
    p = fmaf(p, x, -1.6668057665e-1f);
    p = fmaf(p, x, 2.0000714765e-1f);
    p = fmaf(p, x, -2.4999993993e-1f);
    p = fmaf(p, x, 3.3333331174e-1f);
    p = p * x;
    float z = x * x;
    float y = fmaf(p, z, e * -2.12194440e-4f) - z * 0.5f;
    return sqrtf((x + y + e * 0.693359375f) * -2.0f);
}

INLINE void angle(uint32_t word, float *cosine, float *sine) {
    float x = (float)(int32_t)(word & 0xFFFFFF) * ((float)6.283185307179586 * 0x1p-24f);
    int32_t octant = ((int32_t)(x * 1.27323954473516f) + 1) & -2;
    float k = (float)octant;
    x = x - k * 0.78515625f;
    x = x - k * 2.4187564849853515625e-4f;
    x = fmaf(-k, 3.77489497744594108e-8f, x);
    float z = x * x;
    float s = fmaf(z, -1.9515295891e-4f, 8.3321608736e-3f);
    s = fmaf(s, z, -1.6666654611e-1f);
    s = fmaf(s * z, x, x);
    float c = fmaf(z, 2.443315711809948e-5f, -1.388731625493765e-3f);
    c = fmaf(c, z, 4.166664568298827e-2f);
    c = fmaf(c * z, z, -(z * 0.5f)) + 1.0f;
    /* Every other octant swaps the two; signs follow the quadrant. */
    int swap = octant & 2;
    uint32_t first = (uint32_t)float_to_bits(swap ? s : c);
    uint32_t second = (uint32_t)float_to_bits(swap ? c : s);
    *cosine = bits_to_float((int32_t)(first ^ (((uint32_t)octant + 2) << 29 & 0x80000000u)));
    *sine = bits_to_float((int32_t)(second ^ ((uint32_t)octant << 29 & 0x80000000u)));
}

WIDE static void to_normal_f32(float *out, const uint32_t *w, int64_t n, float mean, float std) {
    for (int64_t start = 0; start < n; start += 16) {
        const uint32_t *from = w + start;
        float *to = out + start;
#pragma omp simd
        for (int i = 0; i < 8; i++) {
            float r = radius(from[i]), c, s;
            angle(from[i + 8], &c, &s);
            to[i] = fmaf(c * r, std, mean);
            to[i + 8] = fmaf(s * r, std, mean);
        }
    }
}

/* The transform alone, of given words; n is a multiple of 16. */
static void normals_of(const Args *k) {
    if (k->n[0] % 16) *k->failure = "words are not in sixteens";
    else to_normal_f32(k->p[0], k->p[1], k->n[0], 0, 1);
}

/* n is at least 16.  An end that fills no block costs its words, and then the last 16 numbers are
   drawn afresh. */
static void normal_f32(const Args *k) {
    uint32_t w[BLOCK];
    float *out = k->p[0], mean = (float)k->x[0], std = (float)k->x[1];
    Twister *t = state_of(k);
    int64_t n = k->n[1], ragged = n % 16, full = n - ragged;
    if (n < 16) {
        *k->failure = "less than 16 numbers";
        return;
    }
    for (int64_t start = 0; start < full; start += BLOCK) {
        int64_t some = full - start < BLOCK ? full - start : BLOCK;
        draw(t, w, some);
        to_normal_f32(out + start, w, some, mean, std);
    }
    if (ragged) {
        draw(t, w, ragged);
        draw(t, w, 16);
        to_normal_f32(out + n - 16, w, 16, mean, std);
    }
}

/* The same in float64, by libm; the first 8 of 16 uniforms give radii. */
static void to_normal_f64(double *u, int64_t n, double mean, double std) {
    for (int64_t start = 0; start < n; start += 16, u += 16) {
        for (int i = 0; i < 8; i++) {
            double r = sqrt(-2.0 * log(1.0 - u[i])), theta = 6.283185307179586 * u[i + 8];
            u[i] = fma(r * cos(theta), std, mean);
            u[i + 8] = fma(r * sin(theta), std, mean);
        }
    }
}

static void normal_f64(const Args *k) {
    uint32_t w[32];
    double *out = k->p[0], mean = k->x[0], std = k->x[1];
    int64_t n = k->n[1], ragged = n % 16, full = n - ragged;
    if (n < 16) {
        *k->failure = "less than 16 numbers";
        return;
    }
    for (int64_t start = 0; start < full; start += UNITS) {
        int64_t some = full - start < UNITS ? full - start : UNITS;
        units(state_of(k), out + start, some);
        to_normal_f64(out + start, some, mean, std);
    }
    if (ragged) {
        draw(state_of(k), w, 2 * ragged);
        units(state_of(k), out + n - 16, 16);
        to_normal_f64(out + n - 16, 16, mean, std);
    }
}

/* Normals one after the other, in float64 by libm, and what FINISH makes of each: pairs r·cos θ, r·sin θ.
   The second of a pair that is not used up waits with the caller: n[2] says whether x[2] does, and p[1]
   gets the one that is left. */
#define SERIAL(NAME, T, S, FINISH)                                              \
    static void NAME##_##S(const Args *k) {                                     \
        T *out = k->p[0];                                                       \
        double *spare = k->p[1], u[UNITS], mean = k->x[0], std = k->x[1];       \
        int64_t n = k->n[1], i = 0;                                             \
        if (n > 0 && k->n[2]) out[i++] = (T)FINISH(fma(k->x[2], std, mean));    \
        while (i < n) {                                                         \
            int64_t some = n - i + (n - i) % 2;                                 \
            if (some > UNITS) some = UNITS;                                     \
            units(state_of(k), u, some);                                        \
            for (int64_t j = 0; j < some; j += 2) {                             \
                double theta = 6.283185307179586 * u[j];                        \
                double r = sqrt(-2.0 * log1p(-u[j + 1]));                       \
                double first = r * cos(theta), second = r * sin(theta);         \
                out[i++] = (T)FINISH(fma(first, std, mean));                    \
                if (i < n)                                                      \
                    out[i++] = (T)FINISH(fma(second, std, mean));               \
                else                                                            \
                    *spare = second;                                            \
            }                                                                   \
        }                                                                       \
    }
SERIAL(normal_serial, float, f32, )
SERIAL(normal_serial, double, f64, )
SERIAL(log_normal, float, f32, exp)
SERIAL(log_normal, double, f64, exp)

/* Waiting times, scale·log(1 - u), by the logarithm of libm.  In float32 the fast one says the same
   unless it is next to the middle of two numbers. */
WIDE static int64_t rounded(float *out, const double *wait, int64_t n, double scale) {
    int64_t unsure = 0;
#pragma omp simd reduction(+ : unsure)
    for (int64_t i = 0; i < n; i++) {
        double w = -scale * wait[i];
        out[i] = (float)w;
        unsure += (float)(w * (1 - 1e-10)) != (float)(w * (1 + 1e-10));
    }
    return unsure;
}

static void exponential_f32(const Args *k) {
    double u[UNITS], wait[UNITS], scale = k->x[0];
    float *out = k->p[0];
    for (int64_t left = k->n[1], n; left > 0; left -= n, out += n) {
        n = left < UNITS ? left : UNITS;
        units(state_of(k), u, n);
        to_waits(wait, u, n);
        int64_t unsure = rounded(out, wait, n, scale);
        for (int64_t i = 0; unsure && i < n; i++) {
            double w = -scale * wait[i];
            if ((float)(w * (1 - 1e-10)) == (float)(w * (1 + 1e-10))) continue;
            out[i] = (float)(log1p(-u[i]) * scale);
            unsure--;
        }
    }
}

static void exponential_f64(const Args *k) {
    double u[UNITS], scale = k->x[0], *out = k->p[0];
    for (int64_t left = k->n[1], n; left > 0; left -= n, out += n) {
        n = left < UNITS ? left : UNITS;
        units(state_of(k), u, n);
        for (int64_t i = 0; i < n; i++) out[i] = log1p(-u[i]) * scale;
    }
}

/* FORMULA of a uniform `v` and two numbers, in float64 by libm. */
#define FROM_UNITS(NAME, T, S, FORMULA)                                         \
    static void NAME##_##S(const Args *k) {                                     \
        double u[UNITS];                                                        \
        const double a = k->x[0], b = k->x[1];                                  \
        T *out = k->p[0];                                                       \
        (void)b;                                                                \
        for (int64_t left = k->n[1], n; left > 0; left -= n, out += n) {        \
            n = left < UNITS ? left : UNITS;                                    \
            units(state_of(k), u, n);                                           \
            for (int64_t i = 0; i < n; i++) {                                   \
                const double v = u[i];                                          \
                out[i] = (T)(FORMULA);                                          \
            }                                                                   \
        }                                                                       \
    }
#define TANGENT fma(tan(3.141592653589793 * (v - 0.5)), b, a) /* around a, as wide as b */
FROM_UNITS(cauchy, float, f32, TANGENT)
FROM_UNITS(cauchy, double, f64, TANGENT)

/* The trial of the first success; a = log(1 - p).  What int64 cannot hold is its
   least number. */
static inline int64_t whole(double trial) { return trial < 0x1p63 ? (int64_t)trial : INT64_MIN; }
#define TRIAL ceil(log(v) / a)
FROM_UNITS(geometric, float, f32, TRIAL)
FROM_UNITS(geometric, double, f64, TRIAL)
FROM_UNITS(geometric, int64_t, i64, whole(TRIAL))

/* low + word mod span, of the words that n[4] says, 32 or 64 bits each; a span of 0 is 2^64. */
#define RANDINT(T, S)                                                           \
    static void randint_##S(const Args *k) {                                    \
        uint32_t w[BLOCK];                                                      \
        T *out = k->p[0];                                                       \
        const uint64_t low = (uint64_t)k->n[2], span = (uint64_t)k->n[3];       \
        const uint32_t few = span >> 32 ? 0 : (uint32_t)span;                   \
        const int64_t wide = k->n[4] != 0, most = wide ? BLOCK / 2 : BLOCK;     \
        for (int64_t left = k->n[1], n; left > 0; left -= n, out += n) {        \
            n = left < most ? left : most;                                      \
            draw(state_of(k), w, n << wide);                                    \
            if (wide)                                                           \
                for (int64_t i = 0; i < n; i++) {                               \
                    uint64_t word = (uint64_t)w[2 * i] << 32 | w[2 * i + 1];    \
                    out[i] = (T)(int64_t)(low + (span ? word % span : word));   \
                }                                                               \
            else                                                                \
                for (int64_t i = 0; i < n; i++)                                 \
                    out[i] = (T)(int64_t)(low + (few ? w[i] % few : w[i]));     \
        }                                                                       \
    }
RANDINT(float, f32)
RANDINT(double, f64)
RANDINT(int32_t, i32)
RANDINT(int64_t, i64)

/* Fisher and Yates: entry i is swapped with entry i + word mod (n - i). */
#define RANDPERM(T, S)                                                  \
    static void randperm_##S(const Args *k) {                           \
        uint32_t w[BLOCK];                                              \
        T *out = k->p[0];                                               \
        int64_t n = k->n[1];                                            \
        for (int64_t i = 0; i < n; i++) out[i] = (T)i;                  \
        for (int64_t start = 0; start < n - 1; start += BLOCK) {        \
            int64_t left = n - 1 - start;                               \
            int64_t some = left < BLOCK ? left : BLOCK;                 \
            draw(state_of(k), w, some);                                 \
            for (int64_t i = 0; i < some; i++) {                        \
                int64_t here = start + i;                               \
                int64_t there = here + w[i] % (uint32_t)(n - here);     \
                T kept = out[here];                                     \
                out[here] = out[there];                                 \
                out[there] = kept;                                      \
            }                                                           \
        }                                                               \
    }
RANDPERM(int32_t, i32)
RANDPERM(int64_t, i64)

const Row random_rows[] = {
    {"words", "wai", "w1", words},
    {"uniform_f32", "waiff", "t1", uniform_f32},
    {"uniform_f64", "waiff", "t1", uniform_f64},
    {"bernoulli_f32", "waii", "t1", bernoulli_f32},
    {"bernoulli_f64", "waii", "t1", bernoulli_f64},
    {"bernoulli_u8", "waii", "t1", bernoulli_u8},
    {"dropout_f32", "wwraiif", "t1,t1,t1", dropout_f32},
    {"dropout_f64", "wwraiif", "t1,t1,t1", dropout_f64},
    {"normals_of", "wri", "w0,w0", normals_of},
    {"normal_f32", "waiff", "t1", normal_f32},
    {"normal_f64", "waiff", "t1", normal_f64},
    {"normal_serial_f32", "wwaiifff", "t1,d", normal_serial_f32},
    {"normal_serial_f64", "wwaiifff", "t1,d", normal_serial_f64},
    {"log_normal_f32", "wwaiifff", "t1,d", log_normal_f32},
    {"log_normal_f64", "wwaiifff", "t1,d", log_normal_f64},
    {"cauchy_f32", "waiff", "t1", cauchy_f32},
    {"cauchy_f64", "waiff", "t1", cauchy_f64},
    {"geometric_f32", "waiff", "t1", geometric_f32},
    {"geometric_f64", "waiff", "t1", geometric_f64},
    {"geometric_i64", "waiff", "t1", geometric_i64},
    {"randint_f32", "waiiii", "t1", randint_f32},
    {"randint_f64", "waiiii", "t1", randint_f64},
    {"randint_i32", "waiiii", "t1", randint_i32},
    {"randint_i64", "waiiii", "t1", randint_i64},
    {"exponential_f32", "waif", "t1", exponential_f32},
    {"exponential_f64", "waif", "t1", exponential_f64},
    {"randperm_i32", "wai", "t1", randperm_i32},
    {"randperm_i64", "wai", "t1", randperm_i64},
    {NULL, NULL, NULL, NULL},
};
