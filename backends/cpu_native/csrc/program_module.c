/* Programs as functions of Python: program(shape, kinds, inputs, read, values, temporary, code) gives run(*inputs,
   *outputs), and fused(run, results, targets, large, limit) what makes the outputs itself. */
#include "arrays.h"
#include "binding.h"
#include "chains.h"

#define CAPSULE "flambeau_native.program"
#define FUSED "flambeau_native.fused"

static void drop(PyObject *capsule) {
    Program *p = PyCapsule_GetPointer(capsule, CAPSULE);
    drop_chains(p);
    PyMem_Free(p);
}

static PyObject *refuse(const char *what) {
    PyErr_Format(PyExc_ValueError, "program(): %s", what);
    return NULL;
}

/* Strides as the program's shape has them; 0 with an exception if the array is none for it. */
static int place_array(const Program *p, const Py_buffer *b, int number, Place *place) {
    const char kind = p->kinds[number];
    const int is_output = number >= p->inputs;
    int fits = b->itemsize == size_of(kind) && b->ndim <= p->rank;
    place->memory = b->buf;
    if (kind == 'R') { /* any shape of so many, one after the other */
        int64_t size = 1;
        for (int d = b->ndim - 1; d >= 0; d--) {
            if (b->shape[d] != 1 && b->strides[d] != size * size_of(kind)) fits = 0;
            size *= b->shape[d];
        }
        for (int d = 0; d < p->rank; d++) place->strides[d] = 0;
        fits = fits && size * p->shape[p->rank - 1] == p->size && ((uintptr_t)b->buf & 3) == 0;
    } else {
        fits = fits && (!is_output || b->ndim == p->rank);
        for (int d = 0; fits && d < p->rank; d++) {
            const int own = d - (p->rank - b->ndim);
            place->strides[d] = 0;
            if (own < 0 || (b->shape[own] == 1 && !is_output)) continue;
            fits = b->shape[own] == p->shape[d];
            place->strides[d] = b->strides[own];
        }
    }
    if (!fits) PyErr_Format(PyExc_RuntimeError, "program: array %d is none that it was made for", number);
    return fits;
}

/* An array during a call; 0 with an exception if it is none, or may not be written to. */
static int see(PyObject *array, int is_written, Py_buffer *b) {
    Py_ssize_t itemsize;
    const Array *seen = array_of(array, &itemsize);
    if (seen == NULL || (is_written && !is_writable(seen)))
        return PyObject_GetBuffer(array, b, is_written ? PyBUF_STRIDES | PyBUF_WRITABLE : PyBUF_STRIDES) == 0;
    b->obj = NULL; /* whose release is nothing */
    b->buf = seen->memory, b->itemsize = itemsize, b->ndim = seen->rank;
    b->shape = seen->shape, b->strides = seen->strides;
    return 1;
}

/* Runs it where the arrays are; 0 with an exception. */
static int run_at(const Program *p, const Place *places) {
    const int threads = threads_of_kernels(), arrays = p->inputs + p->outputs;
    int is_done;
    if (p->size * arrays * (int64_t)sizeof(float) <= SHORT_BYTES) {
        is_done = run_program(p, places, threads);
    } else {
        Py_BEGIN_ALLOW_THREADS
        is_done = run_program(p, places, threads);
        Py_END_ALLOW_THREADS
    }
    if (!is_done) PyErr_NoMemory();
    return is_done;
}

static PyObject *run(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    const Program *p = PyCapsule_GetPointer(self, CAPSULE);
    if (p == NULL) return NULL;
    const int arrays = p->inputs + p->outputs;
    if (count != arrays)
        return PyErr_Format(PyExc_TypeError, "program: it takes %d arrays, got %zd", arrays, count);
    Py_buffer held[MAX_PROGRAM_ARRAYS];
    Place places[MAX_PROGRAM_ARRAYS];
    int holding = 0, is_sound = 1, is_done = 0;
    while (is_sound && holding < arrays && see(args[holding], holding >= p->inputs, &held[holding])) {
        is_sound = place_array(p, &held[holding], holding, &places[holding]);
        holding++;
    }
    if (is_sound && holding == arrays) is_done = run_at(p, places);
    while (holding--) PyBuffer_Release(&held[holding]);
    if (!is_done) return NULL;
    Py_RETURN_NONE;
}

/* A program that makes its results: of each its shape and dtype, and of each output of the program which result it is,
   or where in that it begins, if it is a part. */
