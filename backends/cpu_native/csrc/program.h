/* Programs: several elementwise functions of arrays, computed tile by tile (program.c). */
#ifndef FLAMBEAU_PROGRAM_H
#define FLAMBEAU_PROGRAM_H

#include "native.h"

struct Pass;

/* A loop over n elements.  With `streams` it may write past the caches (stream.h). */
typedef void (*Loop)(void *out, const void *a, const void *b, int64_t n, const double *numbers,
                     int streams);

/* The loop over float32 of that name (pointwise.c), or NULL. */
Loop loop_of(const char *name);

/* The same, which takes the first element of its first or second operand for all, or NULL. */
Loop number_loop_of(const char *name, int is_first);

/* The sums of rows over `divisor`, as the kernel `sum` computes them (reduction.c). */
void sum_of_rows(float *out, const float *a, int64_t rows, int64_t columns, double divisor);

/* Sums over `divisor`, in double, in their place. */
void divide_sums(float *sums, int64_t rows, double divisor);

#define MAX_RANK 8
#define MAX_PROGRAM_ARRAYS 32
#define MAX_REGISTERS 96
#define MAX_CODE 256
#define MAX_COLUMNS 4096 /* of programs with rows: a tile has whole ones */

/* How an instruction goes through its registers: element by element; one value a row; a row to its
   value; a value to its row; element by element with three operands, by choice or by multiplication and addition; element by element with the value of
   the row, as first or as second operand; several instructions, whose links are b from the a-th of the program's on
   (chains.c); several by row, with operands a to e (row_passes.c). */
enum { EACH, EACH_ROW, REDUCE, EXPAND, CHOOSE, MULTIPLY_ADD, BY_FIRST, BY_SECOND, CHAIN, ROW_PASS };
typedef void (*RowPass)(const struct Pass *);
typedef void (*Reducer)(float *out, const float *a, int64_t rows, int64_t columns, double divisor);

typedef struct {
    int way, to, a, b, c, d, e;
    int kept;        /* of ROW_PASS, the register of what is between; -1 for none */
    Loop loop;       /* of EACH and EACH_ROW, BY_FIRST and BY_SECOND */
    Loop number;     /* the same of a number, or NULL */
    Reducer reducer; /* of REDUCE */
    RowPass pass;    /* of ROW_PASS */
    int function;    /* by which chains know it; or 0 */
    double numbers[3];
} Instruction;

/* The registers are the inputs, then the outputs, the numbers and the temporary ones.  Each is a tile of
   float32; kinds of memory are f for that and b for bool, R for one float32 a row. */
typedef struct {
    int rank, inputs, outputs, numbers, registers, count, has_rows;
    int work; /* instructions before some were put together */
    int64_t shape[MAX_RANK], size;
    char kinds[MAX_PROGRAM_ARRAYS];
    char is_read[MAX_PROGRAM_ARRAYS]; /* whether an output is read again */
    char streams[MAX_PROGRAM_ARRAYS]; /* whether it is written past the caches */
    float values[MAX_REGISTERS];
    char is_single[MAX_REGISTERS];    /* whether of a number only its first element is read */
    struct Link *links;               /* of chains */
    Instruction code[];
} Program;

/* An array of a call, its strides in bytes, those of repeated dimensions 0. */
typedef struct {
    char *memory;
    int64_t strides[MAX_RANK];
} Place;

/* The number of bytes of an element, by kind. */
static inline int64_t size_of(char kind) { return kind == 'b' ? 1 : 4; }

/* The way and the function of an instruction of that name; 0 if there is none. */
int find_instruction(Instruction *i, const char *name);

/* Whether it reads a register. */
static inline int reads(const Instruction *i, int r) {
    return i->a == r || i->b == r || i->c == r || (i->way == ROW_PASS && (i->d == r || i->e == r));
}

/* What is left to do when a program is read: instructions that one does together. */
void finish_program(Program *p);

/* Whether somebody needs what a register has, from the instruction of that number on. */
int is_needed(const Program *p, int r, int from);

/* Runs a program on the inputs and outputs in order; 0 if there is no memory. */
int run_program(const Program *p, const Place *places, int threads);

#endif
