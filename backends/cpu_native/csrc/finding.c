/* Results whose sizes values decide, made in one call: finding(general, cases, dtype, large, limit) gives nonzero(array),
   where elements are not zero, and repeating(kernel, dtype, large, limit) gives repeated(counts), each place as often as
   its count says.

   A case is (dtype, count, find): rows that count elements and that find them.  What is no vector or matrix without gaps
   of such a dtype goes to general(array); of counts that are no vector of int64, are negative or too many, repeated() says
   None.  `dtype` is int64, and results of `limit` bytes and more are large(shape, dtype). */
#include "arrays.h"
#include "binding.h"

#define FINDING "flambeau_native.finding"
#define REPEATING "flambeau_native.repeating"
#define MAX_CASES 8

typedef struct {
    PyObject *dtype, *large;
    Py_ssize_t limit;
} Places;

typedef struct {
    PyObject *dtype;
    Kernel count, find;
} Case;

typedef struct {
    PyObject *general;
    Places places;
    int cases;
    Case of[MAX_CASES];
} Finding;

typedef struct {
    Places places;
    Kernel repeat;
} Repeating;

static void run(Kernel kernel, const Args *args, Py_ssize_t bytes) {
    if (bytes <= SHORT_BYTES) {
        kernel(args);
        return;
    }
    Py_BEGIN_ALLOW_THREADS
    kernel(args);
    Py_END_ALLOW_THREADS
}

/* A new array of places, to be released with its memory held; NULL with an exception if there is none. */
static PyObject *new_places(const Places *p, int rank, const Py_ssize_t *shape, Held *to, void **memory) {
    PyObject *out = new_or_large(p->dtype, rank, shape, p->limit, p->large);
    Py_ssize_t bytes = sizeof(int64_t);
    for (int d = 0; d < rank; d++) bytes *= shape[d];
    if (out == NULL || !hold(to, out, 1, memory)) {
        Py_XDECREF(out);
        return NULL;
    }
    if (to->buffer.len == bytes) return out;
    release(to, 1);
    Py_DECREF(out);
    return PyErr_Format(PyExc_RuntimeError, "nonzero(): its result has another size");
}

static PyObject *call_nonzero(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    const Finding *f = PyCapsule_GetPointer(self, FINDING);
    if (f == NULL) return NULL;
    if (given != 1) return PyErr_Format(PyExc_TypeError, "nonzero() takes an array, got %zd arguments", given);
    Py_ssize_t itemsize;
    const Array *a = array_of(args[0], &itemsize);
    const Case *of = NULL;
    for (int i = 0; a != NULL && i < f->cases; i++)
        if (f->of[i].dtype == a->dtype) of = &f->of[i];
    if (of == NULL || a->rank < 1 || a->rank > 2 || !is_plain(a, itemsize, 0)) return call_general(f->general, args, given);
    const Py_ssize_t bytes = length_of(a, itemsize), width = a->shape[a->rank - 1];
    if (bytes == 0) return call_general(f->general, args, given);
    void *memory = a->memory;
    int64_t count = 0;
    const int64_t all[] = {1, bytes / itemsize, 1};
    void *counted[] = {&count, memory};
    const char *error = NULL, *failure = NULL;
    const Args counting = {counted, all, NULL, threads_of_kernels(), &error, &failure};
    const int is_vector = a->rank == 1;
    run(of->count, &counting, bytes);
    const Py_ssize_t shape[] = {is_vector ? count : 2, is_vector ? 1 : count};
    Held to;
    void *places;
    PyObject *out = new_places(&f->places, 2, shape, &to, &places);
    if (out == NULL) return NULL;
    const int64_t sizes[] = {count, all[1] / width, width};
    void *found[] = {is_vector ? NULL : places, is_vector ? places : (int64_t *)places + count, memory};
    const Args finding = {found, sizes, NULL, 1, &error, &failure};
    run(of->find, &finding, bytes);
    release(&to, 1);
    if (is_vector) return out;
    PyObject *turned = PyObject_GetAttrString(out, "T");
    Py_DECREF(out);
    return turned;
}

