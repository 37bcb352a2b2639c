/* Row-major copies as functions of Python: collecting(general, large, limit, repeats) gives collected(array).  Rows may
   have gaps, lines any length and step, and elements repeat if `repeats` says so.  Of `limit` bytes and more, the result
   is large(shape, dtype); all else is for general(array), which copies what has no gaps and so many bytes. */
#include "arrays.h"
#include "binding.h"
#include "gapped.h"

#define CAPSULE "flambeau_native.collecting"

typedef struct {
    PyObject *general, *large;
    Py_ssize_t limit;
    int repeats;
} Collecting;

static void drop(PyObject *capsule) {
    Collecting *c = PyCapsule_GetPointer(capsule, CAPSULE);
    Py_XDECREF(c->general);
    Py_XDECREF(c->large);
    PyMem_Free(c);
}

static PyObject *call_collected(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    const Collecting *c = PyCapsule_GetPointer(self, CAPSULE);
    if (c == NULL) return NULL;
    if (count != 1) return PyErr_Format(PyExc_TypeError, "collected() takes an array, got %zd arguments", count);
    Py_ssize_t itemsize;
    const Array *a = array_of(args[0], &itemsize);
    Gapped g;
    int64_t bytes = 0;
    int repeats = 0;
    const int is_dense = a != NULL && is_plain(a, itemsize, 0);
    if (is_dense) bytes = length_of(a, itemsize);
    if (a == NULL || a->rank > MOST_RANK || (is_dense && bytes >= c->limit) ||
        (!is_dense && (!read_one_gapped(&g, a, itemsize, &bytes, &repeats) || repeats > c->repeats)))
        return call_general(c->general, args, count);
    PyObject *out = new_or_large(a->dtype, a->rank, a->shape, c->limit, c->large);
    Held to;
    void *memory;
    if (out == NULL || !hold(&to, out, 1, &memory)) {
        Py_XDECREF(out);
        return NULL;
    }
    const int fits = to.buffer.len == bytes, threads = threads_of_kernels();
    if (fits && is_dense) {
        memcpy(memory, a->memory, (size_t)bytes);
    } else if (fits && bytes <= SHORT_BYTES) {
        collect_gapped(&g, memory, threads);
    } else if (fits) {
        Py_BEGIN_ALLOW_THREADS
        collect_gapped(&g, memory, threads);
        Py_END_ALLOW_THREADS
    }
    release(&to, 1);
    if (fits) return out;
    Py_DECREF(out);
    return PyErr_Format(PyExc_RuntimeError, "collected(): its result has another size");
}

PyObject *make_collecting(PyObject *self, PyObject *args) {
    PyObject *general, *large;
    Py_ssize_t limit;
    int repeats;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOnp:collecting", &general, &large, &limit, &repeats)) return NULL;
    PyObject *capsule;
    Collecting *c = kept_by(&capsule, sizeof *c, CAPSULE, drop);
    if (c == NULL) return NULL;
    Py_INCREF(general);
    Py_INCREF(large);
    *c = (Collecting){general, large, limit, repeats};
    static PyMethodDef method = {"collected", (PyCFunction)(void (*)(void))call_collected, METH_FASTCALL,
                                 "A row-major copy of an array."};
    PyObject *function = PyCFunction_NewEx(&method, capsule, NULL);
    Py_DECREF(capsule);
    return function;
}