typedef struct {
    PyObject *run, *large, *shapes[MAX_PROGRAM_ARRAYS], *dtypes[MAX_PROGRAM_ARRAYS];
    const Program *p; /* that `run` keeps */
    int results, rank[MAX_PROGRAM_ARRAYS], of[MAX_PROGRAM_ARRAYS], is_part[MAX_PROGRAM_ARRAYS];
    Py_ssize_t sizes[MAX_PROGRAM_ARRAYS][MOST_RANK], starts[MAX_PROGRAM_ARRAYS][MAX_RANK];
    Py_ssize_t limit;
    int is_strange[MAX_PROGRAM_ARRAYS]; /* what C makes no arrays of */
} Fused;

static void drop_fused(PyObject *capsule) {
    Fused *f = PyCapsule_GetPointer(capsule, FUSED);
    Py_XDECREF(f->run);
    Py_XDECREF(f->large);
    for (int i = 0; i < MAX_PROGRAM_ARRAYS; i++) {
        Py_XDECREF(f->shapes[i]);
        Py_XDECREF(f->dtypes[i]);
    }
    PyMem_Free(f);
}

/* Where in its result an output lies; 0 with an exception if it does not fit. */
static int place_output(const Fused *f, const Py_buffer *whole, int output, Place *place) {
    Py_buffer b = *whole;
    Py_ssize_t shape[MAX_RANK];
    if (f->is_part[output]) {
        for (int d = 0; d < f->p->rank; d++) {
            shape[d] = (Py_ssize_t)f->p->shape[d];
            if (b.ndim != f->p->rank || f->starts[output][d] + shape[d] > b.shape[d]) {
                PyErr_SetString(PyExc_RuntimeError, "fused(): a part does not lie within its result");
                return 0;
            }
            b.buf = (char *)b.buf + f->starts[output][d] * b.strides[d];
        }
        b.shape = shape;
    }
    return place_array(f->p, &b, f->p->inputs + output, place);
}

static PyObject *run_fused(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    const Fused *f = PyCapsule_GetPointer(self, FUSED);
    if (f == NULL) return NULL;
    const Program *p = f->p;
    if (count != p->inputs)
        return PyErr_Format(PyExc_TypeError, "fused: it takes %d arrays, got %zd", p->inputs, count);
    Py_buffer held[MAX_PROGRAM_ARRAYS], results[MAX_PROGRAM_ARRAYS];
    Place places[MAX_PROGRAM_ARRAYS];
    PyObject *made[MAX_PROGRAM_ARRAYS], *result = NULL;
    int holding = 0, making = 0, is_sound = 1;
    while (is_sound && holding < p->inputs && see(args[holding], 0, &held[holding])) {
        is_sound = place_array(p, &held[holding], holding, &places[holding]);
        holding++;
    }
    is_sound = is_sound && holding == p->inputs;
    while (is_sound && making < f->results) {
        PyObject *array = f->is_strange[making]
                              ? PyObject_CallFunctionObjArgs(f->large, f->shapes[making], f->dtypes[making], NULL)
                              : new_or_large(f->dtypes[making], f->rank[making], f->sizes[making], f->limit, f->large);
        is_sound = array != NULL && see(array, 1, &results[making]);
        if (is_sound) made[making++] = array;
        else Py_XDECREF(array);
    }
    for (int j = 0; is_sound && j < p->outputs; j++)
        is_sound = place_output(f, &results[f->of[j]], j, &places[p->inputs + j]);
    if (is_sound && run_at(p, places)) {
        if (f->results == 1) {
            result = made[0];
            Py_INCREF(result);
        } else if ((result = PyTuple_New(f->results)) != NULL) {
            for (int i = 0; i < f->results; i++) {
                Py_INCREF(made[i]);
                PyTuple_SetItem(result, i, made[i]);
            }
        }
    }
    while (holding--) PyBuffer_Release(&held[holding]);
    while (making--) {
        PyBuffer_Release(&results[making]);
        Py_DECREF(made[making]);
    }
    return result;
}

