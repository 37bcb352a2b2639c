/* Decisions as functions of Python: decision(leaves, numbers, lines).  A plan asks by them what few
   numbers of its arrays say, without an array for each step of the question.

   A leaf is (kind, how, count): f, d, q or b of float32, float64, int64 and bools, what is taken of the
   array, and how many elements it has.  A line is (name, kind, a, b), of registers: the leaves, the
   numbers, the lines before.  The last register is the answer. */
#include "binding.h"

#define CAPSULE "flambeau_native.decision"
#define MAX_LEAVES 8
#define MAX_NUMBERS 8
#define MAX_LINES 32
#define MOST 8192 /* elements of a leaf: nobody else is let in meanwhile */

extern const Row reduction_rows[];

typedef struct {
    double real; /* of what is not int64 */
    int64_t whole;
} Value;

typedef Value Reader(const void *array, int64_t count);

typedef struct {
    char kind;
    int64_t count, size;
    Reader *read;  /* or else a kernel of (out, array, 1, count, 1, divisor) */
    Kernel kernel;
    double divisor;
} Leaf;

typedef Value Function2(Value a, Value b);

typedef struct {
    Function2 *function;
    int a, b, is_float;
} Line;

typedef struct {
    int leaves, numbers, lines;
    Leaf leaf[MAX_LEAVES];
    Value number[MAX_NUMBERS];
    Line line[MAX_LINES];
} Decision;

#define REAL(name, type)                                                                           \
    static Value name(const void *array, int64_t count) {                                          \
        (void)count;                                                                               \
        return (Value){.real = *(const type *)array};                                              \
    }
REAL(first_f, float)
REAL(first_d, double)
static Value first_q(const void *array, int64_t count) {
    (void)count;
    return (Value){.whole = *(const int64_t *)array};
}
static Value first_b(const void *array, int64_t count) {
    (void)count;
    return (Value){.real = *(const unsigned char *)array != 0};
}

/* The sign of a zero is lost, which no comparison sees. */
#define EXTREME_REAL(name, type, relation)                                                         \
    static Value name(const void *array, int64_t count) {                                          \
        const type *a = array;                                                                     \
        type found = a[0];                                                                         \
        int is_nan = 0;                                                                            \
        for (int64_t i = 0; i < count; i++) {                                                      \
            found = a[i] relation found ? a[i] : found;                                            \
            is_nan |= a[i] != a[i];                                                                \
        }                                                                                          \
        return (Value){.real = is_nan ? NAN : (double)found};                                      \
    }
EXTREME_REAL(amax_f, float, >)
EXTREME_REAL(amin_f, float, <)
EXTREME_REAL(amax_d, double, >)
EXTREME_REAL(amin_d, double, <)

#define EXTREME_WHOLE(name, relation)                                                              \
    static Value name(const void *array, int64_t count) {                                          \
        const int64_t *a = array;                                                                  \
        Value v = {.whole = a[0]};                                                                 \
        for (int64_t i = 1; i < count; i++) v.whole = a[i] relation v.whole ? a[i] : v.whole;      \
        return v;                                                                                  \
    }
EXTREME_WHOLE(amax_q, >)
EXTREME_WHOLE(amin_q, <)

static Value any_b(const void *array, int64_t count) {
    const unsigned char *a = array;
    for (int64_t i = 0; i < count; i++)
        if (a[i]) return (Value){.real = 1};
    return (Value){.real = 0};
}
static Value all_b(const void *array, int64_t count) {
    const unsigned char *a = array;
    for (int64_t i = 0; i < count; i++)
        if (!a[i]) return (Value){.real = 0};
    return (Value){.real = 1};
}

#define LINE(name, value)                                                                          \
    static Value name(Value a, Value b) {                                                          \
        (void)b;                                                                                   \
        return (Value){.real = (value)};                                                           \
    }
LINE(eq_real, a.real == b.real)
LINE(ne_real, a.real != b.real)
LINE(lt_real, a.real < b.real)
LINE(le_real, a.real <= b.real)
LINE(gt_real, a.real > b.real)
LINE(ge_real, a.real >= b.real)
LINE(eq_whole, a.whole == b.whole)
LINE(ne_whole, a.whole != b.whole)
LINE(lt_whole, a.whole < b.whole)
LINE(le_whole, a.whole <= b.whole)
LINE(gt_whole, a.whole > b.whole)
LINE(ge_whole, a.whole >= b.whole)
LINE(add_real, a.real + b.real)
LINE(sub_real, a.real - b.real)
LINE(mul_real, a.real *b.real)
LINE(div_real, a.real / b.real)
LINE(abs_real, fabs(a.real))
LINE(neg_real, -a.real)
LINE(both, a.real != 0 && b.real != 0)
LINE(either, a.real != 0 || b.real != 0)