static PyObject *call_repeated(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    const Repeating *r = PyCapsule_GetPointer(self, REPEATING);
    if (r == NULL) return NULL;
    if (given != 1) return PyErr_Format(PyExc_TypeError, "repeated() takes an array, got %zd arguments", given);
    Py_ssize_t itemsize;
    const Array *a = array_of(args[0], &itemsize);
    if (a == NULL || a->dtype != r->places.dtype || a->rank != 1 || !is_plain(a, itemsize, 0)) Py_RETURN_NONE;
    const int64_t n = a->shape[0], most = PY_SSIZE_T_MAX / (int64_t)sizeof(int64_t);
    void *memory = a->memory;
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t count = place_of((const int64_t *)memory + i);
        if (count > (uint64_t)(most - total)) Py_RETURN_NONE;
        total += (int64_t)count;
    }
    const Py_ssize_t shape[] = {total};
    Held to;
    void *places;
    PyObject *out = new_places(&r->places, 1, shape, &to, &places);
    if (out == NULL) return NULL;
    const int64_t sizes[] = {total, n};
    void *arrays[] = {places, memory};
    const char *error = NULL, *failure = NULL;
    const Args repeating = {arrays, sizes, NULL, 1, &error, &failure};
    run(r->repeat, &repeating, (total + n) * (Py_ssize_t)sizeof(int64_t));
    release(&to, 1);
    if (error == NULL) return out;
    Py_DECREF(out);
    return PyErr_Format(PyExc_IndexError, "repeated(): %s", error);
}

/* What is made of all this lives as long as the process. */
static Places places_of(PyObject *dtype, PyObject *large, Py_ssize_t limit) {
    Py_INCREF(dtype);
    Py_INCREF(large);
    return (Places){dtype, large, limit};
}

PyObject *make_finding(PyObject *self, PyObject *args) {
    PyObject *general, *cases, *dtype, *large;
    Py_ssize_t limit;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO!OOn:finding", &general, &PyTuple_Type, &cases, &dtype, &large, &limit)) return NULL;
    Finding made = {.general = general};
    for (Py_ssize_t i = 0; i < PyTuple_Size(cases); i++) {
        PyObject *of, *count, *find;
        const Entry *counts, *finds;
        if (i == MAX_CASES) return PyErr_Format(PyExc_ValueError, "finding(): too many cases");
        if (!PyArg_ParseTuple(PyTuple_GetItem(cases, i), "OOO", &of, &count, &find)) return NULL;
        if ((counts = entry_of(count, "finding")) == NULL || (finds = entry_of(find, "finding")) == NULL) return NULL;
        if (strcmp(counts->row->arguments, "wriii") != 0 || strcmp(finds->row->arguments, "Wwriii") != 0)
            return PyErr_Format(PyExc_TypeError, "finding(): a case has other kernels");
        made.of[made.cases++] = (Case){of, counts->row->kernel, finds->row->kernel};
    }
    PyObject *capsule;
    Finding *f = kept_by(&capsule, sizeof *f, FINDING, NULL);
    if (f == NULL) return NULL;
    for (int i = 0; i < made.cases; i++) Py_INCREF(made.of[i].dtype);
    Py_INCREF(general);
    made.places = places_of(dtype, large, limit);
    *f = made;
    static PyMethodDef method = {"nonzero", (PyCFunction)(void (*)(void))call_nonzero, METH_FASTCALL,
                                 "Where elements are not zero."};
    PyObject *function = PyCFunction_NewEx(&method, capsule, NULL);
    Py_DECREF(capsule);
    return function;
}

PyObject *make_repeating(PyObject *self, PyObject *args) {
    PyObject *kernel, *dtype, *large, *capsule;
    Py_ssize_t limit;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOn:repeating", &kernel, &dtype, &large, &limit)) return NULL;
    const Entry *entry = entry_of(kernel, "repeating");
    if (entry == NULL) return NULL;
    if (strcmp(entry->row->arguments, "wrii") != 0) return PyErr_Format(PyExc_TypeError, "repeating(): another kernel");
    Repeating *r = kept_by(&capsule, sizeof *r, REPEATING, NULL);
    if (r == NULL) return NULL;
    *r = (Repeating){places_of(dtype, large, limit), entry->row->kernel};
    static PyMethodDef method = {"repeated", (PyCFunction)(void (*)(void))call_repeated, METH_FASTCALL,
                                 "Places as often as counts say; None of counts that are none."};
    PyObject *function = PyCFunction_NewEx(&method, capsule, NULL);
    Py_DECREF(capsule);
    return function;
}
