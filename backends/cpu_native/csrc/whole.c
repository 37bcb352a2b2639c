/* Kernels of elements as functions of their arguments alone: whole(general, cases, limit, large) makes one that makes its result itself, which takes a third of the time of small arrays.

   A case is (dtype, kernel): a row of a result, of one or two arrays of as many elements, their number, and
   floats.  What is not read where it lies, has another dtype, gaps or another shape goes
   to general(arguments).  Results of `limit` bytes and more are large(first array), which comes
   from a pool. */
#include "arrays.h"
#include "binding.h"

#define CAPSULE "flambeau_native.whole"
#define MAX_CASES 4
#define MOST_READ 2
#define FEW 512 /* elements, so soon done that nobody else is let in meanwhile */

typedef struct {
    PyObject *dtype;
    const Entry *entry;
} Case;

typedef struct {
    PyObject *general, *large;
    long long limit;
    int cases, reads, floats;
    Case of[MAX_CASES];
} Whole;

static void drop(PyObject *capsule) {
    Whole *w = PyCapsule_GetPointer(capsule, CAPSULE);
    Py_XDECREF(w->general);
    Py_XDECREF(w->large);
    for (int i = 0; i < w->cases; i++) Py_DECREF(w->of[i].dtype);
    PyMem_Free(w);
}

/* The case of the arrays, which are read where they lie, or NULL. */
static const Case *case_of(const Whole *w, PyObject *const *args, const Array **arrays, Py_ssize_t *itemsize) {
    for (int j = 0; j < w->reads; j++) {
        const Array *a = arrays[j] = array_of(args[j], itemsize), *first = arrays[0];
        if (a == NULL || !is_plain(a, *itemsize, 0)) return NULL;
        if (a->dtype != first->dtype || a->rank != first->rank) return NULL;
        for (int d = 0; d < a->rank; d++)
            if (a->shape[d] != first->shape[d]) return NULL;
    }
    for (int i = 0; i < w->cases; i++)
        if (w->of[i].dtype == arrays[0]->dtype) return &w->of[i];
    return NULL;
}

/* Runs the kernel of an entry for arrays of one shape into `out`, which becomes NULL with an exception if that fails. */
static void run(const Entry *entry, const Array *const *arrays, int reads, Py_ssize_t length, Py_ssize_t itemsize,
                const double *floats, PyObject **out) {
    const char *error = NULL, *failure = NULL;
    void *pointers[1 + MOST_READ];
    Py_ssize_t lengths[1 + MOST_READ];
    const int64_t size[] = {length / itemsize};
    int is_empty, is_done = 0;
    Held to;
    if (hold(&to, *out, 1, &pointers[0])) {
        lengths[0] = to.buffer.len;
        for (int j = 0; j < reads; j++) {
            pointers[1 + j] = arrays[j]->memory;
            lengths[1 + j] = length;
        }
        is_done = are_long(entry, lengths, size, &is_empty);
        if (is_done && !is_empty) {
            const Args packed = {pointers, size, floats, threads_of_kernels(), &error, &failure};
            if (size[0] < FEW) {
                entry->row->kernel(&packed);
            } else {
                Py_BEGIN_ALLOW_THREADS
                entry->row->kernel(&packed);
                Py_END_ALLOW_THREADS
            }
        }
        release(&to, 1);
    }
    if (error != NULL || failure != NULL) {
        PyErr_Format(PyExc_RuntimeError, "%s(): %s", entry->row->name, error != NULL ? error : failure);
        is_done = 0;
    }
    if (!is_done) {
        Py_XDECREF(*out);
        *out = NULL;
    }
}

static PyObject *call_whole(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    const Whole *w = PyCapsule_GetPointer(self, CAPSULE);
    if (w == NULL) return NULL;
    const Array *arrays[MOST_READ];
    Py_ssize_t itemsize;
    double floats[MAX_ARGUMENTS] = {0};
    const Case *of = count == w->reads + w->floats ? case_of(w, args, arrays, &itemsize) : NULL;
    for (int j = 0; of != NULL && j < w->floats; j++) {
        floats[j] = PyFloat_AsDouble(args[w->reads + j]);
        if (floats[j] == -1.0 && PyErr_Occurred()) {
            PyErr_Clear();
            of = NULL;
        }
    }
    if (of == NULL) return call_general(w->general, args, count);
    const Py_ssize_t length = length_of(arrays[0], itemsize);
    PyObject *out = length < w->limit ? new_array(of->dtype, arrays[0]->rank, arrays[0]->shape)
                                      : PyObject_CallFunctionObjArgs(w->large, args[0], NULL);
    if (out != NULL) run(of->entry, arrays, w->reads, length, itemsize, floats, &out);
    return out;
}

/* Whether a row is one that can be called so, as those before it; an exception is set if not. */
static int is_of_elements(Whole *w, const Entry *entry) {
    const char *kinds = entry->row->arguments;
    int reads = 0, floats = 0, sound = *kinds++ == 'w';
    while (*kinds == 'r') reads++, kinds++;
    sound = sound && *kinds++ == 'i';
    while (sound && *kinds == 'f') floats++, kinds++;
    sound = sound && *kinds == 0 && reads >= 1 && reads <= MOST_READ;
    sound = sound && (w->cases == 0 || (reads == w->reads && floats == w->floats));
    for (int j = 0; sound && j < entry->arrays; j++) { /* one item for each element */
        const Extent *e = &entry->extents[j];
        sound = e->count == 1 && e->factors[0].how == 0;
    }
    w->reads = reads, w->floats = floats;
    if (!sound) PyErr_Format(PyExc_ValueError, "whole(): %s is no kernel of elements", entry->row->name);
    return sound;
}

static int read_case(Whole *w, PyObject *given) {
    PyObject *dtype, *function;
    if (w->cases == MAX_CASES || !PyTuple_Check(given)) {
        PyErr_SetString(PyExc_ValueError, "whole(): its cases are at most four pairs");
        return 0;
    }
    if (!PyArg_ParseTuple(given, "OO", &dtype, &function)) return 0;
    const Entry *entry = entry_of(function, "whole");
    if (entry == NULL || !is_of_elements(w, entry)) return 0;
    Py_INCREF(dtype);
    w->of[w->cases++] = (Case){dtype, entry};
    return 1;
}

PyObject *make_whole(PyObject *self, PyObject *args) {
    PyObject *general, *cases, *large;
    long long limit;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO!LO:whole", &general, &PyTuple_Type, &cases, &limit, &large))
        return NULL;
    if (PyTuple_Size(cases) < 1)
        return PyErr_Format(PyExc_ValueError, "whole(): it needs a case");
    PyObject *capsule;
    Whole *w = kept_by(&capsule, sizeof *w, CAPSULE, drop);
    if (w == NULL) return NULL;
    w->general = general, w->large = large;
    Py_INCREF(general);
    Py_INCREF(large);
    w->limit = limit;
    PyObject *function = NULL;
    static PyMethodDef method = {"whole", (PyCFunction)(void (*)(void))call_whole, METH_FASTCALL,
                                 "A kernel of elements; it makes its result."};
    Py_ssize_t i = 0;
    while (i < PyTuple_Size(cases) && read_case(w, PyTuple_GetItem(cases, i))) i++;
    if (i == PyTuple_Size(cases)) function = PyCFunction_NewEx(&method, capsule, NULL);
    Py_DECREF(capsule);
    return function;
}
