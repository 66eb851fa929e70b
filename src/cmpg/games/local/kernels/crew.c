/* A piece of work takes about as long as it takes to wake a sleeping thread: so helpers do not sleep between two rounds,
   but look again and again whether there is one, and let others have the processor once that takes long. A crew lives no
   longer than one call of a kernel. */
#include "crew.h"

#include <stddef.h>

#if defined(_WIN32) || defined(__STDC_NO_ATOMICS__)

Crew *crew_begin(int helpers, Work work, void *const *contexts)
{
    (void)helpers, (void)work, (void)contexts;
    return NULL;
}

void crew_share(Crew *crew, Work work, void *context, int64_t count)
{
    (void)crew;
    for (int64_t item = 0; item < count; item++)
        work(context, item);
}

void crew_end(Crew *crew)
{
    (void)crew;
}

#else

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#define LOOKS 4096 /* before others may have the processor: some ten microseconds */
#define OVER (-1)

typedef struct {
    Crew *crew;
    pthread_t thread;
    void *context;
} Helper;

struct Crew {
    Work work;
    int helpers;
    int64_t count;      /* items of this round */
    atomic_llong round; /* that was begun; OVER: go home */
    atomic_llong next;  /* item */
    atomic_int busy;    /* helpers who have not seen that all items are taken */
    Helper all[MOST_HELPERS];
};

static void look_again(int *looks)
{
    if (++*looks >= LOOKS)
        sched_yield();
#if defined(__x86_64__) || defined(__i386__)
    else
        __builtin_ia32_pause();
#endif
}

static void take_items(Crew *crew, Work work, void *context)
{
    long long item;
    while ((item = atomic_fetch_add(&crew->next, 1)) < crew->count)
        work(context, item);
}

static void *help(void *argument)
{
    const Helper *own = argument;
    Crew *crew = own->crew;
    for (long long seen = 0;;) {
        long long round;
        int looks = 0;
        while ((round = atomic_load(&crew->round)) == seen)
            look_again(&looks);
        if (round == OVER)
            return NULL;
        seen = round;
        take_items(crew, crew->work, own->context);
        atomic_fetch_sub(&crew->busy, 1);
    }
}

Crew *crew_begin(int helpers, Work work, void *const *contexts)
{
    Crew *crew = calloc(1, sizeof *crew);
    if (crew == NULL)
        return NULL;
    crew->work = work;
    for (; crew->helpers < helpers && crew->helpers < MOST_HELPERS; crew->helpers++) {
        Helper *helper = &crew->all[crew->helpers];
        *helper = (Helper){.crew = crew, .context = contexts[crew->helpers]};
        if (pthread_create(&helper->thread, NULL, help, helper) != 0)
            break;
    }
    if (crew->helpers > 0)
        return crew;
    free(crew);
    return NULL;
}

void crew_share(Crew *crew, Work work, void *context, int64_t count)
{
    if (crew == NULL || count < 2) {
        for (int64_t item = 0; item < count; item++)
            work(context, item);
        return;
    }
    crew->count = count;
    atomic_store(&crew->next, 0);
    atomic_store(&crew->busy, crew->helpers);
    atomic_fetch_add(&crew->round, 1);
    take_items(crew, work, context);
    int looks = 0;
    while (atomic_load(&crew->busy) > 0)
        look_again(&looks);
}

void crew_end(Crew *crew)
{
    if (crew == NULL)
        return;
    atomic_store(&crew->round, OVER);
    for (int at = 0; at < crew->helpers; at++)
        pthread_join(crew->all[at].thread, NULL);
    free(crew);
}

#endif
