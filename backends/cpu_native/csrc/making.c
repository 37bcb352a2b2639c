/* New arrays as functions of Python: making(general, large, limit, clear) gives made(shape, dtype), of anything or,
   with the kernel that clears memory, of zeros.  What is not a tuple of sizes and a dtype that is known is
   general(shape, dtype); of `limit` bytes and more, large(shape, dtype) makes it, if no pool is shared. */
#include "arrays.h"
#include "binding.h"

#include <string.h>

#define CAPSULE "flambeau_native.making"

typedef struct {
    PyObject *general, *large;
    Py_ssize_t limit;
    const Entry *clear; /* or NULL */
} Making;

static void drop(PyObject *capsule) {
    Making *m = PyCapsule_GetPointer(capsule, CAPSULE);
    Py_XDECREF(m->general);
    Py_XDECREF(m->large);
    PyMem_Free(m);
}

/* Clears a new array, by threads if that is worth it; 0 with an exception. */
static int clear_all(const Entry *clear, PyObject *made) {
    Held to;
    void *pointers[1];
    const char *error = NULL, *failure = NULL;
    if (!hold(&to, made, 1, &pointers[0])) return 0;
    const int64_t sizes[] = {to.buffer.len};
    const Args packed = {pointers, sizes, NULL, threads_of_kernels(), &error, &failure};
    Py_BEGIN_ALLOW_THREADS
    clear->row->kernel(&packed);
    Py_END_ALLOW_THREADS
    release(&to, 1);
    return 1;
}

static PyObject *call_made(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    const Making *m = PyCapsule_GetPointer(self, CAPSULE);
    if (m == NULL) return NULL;
    if (count != 2) return PyErr_Format(PyExc_TypeError, "made() takes a shape and a dtype, got %zd arguments", count);
    Py_ssize_t sizes[MOST_RANK];
    const Py_ssize_t itemsize = known_itemsize(args[1]);
    const Py_ssize_t bytes = itemsize > 0 ? read_shape(args[0], itemsize, PY_SSIZE_T_MAX, sizes) : -1;
    if (bytes < 0) return PyObject_CallFunctionObjArgs(m->general, args[0], args[1], NULL);
    PyObject *made = new_or_large(args[1], (int)PyTuple_Size(args[0]), sizes, m->limit, m->large);
    if (made == NULL || m->clear == NULL) return made;
    if (bytes < m->limit) memset(((Array *)made)->memory, 0, (size_t)bytes);
    else if (!clear_all(m->clear, made)) Py_CLEAR(made);
    return made;
}

PyObject *make_making(PyObject *self, PyObject *args) {
    PyObject *general, *large, *clear;
    Py_ssize_t limit;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOnO:making", &general, &large, &limit, &clear)) return NULL;
    const Entry *entry = clear == Py_None ? NULL : entry_of(clear, "making");
    if (clear != Py_None && entry == NULL) return NULL;
    if (entry != NULL && strcmp(entry->row->name, "clear") != 0)
        return PyErr_Format(PyExc_ValueError, "making(): %s does not clear memory", entry->row->name);
    PyObject *capsule;
    Making *m = kept_by(&capsule, sizeof *m, CAPSULE, drop);
    if (m == NULL) return NULL;
    Py_INCREF(general);
    Py_INCREF(large);
    *m = (Making){general, large, limit, entry};
    static PyMethodDef method = {"made", (PyCFunction)(void (*)(void))call_made, METH_FASTCALL,
                                 "A new array of a shape and a dtype."};
    PyObject *function = PyCFunction_NewEx(&method, capsule, NULL);
    Py_DECREF(capsule);
    return function;
}
