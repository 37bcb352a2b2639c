/* Loops of NumPy as instructions of programs: small arrays have its exp, log, tanh, sin and cos, and a program
   gives the bits of its calls.  A ufunc tells a loop by a capsule, whose layout its documentation says. */
#include <Python.h>

#include "borrowed.h"

#define CAPSULE "numpy_1.24_ufunc_call_info"

typedef struct {
    int (*loop)(void *context, char *const *arrays, const intptr_t *count, const intptr_t *strides, void *more);
    void *context, *more;
    unsigned char needs_python, raises_no_flags;
} Borrowed;

enum { EXP, LOG, TANH, SIN, COS, COUNT };
static const char *const names[COUNT] = {"exp", "log", "tanh", "sin", "cos"};
static const Borrowed *borrowed[COUNT];

static void call(const Borrowed *of, void *out, const void *a, int64_t n) {
    char *const arrays[] = {(char *)(uintptr_t)a, out};
    const intptr_t count = (intptr_t)n, strides[] = {sizeof(float), sizeof(float)};
    of->loop(of->context, arrays, &count, strides, of->more);
}

#define LOOP(name, number)                                                                        \
    static void name##_loop(void *out, const void *a, const void *b, int64_t n,                   \
                            const double *numbers, int streams) {                                 \
        (void)b, (void)numbers, (void)streams;                                                    \
        call(borrowed[number], out, a, n);                                                            \
    }
LOOP(exp, EXP)
LOOP(log, LOG)
LOOP(tanh, TANH)
LOOP(sin, SIN)
LOOP(cos, COS)

static int number_of(const char *name) {
    int number = 0;
    while (number < COUNT && strcmp(name, names[number])) number++;
    return number;
}

Loop borrowed_loop_of(const char *name) {
    static const Loop loops[COUNT] = {exp_loop, log_loop, tanh_loop, sin_loop, cos_loop};
    if (strncmp(name, "small_", 6)) return NULL;
    const int number = number_of(name + 6);
    return number < COUNT && borrowed[number] != NULL ? loops[number] : NULL;
}

PyObject *borrow(PyObject *self, PyObject *args) {
    const char *name;
    PyObject *capsule;
    (void)self;
    if (!PyArg_ParseTuple(args, "sO", &name, &capsule)) return NULL;
    const Borrowed *given = PyCapsule_GetPointer(capsule, CAPSULE);
    if (given == NULL) return NULL;
    const int number = number_of(name);
    if (number == COUNT || given->loop == NULL || given->needs_python)
        return PyErr_Format(PyExc_ValueError, "borrow(): no loop of programs is %s", name);
    if (borrowed[number] == NULL) {
        Py_INCREF(capsule); /* programs have no end of their use */
        borrowed[number] = given;
    }
    Py_RETURN_NONE;
}
