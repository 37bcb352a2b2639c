/* Products of two matrices of few numbers: pairing(dtype, most, kernel, limit, large) gives paired(a, b), which is
   a @ b, or None of what is no pair of float32 matrices, stored row by row or column by column, with less than `most`
   multiplications.  What a library does first takes longer than most of these.  Results of `limit` bytes and more
   are large(shape, dtype). */
#include "arrays.h"
#include "binding.h"

#define CAPSULE "flambeau_native.pairing"
#define LANES 16
#define EMPTY_LANES (1 << 16) /* multiplications, with those of empty lanes, of which many lanes may be empty */
#define SHORT (1 << 16)       /* multiplications that take less time than giving up the interpreter's lock */
#define COLUMN_MAJOR 0x2

typedef struct {
    PyObject *dtype, *large;
    int64_t most;
    Py_ssize_t limit;
    const Entry *entry;
} Pairing;

static void drop(PyObject *capsule) {
    Pairing *p = PyCapsule_GetPointer(capsule, CAPSULE);
    Py_XDECREF(p->dtype);
    Py_XDECREF(p->large);
    PyMem_Free(p);
}

/* Whether an array is a matrix of that dtype without gaps; and whether it is stored column by column. */
static int is_matrix(const Array *a, const PyObject *dtype, int64_t *is_turned) {
    if (a == NULL || a->dtype != dtype || a->rank != 2 || ((uintptr_t)a->memory & (sizeof(float) - 1)) != 0) return 0;
    *is_turned = !is_plain(a, sizeof(float), 0);
    return !*is_turned || (a->flags & COLUMN_MAJOR) != 0;
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

static PyObject *new_result(const Pairing *p, Py_ssize_t rows, Py_ssize_t columns) {
    const Py_ssize_t shape[] = {rows, columns};
    if (rows * columns * (Py_ssize_t)sizeof(float) < p->limit) return new_array(p->dtype, 2, shape);
    PyObject *given = Py_BuildValue("(nn)", rows, columns);
    PyObject *made = given == NULL ? NULL : PyObject_CallFunctionObjArgs(p->large, given, p->dtype, NULL);
    Py_XDECREF(given);
    return made;
}

static PyObject *call_paired(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    const Pairing *p = PyCapsule_GetPointer(self, CAPSULE);
    if (p == NULL) return NULL;
    if (count != 2) return PyErr_Format(PyExc_TypeError, "paired() takes two arrays, got %zd arguments", count);
    Py_ssize_t itemsize;
    const Array *a = array_of(args[0], &itemsize), *b = array_of(args[1], &itemsize);
    int64_t a_turned, b_turned;
    if (!is_matrix(a, p->dtype, &a_turned) || !is_matrix(b, p->dtype, &b_turned)) Py_RETURN_NONE;
    const int64_t rows = a->shape[0], depth = a->shape[1], columns = b->shape[1];
    if (b->shape[0] != depth || !is_small(rows, columns, depth, p->most)) Py_RETURN_NONE;
    if (b_turned && !a_turned && is_better_unturned(rows, depth * columns)) Py_RETURN_NONE;
    PyObject *made = new_result(p, (Py_ssize_t)rows, (Py_ssize_t)columns);
    if (made == NULL) return NULL;
    Held to;
    void *pointers[] = {NULL, a->memory, b->memory, NULL};
    if (!hold(&to, made, 1, &pointers[0])) {
        Py_DECREF(made);
        return NULL;
    }
    const int64_t sizes[] = {rows, columns, depth, a_turned, b_turned, 0};
    const Py_ssize_t lengths[] = {to.buffer.len, length_of(a, sizeof(float)), length_of(b, sizeof(float)), -1};
    const char *error = NULL, *failure = NULL;
    const Args packed = {pointers, sizes, NULL, threads_of_kernels(), &error, &failure};
    int is_empty;
    if (!are_long(p->entry, lengths, sizes, &is_empty)) {
        Py_DECREF(made);
        made = NULL;
    } else if (rows * columns * depth <= SHORT) {
        p->entry->row->kernel(&packed);
    } else {
        Py_BEGIN_ALLOW_THREADS
        p->entry->row->kernel(&packed);
        Py_END_ALLOW_THREADS
    }
    release(&to, 1);
    return made;
}

PyObject *make_pairing(PyObject *self, PyObject *args) {
    PyObject *dtype, *kernel, *large;
    long long most;
    Py_ssize_t limit;
    (void)self;
    if (!PyArg_ParseTuple(args, "OLOnO:pairing", &dtype, &most, &kernel, &limit, &large)) return NULL;
    const Entry *entry = entry_of(kernel, "pairing");
    if (entry == NULL) return NULL;
    if (strcmp(entry->row->name, "matrices") != 0)
        return PyErr_Format(PyExc_ValueError, "pairing(): %s multiplies no matrices", entry->row->name);
    PyObject *capsule;
    Pairing *p = kept_by(&capsule, sizeof *p, CAPSULE, drop);
    if (p == NULL) return NULL;
    Py_INCREF(dtype);
    Py_INCREF(large);
    *p = (Pairing){dtype, large, most, limit, entry};
    static PyMethodDef method = {"paired", (PyCFunction)(void (*)(void))call_paired, METH_FASTCALL,
                                 "The product of two matrices of few numbers, or None."};
    PyObject *function = PyCFunction_NewEx(&method, capsule, NULL);
    Py_DECREF(capsule);
    return function;
}