static const struct {
    const char *kinds, *name;
    Reader *read;
} readers[] = {
    {"f", "first", first_f}, {"d", "first", first_d}, {"q", "first", first_q}, {"b", "first", first_b},
    {"f", "amax", amax_f},   {"d", "amax", amax_d},   {"q", "amax", amax_q},   {"f", "amin", amin_f},
    {"d", "amin", amin_d},   {"q", "amin", amin_q},   {"b", "any", any_b},     {"b", "all", all_b},
};

static const struct {
    const char *kinds, *name;
    Function2 *function;
} functions[] = {
    {"fd", "eq", eq_real},  {"fd", "ne", ne_real},  {"fd", "lt", lt_real},   {"fd", "le", le_real},
    {"fd", "gt", gt_real},  {"fd", "ge", ge_real},  {"q", "eq", eq_whole},   {"q", "ne", ne_whole},
    {"q", "lt", lt_whole},  {"q", "le", le_whole},  {"q", "gt", gt_whole},   {"q", "ge", ge_whole},
    {"fd", "add", add_real}, {"fd", "sub", sub_real}, {"fd", "mul", mul_real}, {"fd", "div", div_real},
    {"fd", "abs", abs_real}, {"fd", "neg", neg_real}, {"b", "bitwise_and", both}, {"b", "bitwise_or", either},
};

static int64_t bytes_of(char kind) { return kind == 'b' ? 1 : kind == 'f' ? 4 : 8; }

/* The kernel of a reduction to one number, or NULL. */
static Kernel kernel_of(const char *name, char kind) {
    static const char *const known[][3] = {
        {"sum", "sum_f32", "sum_f64"}, {"mean", "sum_f32", "sum_f64"}, {"norm2", "norm2_f32", "norm2_f64"}};
    for (size_t j = 0; j < sizeof known / sizeof known[0] && strchr("fd", kind) != NULL; j++) {
        if (strcmp(name, known[j][0])) continue;
        for (const Row *row = reduction_rows; row->name != NULL; row++)
            if (!strcmp(row->name, known[j][kind == 'd' ? 2 : 1])) return row->kernel;
    }
    return NULL;
}

static Value read_leaf(const Leaf *leaf, void *array) {
    if (leaf->read != NULL) return leaf->read(array, leaf->count);
    union {
        float f;
        double d;
    } out;
    void *const pointers[] = {&out, array};
    const int64_t integers[] = {1, leaf->count, 1};
    const char *error = NULL, *failure = NULL;
    const Args packed = {pointers, integers, &leaf->divisor, 1, &error, &failure};
    leaf->kernel(&packed);
    return (Value){.real = leaf->kind == 'f' ? (double)out.f : out.d};
}

static int decide(const Decision *d, void *const *arrays) {
    Value values[MAX_LEAVES + MAX_NUMBERS + MAX_LINES];
    for (int j = 0; j < d->leaves; j++) values[j] = read_leaf(&d->leaf[j], arrays[j]);
    for (int j = 0; j < d->numbers; j++) values[d->leaves + j] = d->number[j];
    const int first = d->leaves + d->numbers;
    for (int k = 0; k < d->lines; k++) {
        const Line *line = &d->line[k];
        Value made = line->function(values[line->a], values[line->b]);
        if (line->is_float) made.real = (double)(float)made.real;
        values[first + k] = made;
    }
    return values[first + d->lines - 1].real != 0;
}

static PyObject *run(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    const Decision *d = PyCapsule_GetPointer(self, CAPSULE);
    if (d == NULL) return NULL;
    if (count != d->leaves)
        return PyErr_Format(PyExc_TypeError, "decision: it takes %d arrays, got %zd", d->leaves, count);
    Held held[MAX_LEAVES];
    void *arrays[MAX_LEAVES];
    int holding = 0, answer = -1;
    for (; holding < d->leaves; holding++) {
        const Leaf *leaf = &d->leaf[holding];
        if (!hold(&held[holding], args[holding], 0, &arrays[holding])) goto done;
        const Py_buffer *b = &held[holding].buffer;
        if (b->itemsize != bytes_of(leaf->kind) || b->len != leaf->size) {
            holding++;
            PyErr_SetString(PyExc_RuntimeError, "decision: an array is none that it was made for");
            goto done;
        }
    }
    answer = decide(d, arrays);
done:
    release(held, holding);
    return answer < 0 ? NULL : PyBool_FromLong(answer);
}

