/* The Python module: one function per row of the kernels' tables.

   The binding is by hand, since the calls are all alike: a buffer's address costs 40 ns here, and
   300 ns through cffi, which counts for arrays of a few thousand elements.  It uses the stable ABI
   only. */
#include <Python.h>

#include "arrays.h"
#include "binding.h"
#include "product.h"

#define MOST_THREADS 1024

extern const Row pointwise_rows[], comparing_rows[], writing_rows[], casting_rows[], moving_rows[], activation_rows[], prelu_rows[], columns_rows[],
    normalization_rows[], optimizer_rows[], random_rows[], rejection_rows[], multinomial_rows[], reduction_rows[], extremes_rows[], truth_rows[], loss_rows[], pooling_rows[], indexing_rows[], bags_rows[], searching_rows[], counting_rows[], selecting_rows[], special_rows[], integers_rows[], product_rows[], matrices_rows[], sgemm_rows[],
    recurrent_rows[], primitives_rows[], convolution_rows[], convolution_weight_rows[], pixels_rows[], resampling_rows[],
    sampling_rows[], sequences_rows[], boundary_rows[], distances_rows[], gating_rows[], folding_rows[];
static const Row *const tables[] = {pointwise_rows,     comparing_rows,     writing_rows,       casting_rows,   moving_rows,        activation_rows, prelu_rows, columns_rows,
                                    normalization_rows, optimizer_rows,
                                    random_rows,     rejection_rows,     multinomial_rows, reduction_rows,     extremes_rows,      truth_rows,      loss_rows,
                                    pooling_rows,    indexing_rows,      bags_rows, searching_rows, counting_rows, selecting_rows, special_rows, integers_rows, product_rows, matrices_rows,
                                    sgemm_rows,      recurrent_rows,     primitives_rows, convolution_rows, convolution_weight_rows, pixels_rows, resampling_rows,
                                    sampling_rows,      sequences_rows,     boundary_rows,    distances_rows, gating_rows, folding_rows};

/* In a forked child the threads of the parent's pool are gone, and waiting for them would be forever:
   it has one thread, whatever is asked of it later. */
static int thread_limit = 1, is_forked = 0;

/* No kernel reads more than eight bytes at once. */
int is_askew(const Py_buffer *buffer) {
    uintptr_t item = (uintptr_t)buffer->itemsize, unit = item & (~item + 1);
    return buffer->len > 0 && ((uintptr_t)buffer->buf & ((unit > 8 ? 8 : unit) - 1)) != 0;
}

/* Finds the address that a kernel may use; 0 with an exception, the array then not held. */
int hold(Held *held, PyObject *array, int is_written, void **address) {
    int flags = is_written ? PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE : PyBUF_C_CONTIGUOUS;
    Py_buffer *buffer = &held->buffer;
    Py_ssize_t itemsize;
    const Array *seen = array_of(array, &itemsize);
    held->copy = NULL;
    held->is_written = is_written;
    if (seen != NULL && is_plain(seen, itemsize, is_written)) {
        buffer->obj = NULL; /* whose release is nothing */
        buffer->buf = *address = seen->memory;
        buffer->len = length_of(seen, itemsize);
        buffer->itemsize = itemsize;
        buffer->ndim = seen->rank;
        buffer->shape = seen->shape;
        return 1;
    }
    if (PyObject_GetBuffer(array, buffer, flags) < 0) return 0;
    *address = buffer->buf;
    if (!is_askew(buffer)) return 1;
    held->copy = PyMem_Malloc((size_t)buffer->len);
    if (held->copy == NULL) {
        PyBuffer_Release(buffer);
        PyErr_NoMemory();
        return 0;
    }
    *address = memcpy(held->copy, buffer->buf, (size_t)buffer->len);
    return 1;
}