/* Reads the results and which of them each output is; 0 with an exception. */
static int read_results(Fused *f, PyObject *results, PyObject *targets) {
    const Program *p = f->p;
    const Py_ssize_t count = PyTuple_Size(results);
    int is_sound = count > 0 && count <= MAX_PROGRAM_ARRAYS && PyTuple_Size(targets) == p->outputs;
    for (f->results = 0; is_sound && f->results < count; f->results++) {
        const int i = f->results;
        PyObject *result = PyTuple_GetItem(results, i);
        if (!(is_sound = PyTuple_Check(result))) break;
        if (!PyArg_ParseTuple(result, "O!O:fused", &PyTuple_Type, &f->shapes[i], &f->dtypes[i])) {
            f->shapes[i] = f->dtypes[i] = NULL;
            return 0;
        }
        Py_INCREF(f->shapes[i]);
        Py_INCREF(f->dtypes[i]);
        const Py_ssize_t itemsize = known_itemsize(f->dtypes[i]);
        f->is_strange[i] = itemsize == 0 || read_shape(f->shapes[i], itemsize, PY_SSIZE_T_MAX, f->sizes[i]) < 0;
        f->rank[i] = (int)PyTuple_Size(f->shapes[i]);
    }
    for (int j = 0; is_sound && j < p->outputs; j++) {
        PyObject *starts, *target = PyTuple_GetItem(targets, j);
        if (!(is_sound = PyTuple_Check(target))) break;
        if (!PyArg_ParseTuple(target, "iO!:fused", &f->of[j], &PyTuple_Type, &starts)) return 0;
        is_sound = f->of[j] >= 0 && f->of[j] < count;
        f->is_part[j] = PyTuple_Size(starts) > 0;
        is_sound = is_sound && (!f->is_part[j] || PyTuple_Size(starts) == p->rank);
        for (int d = 0; is_sound && f->is_part[j] && d < p->rank; d++) {
            f->starts[j][d] = PyLong_AsSsize_t(PyTuple_GetItem(starts, d));
            is_sound = f->starts[j][d] >= 0 && f->starts[j][d] <= INT64_MAX / 1024;
        }
    }
    if (!is_sound && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "fused(): its results make no sense");
    return is_sound && !PyErr_Occurred();
}

PyObject *make_fused(PyObject *self, PyObject *args) {
    PyObject *run, *results, *targets, *large, *capsule;
    Py_ssize_t limit;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO!O!On:fused", &run, &PyTuple_Type, &results, &PyTuple_Type, &targets, &large, &limit))
        return NULL;
    PyObject *program = PyCFunction_Check(run) ? PyCFunction_GetSelf(run) : NULL;
    if (program == NULL || !PyCapsule_IsValid(program, CAPSULE))
        return PyErr_Format(PyExc_TypeError, "fused(): it takes a program");
    Fused *f = kept_by(&capsule, sizeof *f, FUSED, drop_fused);
    if (f == NULL) return NULL;
    Py_INCREF(run);
    Py_INCREF(large);
    f->run = run, f->large = large, f->limit = limit, f->p = PyCapsule_GetPointer(program, CAPSULE);
    static PyMethodDef method = {"fused", (PyCFunction)(void (*)(void))run_fused, METH_FASTCALL,
                                 "A program that makes its results; it takes its inputs."};
    PyObject *function = read_results(f, results, targets) ? PyCFunction_NewEx(&method, capsule, NULL) : NULL;
    Py_DECREF(capsule);
    return function;
}

static int goes_by_row(const Instruction *i) {
    return i->way == REDUCE || i->way == EXPAND || i->way == BY_FIRST || i->way == BY_SECOND;
}

/* One of the instructions (name, to, a, b, c, u, v, w); 0 with an exception if it makes no sense. */
static int read_instruction(Program *p, Instruction *i, PyObject *text) {
    const char *name;
    int is_row;
    if (!PyArg_ParseTuple(text, "spiiiiddd", &name, &is_row, &i->to, &i->a, &i->b, &i->c,
                          &i->numbers[0], &i->numbers[1], &i->numbers[2]))
        return 0;
    const int arrays = p->inputs + p->outputs, constants = arrays + p->numbers;
    int sound = find_instruction(i, name);
    for (int j = 0; j < 3; j++) {
        const int from = j == 0 ? i->a : j == 1 ? i->b : i->c;
        sound = sound && from >= 0 && from < p->registers && from != i->to;
    }
    if (sound && is_row) {
        sound = i->way == EACH && p->has_rows;
        i->way = EACH_ROW;
    }
    const int by_row = i->way == BY_FIRST || i->way == BY_SECOND;
    const int is_whole = sound && i->way != EACH_ROW && i->way != REDUCE;
    sound = sound && (p->has_rows || !goes_by_row(i));
    sound = sound && i->to >= p->inputs && i->to < p->registers && !(i->to >= arrays && i->to < constants);
    /* A place for rows has no room for more. */
    sound = sound && !(is_whole && i->to < arrays && p->kinds[i->to] == 'R');
    for (int j = 0; sound && is_whole && j < 3; j++) {
        const int from = j == 0 ? i->a : j == 1 ? i->b : i->c;
        const int is_value = i->way == EXPAND || (by_row && j == (i->way == BY_SECOND));
        sound = is_value || (by_row && j == 2) || from >= arrays || p->kinds[from] != 'R';
    }
    sound = sound && !(i->way == REDUCE && i->a < arrays && p->kinds[i->a] == 'R');
    if (!sound) refuse("an instruction makes no sense");
    const int is_first = i->a >= arrays && i->a < constants, is_second = i->b >= arrays && i->b < constants;
    const Loop quicker = sound && i->way == EACH && is_first != is_second ? number_loop_of(name, is_first) : NULL;
    if (quicker != NULL) i->loop = quicker; /* numbers take no room in the first cache */
    return sound;
}

