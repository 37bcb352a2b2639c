/* Kernels of whose call everything but the numbers in the arrays follows from shapes, dtypes and settings:
   which function runs, with what integers, and what results look like.  Python says it once for each; a
   call that is like an earlier one looks it up, makes the results and runs. */
#include "arrays.h"
#include "binding.h"
#include "gapped.h"

#define PREPARED "flambeau_native.prepared" /* the name of a capsule that holds a Prepared */
#define MOST_GIVEN 10                       /* arguments */
#define MOST_DIMS 8
#define MOST_MADE 4
#define MOST_FIXED 6 /* arrays that the answer brings */
#define SETS 16
#define WAYS 4

/* What decides a call of an argument: the shape and dtype of an array, or a setting. */
typedef struct {
    PyObject *what; /* the dtype or the setting */
    int rank;       /* -1 of a setting */
    Py_ssize_t shape[MOST_DIMS];
} Given;

/* A result: what makes it of its shape and dtype, NULL if it is small; and its shape, if it is made here. */
typedef struct {
    PyObject *maker, *form, *dtype;
    int rank; /* -1 if it is not */
    Py_ssize_t shape[MOST_DIMS];
} Made;

/* An earlier call, and what Python said to it. */
typedef struct {
    int users; /* the table, and calls under way */
    Given given[MOST_GIVEN];
    PyObject *run; /* NULL if the general kernel serves */
    const Entry *entry;
    int made, fixed, returned, order[MOST_MADE];
    Made results[MOST_MADE];
    Py_buffer fixtures[MOST_FIXED];
    int64_t integers[MAX_ARGUMENTS];
    double floats[MAX_ARGUMENTS];
} Answer;

typedef struct {
    PyMethodDef method;
    Py_ssize_t count;
    char is_array[MOST_GIVEN], is_table[MOST_GIVEN];
    PyObject *prepare, *general, *type, *maker; /* the class of arrays, and what makes small ones */
    Answer *answers[SETS][WAYS];
    unsigned next[SETS]; /* the way that is given away next */
} Prepared;

static PyObject *name_of_dtype; /* "dtype", interned */

static void let_go(Answer *a) {
    if (a == NULL || --a->users > 0) return;
    for (int i = 0; i < MOST_GIVEN; i++) Py_XDECREF(a->given[i].what);
    for (int i = 0; i < a->made; i++) {
        Py_XDECREF(a->results[i].maker);
        Py_XDECREF(a->results[i].form);
    }
    for (int i = 0; i < a->fixed; i++) PyBuffer_Release(&a->fixtures[i]);
    Py_XDECREF(a->run);
    PyMem_Free(a);
}

/* Settings are numbers, words and None, tuples of such and tuples of those; nothing else is asked about. */
static int is_setting(PyObject *value, int depth) {
    if (value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) || PyFloat_CheckExact(value) ||
        PyUnicode_CheckExact(value))
        return 1;
    if (depth > 1 || !PyTuple_CheckExact(value)) return 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(value); i++)
        if (!is_setting(PyTuple_GetItem(value, i), depth + 1)) return 0;
    return 1;
}

/* Whether two settings are one: 1 is neither True nor 1.0, and floats are compared by their bits. */
static int is_same(PyObject *a, PyObject *b) {
    if (a == b) return 1;
    if (Py_TYPE(a) != Py_TYPE(b)) return 0;
    if (PyFloat_CheckExact(a)) {
        const double x = PyFloat_AsDouble(a), y = PyFloat_AsDouble(b);
        return memcmp(&x, &y, sizeof x) == 0;
    }
    if (PyLong_CheckExact(a) || PyUnicode_CheckExact(a)) return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
    if (!PyTuple_CheckExact(a) || PyTuple_Size(a) != PyTuple_Size(b)) return 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(a); i++)
        if (!is_same(PyTuple_GetItem(a, i), PyTuple_GetItem(b, i))) return 0;
    return 1;
}

static int is_like(const Prepared *p, const Given *a, const Given *b) {
    for (Py_ssize_t i = 0; i < p->count; i++) {
        if (a[i].rank != b[i].rank) return 0;
        if (a[i].rank < 0) {
            if (!is_same(a[i].what, b[i].what)) return 0;
        } else {
            if (a[i].what != b[i].what) return 0;
            for (int d = 0; d < a[i].rank; d++)
                if (a[i].shape[d] != b[i].shape[d]) return 0;
        }
    }
    return 1;
}

