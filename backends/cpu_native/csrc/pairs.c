/* Products of two matrices of few numbers, or of two batches of as many: pairing(dtype, few, most, kernel, limit, large)
   gives paired(a, b), which is a @ b, or None of what is no such pair of float32, stored row by row or column by column,
   with less than `most` multiplications for each matrix; batches have `few` at least.  What a library does first takes
   longer than most of these.  Results of `limit` bytes and more are large(shape, dtype). */
#include "arrays.h"
#include "binding.h"

#define CAPSULE "flambeau_native.pairing"
#define LANES 16
#define EMPTY_LANES (1 << 16) /* multiplications, with those of empty lanes, of which many lanes may be empty */
#define SHORT (1 << 16)       /* multiplications that take less time than giving up the interpreter's lock */
#define PART (1 << 20)        /* multiplications per thread below which a second is not worth waking */

typedef struct {
    PyObject *dtype, *large;
    int64_t few, most;
    Py_ssize_t limit;
    const Entry *entry;
} Pairing;

static void drop(PyObject *capsule) {
    Pairing *p = PyCapsule_GetPointer(capsule, CAPSULE);
    Py_XDECREF(p->dtype);
    Py_XDECREF(p->large);
    PyMem_Free(p);
}

/* Whether an array is of matrices of that dtype without gaps; and whether each is stored column by column. */
static int are_matrices(const Array *a, const PyObject *dtype, int64_t *are_turned) {
    if (a == NULL || a->dtype != dtype || a->rank < 2 || ((uintptr_t)a->memory & (sizeof(float) - 1)) != 0) return 0;
    *are_turned = !is_plain(a, sizeof(float), 0);
    if (!*are_turned) return 1;
    const int column = a->rank - 1, row = column - 1;
    if (a->strides[row] != sizeof(float) || a->strides[column] != a->shape[row] * (Py_ssize_t)sizeof(float)) return 0;
    Py_ssize_t step = a->strides[column] * a->shape[column];
    for (int d = row - 1; d >= 0; step *= a->shape[d--])
        if (a->strides[d] != step) return 0;
    return 1;
}

/* Vectors and what has nothing are others', and so are results whose last lanes would be mostly empty. */
static int is_small(int64_t rows, int64_t columns, int64_t depth, int64_t most) {
    if (rows < 2 || columns < 2 || depth < 2) return 0;
    const int64_t all = (columns + LANES - 1) / LANES * LANES;
    int64_t work, with_empty;
    if (__builtin_mul_overflow(rows, depth, &work) || __builtin_mul_overflow(work, all, &with_empty)) return 0;
    return work * columns < most && (with_empty <= EMPTY_LANES || 4 * columns >= 3 * all);
}

/* A library need not turn the weight of a layer of few rows, which takes longer than their product: `_suits` of
   linalg.py says the same. */
static int is_better_unturned(int64_t rows, int64_t size) { return size > 1 << 14 && rows < (size < 1 << 16 ? 8 : 16); }

/* How many matrices both have; 0 of batches of other shapes. */
static int64_t count_of(const Array *a, const Array *b) {
    int64_t count = 1;
    if (a->rank != b->rank || a->rank > MOST_RANK) return 0;
    for (int d = 0; d < a->rank - 2; d++) {
        if (a->shape[d] != b->shape[d]) return 0;
        count *= a->shape[d];
    }
    return count;
}

typedef struct {
    const Entry *entry;
    const int64_t *sizes;
    char *out, *a, *b;
    int threads; /* of one product */
} Batch;

/* Multiplies one matrix of both after the other. */
static void multiply(const void *context, int64_t begin, int64_t end) {
    const Batch *c = context;
    const int64_t rows = c->sizes[0], columns = c->sizes[1], depth = c->sizes[2], size = sizeof(float);
    const char *error = NULL, *failure = NULL;
    for (int64_t i = begin; i < end; i++) {
        void *pointers[] = {c->out + i * rows * columns * size, c->a + i * rows * depth * size,
                            c->b + i * depth * columns * size, NULL};
        const Args packed = {pointers, c->sizes, NULL, c->threads, &error, &failure};
        c->entry->row->kernel(&packed);
    }
}

