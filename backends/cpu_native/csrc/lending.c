/* The pool of large blocks of memory that flambeau_numpy.allocator describes: a block is lent to an array,
   comes back when the last array that sees it dies, and is lent again to one of about that size.

   Everything here happens under the interpreter's lock, and what belongs together has no call of Python in
   between: no thread and no interrupt sees the half of it.  A block is an array that a function of Python
   makes, so that memory is asked for, and found missing, in one place. */
#include <Python.h>
#include <structmember.h>

#include "arrays.h"
#include "native.h"

#define FINENESS 3                          /* 2^3 sizes per doubling: an eighth of a block is wasted at most */
#define SIZES (63 << FINENESS)              /* that a block may have */
#define MOST ((int64_t)1 << 62)             /* bytes */
#define MOST_DIMENSIONS 32

typedef struct Block {
    PyObject *array; /* that owns the memory */
    void *memory;
    int64_t size;
    struct Block *next; /* of this size, that nobody uses */
} Block;

typedef struct {
    PyObject_HEAD
    PyObject *make;           /* make(size): an array of so many bytes */
    Block *free[SIZES];
    uint64_t used[SIZES];     /* when a block of the size came back last */
    uint64_t clock;
    long long limit, least, living, cached, most_living, most_reserved, hits, misses;
    char enabled;
} Pool;

typedef struct {
    PyObject_HEAD
    Pool *pool;
    Block *block;
} Lease;

static PyTypeObject *pool_type, *lease_type;
static Pool *shared; /* that the kernels of this module make arrays of; or NULL */

static int log_of(int64_t size) {
    int log = 0;
    while (size >> (log + 1)) log++;
    return log;
}

/* The least size of a block that has `size` bytes, at least eight, and its number. */
static int64_t size_of_block(int64_t size, int *number) {
    int log = log_of(size);
    const int64_t step = (int64_t)1 << (log - FINENESS);
    size = (size + step - 1) / step * step;
    log += (int)(size >> (log + 1)); /* rounded up to the next power of two */
    *number = log << FINENESS | (int)(size >> (log - FINENESS) & ((1 << FINENESS) - 1));
    return size;
}

static void end_block(Block *block) {
    PyObject *array = block->array;
    PyMem_Free(block);
    Py_DECREF(array);
}

static Block *take(Pool *pool, int number) {
    Block *block = pool->free[number];
    pool->free[number] = block->next;
    pool->cached -= block->size;
    return block;
}

/* Ends blocks until those that are left are within the limit: of the size unused for longest first. */
static void drop_excess(Pool *pool) {
    while (pool->cached > pool->limit) {
        int oldest = -1;
        for (int i = 0; i < SIZES; i++)
            if (pool->free[i] && (oldest < 0 || pool->used[i] < pool->used[oldest])) oldest = i;
        if (oldest < 0) return;
        end_block(take(pool, oldest));
    }
}

static void count_most(Pool *pool) {
    if (pool->living > pool->most_living) pool->most_living = pool->living;
    if (pool->living + pool->cached > pool->most_reserved) pool->most_reserved = pool->living + pool->cached;
}

/* A block comes back. */
static void give_back(Pool *pool, Block *block) {
    pool->living -= block->size;
    if (!pool->enabled) {
        end_block(block);
        return;
    }
    int number;
    size_of_block(block->size, &number);
    block->next = pool->free[number];
    pool->free[number] = block;
    pool->used[number] = ++pool->clock;
    pool->cached += block->size;
    drop_excess(pool);
}

static Block *new_block(Pool *pool, int64_t size) {
    PyObject *array = PyObject_CallFunction(pool->make, "L", (long long)size);
    if (array == NULL) return NULL;
    Py_buffer seen;
    Block *block = NULL;
    if (PyObject_GetBuffer(array, &seen, PyBUF_WRITABLE) == 0) {
        if (seen.len < size) PyErr_SetString(PyExc_ValueError, "Pool: the array that was made is too short");
        else if ((block = PyMem_Malloc(sizeof(Block))) == NULL) PyErr_NoMemory();
        else *block = (Block){array, seen.buf, size, NULL};
        PyBuffer_Release(&seen); /* the array stays as it is: nobody else has it */
    }
    if (block == NULL) Py_DECREF(array);
    return block;
}

