/* What every kernel file shares: the calling convention, the dispatch by processor, the threads. */
#ifndef FLAMBEAU_NATIVE_H
#define FLAMBEAU_NATIVE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A kernel gets the addresses of its arrays, its integers and its floats, each in the order of its
   Python arguments.  The row of the table that names it says how many there are of each. */
typedef struct {
    void *const *p;
    const int64_t *n;
    const double *x;
    int threads;
    const char **error;   /* what a kernel sets that refuses an index; Python then raises IndexError */
    const char **failure; /* the same for anything else; RuntimeError */
} Args;

typedef void (*Kernel)(const Args *);

/* One row: the name in Python and the arguments, one letter each: r an array to read, w one to
   write, o an array to read or None, W one to write or None, i an integer, a one that is an address, f a
   float.  Arrays are C-contiguous and aligned to their items.

   `extents` says how far each array reaches at least, which every call is held to: separated by commas,
   the product of a constant, a unit and integers of the call by their numbers.  The unit is b, h, w or d
   for 1, 2, 4 or 8 bytes or t for an item of the kernel's type; (0+1) is a sum, 0|1 the second
   number or, where that is zero, the first, 0/1 the quotient, rounded up, and 0^ the number filled up to
   whole panels.  An array of no extent is -, and after = all have one shape.  No integer of an extent is
   negative, and a kernel whose arrays are all empty is not called. */
typedef struct {
    const char *name;
    const char *arguments;
    const char *extents;
    Kernel kernel;
} Row;

/* One copy of a function per width of vectors; the loader chooses at run time. */
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__)
#define WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WIDE
#endif
#define INLINE static inline __attribute__((always_inline))

/* Atomics and threads of POSIX; elsewhere kernels have one thread. */
#if !defined(_WIN32) && !defined(__STDC_NO_ATOMICS__)
#define HAS_THREADS 1
typedef _Atomic int Flag; /* that several threads may set */
#else
#define HAS_THREADS 0
typedef int Flag;
#endif

/* Elements per thread below which a second thread costs more than it brings. */
#define GRAIN 16384

/* A product of counts for `team`: more than a number holds is as much as one does. */
static inline int64_t times(int64_t a, int64_t b) {
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* The threads for `work` elements. */
static inline int team(const Args *a, int64_t work) {
    int64_t useful = work / GRAIN;
    if (useful < 1) return 1;
    return useful < a->threads ? (int)useful : a->threads;
}

/* An index as a kernel uses it: read once, since another thread may write to it meanwhile.  One that was
   found in range before is compared again where it is used. */
static inline uint64_t place_of(const int64_t *index) { return (uint64_t)*(const volatile int64_t *)index; }

/* Whether all indices lie in [0, size). */
static inline int lie_within(const int64_t *index, int64_t count, int64_t size) {
    uint64_t outside = 0;
#pragma omp simd reduction(| : outside)
    for (int64_t i = 0; i < count; i++) outside |= (uint64_t)index[i] >= (uint64_t)size;
    return !outside;
}

/* The same; the call fails otherwise. */
static inline int in_range(const Args *a, const int64_t *index, int64_t count, int64_t size) {
    if (lie_within(index, count, size)) return 1;
    *a->error = "index out of range";
    return 0;
}

/* Runs STEP(context, begin, end) over [0, count) in `threads` contiguous parts, whoever computes them:
   a result depends on the number of parts only where a kernel says so. */
typedef void (*Step)(const void *context, int64_t begin, int64_t end);
void split(Step step, const void *context, int64_t count, int threads);

/* Whether there is the kernel `linear`, and the processor has its instructions. */
int has_linear(void);

#endif
