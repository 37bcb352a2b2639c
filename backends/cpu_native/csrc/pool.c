/* The threads of the kernels.

   A job is cut into parts, and whoever is free claims the next: the caller too, so that a job is done
   as soon as it can be, however late the other threads come.  The caller waits for nothing but parts
   that somebody is computing.  A worker that has nothing to do looks for a job for a short time, in
   which the next kernel of a training step begins, gives way to whoever wants the processor meanwhile,
   and sleeps then.

   One job runs at a time; a caller that finds the workers taken does its job alone. */
#include "pieces.h"

static _Thread_local int is_turned;

int turn(void) { return is_turned = !is_turned; }

#if HAS_THREADS
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#define LOOKING 100000 /* nanoseconds that a worker looks for the next job */
#define LOOKS 32       /* in a row, before it gives way and looks at the clock */

/* The number of the job (32 bits), how many parts it has (16) and the next of them (16).  To claim a
   part is to count it up. */
static _Atomic uint64_t ticket;

/* The job, written before its ticket.  Who reads them while they change fails to claim a part. */
static _Atomic(Step) job_step;
static _Atomic(const void *) job_context;
static _Atomic int64_t job_count;
static _Atomic int unfinished; /* parts */

static atomic_flag is_taken = ATOMIC_FLAG_INIT;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_job = PTHREAD_COND_INITIALIZER, is_done = PTHREAD_COND_INITIALIZER;
static _Atomic int sleepers, is_awaited;
static int workers; /* by the holder of `is_taken` */

static inline void pause_shortly(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline uint32_t job_of(uint64_t t) { return (uint32_t)(t >> 32); }
static inline int64_t parts_of(uint64_t t) { return (uint16_t)(t >> 16); }
static inline int64_t next_of(uint64_t t) { return (uint16_t)t; }

static inline void compute(Step step, const void *context, int64_t count, int64_t part, int64_t parts) {
    int64_t begin = count * part / parts, end = count * (part + 1) / parts;
    if (begin < end) step(context, begin, end);
}

/* Computes parts until none is left that nobody has claimed; the number of the job they were of. */
static uint32_t work(void) {
    for (;;) {
        uint64_t t = atomic_load(&ticket);
        if (next_of(t) >= parts_of(t)) return job_of(t);
        Step step = atomic_load(&job_step);
        const void *context = atomic_load(&job_context);
        int64_t count = atomic_load(&job_count);
        if (!atomic_compare_exchange_strong(&ticket, &t, t + 1)) continue;
        compute(step, context, count, next_of(t), parts_of(t));
        if (atomic_fetch_sub(&unfinished, 1) == 1 && atomic_load(&is_awaited)) {
            pthread_mutex_lock(&lock);
            pthread_cond_signal(&is_done);
            pthread_mutex_unlock(&lock);
        }
    }
}

static void *worker(void *unused) {
    (void)unused;
    for (;;) {
        uint32_t done = work();
        int64_t until = now() + LOOKING;
        int looks = 0;
        while (job_of(atomic_load(&ticket)) == done) {
            pause_shortly();
            if (++looks < LOOKS) continue;
            looks = 0;
            sched_yield();
            if (now() < until) continue;
            pthread_mutex_lock(&lock);
            atomic_fetch_add(&sleepers, 1);
            while (job_of(atomic_load(&ticket)) == done) pthread_cond_wait(&has_job, &lock);
            atomic_fetch_sub(&sleepers, 1);
            pthread_mutex_unlock(&lock);
        }
    }
    return NULL;
}

/* Starts workers until there are `wanted`, if the system lets us.  Signals are not theirs. */
static void employ(int wanted) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    while (workers < wanted && pthread_create(&thread, &attributes, worker, NULL) == 0) workers++;
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Waits for the parts that workers have claimed. */
static void await_parts(void) {
    int64_t until = 0;
    for (int looks = 1; atomic_load(&unfinished) != 0; looks++) {
        pause_shortly();
        if (looks % LOOKS) continue;
        sched_yield();
        int64_t t = now();
        if (until == 0) until = t + LOOKING;
        if (t < until) continue;
        pthread_mutex_lock(&lock);
        atomic_store(&is_awaited, 1);
        while (atomic_load(&unfinished) != 0) pthread_cond_wait(&is_done, &lock);
        atomic_store(&is_awaited, 0);
        pthread_mutex_unlock(&lock);
    }
}

void split(Step step, const void *context, int64_t count, int threads) {
    if (threads < 2 || count < 2 || atomic_flag_test_and_set(&is_taken)) {
        int64_t parts = threads > 1 ? threads : 1;
        for (int64_t part = 0; part < parts; part++) compute(step, context, count, part, parts);
        return;
    }
    if (workers < threads - 1) employ(threads - 1);
    atomic_store(&job_step, step);
    atomic_store(&job_context, context);
    atomic_store(&job_count, count);
    atomic_store(&unfinished, threads);
    uint64_t job = job_of(atomic_load(&ticket)) + (uint64_t)1;
    atomic_store(&ticket, job << 32 | (uint64_t)threads << 16);
    if (atomic_load(&sleepers) > 0) {
        pthread_mutex_lock(&lock);
        for (int i = 1; i < threads; i++) pthread_cond_signal(&has_job);
        pthread_mutex_unlock(&lock);
    }
    work();
    await_parts();
    atomic_flag_clear(&is_taken);
}

#else

void split(Step step, const void *context, int64_t count, int threads) {
    (void)threads;
    if (count > 0) step(context, 0, count);
}

#endif
