/* Chains: instructions of a program that hand their results on in registers (chains.c). */
#ifndef FLAMBEAU_CHAINS_H
#define FLAMBEAU_CHAINS_H

#include "program.h"

/* The arrays that lie far away, behind their tiles, and how many bytes of each were, and are to be, asked for. */
typedef struct {
    const char *next[MAX_PROGRAM_ARRAYS];
    int count;
    int64_t asked, wanted;
} Ahead;

/* Where the registers of a tile are, which arrays are written past the caches, and which repeat a row. */
typedef struct {
    char *at[MAX_REGISTERS];
    const int *streams, *repeats;
    Ahead ahead;
    uint16_t left[8]; /* the elements of the last eight vectors */
} Tile;

#define LINE 64

#if defined(__GNUC__)
#define ASK(address) __builtin_prefetch((address), 0, 3)
#else
#define ASK(address) ((void)(address))
#endif

static inline void ask(Ahead *ahead, int64_t wanted) {
    ahead->wanted = wanted;
    for (; ahead->asked < wanted; ahead->asked += LINE)
        for (int j = 0; j < ahead->count; j++) ASK(ahead->next[j] + ahead->asked);
}

/* The number of the function of that name that chains have; 0 if there is none. */
int find_function(const char *name);

/* Puts chains in the place of instructions that hand on results, where the processor has them. */
void make_chains(Program *p);
void drop_chains(Program *p);

/* Runs a chain over m elements, and asks for the next `bytes` of what lies ahead. */
void run_chain(const Program *p, const Instruction *i, Tile *tile, int64_t m, int64_t bytes);

#endif