static PyObject *call_paired(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    const Pairing *p = PyCapsule_GetPointer(self, CAPSULE);
    if (p == NULL) return NULL;
    if (given != 2) return PyErr_Format(PyExc_TypeError, "paired() takes two arrays, got %zd arguments", given);
    Py_ssize_t itemsize;
    const Array *a = array_of(args[0], &itemsize), *b = array_of(args[1], &itemsize);
    int64_t a_turned, b_turned;
    if (!are_matrices(a, p->dtype, &a_turned) || !are_matrices(b, p->dtype, &b_turned)) Py_RETURN_NONE;
    const int64_t count = count_of(a, b);
    const int64_t rows = a->shape[a->rank - 2], depth = a->shape[a->rank - 1], columns = b->shape[b->rank - 1];
    if (count < 1 || b->shape[b->rank - 2] != depth || !is_small(rows, columns, depth, p->most)) Py_RETURN_NONE;
    if (b_turned && !a_turned && is_better_unturned(rows, depth * columns)) Py_RETURN_NONE;
    const int64_t work = rows * columns * depth, bytes = count * rows * columns * (int64_t)sizeof(float);
    if (a->rank > 2 && work < p->few) Py_RETURN_NONE;
    Py_ssize_t shape[MOST_RANK];
    memcpy(shape, a->shape, (size_t)a->rank * sizeof *shape);
    shape[a->rank - 1] = (Py_ssize_t)columns;
    PyObject *made = new_or_large(p->dtype, a->rank, shape, p->limit, p->large);
    Held to;
    void *out;
    if (made == NULL || !hold(&to, made, 1, &out)) {
        Py_XDECREF(made);
        return NULL;
    }
    const int64_t sizes[] = {rows, columns, depth, a_turned, b_turned, 0};
    const Batch batch = {p->entry, sizes, out, a->memory, b->memory, count == 1 ? threads_of_kernels() : 1};
    if (to.buffer.len != bytes) {
        PyErr_Format(PyExc_RuntimeError, "paired(): its result has %zd bytes, not %lld", to.buffer.len, (long long)bytes);
        Py_CLEAR(made);
    } else if (work <= SHORT / count) {
        multiply(&batch, 0, count);
    } else {
        const int64_t most = threads_of_kernels(), useful = work * (count / 4 + 1) / (PART / 4);
        const int64_t threads = useful < 1 ? 1 : useful < most ? useful : most;
        Py_BEGIN_ALLOW_THREADS
        split(multiply, &batch, count, (int)(threads < count ? threads : count));
        Py_END_ALLOW_THREADS
    }
    release(&to, 1);
    return made;
}

PyObject *make_pairing(PyObject *self, PyObject *args) {
    PyObject *dtype, *kernel, *large;
    long long few, most;
    Py_ssize_t limit;
    (void)self;
    if (!PyArg_ParseTuple(args, "OLLOnO:pairing", &dtype, &few, &most, &kernel, &limit, &large)) return NULL;
    const Entry *entry = entry_of(kernel, "pairing");
    if (entry == NULL) return NULL;
    if (strcmp(entry->row->name, "matrices") != 0)
        return PyErr_Format(PyExc_ValueError, "pairing(): %s multiplies no matrices", entry->row->name);
    PyObject *capsule;
    Pairing *p = kept_by(&capsule, sizeof *p, CAPSULE, drop);
    if (p == NULL) return NULL;
    Py_INCREF(dtype);
    Py_INCREF(large);
    *p = (Pairing){dtype, large, few, most, limit, entry};
    static PyMethodDef method = {"paired", (PyCFunction)(void (*)(void))call_paired, METH_FASTCALL,
                                 "The product of two matrices of few numbers, or None."};
    PyObject *function = PyCFunction_NewEx(&method, capsule, NULL);
    Py_DECREF(capsule);
    return function;
}