PyObject *make_program(PyObject *self, PyObject *args) {
    PyObject *shape, *values, *code;
    const char *kinds, *is_read;
    int inputs, temporary;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!sisO!iO!", &PyTuple_Type, &shape, &kinds, &inputs, &is_read,
                          &PyTuple_Type, &values, &temporary, &PyTuple_Type, &code))
        return NULL;
    const Py_ssize_t arrays = (Py_ssize_t)strlen(kinds), outputs = (Py_ssize_t)strlen(is_read);
    const Py_ssize_t rank = PyTuple_Size(shape), numbers = PyTuple_Size(values), count = PyTuple_Size(code);
    if (rank < 1 || rank > MAX_RANK) return refuse("its arrays have too many dimensions");
    if (arrays > MAX_PROGRAM_ARRAYS || inputs < 0 || inputs > arrays || outputs != arrays - inputs)
        return refuse("its arrays are too many");
    if (temporary < 0 || arrays + numbers + temporary > MAX_REGISTERS || count > MAX_CODE)
        return refuse("it is too long");
    Program *p = PyMem_Calloc(1, sizeof *p + (size_t)count * sizeof(Instruction));
    if (p == NULL) return PyErr_NoMemory();
    PyObject *capsule = PyCapsule_New(p, CAPSULE, drop);
    if (capsule == NULL) {
        PyMem_Free(p);
        return NULL;
    }
    p->rank = (int)rank, p->inputs = inputs, p->outputs = (int)outputs, p->numbers = (int)numbers;
    p->registers = (int)(arrays + numbers) + temporary, p->count = (int)count, p->size = 1;
    for (int d = 0; d < p->rank; d++) {
        p->shape[d] = PyLong_AsLongLong(PyTuple_GetItem(shape, d));
        if (p->shape[d] < 0 || __builtin_mul_overflow(p->size, p->shape[d], &p->size) ||
            p->size > INT64_MAX / 1024) {
            if (!PyErr_Occurred()) refuse("its shape is none");
            goto failed;
        }
    }
    for (int j = 0; j < arrays; j++) {
        p->kinds[j] = kinds[j];
        p->is_read[j] = j >= inputs && is_read[j - inputs] == '1';
        if (strchr(j < inputs ? "fb" : "fbR", kinds[j]) == NULL || kinds[j] == 0) {
            refuse("it has an array of no kind");
            goto failed;
        }
        p->has_rows |= kinds[j] == 'R';
    }
    for (int j = 0; j < p->numbers; j++) {
        p->values[j] = (float)PyFloat_AsDouble(PyTuple_GetItem(values, j));
        if (PyErr_Occurred()) goto failed;
    }
    for (int k = 0; k < p->count; k++) {
        PyObject *name = PyTuple_Check(PyTuple_GetItem(code, k))
                             ? PyTuple_GetItem(PyTuple_GetItem(code, k), 0) : NULL;
        Instruction i = {0};
        const char *text = name != NULL ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
        if (text == NULL) {
            if (!PyErr_Occurred()) refuse("an instruction makes no sense");
            goto failed;
        }
        p->has_rows |= find_instruction(&i, text) && goes_by_row(&i);
    }
    if (p->has_rows && p->shape[p->rank - 1] > MAX_COLUMNS) {
        refuse("its rows are too long");
        goto failed;
    }
    for (int k = 0; k < p->count; k++)
        if (!read_instruction(p, &p->code[k], PyTuple_GetItem(code, k))) goto failed;
    finish_program(p);
    static PyMethodDef method = {"program", (PyCFunction)(void (*)(void))run, METH_FASTCALL,
                                 "A program; it takes its inputs and outputs."};
    PyObject *function = PyCFunction_NewEx(&method, capsule, NULL);
    Py_DECREF(capsule);
    return function;
failed:
    Py_DECREF(capsule);
    return NULL;
}
