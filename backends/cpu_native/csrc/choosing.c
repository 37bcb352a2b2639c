/* Choices by element: choosing(general, boolean, limit, large) gives where(condition, a, b), a where the condition
   holds, else b.  Each is read where it lies, row-major, with gaps between its lines, or repeated along any dimension
   (gapped.h); all else is for general(condition, a, b).  Results of `limit` bytes and more are large(shape, dtype). */
#include "arrays.h"
#include "avx512.h"
#include "binding.h"
#include "gapped.h"

#define CAPSULE "flambeau_native.choosing"
#define FEW 4096 /* elements, so soon done that nobody else is let in meanwhile */

typedef struct {
    PyObject *general, *boolean, *large;
    Py_ssize_t limit;
} Choosing;

static void drop(PyObject *capsule) {
    Choosing *c = PyCapsule_GetPointer(capsule, CAPSULE);
    Py_XDECREF(c->general);
    Py_XDECREF(c->boolean);
    Py_XDECREF(c->large);
    PyMem_Free(c);
}

/* n elements by n conditions; of a and b each or one for all. */
#define CHOOSE(W, S)                                                                                                 \
    WIDE static void choose_##S(W *restrict out, const char *condition, const W *a, const W *b, int64_t n, int of_a, \
                                int of_b) {                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                                            \
            const W x = a[of_a ? i : 0], y = b[of_b ? i : 0];                                                        \
            out[i] = condition[i] ? x : y;                                                                           \
        }                                                                                                            \
    }
CHOOSE(uint32_t, w4)
CHOOSE(uint64_t, w8)

#if HAS_AVX512
#define CHOOSE_VECTORS(W, S, lanes, mask_type, conditions, load, repeated, blend, store)                             \
    AVX512 static void choose_vectors_##S(W *out, const char *condition, const W *a, const W *b, int64_t n, int of_a, \
                                          int of_b) {                                                                \
        const __m512i first = repeated(*a), second = repeated(*b);                                                   \
        for (int64_t i = 0; i < n; i += (lanes)) {                                                                   \
            const mask_type some = (mask_type)(n - i >= (lanes) ? -1 : (1 << (n - i)) - 1);                          \
            const __m128i held = _mm_maskz_loadu_epi8((__mmask16)((conditions) & some), condition + i);              \
            const __m512i x = of_a ? load(some, a + i) : first, y = of_b ? load(some, b + i) : second;               \
            store(out + i, some, blend((mask_type)_mm_test_epi8_mask(held, held), y, x));                            \
        }                                                                                                            \
    }
CHOOSE_VECTORS(uint32_t, w4, 16, __mmask16, 0xFFFF, _mm512_maskz_loadu_epi32, _mm512_set1_epi32,
               _mm512_mask_blend_epi32, _mm512_mask_storeu_epi32)
CHOOSE_VECTORS(uint64_t, w8, 8, __mmask8, 0xFF, _mm512_maskz_loadu_epi64, _mm512_set1_epi64, _mm512_mask_blend_epi64,
               _mm512_mask_storeu_epi64)
#define CHOOSES(S) (has_avx512() ? choose_vectors_##S : choose_##S)
#else
#define CHOOSES(S) choose_##S
#endif

typedef struct {
    const Gapped *g;
    char *out;
    int64_t line;
} Run;

