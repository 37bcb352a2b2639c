/* Writing into arrays: assigning(general, copy, clear, fill, limit) gives assigned(to, from), for an array of the same
   shape or one number.  From `limit` bytes on the kernels share the work.  Rows with gaps between them, and what repeats
   others' rows, are copied line by line (gapped.h); all else is for general(to, from). */
#include "arrays.h"
#include "binding.h"
#include "gapped.h"

#include <string.h>

#define CAPSULE "flambeau_native.assigning"
#define MOST_ITEM 16
#define WORD 8

typedef struct {
    PyObject *general;
    const Entry *copy, *clear, *fill;
    Py_ssize_t limit;
} Assigning;

static void drop(PyObject *capsule) {
    Assigning *a = PyCapsule_GetPointer(capsule, CAPSULE);
    Py_XDECREF(a->general);
    PyMem_Free(a);
}

static int is_zero(const char *item, Py_ssize_t itemsize) {
    for (Py_ssize_t i = 0; i < itemsize; i++)
        if (item[i]) return 0;
    return 1;
}

/* Writes `length` bytes by a kernel, with another number that it takes. */
static void put(const Entry *kernel, char *to, const char *from, Py_ssize_t length, int64_t number) {
    void *pointers[] = {to, (void *)(uintptr_t)from};
    const int64_t sizes[] = {length, number};
    const char *error = NULL, *failure = NULL;
    const Args packed = {pointers, sizes, NULL, threads_of_kernels(), &error, &failure};
    kernel->row->kernel(&packed);
}

/* Writes an item everywhere. */
static void put_item(const Assigning *a, char *to, Py_ssize_t length, const char *item, Py_ssize_t itemsize) {
    if (is_zero(item, itemsize)) {
        if (length >= a->limit) put(a->clear, to, NULL, length, 0);
        else memset(to, 0, (size_t)length);
    } else if (itemsize <= WORD) {
        char word[WORD];
        int64_t number;
        for (Py_ssize_t i = 0; i < WORD; i += itemsize) memcpy(word + i, item, (size_t)itemsize);
        memcpy(&number, word, sizeof number);
        put(a->fill, to, NULL, length, number);
    } else {
        for (Py_ssize_t i = 0; i < length; i += itemsize) memcpy(to + i, item, (size_t)itemsize);
    }
}

static void put_array(const Assigning *a, char *to, Py_ssize_t length, const char *from) {
    if (length >= a->limit) put(a->copy, to, from, length, 0);
    else memmove(to, from, (size_t)length);
}

/* Copies lines where they are; 0 if others have to. */
static int put_lines(const Array *to, const Array *from, Py_ssize_t itemsize) {
    const Array *const both[] = {to, from};
    Gapped g;
    int rank;
    Py_ssize_t shape[MOST_RANK];
    const Py_ssize_t sizes[] = {itemsize, itemsize};
    if (!is_writable(to) || itemsize > WORD || !read_gapped(&g, both, 2, sizes, ANY_ORDER, &rank, shape)) return 0;
    if (rank != to->rank) return 0;
    for (int d = 0; d < rank; d++)
        if (shape[d] != to->shape[d]) return 0;
    PyThreadState *state = length_of(to, itemsize) > SHORT_BYTES ? PyEval_SaveThread() : NULL;
    const int are_copied = copy_gapped(&g, threads_of_kernels());
    if (state != NULL) PyEval_RestoreThread(state);
    return are_copied;
}

static PyObject *call_assigned(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    const Assigning *a = PyCapsule_GetPointer(self, CAPSULE);
    if (a == NULL) return NULL;
    if (count != 2) return PyErr_Format(PyExc_TypeError, "assigned() takes two arrays, got %zd arguments", count);
    Py_ssize_t itemsize, its;
    const Array *to = array_of(args[0], &itemsize), *from = array_of(args[1], &its);
    if (to == NULL || from == NULL || to->dtype != from->dtype || itemsize > MOST_ITEM) goto general;
    const int is_number = from->rank == 0;
    const int are_plain = is_plain(to, itemsize, 1) && is_plain(from, itemsize, 0);
    if (!are_plain || (!is_number && !have_one_shape(to, from))) {
        if (put_lines(to, from, itemsize)) Py_RETURN_NONE;
        goto general;
    }
    const Py_ssize_t length = length_of(to, itemsize);
    char item[MOST_ITEM]; /* which may be one of those that are written */
    if (is_number) memcpy(item, from->memory, (size_t)itemsize);
    if (length == 0) Py_RETURN_NONE;
    char *memory = to->memory;
    const char *source = from->memory;
    PyThreadState *state = length > SHORT_BYTES ? PyEval_SaveThread() : NULL;
    if (is_number) put_item(a, memory, length, item, itemsize);
    else put_array(a, memory, length, source);
    if (state != NULL) PyEval_RestoreThread(state);
    Py_RETURN_NONE;
general:
    return call_general(a->general, args, count);
}

/* The row of a function if its arguments are these, or NULL with an exception. */
static const Entry *entry_with(PyObject *function, const char *arguments) {
    const Entry *entry = entry_of(function, "assigning");
    if (entry == NULL || strcmp(entry->row->arguments, arguments) == 0) return entry;
    PyErr_Format(PyExc_ValueError, "assigning(): %s does not take %s", entry->row->name, arguments);
    return NULL;
}

PyObject *make_assigning(PyObject *self, PyObject *args) {
    PyObject *general, *copy, *clear, *fill;
    Py_ssize_t limit;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOn:assigning", &general, &copy, &clear, &fill, &limit)) return NULL;
    const Entry *copies = entry_with(copy, "wrii"), *clears = copies == NULL ? NULL : entry_with(clear, "wi");
    const Entry *fills = clears == NULL ? NULL : entry_with(fill, "wii");
    if (fills == NULL) return NULL;
    PyObject *capsule;
    Assigning *a = kept_by(&capsule, sizeof *a, CAPSULE, drop);
    if (a == NULL) return NULL;
    Py_INCREF(general);
    *a = (Assigning){general, copies, clears, fills, limit};
    static PyMethodDef method = {"assigned", (PyCFunction)(void (*)(void))call_assigned, METH_FASTCALL,
                                 "Writes an array or a number into an array."};
    PyObject *function = PyCFunction_NewEx(&method, capsule, NULL);
    Py_DECREF(capsule);
    return function;
}
