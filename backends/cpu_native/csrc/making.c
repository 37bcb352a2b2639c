/* New arrays as functions of Python: making(large, limit, are_clear) gives made(shape, dtype), of zeros or of
   anything.  What is not a tuple of sizes and a dtype that is known, or has `limit` bytes and more, is
   large(shape, dtype). */
#include "arrays.h"
#include "binding.h"

#include <string.h>

#define CAPSULE "flambeau_native.making"

typedef struct {
    PyObject *large;
    Py_ssize_t limit;
    int are_clear;
} Making;

static void drop(PyObject *capsule) {
    Making *m = PyCapsule_GetPointer(capsule, CAPSULE);
    Py_XDECREF(m->large);
    PyMem_Free(m);
}

static PyObject *call_made(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    const Making *m = PyCapsule_GetPointer(self, CAPSULE);
    if (m == NULL) return NULL;
    if (count != 2) return PyErr_Format(PyExc_TypeError, "made() takes a shape and a dtype, got %zd arguments", count);
    Py_ssize_t sizes[MOST_RANK];
    const Py_ssize_t itemsize = known_itemsize(args[1]);
    const Py_ssize_t bytes = itemsize > 0 ? read_shape(args[0], itemsize, m->limit, sizes) : -1;
    if (bytes < 0) return PyObject_CallFunctionObjArgs(m->large, args[0], args[1], NULL);
    PyObject *made = new_array(args[1], (int)PyTuple_Size(args[0]), sizes);
    if (made != NULL && m->are_clear) memset(((Array *)made)->memory, 0, (size_t)bytes);
    return made;
}

PyObject *make_making(PyObject *self, PyObject *args) {
    PyObject *large;
    Py_ssize_t limit;
    int are_clear;
    (void)self;
    if (!PyArg_ParseTuple(args, "Onp:making", &large, &limit, &are_clear)) return NULL;
    PyObject *capsule;
    Making *m = kept_by(&capsule, sizeof *m, CAPSULE, drop);
    if (m == NULL) return NULL;
    Py_INCREF(large);
    *m = (Making){large, limit, are_clear};
    static PyMethodDef method = {"made", (PyCFunction)(void (*)(void))call_made, METH_FASTCALL,
                                 "A new array of a shape and a dtype."};
    PyObject *function = PyCFunction_NewEx(&method, capsule, NULL);
    Py_DECREF(capsule);
    return function;
}
