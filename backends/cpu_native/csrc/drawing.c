/* Random numbers of few elements by one call: drawing(cases, serial, few, fresh, fill, large, limit) gives the functions
   fresh(shape, *numbers, dtype, generator) and fill(array, *numbers, generator).

   A case is (key, dtype, kernel): what stands for the dtype in a call of fresh, that of the array, and a row of a result, the
   address of the generator's state, the number of elements, and floats.  `serial` are cases of less than `few`
   elements, of rows that make numbers in pairs, the second of which may have to wait in the generator.  All else is what the
   functions that are given make of their arguments. */
#include "arrays.h"
#include "binding.h"

#define CAPSULE "flambeau_native.drawing"
#define MOST_CASES 6
#define MOST_FLOATS 2
#define FEW 512 /* numbers, so soon drawn that nobody else is let in meanwhile */

typedef struct {
    PyObject *key, *dtype;
    const Entry *entry, *serial;
} Case;

typedef struct {
    PyObject *fresh, *fill, *large;
    long long few, limit;
    int cases, floats;
    Case of[MOST_CASES];
} Drawing;

static PyObject *lock_name, *acquire_name, *release_name, *engine_name, *memory_name, *waiting_name;

static void drop(PyObject *capsule) {
    Drawing *d = PyCapsule_GetPointer(capsule, CAPSULE);
    Py_XDECREF(d->fresh);
    Py_XDECREF(d->fill);
    Py_XDECREF(d->large);
    for (int i = 0; i < d->cases; i++) {
        Py_XDECREF(d->of[i].key);
        Py_XDECREF(d->of[i].dtype);
    }
    PyMem_Free(d);
}

/* The address of the generator's state; 0 with an exception. */
static long long state_of(PyObject *generator) {
    long long address = 0;
    PyObject *engine = PyObject_GetAttr(generator, engine_name), *found = NULL;
    if (engine != NULL) found = PyObject_CallMethodObjArgs(engine, memory_name, NULL);
    if (found != NULL) address = PyLong_AsLongLong(found);
    Py_XDECREF(engine);
    Py_XDECREF(found);
    if (address != 0 && !(address == -1 && PyErr_Occurred())) return address;
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "the generator's state lies nowhere");
    return 0;
}

/* Runs a row; 0 with an exception. */
static int run(const Entry *entry, void *const *pointers, const Py_ssize_t *lengths, const int64_t *integers,
               const double *floats, int64_t size) {
    const char *error = NULL, *failure = NULL;
    int is_empty;
    if (!are_long(entry, lengths, integers, &is_empty)) return 0;
    const Args packed = {pointers, integers, floats, threads_of_kernels(), &error, &failure};
    if (size < FEW) {
        entry->row->kernel(&packed);
    } else {
        Py_BEGIN_ALLOW_THREADS
        entry->row->kernel(&packed);
        Py_END_ALLOW_THREADS
    }
    if (error == NULL && failure == NULL) return 1;
    PyErr_Format(PyExc_RuntimeError, "%s(): %s", entry->row->name, error != NULL ? error : failure);
    return 0;
}

/* Fills an array while the generator is ours alone; 0 with an exception. */
static int draw(const Case *of, int is_serial, Array *a, Py_ssize_t length, int64_t size, const double *floats,
                PyObject *generator) {
    const long long address = state_of(generator);
    if (address == 0) return 0;
    double spare = 0;
    void *const pointers[] = {a->memory, &spare};
    const Py_ssize_t lengths[] = {length, sizeof spare};
    if (!is_serial) {
        const int64_t integers[] = {address, size};
        return run(of->entry, pointers, lengths, integers, floats, size);
    }
    PyObject *waiting = PyObject_GetAttr(generator, waiting_name);
    if (waiting == NULL) return 0;
    const int has = waiting != Py_None;
    const int64_t integers[] = {address, size, has};
    const double numbers[] = {floats[0], floats[1], has ? PyFloat_AsDouble(waiting) : 0.0};
    Py_DECREF(waiting);
    if (PyErr_Occurred() || !run(of->serial, pointers, lengths, integers, numbers, size)) return 0;
    const int keeps = (size - has) % 2 != 0;
    if (!keeps && !has) return 1;
    PyObject *kept = keeps ? PyFloat_FromDouble(spare) : Py_None;
    if (kept == NULL) return 0;
    const int is_done = PyObject_SetAttr(generator, waiting_name, kept) == 0;
    if (keeps) Py_DECREF(kept);
    return is_done;
}

