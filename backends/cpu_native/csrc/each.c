/* Kernels of arrays of one shape, such as the steps of optimisers, over lists of arrays by one call. */
#include "binding.h"

#include <limits.h>

/* The name of that function, or NULL where a row has none: adam_each_f32 of adam_f32.  0 with an exception
   where there is no memory. */
int name_of_each(const Entry *entry, char **name) {
    const char *given = entry->row->name, *kind = strrchr(given, '_');
    *name = NULL;
    if (!entry->of_one_shape || kind == NULL || (strcmp(kind, "_f32") && strcmp(kind, "_f64"))) return 1;
    for (int i = 0; i < entry->arrays; i++) { /* of as many items as the first integer says */
        const Extent *e = &entry->extents[i];
        if (e->count != 1 || e->factors[0].how || e->factors[0].first != 0) return 1;
    }
    const size_t length = (size_t)(kind - given);
    if ((*name = PyMem_Malloc(strlen(given) + sizeof("_each"))) == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    memcpy(*name, given, length);
    strcpy(*name + length, "_each");
    strcat(*name, kind);
    return 1;
}

/* Holds an array if a kernel can take it as it is; no exception is set if not. */
static int hold_as_it_is(Held *held, PyObject *array, int is_written, const char *format) {
    int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (is_written ? PyBUF_WRITABLE : 0);
    Py_buffer *buffer = &held->buffer;
    held->copy = NULL;
    held->is_written = is_written;
    if (PyObject_GetBuffer(array, buffer, flags) < 0) {
        PyErr_Clear();
        return 0;
    }
    if (buffer->format != NULL && strcmp(buffer->format, format) == 0 && !is_askew(buffer)) return 1;
    PyBuffer_Release(buffer);
    return 0;
}

/* The arrays of a call: a list for each argument that is one, or NULL. */
typedef struct {
    PyObject *lists[MAX_ARRAYS];
    int is_written[MAX_ARRAYS], arrays;
    Py_ssize_t length; /* of each list; -1 before the first */
    Held *held;
    int holding;
} Lists;

static void drop(Lists *l) {
    release(l->held, l->holding);
    PyMem_Free(l->held);
    for (int i = 0; i < l->arrays; i++) Py_XDECREF(l->lists[i]);
}

/* Adds a list, which a tuple of its own keeps; 0 with an exception. */
static int add_list(Lists *l, PyObject *given, char kind) {
    PyObject **list = &l->lists[l->arrays];
    *list = NULL;
    l->is_written[l->arrays++] = kind == 'w' || kind == 'W';
    if ((kind == 'o' || kind == 'W') && given == Py_None) return 1;
    if ((*list = PySequence_Tuple(given)) == NULL) return 0;
    const Py_ssize_t length = PyTuple_Size(*list);
    if (l->length >= 0 && length != l->length) {
        PyErr_SetString(PyExc_ValueError, "the lists must have one length");
        return 0;
    }
    l->length = length;
    return 1;
}

/* 1 if all arrays are held, 0 if one cannot be taken as it is, -1 with an exception. */
static int hold_all(Lists *l, const Entry *entry) {
    const char *format = strstr(entry->row->name, "_f64") ? "d" : "f";
    if (l->length <= 0) return 1;
    if (l->length > INT_MAX / MAX_ARRAYS) return 0;
    l->held = PyMem_Calloc((size_t)l->length * (size_t)l->arrays, sizeof(Held));
    if (l->held == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < l->length; i++) {
        const int first = l->holding;
        for (int j = 0; j < l->arrays; j++) {
            if (l->lists[j] == NULL) continue;
            PyObject *array = PyTuple_GetItem(l->lists[j], i);
            if (array == NULL) return -1;
            if (!hold_as_it_is(&l->held[l->holding], array, l->is_written[j], format)) return 0;
            l->holding++;
        }
        if (!are_of_one_shape(entry, l->held + first, l->holding - first)) return -1;
    }
    return 1;
}

/* The arguments are those of the kernel but for the size: lists in the places of arrays, None for a list of
   none, and numbers.  True if the kernel ran on all; False if an array is of another type, has gaps or lies
   askew, and nothing was done. */
PyObject *call_each(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    const Entry *entry = PyCapsule_GetPointer(self, ENTRY);
    if (entry == NULL) return NULL;
    const Row *row = entry->row;
    if (count != entry->wanted - 1)
        return PyErr_Format(PyExc_TypeError, "%s() over lists takes %zd arguments, got %zd", row->name,
                            entry->wanted - 1, count);
    int64_t integers[MAX_ARGUMENTS] = {0};
    double floats[MAX_ARGUMENTS] = {0};
    Lists l = {.length = -1};
    int ints = 0, doubles = 0, are_held = -1;
    const char *error = NULL, *failure = NULL;
    for (const char *kind = row->arguments; *kind; kind++) {
        if (*kind == 'i') {
            if (ints++ == 0) continue; /* the size, which is that of each array */
            integers[ints - 1] = PyLong_AsLongLong(*args++);
            if (integers[ints - 1] == -1 && PyErr_Occurred()) goto ended;
        } else if (*kind == 'f') {
            floats[doubles] = PyFloat_AsDouble(*args++);
            if (floats[doubles++] == -1.0 && PyErr_Occurred()) goto ended;
        } else if (!add_list(&l, *args++, *kind)) {
            goto ended;
        }
    }
    if ((are_held = hold_all(&l, entry)) != 1) goto ended;
    Py_BEGIN_ALLOW_THREADS
    const Held *next = l.held;
    for (Py_ssize_t i = 0; i < l.length; i++) {
        void *pointers[MAX_ARRAYS];
        integers[0] = next == NULL ? 0 : (int64_t)(next->buffer.len / next->buffer.itemsize);
        for (int j = 0; j < l.arrays; j++) pointers[j] = l.lists[j] == NULL ? NULL : (next++)->buffer.buf;
        const Args packed = {pointers, integers, floats, threads_of_kernels(), &error, &failure};
        row->kernel(&packed);
    }
    Py_END_ALLOW_THREADS
ended:
    drop(&l);
    if (are_held < 0) return NULL;
    if (error != NULL) return PyErr_Format(PyExc_IndexError, "%s(): %s", row->name, error);
    if (failure != NULL) return PyErr_Format(PyExc_RuntimeError, "%s(): %s", row->name, failure);
    return PyBool_FromLong(are_held);
}
