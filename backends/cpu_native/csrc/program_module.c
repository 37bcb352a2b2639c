/* Programs as functions of Python: program(shape, kinds, inputs, read, values, temporary, code). */
#include <Python.h>

#include "chains.h"

#define CAPSULE "flambeau_native.program"

int threads_of_kernels(void); /* module.c */

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

static PyObject *run(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    const Program *p = PyCapsule_GetPointer(self, CAPSULE);
    if (p == NULL) return NULL;
    const int arrays = p->inputs + p->outputs;
    if (count != arrays)
        return PyErr_Format(PyExc_TypeError, "program: it takes %d arrays, got %zd", arrays, count);
    Py_buffer held[MAX_PROGRAM_ARRAYS];
    Place places[MAX_PROGRAM_ARRAYS];
    int holding = 0, is_done = 0;
    for (; holding < arrays; holding++) {
        const int flags = holding < p->inputs ? PyBUF_STRIDES : PyBUF_STRIDES | PyBUF_WRITABLE;
        if (PyObject_GetBuffer(args[holding], &held[holding], flags) < 0) goto failed;
        if (!place_array(p, &held[holding], holding, &places[holding])) {
            PyBuffer_Release(&held[holding]);
            goto failed;
        }
    }
    const int threads = threads_of_kernels();
    Py_BEGIN_ALLOW_THREADS
    is_done = run_program(p, places, threads);
    Py_END_ALLOW_THREADS
    if (!is_done) PyErr_NoMemory();
failed:
    while (holding--) PyBuffer_Release(&held[holding]);
    if (!is_done) return NULL;
    Py_RETURN_NONE;
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
