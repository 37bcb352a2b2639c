/* The Python module: one function per row of the kernels' tables.

   The binding is by hand, since the calls are all alike: a buffer's address costs 40 ns here, and
   300 ns through cffi, which counts for arrays of a few thousand elements.  It uses the stable ABI
   only. */
#include <Python.h>

#include "native.h"

#define MAX_ARGUMENTS 32
#define MOST_THREADS 1024

extern const Row pointwise_rows[], activation_rows[], normalization_rows[], optimizer_rows[], random_rows[],
    reduction_rows[], loss_rows[], pooling_rows[], indexing_rows[], product_rows[], sgemm_rows[],
    recurrent_rows[];
static const Row *const tables[] = {pointwise_rows, activation_rows, normalization_rows, optimizer_rows,
                                    random_rows,     reduction_rows,     loss_rows,
                                    pooling_rows,    indexing_rows,      product_rows,
                                    sgemm_rows,      recurrent_rows};

/* In a forked child the threads of the parent's pool are gone, and waiting for them would be forever:
   it has one thread, whatever is asked of it later. */
static int thread_limit = 1, is_forked = 0;

/* An array during a call.  C may not read items that lie askew in memory: a kernel then gets a copy,
   and what it writes goes back. */
typedef struct {
    Py_buffer buffer;
    void *copy;
    int is_written;
} Held;

/* No kernel reads more than eight bytes at once. */
static int is_askew(const Py_buffer *buffer) {
    uintptr_t item = (uintptr_t)buffer->itemsize, unit = item & (~item + 1);
    return buffer->len > 0 && ((uintptr_t)buffer->buf & ((unit > 8 ? 8 : unit) - 1)) != 0;
}

/* Finds the address that a kernel may use; 0 with an exception, the array then not held. */
static int hold(Held *held, PyObject *array, int is_written, void **address) {
    int flags = is_written ? PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE : PyBUF_C_CONTIGUOUS;
    Py_buffer *buffer = &held->buffer;
    if (PyObject_GetBuffer(array, buffer, flags) < 0) return 0;
    held->copy = NULL;
    held->is_written = is_written;
    *address = buffer->buf;
    if (!is_askew(buffer)) return 1;
    held->copy = PyMem_Malloc((size_t)buffer->len);
    if (held->copy == NULL) {
        PyBuffer_Release(buffer);
        PyErr_NoMemory();
        return 0;
    }
    *address = memcpy(held->copy, buffer->buf, (size_t)buffer->len);
    return 1;
}

static void release(Held *held, int count) {
    for (int i = 0; i < count; i++) {
        if (held[i].copy != NULL) {
            if (held[i].is_written) memcpy(held[i].buffer.buf, held[i].copy, (size_t)held[i].buffer.len);
            PyMem_Free(held[i].copy);
        }
        PyBuffer_Release(&held[i].buffer);
    }
}

static PyObject *call(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    const Row *row = PyCapsule_GetPointer(self, "flambeau_native.row");
    if (row == NULL) return NULL;
    Py_ssize_t wanted = (Py_ssize_t)strlen(row->arguments);
    if (count != wanted) {
        PyErr_Format(PyExc_TypeError, "%s() takes %zd arguments, got %zd", row->name, wanted, count);
        return NULL;
    }
    Held held[MAX_ARGUMENTS];
    void *pointers[MAX_ARGUMENTS];
    int64_t integers[MAX_ARGUMENTS];
    double floats[MAX_ARGUMENTS] = {0};
    int arrays = 0, ints = 0, doubles = 0, holding = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        char kind = row->arguments[i];
        if (kind == 'i') {
            long long value = PyLong_AsLongLong(args[i]);
            if (value == -1 && PyErr_Occurred()) goto failed;
            integers[ints++] = value;
        } else if (kind == 'f') {
            double value = PyFloat_AsDouble(args[i]);
            if (value == -1.0 && PyErr_Occurred()) goto failed;
            floats[doubles++] = value;
        } else if ((kind == 'o' || kind == 'W') && args[i] == Py_None) {
            pointers[arrays++] = NULL;
        } else {
            int is_written = kind == 'w' || kind == 'W';
            if (!hold(&held[holding], args[i], is_written, &pointers[arrays])) goto failed;
            holding++, arrays++;
        }
    }
    const char *error = NULL, *failure = NULL;
    Args packed = {pointers, integers, floats, thread_limit, &error, &failure};
    Py_BEGIN_ALLOW_THREADS
    row->kernel(&packed);
    Py_END_ALLOW_THREADS
    release(held, holding);
    if (error != NULL) return PyErr_Format(PyExc_IndexError, "%s(): %s", row->name, error);
    if (failure != NULL) return PyErr_Format(PyExc_RuntimeError, "%s(): %s", row->name, failure);
    Py_RETURN_NONE;
failed:
    release(held, holding);
    return NULL;
}

static PyObject *set_threads(PyObject *self, PyObject *value) {
    (void)self;
    long n = PyLong_AsLong(value);
    if (n == -1 && PyErr_Occurred()) return NULL;
    if (n < 1) {
        PyErr_SetString(PyExc_ValueError, "the number of threads must be positive");
        return NULL;
    }
    if (!is_forked) thread_limit = n < MOST_THREADS ? (int)n : MOST_THREADS;
    Py_RETURN_NONE;
}

static PyObject *get_threads(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return PyLong_FromLong(thread_limit);
}

static PyObject *after_fork(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    thread_limit = is_forked = 1;
    Py_RETURN_NONE;
}

static PyObject *tell_linear(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return PyBool_FromLong(has_linear());
}

static PyMethodDef functions[] = {
    {"has_linear", tell_linear, METH_NOARGS, "Whether the processor has the instructions of linear."},
    {"set_threads", set_threads, METH_O, "Let kernels use at most this many threads."},
    {"get_threads", get_threads, METH_NOARGS, "How many threads kernels use at most."},
    {"after_fork", after_fork, METH_NOARGS, "Be told that this process is a forked child."},
    {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "flambeau_native._native",
                                        "Compiled kernels; call them through flambeau.", -1,
                                        functions,              NULL,
                                        NULL,                   NULL,
                                        NULL};

PyMODINIT_FUNC PyInit__native(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL) return NULL;
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
        for (const Row *row = tables[t]; row->name != NULL; row++) {
            /* The definitions live as long as the process, as the functions do. */
            PyMethodDef *method = PyMem_Malloc(sizeof(PyMethodDef));
            PyObject *capsule = PyCapsule_New((void *)row, "flambeau_native.row", NULL);
            if (method == NULL || capsule == NULL) return PyErr_NoMemory();
            *method = (PyMethodDef){row->name, (PyCFunction)(void (*)(void))call, METH_FASTCALL,
                                    row->arguments};
            PyObject *function = PyCFunction_NewEx(method, capsule, NULL);
            Py_DECREF(capsule);
            if (function == NULL || PyModule_AddObject(module, row->name, function) < 0) return NULL;
        }
    }
    return module;
}
