/* Loops that NumPy lends to programs (borrowed.c). */
#ifndef FLAMBEAU_BORROWED_H
#define FLAMBEAU_BORROWED_H

#include "program.h"

/* The loop of "small_exp" and others like it, or NULL if there is none. */
Loop borrowed_loop_of(const char *name);

#endif