void release(Held *held, int count) {
    for (int i = 0; i < count; i++) {
        if (held[i].copy != NULL) {
            if (held[i].is_written) memcpy(held[i].buffer.buf, held[i].copy, (size_t)held[i].buffer.len);
            PyMem_Free(held[i].copy);
        }
        PyBuffer_Release(&held[i].buffer);
    }
}

static int64_t type_size(const char *name) {
    const char *suffix = strrchr(name, '_');
    if (suffix == NULL) return 0;
    if (strstr("_f64_i64_w8", suffix)) return 8;
    if (strstr("_f32_i32_w4", suffix)) return 4;
    return strstr(suffix, "f16") ? 2 : 1;
}

static int digit(const char **text) { return *(*text)++ - '0'; }

/* Reads one extent up to its comma; 0 if it makes no sense. */
static int read_extent(Extent *e, const char **text, const char *name) {
    *e = (Extent){0};
    if (**text == '-') {
        (*text)++;
        return 1;
    }
    int64_t times = 0;
    while (**text >= '0' && **text <= '9') times = times * 10 + digit(text);
    switch (*(*text)++) {
        case 'b': e->unit = 1; break;
        case 'h': e->unit = 2; break;
        case 'w': e->unit = 4; break;
        case 'd': e->unit = 8; break;
        case 't': e->unit = type_size(name); break;
        default: return 0;
    }
    if (times) e->unit *= times;
    while (**text && **text != ',') {
        if (e->count == MAX_FACTORS) return 0;
        Factor *f = &e->factors[e->count++];
        const int is_sum = **text == '(';
        if (is_sum) (*text)++;
        f->first = digit(text);
        if (**text == '^') {
            f->how = *(*text)++;
            f->panel = PANEL_BYTES / type_size(name);
        } else if (is_sum || **text == '|' || **text == '/') {
            f->how = *(*text)++;
            f->second = digit(text);
            if (is_sum) (*text)++;
        }
    }
    return e->unit > 0;
}

static int is_number(char kind) { return kind == 'i' || kind == 'a'; }

static int is_integer(const Row *row, int number) {
    int count = 0;
    for (const char *kind = row->arguments; *kind; kind++) count += is_number(*kind);
    return number >= 0 && number < count;
}

static int read_row(Entry *entry, const Row *row) {
    const char *text = row->extents;
    *entry = (Entry){.row = row, .wanted = (Py_ssize_t)strlen(row->arguments)};
    if (*text == '=') entry->of_one_shape = 1, text++;
    for (const char *kind = row->arguments; *kind; kind++) {
        if (is_number(*kind) || *kind == 'f') continue;
        if (entry->arrays == MAX_ARRAYS || !read_extent(&entry->extents[entry->arrays], &text, row->name))
            return 0;
        if (*text == ',') text++;
        const Extent *e = &entry->extents[entry->arrays++];
        for (int j = 0; j < e->count; j++)
            if (!is_integer(row, e->factors[j].first) || !is_integer(row, e->factors[j].second)) return 0;
    }
    return *text == 0;
}

/* The value of a factor, or -1 if it makes no sense. */
static int64_t value_of(const Factor *f, const int64_t *n) {
    const int64_t first = n[f->first], second = n[f->second];
    int64_t value = first;
    if (f->how == '+') {
        if (first < 0 || second < 0 || __builtin_add_overflow(first, second, &value)) return -1;
    } else if (f->how == '/') {
        if (second < 1) return -1;
        value = first / second + (first % second > 0);
    } else if (f->how == '^') {
        if (__builtin_add_overflow(first, f->panel - 1, &value)) return -1;
        value -= value % f->panel;
    } else if (f->how == '|' && second != 0) {
        value = second;
    }
    return value < 0 ? -1 : value;
}

/* Whether every array is as long as the integers say; an exception is set if not.  `*is_empty` tells
   whether none has anything to read or to write.  The sizes of one that has nothing are held to what a
   number can count all the same, or a kernel could not multiply them. */
