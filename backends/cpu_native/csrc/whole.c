/* Kernels of elements as functions of their arguments alone: whole(general, cases, limit, large[, dtype]) makes one that
   makes its result itself, of the dtype of its arrays or that, which takes a third of the time of small arrays.

   A case is (dtype, kernel): a row of a result, of one or two arrays of as many elements, their number, and
   floats; or of two of which one may begin anew after some elements, their number, how many those are of either, or 0.
   Rows with gaps between them, and arrays that repeat others' rows, are read piece by piece (gapped.h).  What is not
   read so, has another dtype or another shape goes to general(arguments).  Results of `limit` bytes and more are large(shape, dtype), which come from a pool; where
   `large` is None, what is made is written to the first array, and the function returns None. */
#include "arrays.h"
#include "binding.h"
#include "gapped.h"

#define CAPSULE "flambeau_native.whole"
#define MAX_CASES 4
#define MOST_READ 2
#define FEW 512 /* elements, so soon done that nobody else is let in meanwhile */
#define MANY_APART 1024 /* elements that lie further apart than every second, which NumPy's loops write as fast */
#define LEAST_PERIOD 64 /* elements below which NumPy's loops are as fast */

typedef struct {
    PyObject *dtype;
    const Entry *entry;
} Case;

typedef struct {
    PyObject *general, *large, *dtype; /* of results, or NULL */
    Py_ssize_t limit;
    int cases, reads, floats, repeats, is_in_place;
    Case of[MAX_CASES];
} Whole;

/* The arrays of a call, the one that has the shape of its result, and the integers of its kernel. */
typedef struct {
    const Array *arrays[MOST_READ], *like;
    int64_t sizes[3];
    Py_ssize_t itemsize;
} Call;

static void drop(PyObject *capsule) {
    Whole *w = PyCapsule_GetPointer(capsule, CAPSULE);
    Py_XDECREF(w->general);
    Py_XDECREF(w->large);
    Py_XDECREF(w->dtype);
    for (int i = 0; i < w->cases; i++) Py_DECREF(w->of[i].dtype);
    PyMem_Free(w);
}

/* After how many elements of what is like another array `a` begins anew: 0 if never, -1 if others see to it. */
static int64_t period_of(const Array *a, const Array *like) {
    if (have_one_shape(a, like)) return 0;
    if (a->rank > like->rank) return -1;
    int first = 0;
    while (first < a->rank && a->shape[first] == 1) first++;
    int64_t period = 1;
    for (int d = first; d < a->rank; period *= a->shape[d++])
        if (a->shape[d] != like->shape[d + like->rank - a->rank]) return -1;
    return period == 1 || period >= LEAST_PERIOD ? period : -1;
}

/* Whether results may be written to the first array: the second is it, or lies elsewhere. */
static int can_be_written(const Call *call) {
    const Array *first = call->arrays[0], *second = call->arrays[1];
    if (call->like != first) return 0;
    if (first->memory == second->memory && have_one_shape(first, second)) return 1;
    return first->memory + length_of(first, call->itemsize) <= second->memory ||
           second->memory + length_of(second, call->itemsize) <= first->memory;
}

/* The case of the arrays, which are read where they lie, or NULL. */
static const Case *case_of(const Whole *w, PyObject *const *args, Call *call) {
    for (int j = 0; j < w->reads; j++) {
        const Array *a = call->arrays[j] = array_of(args[j], &call->itemsize), *first = call->arrays[0];
        if (a == NULL || !is_plain(a, call->itemsize, w->is_in_place && j == 0) || a->dtype != first->dtype) return NULL;
        if (!w->repeats && !have_one_shape(a, first)) return NULL;
    }
    call->like = call->arrays[0];
    if (w->repeats) {
        const Array *second = call->arrays[1];
        if (length_of(second, 1) > length_of(call->like, 1)) call->like = second;
        for (int j = 0; j < 2; j++)
            if ((call->sizes[1 + j] = period_of(call->arrays[j], call->like)) < 0) return NULL;
    }
    if (w->is_in_place && w->reads > 1 && !can_be_written(call)) return NULL;
    call->sizes[0] = length_of(call->like, 1);
    for (int i = 0; i < w->cases; i++)
        if (w->of[i].dtype == call->like->dtype) return &w->of[i];
    return NULL;
}

