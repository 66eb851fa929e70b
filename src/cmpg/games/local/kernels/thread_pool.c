/* An item takes about as long as waking a sleeping thread: so workers spin between two rounds, and yield the processor
   after SPIN_LIMIT looks. A pool lives no longer than one call of a kernel. */
#include "thread_pool.h"

#include <stddef.h>

#if defined(_WIN32) || defined(__STDC_NO_ATOMICS__)

ThreadPool *pool_begin(int workers, Work work, void *const *contexts)
{
    (void)workers, (void)work, (void)contexts;
    return NULL;
}

void pool_run(ThreadPool *pool, Work work, void *context, int64_t count)
{
    (void)pool;
    for (int64_t item = 0; item < count; item++)
        work(context, item);
}

void pool_end(ThreadPool *pool)
{
    (void)pool;
}

#else

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#define SPIN_LIMIT 4096 /* before others may have the processor: some ten microseconds */
#define SHUTDOWN (-1)

typedef struct {
    ThreadPool *pool;
    pthread_t thread;
    void *context;
} Worker;

struct ThreadPool {
    Work work;
    int workers;
    int64_t count;      /* items of this round */
    atomic_llong round; /* that was begun, or SHUTDOWN */
    atomic_llong next;  /* item */
    atomic_int busy;    /* workers who have not seen that all items are taken */
    Worker all[MAX_WORKERS];
};

static void spin(int *spins)
{
    if (++*spins >= SPIN_LIMIT)
        sched_yield();
#if defined(__x86_64__) || defined(__i386__)
    else
        __builtin_ia32_pause();
#endif
}

static void take_items(ThreadPool *pool, Work work, void *context)
{
    long long item;
    while ((item = atomic_fetch_add(&pool->next, 1)) < pool->count)
        work(context, item);
}

static void *work_until_shutdown(void *argument)
{
    const Worker *own = argument;
    ThreadPool *pool = own->pool;
    for (long long seen = 0;;) {
        long long round;
        int spins = 0;
        while ((round = atomic_load(&pool->round)) == seen)
            spin(&spins);
        if (round == SHUTDOWN)
            return NULL;
        seen = round;
        take_items(pool, pool->work, own->context);
        atomic_fetch_sub(&pool->busy, 1);
    }
}

ThreadPool *pool_begin(int workers, Work work, void *const *contexts)
{
    ThreadPool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return NULL;
    pool->work = work;
    for (; pool->workers < workers && pool->workers < MAX_WORKERS; pool->workers++) {
        Worker *worker = &pool->all[pool->workers];
        *worker = (Worker){.pool = pool, .context = contexts[pool->workers]};
        if (pthread_create(&worker->thread, NULL, work_until_shutdown, worker) != 0)
            break;
    }
    if (pool->workers > 0)
        return pool;
    free(pool);
    return NULL;
}

void pool_run(ThreadPool *pool, Work work, void *context, int64_t count)
{
    if (pool == NULL || count < 2) {
        for (int64_t item = 0; item < count; item++)
            work(context, item);
        return;
    }
    pool->count = count;
    atomic_store(&pool->next, 0);
    atomic_store(&pool->busy, pool->workers);
    atomic_fetch_add(&pool->round, 1);
    take_items(pool, work, context);
    int spins = 0;
    while (atomic_load(&pool->busy) > 0)
        spin(&spins);
}

void pool_end(ThreadPool *pool)
{
    if (pool == NULL)
        return;
    atomic_store(&pool->round, SHUTDOWN);
    for (int at = 0; at < pool->workers; at++)
        pthread_join(pool->all[at].thread, NULL);
    free(pool);
}

#endif