int are_long(const Entry *entry, const Py_ssize_t *lengths, const int64_t *n, int *is_empty) {
    *is_empty = 1;
    for (int i = 0; i < entry->arrays; i++) {
        const Extent *e = &entry->extents[i];
        int64_t need = e->unit;
        int has_none = e->unit == 0;
        if (has_none) *is_empty = 0; /* nobody knows */
        for (int j = 0; j < e->count; j++) {
            const int64_t value = value_of(&e->factors[j], n);
            if (value == 0) has_none = 1;
            else if (value < 0 || __builtin_mul_overflow(need, value, &need)) {
                need = INT64_MAX; /* more than any memory has */
                has_none = 0;
                break;
            }
        }
        if (!has_none) *is_empty = 0;
        else if (need < INT64_MAX) need = 0;
        if (lengths[i] >= 0 ? need > lengths[i] : need == INT64_MAX) {
            PyErr_Format(PyExc_RuntimeError, "%s(): array %d has %zd bytes, where %lld are read or written",
                         entry->row->name, i, lengths[i], (long long)need);
            return 0;
        }
    }
    return 1;
}

int are_of_one_shape(const Entry *entry, const Held *held, int count) {
    const Py_buffer *first = &held[0].buffer;
    for (int i = 1; i < count; i++) {
        const Py_buffer *other = &held[i].buffer;
        int same = other->ndim == first->ndim;
        for (int d = 0; same && d < first->ndim; d++) same = other->shape[d] == first->shape[d];
        if (!same) {
            PyErr_Format(PyExc_RuntimeError, "%s(): the arrays must have one shape", entry->row->name);
            return 0;
        }
    }
    return 1;
}

static PyObject *call(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    const Entry *entry = PyCapsule_GetPointer(self, ENTRY);
    if (entry == NULL) return NULL;
    const Row *row = entry->row;
    const Py_ssize_t wanted = entry->wanted;
    if (count != wanted) {
        PyErr_Format(PyExc_TypeError, "%s() takes %zd arguments, got %zd", row->name, wanted, count);
        return NULL;
    }
    Held held[MAX_ARGUMENTS];
    void *pointers[MAX_ARGUMENTS];
    Py_ssize_t lengths[MAX_ARGUMENTS];
    int64_t integers[MAX_ARGUMENTS];
    double floats[MAX_ARGUMENTS] = {0};
    int arrays = 0, ints = 0, doubles = 0, holding = 0, is_empty = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        char kind = row->arguments[i];
        if (is_number(kind)) {
            long long value = PyLong_AsLongLong(args[i]);
            if (value == -1 && PyErr_Occurred()) goto failed;
            if (kind == 'a' && value == 0) {
                PyErr_Format(PyExc_RuntimeError, "%s(): nothing lies at address 0", row->name);
                goto failed;
            }
            integers[ints++] = value;
        } else if (kind == 'f') {
            double value = PyFloat_AsDouble(args[i]);
            if (value == -1.0 && PyErr_Occurred()) goto failed;
            floats[doubles++] = value;
        } else if ((kind == 'o' || kind == 'W') && args[i] == Py_None) {
            lengths[arrays] = -1;
            pointers[arrays++] = NULL;
        } else {
            int is_written = kind == 'w' || kind == 'W';
            if (!hold(&held[holding], args[i], is_written, &pointers[arrays])) goto failed;
            lengths[arrays++] = held[holding++].buffer.len;
        }
    }
    if (!are_long(entry, lengths, integers, &is_empty)) goto failed;
    if (entry->of_one_shape && !are_of_one_shape(entry, held, holding)) goto failed;
    const char *error = NULL, *failure = NULL;
    Args packed = {pointers, integers, floats, thread_limit, &error, &failure};
    if (!is_empty) {
        Py_BEGIN_ALLOW_THREADS
        row->kernel(&packed);
        Py_END_ALLOW_THREADS
    }
    release(held, holding);
    if (error != NULL) return PyErr_Format(PyExc_IndexError, "%s(): %s", row->name, error);
    if (failure != NULL) return PyErr_Format(PyExc_RuntimeError, "%s(): %s", row->name, failure);
    Py_RETURN_NONE;