static int is_row_major(const Py_buffer *buffer) {
    Py_ssize_t step = buffer->itemsize;
    for (int d = buffer->ndim - 1; d >= 0; d--) {
        if (buffer->shape[d] != 1 && buffer->strides[d] != step) return 0;
        step *= buffer->shape[d];
    }
    return 1;
}

/* The arrays of a call that are read. */
typedef struct {
    Held held[MAX_ARRAYS];
    int count;
} Open;

static void shut(Open *open) {
    release(open->held, open->count);
    open->count = 0;
}

/* Whether the rows of an array have gaps, so that it is copied if it comes to a kernel. */
static int see_gapped(Held *held, const Array *seen, Py_ssize_t itemsize) {
    Gapped g;
    int64_t bytes;
    int repeats;
    if (seen->rank > MOST_DIMS || !read_one_gapped(&g, seen, itemsize, &bytes, &repeats) || repeats) return 0;
    *held = (Held){.copy = NULL};
    held->buffer.len = bytes;
    held->buffer.itemsize = itemsize;
    held->buffer.ndim = seen->rank;
    held->buffer.shape = seen->shape;
    return 1;
}

/* Copies such an array; 0 with an exception if that fails. */
static int copy_seen(Held *held, PyObject *array) {
    Gapped g;
    int64_t bytes;
    int repeats;
    Py_ssize_t itemsize;
    const Array *seen = array_of(array, &itemsize);
    if (seen == NULL || !read_one_gapped(&g, seen, itemsize, &bytes, &repeats) || bytes != held->buffer.len) {
        PyErr_SetString(PyExc_RuntimeError, "an array was given another shape during a call");
        return 0;
    }
    if ((held->copy = PyMem_Malloc((size_t)bytes)) == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    const int threads = threads_of_kernels();
    if (bytes <= SHORT_BYTES) {
        collect_gapped(&g, held->copy, threads);
    } else {
        Py_BEGIN_ALLOW_THREADS
        collect_gapped(&g, held->copy, threads);
        Py_END_ALLOW_THREADS
    }
    return 1;
}

/* Holds an array whose elements lie side by side, or sees one of which a copy will be made if that `may_copy`; 0
   without an exception if it is none. */
static int hold_dense(Held *held, PyObject *array, int may_copy) {
    Py_buffer *buffer = &held->buffer;
    Py_ssize_t itemsize;
    void *address;
    const Array *seen = array_of(array, &itemsize);
    if (seen != NULL && is_plain(seen, itemsize, 0)) return seen->rank <= MOST_DIMS && hold(held, array, 0, &address);
    if (seen != NULL && may_copy && see_gapped(held, seen, itemsize)) return 1;
    if (PyObject_GetBuffer(array, buffer, PyBUF_STRIDES) < 0) {
        PyErr_Clear(); /* a dtype that NumPy exports no buffers of */
        return 0;
    }
    held->copy = NULL;
    held->is_written = 0;
    if (buffer->ndim <= MOST_DIMS && is_row_major(buffer)) {
        if (!is_askew(buffer)) return 1;
        held->copy = PyMem_Malloc((size_t)buffer->len);
        if (held->copy != NULL) {
            memcpy(held->copy, buffer->buf, (size_t)buffer->len);
            return 1;
        }
    }
    PyBuffer_Release(buffer);
    return 0;
}

static int are_settings(const Prepared *p, PyObject *const *args) {
    for (Py_ssize_t i = 0; i < p->count; i++)
        if (!p->is_array[i] && !is_setting(args[i], 0)) return 0;
    return 1;
}

/* What decides about a call, of which the arrays are held; `set` is where it is looked for.  0 without an
   exception if the call is none to look up. */
static int read_given(const Prepared *p, PyObject *const *args, Given *given, Open *open, unsigned *set) {
    uint64_t hash = 0;
    for (Py_ssize_t i = 0; i < p->count; i++) {
        Given *g = &given[i];
        PyObject *arg = args[i];
        g->what = arg;
        g->rank = -1;
        if (!p->is_array[i] || arg == Py_None) continue;
        if ((PyObject *)Py_TYPE(arg) != p->type || open->count == MAX_ARRAYS - MOST_MADE) return 0;
        const Py_buffer *buffer = &open->held[open->count].buffer;
        if (!hold_dense(&open->held[open->count], arg, !p->is_table[i])) return 0;
        open->count++;
        Py_ssize_t itemsize;
        const Array *seen = array_of(arg, &itemsize);
        if (seen != NULL) {
            g->what = seen->dtype;
        } else if ((g->what = PyObject_GetAttr(arg, name_of_dtype)) != NULL) {
            Py_DECREF(g->what); /* the array keeps it */
        } else {
            PyErr_Clear();
            return 0;
        }
        g->rank = buffer->ndim;
        for (int d = 0; d < buffer->ndim; d++) {
            g->shape[d] = buffer->shape[d];
            hash = (hash ^ (uint64_t)buffer->shape[d]) * 0x9E3779B97F4A7C15u;
        }
    }
    *set = (unsigned)(hash >> 60) % SETS;
    return 1;
}

/* Reads ``(maker or None, shape, dtype)``; 0 with an exception if it is none. */
static int read_form(Made *m, PyObject *said) {
    PyObject *maker, *shape;
    if (!PyArg_ParseTuple(said, "OO!O", &maker, &PyTuple_Type, &shape, &m->dtype)) return 0;
    const Py_ssize_t rank = PyTuple_Size(shape);
    m->rank = maker == Py_None && known_itemsize(m->dtype) > 0 && rank <= MOST_DIMS ? (int)rank : -1;
    for (int d = 0; d < m->rank; d++)
        if ((m->shape[d] = PyLong_AsSsize_t(PyTuple_GetItem(shape, d))) < 0) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "negative dimensions are not allowed");
            return 0;
        }
    if ((m->form = PyTuple_Pack(2, shape, m->dtype)) == NULL) return 0;
    if (maker != Py_None) {
        Py_INCREF(maker);
        m->maker = maker;
    }
    return 1;
}