/* The same, with the generator's lock taken meanwhile. */
static int draw_alone(const Drawing *d, const Case *of, PyObject *array, Py_ssize_t itemsize, const double *floats,
                      PyObject *generator) {
    Array *a = (Array *)array;
    const Py_ssize_t length = length_of(a, itemsize);
    const int64_t size = length / itemsize;
    if (size == 0) return 1;
    PyObject *lock = PyObject_GetAttr(generator, lock_name), *entered = NULL;
    if (lock != NULL) entered = PyObject_CallMethodObjArgs(lock, acquire_name, NULL);
    int is_done = 0;
    if (entered != NULL) {
        PyObject *type, *value, *trace;
        is_done = draw(of, of->serial != NULL && size < d->few, a, length, size, floats, generator);
        PyErr_Fetch(&type, &value, &trace);
        PyObject *left = PyObject_CallMethodObjArgs(lock, release_name, NULL);
        if (left == NULL) is_done = 0;
        if (left != NULL || type != NULL) PyErr_Restore(type, value, trace);
        Py_XDECREF(left);
        Py_DECREF(entered);
    }
    Py_XDECREF(lock);
    return is_done;
}

static int read_floats(const Drawing *d, PyObject *const *args, double *floats) {
    for (int j = 0; j < d->floats; j++) {
        floats[j] = PyFloat_AsDouble(args[j]);
        if (floats[j] == -1.0 && PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
    }
    return 1;
}

static PyObject *call_fill(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    const Drawing *d = PyCapsule_GetPointer(self, CAPSULE);
    if (d == NULL) return NULL;
    double floats[MOST_FLOATS] = {0};
    Py_ssize_t itemsize;
    const Array *a = count == d->floats + 2 ? array_of(args[0], &itemsize) : NULL;
    const Case *of = NULL;
    if (a != NULL && is_plain(a, itemsize, 1) && read_floats(d, args + 1, floats))
        for (int i = 0; i < d->cases && of == NULL; i++)
            if (d->of[i].dtype == a->dtype) of = &d->of[i];
    if (of == NULL) return call_general(d->fill, args, count);
    if (!draw_alone(d, of, args[0], itemsize, floats, args[count - 1])) return NULL;
    Py_RETURN_NONE;
}

static PyObject *call_fresh(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    const Drawing *d = PyCapsule_GetPointer(self, CAPSULE);
    if (d == NULL) return NULL;
    double floats[MOST_FLOATS] = {0};
    Py_ssize_t sizes[MOST_RANK];
    const Case *of = NULL;
    if (count == d->floats + 3 && read_floats(d, args + 1, floats))
        for (int i = 0; i < d->cases && of == NULL; i++)
            if (d->of[i].key == args[count - 2]) of = &d->of[i];
    const Py_ssize_t itemsize = of != NULL ? known_itemsize(of->dtype) : 0;
    if (itemsize == 0) return call_general(d->fresh, args, count);
    PyObject *made = read_shape(args[0], itemsize, PY_SSIZE_T_MAX, sizes) >= 0
                         ? new_or_large(of->dtype, (int)PyTuple_Size(args[0]), sizes, d->limit, d->large)
                         : PyObject_CallFunctionObjArgs(d->large, args[0], of->dtype, NULL);
    Py_ssize_t found;
    if (made == NULL) return NULL;
    const Array *a = array_of(made, &found);
    if (a == NULL || a->dtype != of->dtype || !is_plain(a, found, 1)) {
        Py_DECREF(made);
        return call_general(d->fresh, args, count);
    }
    if (draw_alone(d, of, made, itemsize, floats, args[count - 1])) return made;
    Py_DECREF(made);
    return NULL;
}

/* Reads a case, of rows of one kind; 0 with an exception. */
static int read_case(Drawing *d, PyObject *given) {
    static const char *const kinds[] = {"wai", "waif", "waiff"};
    PyObject *key, *dtype, *function, *serial;
    if (d->cases == MOST_CASES || !PyTuple_Check(given)) {
        PyErr_SetString(PyExc_ValueError, "drawing(): its cases are at most six tuples");
        return 0;
    }
    if (!PyArg_ParseTuple(given, "OOOO", &key, &dtype, &function, &serial)) return 0;
    Case of = {key, dtype, entry_of(function, "drawing"), NULL};
    if (of.entry == NULL) return 0;
    if (serial != Py_None && (of.serial = entry_of(serial, "drawing")) == NULL) return 0;
    int floats = 0;
    while (floats <= MOST_FLOATS && strcmp(of.entry->row->arguments, kinds[floats])) floats++;
    const int is_sound = floats <= MOST_FLOATS && (d->cases == 0 || floats == d->floats) &&
                         (of.serial == NULL || (floats == 2 && !strcmp(of.serial->row->arguments, "wwaiifff")));
    if (!is_sound) {
        PyErr_Format(PyExc_ValueError, "drawing(): %s draws no numbers", of.entry->row->name);
        return 0;
    }
    Py_INCREF(key);
    Py_INCREF(dtype);
    d->floats = floats;
    d->of[d->cases++] = of;
    return 1;
}

static int know_names(void) {
    if (waiting_name != NULL) return 1;
    lock_name = PyUnicode_InternFromString("lock");
    acquire_name = PyUnicode_InternFromString("acquire");
    release_name = PyUnicode_InternFromString("release");
    engine_name = PyUnicode_InternFromString("engine");
    memory_name = PyUnicode_InternFromString("memory");
    waiting_name = PyUnicode_InternFromString("next_normal");
    return lock_name && acquire_name && release_name && engine_name && memory_name && waiting_name;
}

PyObject *make_drawing(PyObject *self, PyObject *args) {
    PyObject *cases, *fresh, *fill, *large;
    long long few, limit;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!LOOOL:drawing", &PyTuple_Type, &cases, &few, &fresh, &fill, &large, &limit) ||
        !know_names())
        return NULL;
    if (PyTuple_Size(cases) < 1) return PyErr_Format(PyExc_ValueError, "drawing(): it needs a case");
    PyObject *capsule;
    Drawing *d = kept_by(&capsule, sizeof *d, CAPSULE, drop);
    if (d == NULL) return NULL;
    d->fresh = fresh, d->fill = fill, d->large = large, d->few = few, d->limit = limit;
    Py_INCREF(fresh);
    Py_INCREF(fill);
    Py_INCREF(large);
    static PyMethodDef methods[] = {
        {"fresh", (PyCFunction)(void (*)(void))call_fresh, METH_FASTCALL, "New random numbers."},
        {"fill", (PyCFunction)(void (*)(void))call_fill, METH_FASTCALL, "Random numbers in an array."}};
    PyObject *pair = NULL;
    Py_ssize_t i = 0;
    while (i < PyTuple_Size(cases) && read_case(d, PyTuple_GetItem(cases, i))) i++;
    if (i == PyTuple_Size(cases)) {
        PyObject *first = PyCFunction_NewEx(&methods[0], capsule, NULL);
        PyObject *second = PyCFunction_NewEx(&methods[1], capsule, NULL);
        if (first != NULL && second != NULL) pair = PyTuple_Pack(2, first, second);
        Py_XDECREF(first);
        Py_XDECREF(second);
    }
    Py_DECREF(capsule);
    return pair;
}