failed:
    release(held, holding);
    return NULL;
}

PyObject *call_general(PyObject *general, PyObject *const *args, Py_ssize_t count) {
    PyObject *given = PyTuple_New(count);
    if (given == NULL) return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_INCREF(args[i]);
        PyTuple_SetItem(given, i, args[i]);
    }
    PyObject *found = PyObject_Call(general, given, NULL);
    Py_DECREF(given);
    return found;
}

void *kept_by(PyObject **capsule, size_t bytes, const char *name, PyCapsule_Destructor drop) {
    void *memory = PyMem_Calloc(1, bytes);
    *capsule = memory == NULL ? PyErr_NoMemory() : PyCapsule_New(memory, name, drop);
    if (*capsule != NULL) return memory;
    PyMem_Free(memory);
    return NULL;
}

const Entry *entry_of(PyObject *kernel, const char *function) {
    PyObject *capsule = PyCFunction_Check(kernel) ? PyCFunction_GetSelf(kernel) : NULL;
    if (capsule != NULL && PyCapsule_IsValid(capsule, ENTRY))
        return PyCapsule_GetPointer(capsule, ENTRY); /* which lives as long as the process */
    PyErr_Format(PyExc_TypeError, "%s(): a case has no kernel of this module", function);
    return NULL;
}

static PyObject *set_threads(PyObject *self, PyObject *value) {
    (void)self;
    long n = PyLong_AsLong(value);
    if (n == -1 && PyErr_Occurred()) return NULL;
    if (n < 1) {
        PyErr_SetString(PyExc_ValueError, "the number of threads must be positive");
        return NULL;
    }
    if (!is_forked) thread_limit = n < MOST_THREADS ? (int)n : MOST_THREADS;
    Py_RETURN_NONE;
}

int threads_of_kernels(void) { return thread_limit; }

static PyObject *get_threads(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return PyLong_FromLong(thread_limit);
}

static PyObject *after_fork(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    thread_limit = is_forked = 1;
    Py_RETURN_NONE;
}

static PyObject *tell_linear(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return PyBool_FromLong(has_linear());
}

PyObject *make_program(PyObject *self, PyObject *args);  /* program_module.c */
PyObject *make_fused(PyObject *self, PyObject *args);    /* the same */
PyObject *make_decision(PyObject *self, PyObject *args); /* decision.c */
int add_lending(PyObject *module);                       /* lending.c */
PyObject *share_pool(PyObject *self, PyObject *pool);    /* the same */
PyObject *tell_lending(PyObject *self, PyObject *unused); /* the same */
PyObject *borrow(PyObject *self, PyObject *args);        /* borrowed.c */
PyObject *make_drawing(PyObject *self, PyObject *args);  /* drawing.c */
PyObject *make_assigning(PyObject *self, PyObject *args); /* assigning.c */
PyObject *make_choosing(PyObject *self, PyObject *args);  /* choosing.c */
PyObject *make_collecting(PyObject *self, PyObject *args); /* collecting.c */
PyObject *make_finding(PyObject *self, PyObject *args);    /* finding.c */
PyObject *make_repeating(PyObject *self, PyObject *args);  /* finding.c */
PyObject *make_pairing(PyObject *self, PyObject *args);  /* pairs.c */
PyObject *make_joining(PyObject *self, PyObject *args);  /* joining.c */
PyObject *learn_arrays(PyObject *self, PyObject *args);  /* arrays.c */
PyObject *make_making(PyObject *self, PyObject *args);   /* making.c */
PyObject *make_whole(PyObject *self, PyObject *args);    /* whole.c */
PyObject *make_prepared(PyObject *self, PyObject *args); /* prepared.c */
Function tell_range;                                     /* looking.c */

