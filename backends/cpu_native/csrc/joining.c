/* Several arrays as one: joining(general, is_new, limit, large, most) gives joined(arrays, dim), along a dimension that
   they have or, where it is new, along one before it.  Results of `limit` bytes and more are large(shape, dtype).
   Arrays that are not row-major, of one known dtype and alike but for that dimension, are for general(arrays, dim), and
   so are results of `limit` bytes and more where there are threads to share the work, and of `most` and more. */
#include "arrays.h"
#include "binding.h"

#define CAPSULE "flambeau_native.joining"
#define MOST_JOINED 64

typedef struct {
    PyObject *general, *large;
    Py_ssize_t limit, most;
    int is_new;
} Joining;

static void drop(PyObject *capsule) {
    Joining *j = PyCapsule_GetPointer(capsule, CAPSULE);
    Py_XDECREF(j->general);
    Py_XDECREF(j->large);
    PyMem_Free(j);
}

/* Arrays to be joined: each of `rows` pieces, of so many bytes. */
typedef struct {
    const Array *array[MOST_JOINED];
    Py_ssize_t piece[MOST_JOINED];
    Py_ssize_t count, rows, bytes, sizes[MOST_RANK + 1];
    int rank;
} Joined;

/* Whether all are as they should be, and what is made of them. */
static int see(const Joining *j, PyObject *arrays, PyObject *along, Joined *found) {
    const int is_list = PyList_Check(arrays);
    if (!is_list && !PyTuple_Check(arrays)) return 0;
    const Py_ssize_t dim = PyLong_AsSsize_t(along);
    if (dim < 0) PyErr_Clear();
    found->count = is_list ? PyList_Size(arrays) : PyTuple_Size(arrays);
    if (dim < 0 || found->count < 1 || found->count > MOST_JOINED) return 0;
    const Py_ssize_t most = threads_of_kernels() > 1 ? j->limit : j->most;
    Py_ssize_t itemsize;
    found->bytes = 0;
    for (Py_ssize_t i = 0; i < found->count; i++) {
        PyObject *given = is_list ? PyList_GetItem(arrays, i) : PyTuple_GetItem(arrays, i);
        const Array *a = found->array[i] = array_of(given, &itemsize), *first = found->array[0];
        if (a == NULL || !is_plain(a, itemsize, 0) || a->dtype != first->dtype || a->rank != first->rank) return 0;
        if (a->rank > MOST_RANK - 1 || dim >= a->rank + j->is_new) return 0;
        found->piece[i] = itemsize;
        for (int d = 0; d < a->rank; d++) {
            if (a->shape[d] != first->shape[d] && (j->is_new || d != dim)) return 0;
            if (d >= dim) found->piece[i] *= a->shape[d];
        }
        found->bytes += length_of(a, itemsize);
        if (found->bytes >= most) return 0;
    }
    if (found->bytes == 0) return 0; /* how many there are of nothing may be more than can be counted */
    const Array *first = found->array[0];
    Py_ssize_t total = 0;
    for (Py_ssize_t i = 0; i < found->count; i++) total += j->is_new ? 1 : found->array[i]->shape[dim];
    found->rank = first->rank + j->is_new;
    found->rows = 1;
    for (int d = 0; d < found->rank; d++) {
        const int own = j->is_new && d > dim ? d - 1 : d;
        found->sizes[d] = d == dim ? total : first->shape[own];
        if (d < dim) found->rows *= found->sizes[d];
    }
    return 1;
}

static void copy_all(const Joined *found, char *out) {
    for (Py_ssize_t row = 0; row < found->rows; row++) {
        for (Py_ssize_t i = 0; i < found->count; i++) {
            memcpy(out, found->array[i]->memory + row * found->piece[i], (size_t)found->piece[i]);
            out += found->piece[i];
        }
    }
}

static PyObject *call_joined(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    const Joining *j = PyCapsule_GetPointer(self, CAPSULE);
    if (j == NULL) return NULL;
    Joined found;
    if (count != 2 || !see(j, args[0], args[1], &found)) return call_general(j->general, args, count);
    /* A list may be changed meanwhile, by who runs beside or cleans up: its arrays must not go. */
    for (Py_ssize_t i = 0; i < found.count; i++) Py_INCREF((PyObject *)(uintptr_t)found.array[i]);
    PyObject *made = new_or_large(found.array[0]->dtype, found.rank, found.sizes, j->limit, j->large);
    Held to;
    void *out;
    if (made != NULL && !hold(&to, made, 1, &out)) Py_CLEAR(made);
    if (made != NULL && to.buffer.len == found.bytes) {
        if (found.bytes <= SHORT_BYTES) {
            copy_all(&found, out);
        } else {
            Py_BEGIN_ALLOW_THREADS
            copy_all(&found, out);
            Py_END_ALLOW_THREADS
        }
        release(&to, 1);
    } else if (made != NULL) {
        PyErr_Format(PyExc_RuntimeError, "joined(): its result has %zd bytes, not %zd", to.buffer.len, found.bytes);
        release(&to, 1);
        Py_CLEAR(made);
    }
    for (Py_ssize_t i = 0; i < found.count; i++) Py_DECREF((PyObject *)(uintptr_t)found.array[i]);
    return made;
}

PyObject *make_joining(PyObject *self, PyObject *args) {
    PyObject *general, *large;
    Py_ssize_t limit, most;
    int is_new;
    (void)self;
    if (!PyArg_ParseTuple(args, "OpnOn:joining", &general, &is_new, &limit, &large, &most)) return NULL;
    PyObject *capsule;
    Joining *j = kept_by(&capsule, sizeof *j, CAPSULE, drop);
    if (j == NULL) return NULL;
    Py_INCREF(general);
    Py_INCREF(large);
    *j = (Joining){general, large, limit, most, is_new};
    static PyMethodDef method = {"joined", (PyCFunction)(void (*)(void))call_joined, METH_FASTCALL,
                                 "Several arrays as one."};
    PyObject *function = PyCFunction_NewEx(&method, capsule, NULL);
    Py_DECREF(capsule);
    return function;
}
