/* Arrays of NumPy are read where they lie: asking for a buffer takes longer than most kernels of few elements.
   That is done only if what the head of an array says was found, at import, to be what its buffer says; whatever is not
   seen here is asked for its buffer. */
#include "arrays.h"

#include "native.h"

#define MOST_DTYPES 16
#define ROW_MAJOR 0x1
#define ALIGNED 0x100
#define WRITABLE 0x400

/* NumPy's table of functions, whose places are those of its headers: its version, the class ndarray, what makes
   arrays, and what says whose memory they have. */
#define VERSION 0x02000000
enum { VERSION_AT = 0, CLASS_AT = 2, NEW_AT = 94, SET_BASE_AT = 282 };
typedef unsigned int Version(void);
typedef PyObject *New(PyTypeObject *of, PyObject *dtype, int rank, const Py_ssize_t *shape, const Py_ssize_t *strides,
                      void *memory, int flags, PyObject *like);

typedef int SetBase(PyObject *array, PyObject *base);

static New *make; /* which keeps the reference to the dtype that it is given */
static SetBase *set_base; /* the same of the base, even if it fails */

static PyTypeObject *kind; /* ndarray; NULL before it is known */
static struct {
    PyObject *dtype;
    Py_ssize_t itemsize;
} known[MOST_DTYPES];
static int dtypes;

static Py_ssize_t itemsize_of(const PyObject *dtype) {
    for (int i = 0; i < dtypes; i++)
        if (known[i].dtype == dtype) return known[i].itemsize;
    return 0;
}

Py_ssize_t known_itemsize(const PyObject *dtype) { return kind == NULL ? 0 : itemsize_of(dtype); }

const Array *array_of(PyObject *array, Py_ssize_t *itemsize) {
    if (Py_TYPE(array) != kind) return NULL;
    const Array *a = (const Array *)array;
    return (*itemsize = itemsize_of(a->dtype)) > 0 ? a : NULL;
}

/* No kernel reads more than eight bytes at once. */
int is_plain(const Array *array, Py_ssize_t itemsize, int is_written) {
    const int wanted = is_written ? ROW_MAJOR | WRITABLE : ROW_MAJOR;
    const uintptr_t unit = itemsize > 8 ? 8 : (uintptr_t)itemsize; /* a power of two */
    return (array->flags & wanted) == wanted && ((uintptr_t)array->memory & (unit - 1)) == 0;
}

int is_writable(const Array *array) { return (array->flags & WRITABLE) != 0; }

Py_ssize_t length_of(const Array *array, Py_ssize_t itemsize) {
    for (int d = 0; d < array->rank; d++) itemsize *= array->shape[d];
    return itemsize;
}

int have_one_shape(const Array *a, const Array *b) {
    if (a->rank != b->rank) return 0;
    for (int d = 0; d < a->rank; d++)
        if (a->shape[d] != b->shape[d]) return 0;
    return 1;
}

Py_ssize_t read_shape(PyObject *shape, Py_ssize_t itemsize, Py_ssize_t limit, Py_ssize_t *sizes) {
    const Py_ssize_t rank = PyTuple_Check(shape) ? PyTuple_Size(shape) : MOST_RANK + 1;
    Py_ssize_t bytes = itemsize;
    if (rank > MOST_RANK) return -1;
    for (Py_ssize_t d = 0; d < rank; d++) {
        sizes[d] = PyLong_AsSsize_t(PyTuple_GetItem(shape, d));
        if (sizes[d] < 0) {
            PyErr_Clear();
            return -1;
        }
        if (__builtin_mul_overflow(bytes, sizes[d], &bytes) || bytes >= limit) return -1;
    }
    return bytes;
}

PyObject *new_array(PyObject *dtype, int rank, const Py_ssize_t *shape) {
    Py_ssize_t bytes = itemsize_of(dtype);
    PyObject *made;
    for (int d = 0; d < rank; d++) bytes = times(bytes, shape[d]);
    if (bytes >= LEAST_LENT && lent_array(dtype, rank, shape, bytes, &made)) return made;
    Py_INCREF(dtype);
    return make(kind, dtype, rank, shape, NULL, NULL, 0, NULL);
}

PyObject *new_or_large(PyObject *dtype, int rank, const Py_ssize_t *shape, Py_ssize_t limit, PyObject *large) {
    Py_ssize_t bytes = itemsize_of(dtype);
    for (int d = 0; d < rank; d++) bytes = times(bytes, shape[d]);
    if (bytes < limit || lends()) return new_array(dtype, rank, shape);
    PyObject *sizes = PyTuple_New(rank), *made = NULL;
    for (int d = 0; sizes != NULL && d < rank; d++) {
        PyObject *size = PyLong_FromSsize_t(shape[d]);
        if (size == NULL || PyTuple_SetItem(sizes, d, size) < 0) Py_CLEAR(sizes);
    }
    if (sizes != NULL) made = PyObject_CallFunctionObjArgs(large, sizes, dtype, NULL);
    Py_XDECREF(sizes);
    return made;
}