/* A block of at least `wanted` bytes, a free one if there is one. */
static Lease *lease_of(Pool *pool, int64_t wanted) {
    int number;
    const int64_t size = size_of_block(wanted, &number);
    Lease *lease = PyObject_New(Lease, lease_type);
    if (lease == NULL) return NULL;
    lease->pool = pool;
    Py_INCREF((PyObject *)pool);
    if (pool->free[number]) {
        lease->block = take(pool, number);
        pool->hits++;
    } else {
        lease->block = NULL;
        Block *made = new_block(pool, size);
        if (made == NULL) {
            Py_DECREF(lease);
            return NULL;
        }
        lease->block = made;
        pool->misses++;
    }
    pool->living += size;
    count_most(pool);
    return lease;
}

static PyObject *lend(PyObject *self, PyObject *bytes) {
    Pool *pool = (Pool *)self;
    long long wanted = PyLong_AsLongLong(bytes);
    if (wanted == -1 && PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_OverflowError)) return NULL;
    if (PyErr_Occurred() || wanted > MOST) { /* there is no such memory, and who makes blocks says so */
        PyErr_Clear();
        PyObject *made = PyObject_CallFunctionObjArgs(pool->make, bytes, NULL);
        Py_XDECREF(made);
        return made == NULL ? NULL : PyErr_NoMemory();
    }
    if (wanted < 1 << FINENESS) return PyErr_Format(PyExc_ValueError, "Pool: no blocks of %lld bytes", wanted);
    return (PyObject *)lease_of(pool, wanted);
}

int lends(void) { return shared != NULL; }

static PyObject *array_of_pool(Pool *pool, PyObject *dtype, int rank, const Py_ssize_t *shape, int64_t size) {
    Lease *lease = lease_of(pool, size);
    return lease == NULL ? NULL : array_in(lease->block->memory, (PyObject *)lease, dtype, rank, shape);
}

int lent_array(PyObject *dtype, int rank, const Py_ssize_t *shape, int64_t size, PyObject **made) {
    if (shared == NULL || !shared->enabled || size < LEAST_LENT || size > MOST) return 0;
    *made = array_of_pool(shared, dtype, rank, shape, size);
    return 1;
}

/* share(pool): let the kernels of this module make their arrays of it, from now on; or of none. */
PyObject *share_pool(PyObject *self, PyObject *pool) {
    (void)self;
    if (pool != Py_None && Py_TYPE(pool) != pool_type)
        return PyErr_Format(PyExc_TypeError, "share() takes a pool of this module");
    Py_INCREF(pool); /* for as long as the process lives */
    shared = pool == Py_None ? NULL : (Pool *)pool;
    Py_RETURN_NONE;
}

PyObject *tell_lending(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return PyBool_FromLong(lends());
}

/* array(shape, dtype): one of memory on loan; None of what is not made here. */
static PyObject *lend_array(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 2) return PyErr_Format(PyExc_TypeError, "Pool.array() takes a shape and a dtype");
    int64_t size = known_itemsize(args[1]);
    if (size == 0 || !PyTuple_CheckExact(args[0]) || PyTuple_Size(args[0]) > MOST_DIMENSIONS) Py_RETURN_NONE;
    const int rank = (int)PyTuple_Size(args[0]);
    Py_ssize_t shape[MOST_DIMENSIONS];
    for (int d = 0; d < rank; d++) {
        shape[d] = PyLong_AsSsize_t(PyTuple_GetItem(args[0], d));
        if (shape[d] <= 0) { /* or it is no number */
            PyErr_Clear();
            Py_RETURN_NONE;
        }
        size = times(size, shape[d]);
    }
    if (size < 1 << FINENESS || size > MOST) Py_RETURN_NONE;
    return array_of_pool((Pool *)self, args[1], rank, shape, size);
}

