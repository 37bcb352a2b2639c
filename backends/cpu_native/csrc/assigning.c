/* Writing into arrays: assigning(general, copy, clear, limit) gives assigned(to, from), for an array of the same
   shape or one number.  What has gaps or another dtype, or is broadcast, and numbers but zero for `limit`
   bytes and more, is for general(to, from); from `limit` on the kernels copy and clear share the work. */
#include "arrays.h"
#include "binding.h"

#include <string.h>

#define CAPSULE "flambeau_native.assigning"
#define MOST_ITEM 16

typedef struct {
    PyObject *general;
    const Entry *copy, *clear;
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

/* Writes an item everywhere: what is written already is doubled. */
static void repeat(char *to, Py_ssize_t bytes, const char *item, Py_ssize_t itemsize) {
    if (itemsize == 4) {
        int32_t value;
        memcpy(&value, item, sizeof value);
        for (Py_ssize_t i = 0; i < bytes; i += 4) memcpy(to + i, &value, sizeof value);
        return;
    }
    memcpy(to, item, (size_t)itemsize);
    for (Py_ssize_t done = itemsize; done < bytes; done *= 2)
        memcpy(to + done, to, (size_t)(done < bytes - done ? done : bytes - done));
}

/* Writes `length` bytes, of one item where `itemsize` is not 0. */
static void put(char *to, const char *from, Py_ssize_t length, Py_ssize_t itemsize, const Entry *kernel) {
    if (kernel != NULL) {
        void *pointers[] = {to, (void *)(uintptr_t)from};
        const int64_t sizes[] = {length, 0};
        const char *error = NULL, *failure = NULL;
        const Args packed = {pointers, sizes, NULL, threads_of_kernels(), &error, &failure};
        kernel->row->kernel(&packed);
    } else if (itemsize == 0) {
        memmove(to, from, (size_t)length);
    } else if (is_zero(from, itemsize)) {
        memset(to, 0, (size_t)length);
    } else {
        repeat(to, length, from, itemsize);
    }
}

static PyObject *call_assigned(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    const Assigning *a = PyCapsule_GetPointer(self, CAPSULE);
    if (a == NULL) return NULL;
    if (count != 2) return PyErr_Format(PyExc_TypeError, "assigned() takes two arrays, got %zd arguments", count);
    Py_ssize_t itemsize, its;
    const Array *to = array_of(args[0], &itemsize), *from = array_of(args[1], &its);
    if (to == NULL || from == NULL || to->dtype != from->dtype || itemsize > MOST_ITEM) goto general;
    if (!is_plain(to, itemsize, 1) || !is_plain(from, itemsize, 0)) goto general;
    const int is_number = from->rank == 0;
    if (!is_number && !have_one_shape(to, from)) goto general;
    const Py_ssize_t length = length_of(to, itemsize);
    char item[MOST_ITEM]; /* which may be one of those that are written */
    if (is_number) memcpy(item, from->memory, (size_t)itemsize);
    if (length == 0) Py_RETURN_NONE;
    const Entry *kernel = NULL;
    if (length >= a->limit) {
        if (is_number && !is_zero(item, itemsize)) goto general;
        kernel = is_number ? a->clear : a->copy;
    }
    char *memory = to->memory;
    const char *source = is_number ? item : from->memory;
    if (length <= SHORT_BYTES) {
        put(memory, source, length, is_number ? itemsize : 0, kernel);
    } else {
        Py_BEGIN_ALLOW_THREADS
        put(memory, source, length, is_number ? itemsize : 0, kernel);
        Py_END_ALLOW_THREADS
    }
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
    PyObject *general, *copy, *clear;
    Py_ssize_t limit;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOn:assigning", &general, &copy, &clear, &limit)) return NULL;
    const Entry *copies = entry_with(copy, "wrii"), *clears = copies == NULL ? NULL : entry_with(clear, "wi");
    if (clears == NULL) return NULL;
    PyObject *capsule;
    Assigning *a = kept_by(&capsule, sizeof *a, CAPSULE, drop);
    if (a == NULL) return NULL;
    Py_INCREF(general);
    *a = (Assigning){general, copies, clears, limit};
    static PyMethodDef method = {"assigned", (PyCFunction)(void (*)(void))call_assigned, METH_FASTCALL,
                                 "Writes an array or a number into an array."};
    PyObject *function = PyCFunction_NewEx(&method, capsule, NULL);
    Py_DECREF(capsule);
    return function;
}
