/* Whether indices lie in a range. */
#include "arrays.h"
#include "binding.h"

#define SHORT 2048 /* indices, which take less time than giving up the interpreter's lock and taking it back */

WIDE static int are_within(const int64_t *index, int64_t count, int64_t size) { return lie_within(index, count, size); }

/* ``lies_within(array, size)``: whether all of an array of int64 are in [0, size); None if its elements do
   not lie side by side. */
PyObject *tell_range(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (count != 2) return PyErr_Format(PyExc_TypeError, "lies_within() takes 2 arguments, got %zd", count);
    const long long size = PyLong_AsLongLong(args[1]);
    if (size == -1 && PyErr_Occurred()) return NULL;
    Held held;
    void *index;
    Py_ssize_t itemsize;
    const Array *seen = array_of(args[0], &itemsize);
    if (seen != NULL && !is_plain(seen, itemsize, 0)) Py_RETURN_NONE;
    if (!hold(&held, args[0], 0, &index)) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    const Py_ssize_t indices = held.buffer.len / 8;
    const int is_known = held.buffer.itemsize == 8;
    int are_in = 1;
    if (is_known && indices <= SHORT) {
        are_in = are_within(index, indices, size);
    } else if (is_known) {
        Py_BEGIN_ALLOW_THREADS
        are_in = are_within(index, indices, size);
        Py_END_ALLOW_THREADS
    }
    release(&held, 1);
    if (!is_known) Py_RETURN_NONE;
    return PyBool_FromLong(are_in);
}