PyObject *array_in(void *memory, PyObject *base, PyObject *dtype, int rank, const Py_ssize_t *shape) {
    Py_INCREF(dtype);
    PyObject *made = make(kind, dtype, rank, shape, NULL, memory, ROW_MAJOR | ALIGNED | WRITABLE, NULL);
    if (made == NULL) {
        Py_DECREF(base);
    } else if (set_base(made, base) < 0) {
        Py_DECREF(made);
        made = NULL;
    }
    return made;
}

/* Whether the head of an array says what its buffer says. */
static int is_read_rightly(PyObject *array) {
    const Array *a = (const Array *)array;
    Py_buffer b;
    if (PyObject_GetBuffer(array, &b, PyBUF_STRIDES) < 0) {
        PyErr_Clear();
        return 0;
    }
    int is_right = a->memory == b.buf && a->rank == b.ndim && itemsize_of(a->dtype) == b.itemsize;
    for (int d = 0; is_right && d < b.ndim; d++)
        is_right = a->shape[d] == b.shape[d] && (b.len == 0 || a->strides[d] == b.strides[d]);
    is_right = is_right && length_of(a, b.itemsize) == b.len && !b.readonly == !!(a->flags & WRITABLE);
    is_right = is_right && PyBuffer_IsContiguous(&b, 'C') == (a->flags & ROW_MAJOR);
    PyBuffer_Release(&b);
    return is_right;
}

static int is_known_version(PyObject *table) {
    void **const at = PyCapsule_GetPointer(table, NULL);
    if (at == NULL) PyErr_Clear();
    if (at == NULL || ((Version *)at[VERSION_AT])() != VERSION || at[CLASS_AT] != (void *)kind) return 0;
    make = (New *)at[NEW_AT];
    set_base = (SetBase *)at[SET_BASE_AT];
    return 1;
}

static int makes_arrays_rightly(void) {
    const Py_ssize_t shape[] = {2, 3};
    PyObject *made = new_array(known[0].dtype, 2, shape);
    if (made == NULL) PyErr_Clear();
    int is_right = made != NULL && Py_TYPE(made) == kind && is_read_rightly(made);
    if (is_right) {
        void *memory = ((Array *)made)->memory;
        PyObject *seen = array_in(memory, made, known[0].dtype, 2, shape);
        if (seen == NULL) PyErr_Clear();
        made = seen; /* which has the first one, or that is gone */
        is_right = seen != NULL && is_read_rightly(seen) && ((Array *)seen)->memory == memory &&
                   ((Array *)seen)->base != NULL;
    }
    Py_XDECREF(made);
    return is_right;
}

/* learn_arrays(ndarray, table, ((dtype, itemsize), ...), (array, ...)): whether arrays of these dtypes will be read
   where they lie, as all the given ones can be, and made by NumPy's table of functions. */
PyObject *learn_arrays(PyObject *self, PyObject *args) {
    PyObject *given_kind, *table, *given_dtypes, *samples;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!OO!O!:learn_arrays", &PyType_Type, &given_kind, &table, &PyTuple_Type,
                          &given_dtypes, &PyTuple_Type, &samples))
        return NULL;
    if (kind != NULL) Py_RETURN_TRUE;
    PyObject *size = PyObject_GetAttrString(given_kind, "__basicsize__");
    if (size == NULL) return NULL;
    int is_right = PyLong_AsSsize_t(size) >= (Py_ssize_t)sizeof(Array);
    Py_DECREF(size);
    if (PyErr_Occurred()) return NULL;
    const Py_ssize_t count = PyTuple_Size(given_dtypes);
    is_right = is_right && count > 0 && count <= MOST_DTYPES;
    for (dtypes = 0; is_right && dtypes < count; dtypes++) {
        PyObject *dtype;
        Py_ssize_t itemsize;
        if (!PyArg_ParseTuple(PyTuple_GetItem(given_dtypes, dtypes), "On", &dtype, &itemsize)) return NULL;
        is_right = itemsize > 0 && (itemsize & (itemsize - 1)) == 0;
        Py_INCREF(dtype); /* for as long as the process lives */
        known[dtypes].dtype = dtype;
        known[dtypes].itemsize = itemsize;
    }
    Py_INCREF(given_kind);
    kind = (PyTypeObject *)given_kind;
    for (Py_ssize_t i = 0; is_right && i < PyTuple_Size(samples); i++) {
        PyObject *sample = PyTuple_GetItem(samples, i);
        is_right = Py_TYPE(sample) == kind && is_read_rightly(sample);
    }
    is_right = is_right && is_known_version(table) && makes_arrays_rightly();
    if (!is_right) kind = NULL;
    return PyBool_FromLong(is_right);
}