static PyMethodDef functions[] = {
    {"program", make_program, METH_VARARGS, "A function of the arrays of a program."},
    {"fused", make_fused, METH_VARARGS, "A program that makes its results."},
    {"decision", make_decision, METH_VARARGS, "A function of the arrays of a decision."},
    {"learn_arrays", learn_arrays, METH_VARARGS, "Read arrays where they lie, if they are as expected."},
    {"drawing", make_drawing, METH_VARARGS, "Functions that draw random numbers by one call."},
    {"assigning", make_assigning, METH_VARARGS, "A function that writes into arrays."},
    {"collecting", make_collecting, METH_VARARGS, "A function that makes row-major copies."},
    {"choosing", make_choosing, METH_VARARGS, "A function that chooses between two arrays by element."},
    {"finding", make_finding, METH_VARARGS, "A function that says where elements are not zero."},
    {"repeating", make_repeating, METH_VARARGS, "A function that repeats places."},
    {"pairing", make_pairing, METH_VARARGS, "A function that multiplies two small matrices."},
    {"joining", make_joining, METH_VARARGS, "A function that joins small arrays."},
    {"making", make_making, METH_VARARGS, "A function of shape and dtype that makes arrays."},
    {"whole", make_whole, METH_VARARGS, "A kernel of elements that makes its result."},
    {"prepared", make_prepared, METH_VARARGS, "A kernel that asks once about calls that are alike."},
    {"lies_within", (PyCFunction)(void (*)(void))tell_range, METH_FASTCALL, "Whether indices are in [0, size)."},
    {"share", share_pool, METH_O, "Let kernels make their arrays of a pool."},
    {"lends", tell_lending, METH_NOARGS, "Whether kernels make their arrays of a pool."},
    {"borrow", borrow, METH_VARARGS, "Let programs call the loop of a ufunc of NumPy."},
    {"has_linear", tell_linear, METH_NOARGS, "Whether the processor has the instructions of linear."},
    {"set_threads", set_threads, METH_O, "Let kernels use at most this many threads."},
    {"get_threads", get_threads, METH_NOARGS, "How many threads kernels use at most."},
    {"after_fork", after_fork, METH_NOARGS, "Be told that this process is a forked child."},
    {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "flambeau_native._native",
                                        "Compiled kernels; call them through flambeau.", -1,
                                        functions,              NULL,
                                        NULL,                   NULL,
                                        NULL};

/* What the module was made of: setup.py says it, and sources.py compares. */
#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)

/* Adds a function of an entry.  Definitions live as long as the process, as the functions do. */
static int add(PyObject *module, Entry *entry, const char *name, const char *text, Function *run) {
    PyMethodDef *method = PyMem_Malloc(sizeof(PyMethodDef));
    if (method == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    PyObject *capsule = PyCapsule_New(entry, ENTRY, NULL);
    if (capsule == NULL) return 0;
    *method = (PyMethodDef){name, (PyCFunction)(void (*)(void))run, METH_FASTCALL, text};
    PyObject *function = PyCFunction_NewEx(method, capsule, NULL);
    Py_DECREF(capsule);
    return function != NULL && PyModule_AddObject(module, name, function) == 0;
}

PyMODINIT_FUNC PyInit__native(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL || !add_lending(module)) return NULL;
#ifdef SOURCES
    if (PyModule_AddStringConstant(module, "sources", TEXT(SOURCES)) < 0) return NULL;
#endif
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
        for (const Row *row = tables[t]; row->name != NULL; row++) {
            Entry *entry = PyMem_Malloc(sizeof(Entry));
            if (entry == NULL) return PyErr_NoMemory();
            if (!read_row(entry, row)) {
                PyErr_Format(PyExc_SystemError, "%s: its extents are no extents", row->name);
                return NULL;
            }
            if (!add(module, entry, row->name, row->arguments, call)) return NULL;
            char *name = NULL;
            if (!name_of_each(entry, &name)) return NULL;
            if (name != NULL && !add(module, entry, name, "", call_each)) return NULL;
        }
    }
    return module;
}