/* Runs the kernel of an entry into `out`, which becomes NULL with an exception if that fails. */
static void run(const Entry *entry, const Call *call, int reads, const double *floats, PyObject **out) {
    const char *error = NULL, *failure = NULL;
    void *pointers[1 + MOST_READ];
    Py_ssize_t lengths[1 + MOST_READ];
    int is_empty, is_done = 0;
    Held to;
    if (hold(&to, *out, 1, &pointers[0])) {
        lengths[0] = to.buffer.len;
        for (int j = 0; j < reads; j++) {
            pointers[1 + j] = call->arrays[j]->memory;
            lengths[1 + j] = length_of(call->arrays[j], call->itemsize);
        }
        is_done = are_long(entry, lengths, call->sizes, &is_empty);
        if (is_done && !is_empty) {
            const Args packed = {pointers, call->sizes, floats, threads_of_kernels(), &error, &failure};
            if (call->sizes[0] < FEW) {
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

/* The case of arrays that have gaps or repeat, which of one array is for others, that compute each element once. */
static const Case *case_of_gapped(const Whole *w, PyObject *const *args, Gapped *g, int *rank, Py_ssize_t *shape) {
    const Array *arrays[MOST_READ];
    Py_ssize_t itemsize;
    for (int j = 0; j < w->reads; j++)
        if ((arrays[j] = array_of(args[j], &itemsize)) == NULL || arrays[j]->dtype != arrays[0]->dtype) return NULL;
    const Case *of = NULL;
    for (int i = 0; of == NULL && i < w->cases; i++)
        if (w->of[i].dtype == arrays[0]->dtype) of = &w->of[i];
    const Py_ssize_t itemsizes[MOST_READ] = {itemsize, itemsize};
    if (of == NULL || itemsize > 8 || !read_gapped(g, arrays, w->reads, itemsizes, SPREAD, rank, shape)) return NULL;
    if (w->is_in_place) {
        const int64_t between = g->strides[0][g->rank - 1];
        int is_shape = *rank == arrays[0]->rank && is_writable(arrays[0]);
        if (between > 2 * itemsize && length_of(arrays[0], 1) >= MANY_APART) return NULL;
        for (int d = 0; is_shape && d < *rank; d++) is_shape = shape[d] == arrays[0]->shape[d];
        return is_shape && can_be_written_gapped(g) ? of : NULL;
    }
    for (int d = 0; w->reads == 1 && d < g->rank; d++)
        if (g->strides[0][d] == 0) return NULL;
    return of;
}

/* Runs the kernel of such arrays into `memory`, or into the first of them; 0 with an exception if that fails. */
static int run_of_gapped(const Whole *w, const Case *of, const Gapped *g, char *memory, Py_ssize_t size,
                         const double *floats) {
    const char *failure = NULL;
    const int threads = threads_of_kernels();
    int64_t count = 1;
    for (int d = 0; d < g->rank; d++) count *= g->shape[d];
    if (count < FEW) {
        run_gapped(g, of->entry->row->kernel, w->repeats, memory, size, floats, threads, &failure);
    } else {
        Py_BEGIN_ALLOW_THREADS
        run_gapped(g, of->entry->row->kernel, w->repeats, memory, size, floats, threads, &failure);
        Py_END_ALLOW_THREADS
    }
    if (failure != NULL) PyErr_Format(PyExc_RuntimeError, "%s(): %s", of->entry->row->name, failure);
    return failure == NULL;
}

/* The result of a kernel of such arrays; NULL with an exception if that fails. */
static PyObject *made_of_gapped(const Whole *w, const Case *of, const Gapped *g, int rank, const Py_ssize_t *shape,
                                const double *floats) {
    PyObject *dtype = w->dtype == NULL ? of->dtype : w->dtype;
    PyObject *out = new_or_large(dtype, rank, shape, w->limit, w->large);
    const Py_ssize_t size = known_itemsize(dtype);
    int64_t count = 1;
    Held to;
    void *memory;
    if (out == NULL || !hold(&to, out, 1, &memory)) {
        Py_XDECREF(out);
        return NULL;
    }
    for (int d = 0; d < rank; d++) count *= shape[d];
    int is_done = to.buffer.len == count * size;
    if (!is_done) PyErr_Format(PyExc_RuntimeError, "%s(): its result has another size", of->entry->row->name);
    is_done = is_done && run_of_gapped(w, of, g, memory, size, floats);
    release(&to, 1);
    if (is_done) return out;
    Py_DECREF(out);
    return NULL;
}

/* The floats of a call; 0 where one is none. */
static int read_floats(const Whole *w, PyObject *const *args, double *floats) {
    for (int j = 0; j < w->floats; j++) {
        floats[j] = PyFloat_AsDouble(args[w->reads + j]);
        if (floats[j] == -1.0 && PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
    }
    return 1;
}

static PyObject *call_whole(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    const Whole *w = PyCapsule_GetPointer(self, CAPSULE);
    if (w == NULL) return NULL;
    Call call;
    double floats[MAX_ARGUMENTS] = {0};
    if (count != w->reads + w->floats || !read_floats(w, args, floats)) return call_general(w->general, args, count);
    const Case *of = case_of(w, args, &call);
    if (of == NULL) {
        Gapped gapped;
        int rank;
        Py_ssize_t shape[MOST_RANK];
        of = case_of_gapped(w, args, &gapped, &rank, shape);
        if (of == NULL) return call_general(w->general, args, count);
        if (w->is_in_place) {
            if (!run_of_gapped(w, of, &gapped, NULL, 0, floats)) return NULL;
            Py_RETURN_NONE;
        }
        return made_of_gapped(w, of, &gapped, rank, shape, floats);
    }
    const Array *like = call.like;
    if (w->is_in_place) {
        PyObject *to = args[0];
        Py_INCREF(to);
        run(of->entry, &call, w->reads, floats, &to);
        if (to == NULL) return NULL;
        Py_DECREF(to);
        Py_RETURN_NONE;
    }
    PyObject *dtype = w->dtype == NULL ? of->dtype : w->dtype;
    PyObject *out = new_or_large(dtype, like->rank, like->shape, w->limit, w->large);
    if (out != NULL) run(of->entry, &call, w->reads, floats, &out);
    return out;
}

/* Whether a row is one that can be called so, as those before it; an exception is set if not. */
static int is_of_elements(Whole *w, const Entry *entry) {
    const char *kinds = entry->row->arguments;
    const int repeats = strcmp(kinds, "wrriii") == 0;
    int reads = 0, floats = 0, sound = *kinds++ == 'w';
    while (*kinds == 'r') reads++, kinds++;
    sound = sound && *kinds++ == 'i';
    if (repeats) kinds += 2;
    while (sound && *kinds == 'f') floats++, kinds++;
    sound = sound && *kinds == 0 && reads >= 1 && reads <= MOST_READ;
    sound = sound && (w->cases == 0 || (reads == w->reads && floats == w->floats && repeats == w->repeats));
    for (int j = 0; sound && j < entry->arrays; j++) { /* one item for each element, or for those up to the period */
        const Extent *e = &entry->extents[j];
        const int may_repeat = repeats && j > 0;
        sound = e->count == 1 && e->factors[0].first == 0 && e->factors[0].how == (may_repeat ? '|' : 0);
        if (may_repeat) sound = sound && e->factors[0].second == j;
    }
    w->reads = reads, w->floats = floats, w->repeats = repeats;
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
    PyObject *general, *cases, *large, *dtype = Py_None;
    Py_ssize_t limit;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO!nO|O:whole", &general, &PyTuple_Type, &cases, &limit, &large, &dtype))
        return NULL;
    if (dtype != Py_None && known_itemsize(dtype) == 0) {
        PyErr_SetString(PyExc_ValueError, "whole(): its results are of no dtype that is known");
        return NULL;
    }
    if (PyTuple_Size(cases) < 1)
        return PyErr_Format(PyExc_ValueError, "whole(): it needs a case");
    PyObject *capsule;
    Whole *w = kept_by(&capsule, sizeof *w, CAPSULE, drop);
    if (w == NULL) return NULL;
    w->general = general, w->large = large, w->is_in_place = large == Py_None;
    Py_INCREF(general);
    Py_INCREF(large);
    w->limit = limit;
    if (dtype != Py_None) {
        Py_INCREF(dtype);
        w->dtype = dtype;
    }
    PyObject *function = NULL;
    static PyMethodDef method = {"whole", (PyCFunction)(void (*)(void))call_whole, METH_FASTCALL,
                                 "A kernel of elements; it makes its result."};
    Py_ssize_t i = 0;
    while (i < PyTuple_Size(cases) && read_case(w, PyTuple_GetItem(cases, i))) i++;
    if (i == PyTuple_Size(cases)) function = PyCFunction_NewEx(&method, capsule, NULL);
    Py_DECREF(capsule);
    return function;
}
