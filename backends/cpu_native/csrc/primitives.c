/* A list of primitives of a library in the manner of oneDNN, run on the arrays of a call. */
#include "native.h"

typedef int (*SetData)(void *memory, void *address);
typedef int (*Execute)(const void *primitive, void *stream, int count, const void *arguments);
typedef int (*GetThreads)(void);
typedef void (*SetThreads)(int);

/* A memory of the library, and at how many bytes of its array it begins. */
typedef struct {
    int64_t memory, offset;
} Place;

typedef struct {
    int64_t primitive, stream, count, arguments;
} Run;

/* What a caller writes down once, in 64 bits each: addresses, and numbers.  Behind it the places of the
   scratch memory, then the runs. */
typedef struct {
    int64_t set_data, execute, get_threads, set_threads, threads;
    Place arrays[4]; /* the result, and up to three operands; memory 0 where there is none */
    int64_t places, runs;
} List;

static void primitives(const Args *k) {
    const List *list = (const List *)(intptr_t)k->n[0];
    const Place *places = (const Place *)(list + 1);
    const Run *runs = (const Run *)(places + list->places);
    const SetData set_data = (SetData)(intptr_t)list->set_data;
    const Execute execute = (Execute)(intptr_t)list->execute;
    for (int i = 0; i < 4; i++)
        if (list->arrays[i].memory)
            set_data((void *)(intptr_t)list->arrays[i].memory, (char *)k->p[i] + list->arrays[i].offset);
    for (int64_t i = 0; i < list->places; i++)
        set_data((void *)(intptr_t)places[i].memory, (char *)k->p[4] + places[i].offset);
    /* The number belongs to the thread, and may be shared with other users of the library. */
    int before = (int)list->threads;
    if (list->get_threads && list->set_threads) before = ((GetThreads)(intptr_t)list->get_threads)();
    if (before != list->threads) ((SetThreads)(intptr_t)list->set_threads)((int)list->threads);
    for (int64_t i = 0; i < list->runs; i++)
        if (execute((const void *)(intptr_t)runs[i].primitive, (void *)(intptr_t)runs[i].stream,
                    (int)runs[i].count, (const void *)(intptr_t)runs[i].arguments)) {
            *k->failure = "the library's execution failed";
            break;
        }
    if (before != list->threads) ((SetThreads)(intptr_t)list->set_threads)(before);
}

/* The list's address, then the bytes of each array. */
const Row primitives_rows[] = {
    {"primitives", "wrroWaiiiii", "b1,b2,b3,b4,b5", primitives},
    {NULL, NULL, NULL, NULL},
};