/* Reads ``(run, made, rest[, order])``; 0 with an exception if it is no answer. */
static int read_answer(Answer *a, PyObject *said, const Prepared *p) {
    PyObject *made = NULL, *rest = NULL, *order = NULL;
    if (!PyArg_ParseTuple(said, "OO!O!|O!", &a->run, &PyTuple_Type, &made, &PyTuple_Type, &rest, &PyTuple_Type,
                          &order)) {
        a->run = NULL;
        return 0;
    }
    Py_INCREF(a->run);
    PyObject *capsule = PyCFunction_Check(a->run) ? PyCFunction_GetSelf(a->run) : NULL;
    if (capsule == NULL || !PyCapsule_IsValid(capsule, ENTRY)) goto wrong;
    a->entry = PyCapsule_GetPointer(capsule, ENTRY);
    const char *kind = a->entry->row->arguments;
    const Py_ssize_t count = PyTuple_Size(made);
    if (count < 1 || count > MOST_MADE) goto wrong;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (*kind++ != 'w') goto wrong;
        if (!read_form(&a->results[a->made], PyTuple_GetItem(made, i))) return 0;
        a->order[a->made] = a->made;
        a->returned = ++a->made;
    }
    for (Py_ssize_t i = 0; i < p->count; i++) {
        if (!p->is_array[i]) continue;
        if (*kind != 'o' && !(*kind == 'r' && a->given[i].rank >= 0)) goto wrong;
        kind++;
    }
    int ints = 0, doubles = 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(rest); i++, kind++) {
        PyObject *number = PyTuple_GetItem(rest, i);
        if (*kind == 'r' && a->fixed < MOST_FIXED) {
            if (PyObject_GetBuffer(number, &a->fixtures[a->fixed], PyBUF_C_CONTIGUOUS) < 0) return 0;
            if (is_askew(&a->fixtures[a->fixed++])) goto wrong;
        } else if (*kind == 'i') a->integers[ints++] = PyLong_AsLongLong(number);
        else if (*kind == 'f') a->floats[doubles++] = PyFloat_AsDouble(number);
        else goto wrong;
        if (PyErr_Occurred()) return 0;
    }
    if (*kind) goto wrong;
    if (order != NULL) {
        if ((a->returned = (int)PyTuple_Size(order)) < 1 || a->returned > a->made) goto wrong;
        for (int i = 0; i < a->returned; i++) {
            const long place = PyLong_AsLong(PyTuple_GetItem(order, i));
            if (place < 0 || place >= a->made) goto wrong;
            a->order[i] = (int)place;
        }
    }
    return 1;