/* The elements [begin, end) of the result: parts of lines. */
#define STEP(W, S)                                                                                                   \
    static void choose_step_##S(const void *context, int64_t begin, int64_t end) {                                   \
        const Run *c = context;                                                                                      \
        const Gapped *g = c->g;                                                                                      \
        const int last = g->rank - 1;                                                                                \
        while (begin < end) {                                                                                        \
            const int64_t first = begin % c->line, left = c->line - first;                                           \
            const int64_t n = left < end - begin ? left : end - begin;                                               \
            const char *from[3];                                                                                     \
            for (int j = 0; j < 3; j++) from[j] = g->memory[j] + place_in_gapped(g, j, begin / c->line, first);      \
            W *out = (W *)(void *)c->out + begin;                                                                    \
            const W *a = (const W *)(const void *)from[1], *b = (const W *)(const void *)from[2];                    \
            const int of_a = g->strides[1][last] != 0, of_b = g->strides[2][last] != 0;                              \
            if (g->strides[0][last]) {                                                                               \
                CHOOSES(S)(out, from[0], a, b, n, of_a, of_b);                                                       \
            } else { /* all of the line are of one array; others may write to the condition meanwhile */             \
                const int holds = *(const volatile char *)from[0] != 0;                                              \
                const W *chosen = holds ? a : b;                                                                     \
                if (holds ? of_a : of_b) memcpy(out, chosen, (size_t)n * sizeof(W));                                 \
                else                                                                                                 \
                    for (int64_t i = 0; i < n; i++) out[i] = *chosen;                                                \
            }                                                                                                        \
            begin += n;                                                                                              \
        }                                                                                                            \
    }
STEP(uint32_t, w4)
STEP(uint64_t, w8)

static void choose(const Gapped *g, char *out, int64_t count, Py_ssize_t itemsize, int threads) {
    const Run c = {g, out, g->shape[g->rank - 1]};
    const Args all = {NULL, NULL, NULL, threads, NULL, NULL};
    split(itemsize == 4 ? choose_step_w4 : choose_step_w8, &c, count, team(&all, count));
}

static PyObject *call_where(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    const Choosing *c = PyCapsule_GetPointer(self, CAPSULE);
    if (c == NULL) return NULL;
    if (count != 3) return PyErr_Format(PyExc_TypeError, "where() takes three arrays, got %zd arguments", count);
    const Array *arrays[3];
    Py_ssize_t sizes[3], shape[MOST_RANK];
    for (int j = 0; j < 3; j++)
        if ((arrays[j] = array_of(args[j], &sizes[j])) == NULL) return call_general(c->general, args, count);
    Gapped g;
    int rank;
    if (arrays[0]->dtype != c->boolean || arrays[1]->dtype != arrays[2]->dtype || (sizes[1] != 4 && sizes[1] != 8) ||
        !read_gapped(&g, arrays, 3, sizes, ROW_MAJOR, &rank, shape))
        return call_general(c->general, args, count);
    PyObject *out = new_or_large(arrays[1]->dtype, rank, shape, c->limit, c->large);
    Held to;
    void *memory;
    if (out == NULL || !hold(&to, out, 1, &memory)) {
        Py_XDECREF(out);
        return NULL;
    }
    int64_t all = 1;
    for (int d = 0; d < rank; d++) all *= shape[d];
    const int fits = to.buffer.len == all * sizes[1], threads = threads_of_kernels();
    if (fits && all < FEW) {
        choose(&g, memory, all, sizes[1], threads);
    } else if (fits) {
        Py_BEGIN_ALLOW_THREADS
        choose(&g, memory, all, sizes[1], threads);
        Py_END_ALLOW_THREADS
    }
    release(&to, 1);
    if (fits) return out;
    Py_DECREF(out);
    return PyErr_Format(PyExc_RuntimeError, "where(): its result has another size");
}

PyObject *make_choosing(PyObject *self, PyObject *args) {
    PyObject *general, *boolean, *large;
    Py_ssize_t limit;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOnO:choosing", &general, &boolean, &limit, &large)) return NULL;
    if (known_itemsize(boolean) != 1) return PyErr_Format(PyExc_ValueError, "choosing(): conditions are of one byte");
    PyObject *capsule;
    Choosing *c = kept_by(&capsule, sizeof *c, CAPSULE, drop);
    if (c == NULL) return NULL;
    Py_INCREF(general);
    Py_INCREF(boolean);
    Py_INCREF(large);
    *c = (Choosing){general, boolean, large, limit};
    static PyMethodDef method = {"where", (PyCFunction)(void (*)(void))call_where, METH_FASTCALL,
                                 "Elements of two arrays, chosen by a third."};
    PyObject *function = PyCFunction_NewEx(&method, capsule, NULL);
    Py_DECREF(capsule);
    return function;
}
