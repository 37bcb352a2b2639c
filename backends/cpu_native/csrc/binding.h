/* What the files of the Python module share: arrays during a call, and rows whose text was read. */
#ifndef FLAMBEAU_BINDING_H
#define FLAMBEAU_BINDING_H

#include <Python.h>

#include "native.h"

#define MAX_ARGUMENTS 32
#define SHORT_BYTES 16384 /* moving so many takes less time than giving up the interpreter's lock and taking it back */
#define ENTRY "flambeau_native.entry" /* the name of a capsule that holds an Entry */

/* An array during a call.  C may not read items that lie askew in memory: a kernel then gets a copy,
   and what it writes goes back. */
typedef struct {
    Py_buffer buffer;
    void *copy;
    int is_written;
} Held;

int is_askew(const Py_buffer *buffer);
int hold(Held *held, PyObject *array, int is_written, void **address);
void release(Held *held, int count);

#define MAX_ARRAYS 12
#define MAX_FACTORS 5

/* A factor is the integer `first`, or its sum with `second`, or `second` if that is not zero, or how many
   times `second` covers it, or `first` filled up to a multiple of `panel`. */
typedef struct {
    char how; /* 0, '+', '|', '/' or '^' */
    int first, second;
    int64_t panel;
} Factor;

typedef struct {
    int64_t unit; /* bytes; 0 of no extent */
    int count;
    Factor factors[MAX_FACTORS];
} Extent;

/* A row, its text read. */
typedef struct {
    const Row *row;
    Py_ssize_t wanted;
    int arrays, of_one_shape;
    Extent extents[MAX_ARRAYS];
} Entry;

/* Whether every array is as long as the integers say, and by `*is_empty` whether none has anything to read or
   to write; an exception is set if not. */
int are_long(const Entry *entry, const Py_ssize_t *lengths, const int64_t *n, int *is_empty);

/* Whether all arrays have the shape of the first; an exception is set if not. */
int are_of_one_shape(const Entry *entry, const Held *held, int count);

typedef PyObject *Function(PyObject *self, PyObject *const *args, Py_ssize_t count);

int threads_of_kernels(void);

/* general(*args), for arguments that compiled code does not take. */
PyObject *call_general(PyObject *general, PyObject *const *args, Py_ssize_t count);

/* Zeroed memory of so many bytes, kept by a new capsule of that name, with which `drop` frees it; NULL with an
   exception. */
void *kept_by(PyObject **capsule, size_t bytes, const char *name, PyCapsule_Destructor drop);

/* The row that a function of this module calls, or NULL with an exception, in the name of `function`. */
const Entry *entry_of(PyObject *kernel, const char *function);

/* each.c */
Function call_each;
int name_of_each(const Entry *entry, char **name);

#endif