wrong:
    if (!PyErr_Occurred()) PyErr_Format(PyExc_SystemError, "%s: its call is not prepared as it must be", p->method.ml_name);
    return 0;
}

/* Asks Python about a call that is like none before; NULL with an exception. */
static Answer *ask(Prepared *p, const Given *given, PyObject *args, unsigned set) {
    Answer *a = PyMem_Calloc(1, sizeof(Answer));
    if (a == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    a->users = 1;
    for (Py_ssize_t i = 0; i < p->count; i++) {
        a->given[i] = given[i];
        Py_INCREF(given[i].what);
    }
    PyObject *said = PyObject_Call(p->prepare, args, NULL);
    const int is_answer = said != NULL && (said == Py_None || read_answer(a, said, p));
    Py_XDECREF(said);
    if (!is_answer) {
        let_go(a);
        return NULL;
    }
    Answer **place = &p->answers[set][p->next[set]++ % WAYS], *old = *place;
    a->users++;
    *place = a;
    let_go(old);
    return a;
}

/* Makes the results and runs; NULL with an exception. */
static PyObject *run_answer(const Prepared *p, const Answer *a, PyObject *const *args, Open *open) {
    const Row *row = a->entry->row;
    PyObject *made[MOST_MADE], *result = NULL;
    Held results[MOST_MADE];
    void *pointers[MAX_ARRAYS];
    Py_ssize_t lengths[MAX_ARRAYS], bytes = 0;
    int holding = 0, arrays = 0, next = 0, is_empty;
    for (; holding < a->made; holding++) {
        const Made *m = &a->results[holding];
        PyObject *array = m->rank >= 0 ? new_array(m->dtype, m->rank, m->shape)
                                       : PyObject_Call(m->maker != NULL ? m->maker : p->maker, m->form, NULL);
        if (array == NULL) goto ended;
        if (!hold(&results[holding], array, 1, &pointers[arrays])) {
            Py_DECREF(array);
            goto ended;
        }
        made[holding] = array;
        bytes += lengths[arrays++] = results[holding].buffer.len;
    }
    for (Py_ssize_t i = 0; i < p->count; i++) {
        if (!p->is_array[i]) continue;
        pointers[arrays] = NULL;
        lengths[arrays] = -1;
        if (a->given[i].rank >= 0) {
            Held *held = &open->held[next++];
            if (held->buffer.buf == NULL && !copy_seen(held, args[i])) goto ended;
            pointers[arrays] = held->copy != NULL ? held->copy : held->buffer.buf;
            bytes += lengths[arrays] = held->buffer.len;
        }
        arrays++;
    }
    for (int i = 0; i < a->fixed; i++) {
        pointers[arrays] = a->fixtures[i].buf;
        lengths[arrays++] = a->fixtures[i].len;
    }
    if (!are_long(a->entry, lengths, a->integers, &is_empty)) goto ended;
    const char *error = NULL, *failure = NULL;
    const Args packed = {pointers, a->integers, a->floats, threads_of_kernels(), &error, &failure};
    if (!is_empty && bytes <= SHORT_BYTES) {
        row->kernel(&packed);
    } else if (!is_empty) {
        Py_BEGIN_ALLOW_THREADS
        row->kernel(&packed);
        Py_END_ALLOW_THREADS
    }
    if (error != NULL) {
        PyErr_Format(PyExc_IndexError, "%s(): %s", row->name, error);
    } else if (failure != NULL) {
        PyErr_Format(PyExc_RuntimeError, "%s(): %s", row->name, failure);
    } else if (a->returned == 1) {
        result = made[a->order[0]];
        Py_INCREF(result);
    } else if ((result = PyTuple_New(a->returned)) != NULL) {
        for (int i = 0; i < a->returned; i++) {
            Py_INCREF(made[a->order[i]]);
            PyTuple_SetItem(result, i, made[a->order[i]]);
        }
    }
ended:
    release(results, holding);
    while (holding--) Py_DECREF(made[holding]);
    return result;
}

static PyObject *tuple_of(PyObject *const *args, Py_ssize_t count) {
    PyObject *all = PyTuple_New(count);
    for (Py_ssize_t i = 0; all != NULL && i < count; i++) {
        Py_INCREF(args[i]);
        PyTuple_SetItem(all, i, args[i]);
    }
    return all;
}

static PyObject *call_prepared(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Prepared *p = PyCapsule_GetPointer(self, PREPARED);
    if (p == NULL) return NULL;
    Given given[MOST_GIVEN];
    Open open = {.count = 0};
    Answer *a = NULL;
    unsigned set = 0;
    int is_asked = count == p->count && read_given(p, args, given, &open, &set);
    for (int i = 0; is_asked && a == NULL && i < WAYS; i++) {
        Answer *one = p->answers[set][i];
        if (one != NULL && is_like(p, one->given, given)) a = one;
    }
    PyObject *all = NULL, *result = NULL;
    if (a != NULL) a->users++;
    else is_asked = is_asked && are_settings(p, args);
    if ((a == NULL || a->run == NULL) && (all = tuple_of(args, count)) == NULL) goto ended;
    if (a == NULL && is_asked && (a = ask(p, given, all, set)) == NULL) goto ended;
    if (a != NULL && a->run != NULL) {
        result = run_answer(p, a, args, &open);
    } else {
        shut(&open); /* the general kernel may do with them what it likes */
        result = PyObject_Call(p->general, all, NULL);
    }
ended:
    shut(&open);
    let_go(a);
    Py_XDECREF(all);
    return result;
}

/* ``prepared(name, arrays, prepare, general, type, maker)``: a kernel that asks ``prepare(*arguments)`` about a
   call that is like none before.  What it says is None, for ``general(*arguments)``, or

   * the function of this module that runs, on results, arrays and the rest of its arguments,
   * for each result what makes it, or None if it is small, its shape and its dtype,
   * the rest: arrays that nobody writes to, and numbers,
   * which of the results are returned and in what order; all, if that is left out.

   `arrays` has a letter for each argument: a for an array or None, which is copied if its rows have gaps; t for one of
   which few elements may be read, and which is not; s for a setting; `maker` makes what is
   small of its shape and dtype. */
PyObject *make_prepared(PyObject *self, PyObject *given) {
    (void)self;
    const char *name, *arrays;
    PyObject *prepare, *general, *type, *maker;
    if (!PyArg_ParseTuple(given, "ssOOOO", &name, &arrays, &prepare, &general, &type, &maker)) return NULL;
    const size_t count = strlen(arrays);
    if (count < 1 || count > MOST_GIVEN) return PyErr_Format(PyExc_ValueError, "%s: too many arguments", name);
    if (name_of_dtype == NULL && (name_of_dtype = PyUnicode_InternFromString("dtype")) == NULL) return NULL;
    Prepared *p = PyMem_Calloc(1, sizeof(Prepared));
    char *kept = PyMem_Malloc(strlen(name) + 1);
    PyObject *capsule = p == NULL || kept == NULL ? PyErr_NoMemory() : PyCapsule_New(p, PREPARED, NULL);
    if (capsule == NULL) {
        PyMem_Free(p);
        PyMem_Free(kept);
        return NULL;
    }
    /* All of it lives as long as the process, as the function does. */
    p->count = (Py_ssize_t)count;
    for (size_t i = 0; i < count; i++) {
        p->is_table[i] = arrays[i] == 't';
        p->is_array[i] = arrays[i] == 'a' || p->is_table[i];
    }
    Py_INCREF(prepare), Py_INCREF(general), Py_INCREF(type), Py_INCREF(maker);
    p->prepare = prepare, p->general = general, p->type = type, p->maker = maker;
    p->method = (PyMethodDef){strcpy(kept, name), (PyCFunction)(void (*)(void))call_prepared, METH_FASTCALL, NULL};
    PyObject *function = PyCFunction_NewEx(&p->method, capsule, NULL);
    Py_DECREF(capsule);
    return function;
}