static PyObject *refuse(const char *what) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "decision(): %s", what);
    return NULL;
}

static int read_leaf_text(Leaf *leaf, PyObject *text) {
    const char *kind, *how;
    long long count;
    if (!PyTuple_Check(text) || !PyArg_ParseTuple(text, "ssL", &kind, &how, &count)) return 0;
    if (strlen(kind) != 1 || strchr("fdqb", kind[0]) == NULL || count < 1 || count > MOST) return 0;
    leaf->kind = kind[0], leaf->count = count, leaf->size = count * bytes_of(kind[0]);
    leaf->divisor = strcmp(how, "mean") ? 1 : (double)count;
    for (size_t j = 0; j < sizeof readers / sizeof readers[0]; j++)
        if (strchr(readers[j].kinds, kind[0]) && !strcmp(readers[j].name, how)) leaf->read = readers[j].read;
    if (!strcmp(how, "first") && count != 1) return 0;
    leaf->kernel = kernel_of(how, kind[0]);
    return leaf->read != NULL || leaf->kernel != NULL;
}

static int read_line_text(Line *line, PyObject *text, int known) {
    const char *name, *kind;
    if (!PyTuple_Check(text) || !PyArg_ParseTuple(text, "ssii", &name, &kind, &line->a, &line->b)) return 0;
    if (strlen(kind) != 1 || line->a < 0 || line->a >= known || line->b < 0 || line->b >= known) return 0;
    line->is_float = kind[0] == 'f';
    for (size_t j = 0; j < sizeof functions / sizeof functions[0]; j++)
        if (strchr(functions[j].kinds, kind[0]) && !strcmp(functions[j].name, name))
            line->function = functions[j].function;
    return line->function != NULL;
}

static int read_number(Value *value, PyObject *number) {
    if (PyFloat_Check(number)) value->real = PyFloat_AsDouble(number);
    else value->whole = PyLong_AsLongLong(number);
    return !PyErr_Occurred();
}

static void drop(PyObject *capsule) { PyMem_Free(PyCapsule_GetPointer(capsule, CAPSULE)); }

PyObject *make_decision(PyObject *self, PyObject *args) {
    PyObject *leaves, *numbers, *lines;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!O!O!", &PyTuple_Type, &leaves, &PyTuple_Type, &numbers, &PyTuple_Type, &lines))
        return NULL;
    const Py_ssize_t arrays = PyTuple_Size(leaves), values = PyTuple_Size(numbers), count = PyTuple_Size(lines);
    if (arrays < 1 || arrays > MAX_LEAVES || values > MAX_NUMBERS || count > MAX_LINES)
        return refuse("it is too long");
    if (count == 0 && values > 0) return refuse("a line makes no sense");
    PyObject *capsule;
    Decision *d = kept_by(&capsule, sizeof *d, CAPSULE, drop);
    if (d == NULL) return NULL;
    d->leaves = (int)arrays, d->numbers = (int)values, d->lines = (int)count;
    const char *wrong = NULL;
    for (int j = 0; wrong == NULL && j < d->leaves; j++)
        if (!read_leaf_text(&d->leaf[j], PyTuple_GetItem(leaves, j))) wrong = "a leaf makes no sense";
    for (int j = 0; wrong == NULL && j < d->numbers; j++)
        if (!read_number(&d->number[j], PyTuple_GetItem(numbers, j))) wrong = "a number is none";
    const int first = d->leaves + d->numbers;
    for (int k = 0; wrong == NULL && k < d->lines; k++)
        if (!read_line_text(&d->line[k], PyTuple_GetItem(lines, k), first + k)) wrong = "a line makes no sense";
    if (wrong == NULL && count == 0 && d->leaf[arrays - 1].kind == 'q') wrong = "a leaf makes no sense";
    static PyMethodDef method = {"decision", (PyCFunction)(void (*)(void))run, METH_FASTCALL,
                                 "A decision; it takes its arrays."};
    PyObject *function = wrong == NULL ? PyCFunction_NewEx(&method, capsule, NULL) : refuse(wrong);
    Py_DECREF(capsule);
    return function;
}
