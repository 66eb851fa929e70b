/* Threads that share out pieces of work, again and again; see `thread_pool.c`. */
#ifndef CMPG_THREAD_POOL_H
#define CMPG_THREAD_POOL_H

#include <stdint.h>

#define MAX_WORKERS 63

typedef void (*Work)(void *context, int64_t item); /* each thread has a context of its own */

typedef struct ThreadPool ThreadPool;

/* Threads beside the caller's; NULL where there is no memory, or no thread can be had: the caller does without. */
ThreadPool *pool_begin(int workers, Work work, void *const *contexts);
/* Does items 0 ≤ item < count, with a context for the caller's own part; NULL: the caller does all. */
void pool_run(ThreadPool *pool, Work work, void *context, int64_t count);
void pool_end(ThreadPool *pool); /* NULL is fine */

#endif