static void end_lease(PyObject *self) {
    Lease *lease = (Lease *)self;
    if (lease->block != NULL) give_back(lease->pool, lease->block);
    Py_DECREF((PyObject *)lease->pool);
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

static int see_lease(PyObject *self, Py_buffer *view, int flags) {
    const Block *block = ((Lease *)self)->block;
    return PyBuffer_FillInfo(view, self, block->memory, (Py_ssize_t)block->size, 0, flags);
}

static PyObject *empty(PyObject *self, PyObject *unused) {
    (void)unused;
    Pool *pool = (Pool *)self;
    for (int i = 0; i < SIZES; i++)
        while (pool->free[i]) end_block(take(pool, i));
    Py_RETURN_NONE;
}

static PyObject *settled(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    Py_RETURN_NONE;
}

static PyObject *new_pool(PyTypeObject *type, PyObject *args, PyObject *named) {
    long long limit;
    int enabled;
    PyObject *make;
    if (named != NULL && PyDict_Size(named) > 0) {
        PyErr_SetString(PyExc_TypeError, "Pool() takes no arguments by name");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "LpO:Pool", &limit, &enabled, &make)) return NULL;
    Pool *pool = (Pool *)PyType_GenericAlloc(type, 0);
    if (pool == NULL) return NULL;
    pool->limit = limit;
    pool->enabled = enabled != 0;
    pool->least = LEAST_LENT;
    Py_INCREF(make);
    pool->make = make;
    return (PyObject *)pool;
}

static void end_pool(PyObject *self) {
    empty(self, NULL);
    Py_DECREF(((Pool *)self)->make);
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

#define FIGURE(name) {#name, T_LONGLONG, offsetof(Pool, name), 0, NULL}
static PyMemberDef members[] = {FIGURE(limit),       FIGURE(living),        FIGURE(cached),
                                FIGURE(most_living), FIGURE(most_reserved), {"hits", T_LONGLONG, offsetof(Pool, hits), READONLY, NULL},
                                {"least", T_LONGLONG, offsetof(Pool, least), READONLY, NULL},
                                {"misses", T_LONGLONG, offsetof(Pool, misses), READONLY, NULL},
                                {"enabled", T_BOOL, offsetof(Pool, enabled), 0, NULL},
                                {NULL, 0, 0, 0, NULL}};
static PyMethodDef methods[] = {
    {"lease", lend, METH_O, "A block of at least so many bytes on loan."},
    {"array", (PyCFunction)(void (*)(void))lend_array, METH_FASTCALL, "An array of a shape and a dtype, on loan, or None."},
    {"empty", empty, METH_NOARGS, "Return all free blocks to the system."},
    {"after_fork", empty, METH_NOARGS, "Begin without free blocks in a child."},
    {"settled", settled, METH_NOARGS, "The figures are always those of now."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot pool_slots[] = {{Py_tp_new, new_pool},       {Py_tp_dealloc, end_pool}, {Py_tp_members, members},
                                   {Py_tp_methods, methods}, {Py_tp_doc, "Pool(limit, enabled, make): blocks of memory."},
                                   {0, NULL}};
static PyType_Slot lease_slots[] = {{Py_tp_dealloc, end_lease},
                                    {Py_bf_getbuffer, see_lease},
                                    {Py_tp_doc, "A block on loan."},
                                    {0, NULL}};
static PyType_Spec pool_spec = {"flambeau_native._native.Pool", sizeof(Pool), 0, Py_TPFLAGS_DEFAULT, pool_slots};
static PyType_Spec lease_spec = {"flambeau_native._native.Lease", sizeof(Lease), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, lease_slots};

/* Adds both types to the module; 0 with an exception if that fails. */
int add_lending(PyObject *module) {
    pool_type = (PyTypeObject *)PyType_FromSpec(&pool_spec);
    lease_type = (PyTypeObject *)PyType_FromSpec(&lease_spec);
    if (pool_type == NULL || lease_type == NULL) return 0;
    Py_INCREF((PyObject *)pool_type); /* one for the module */
    Py_INCREF((PyObject *)lease_type);
    return PyModule_AddObject(module, "Pool", (PyObject *)pool_type) == 0 && PyModule_AddObject(module, "Lease", (PyObject *)lease_type) == 0;
}
