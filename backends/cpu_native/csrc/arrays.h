/* NumPy's arrays as they lie in memory. */
#ifndef FLAMBEAU_ARRAYS_H
#define FLAMBEAU_ARRAYS_H

#include <Python.h>

/* The head of an array, which NumPy's headers publish: extensions that are compiled with them read it there. */
typedef struct {
    PyObject_HEAD
    char *memory;
    int rank;
    Py_ssize_t *shape, *strides;
    PyObject *base, *dtype;
    int flags;
} Array;

/* `array` as one of class ndarray of a dtype whose items are known, or NULL; `*itemsize` is of its items. */
const Array *array_of(PyObject *array, Py_ssize_t *itemsize);

/* Whether it has no gaps and its items are aligned; and may be written to, if that is asked. */
int is_plain(const Array *array, Py_ssize_t itemsize, int is_written);

/* Whether it may be written to. */
int is_writable(const Array *array);

/* Its bytes. */
Py_ssize_t length_of(const Array *array, Py_ssize_t itemsize);

/* The bytes of an item of a dtype; 0 of others, and before NumPy's arrays are known. */
Py_ssize_t known_itemsize(const PyObject *dtype);

/* Reads a tuple of sizes.  The bytes of an array of that shape; -1 of what is none, or has `limit` bytes and more. */
#define MOST_RANK 16
Py_ssize_t read_shape(PyObject *shape, Py_ssize_t itemsize, Py_ssize_t limit, Py_ssize_t *sizes);

/* Whether two arrays have as many elements in every dimension. */
int have_one_shape(const Array *a, const Array *b);

/* A new array, row-major, of anything; NULL with an exception where there is no memory.  Of dtypes that are
   known.  From LEAST_LENT bytes on it comes from the pool, if that lends: sooner than from the C library, and at the
   beginning of a page, where a vector is in one line of the caches. */
#define LEAST_LENT 4096
PyObject *new_array(PyObject *dtype, int rank, const Py_ssize_t *shape);

/* Whether there is a pool that the kernels of this module share (lending.c). */
int lends(void);

/* An array of so many bytes from that pool, or NULL with an exception; 0 if it has none of them. */
int lent_array(PyObject *dtype, int rank, const Py_ssize_t *shape, int64_t bytes, PyObject **made);

/* The same as `new_array`; where no pool is shared, what large(shape, dtype) makes if it has `limit` bytes and more. */
PyObject *new_or_large(PyObject *dtype, int rank, const Py_ssize_t *shape, Py_ssize_t limit, PyObject *large);

/* An array of memory that is there already, for as long as `base` lives, whose reference is kept. */
PyObject *array_in(void *memory, PyObject *base, PyObject *dtype, int rank, const Py_ssize_t *shape);

#endif
