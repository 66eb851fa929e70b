/* A small pool of threads; see crew.h. The caller's thread is one of them. */
#include "crew.h"

#include <stddef.h>

#ifdef _WIN32

Crew *crew_begin(int threads, Question question, void *const *contexts)
{
    (void)threads, (void)question, (void)contexts;
    return NULL;
}

int64_t crew_before_first(Crew *crew, int64_t first, int64_t count)
{
    (void)crew, (void)first, (void)count;
    return 0;
}

void crew_end(Crew *crew)
{
    (void)crew;
}

#else

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct Crew {
    Question question;
    void *const *contexts; /* [threads + 1]; the last is the caller's */
    int threads;           /* beside the caller's */
    pthread_t *thread;
    pthread_mutex_t lock;
    pthread_cond_t begin, done;
    uint64_t rounds; /* that were begun */
    int busy, over, joined;
    int64_t first, count;
    atomic_llong next, found; /* the next item to be asked, and the first that said yes so far */
    atomic_int failed;
};

/* Items are taken in order, and none is left out before the first that says yes. */
static void ask(Crew *crew, void *context)
{
    for (;;) {
        const long long item = atomic_fetch_add(&crew->next, 1);
        if (item >= crew->count || item > atomic_load(&crew->found) || atomic_load(&crew->failed))
            return;
        const int answer = crew->question(context, crew->first + item);
        if (answer < 0)
            atomic_store(&crew->failed, 1);
        long long earliest = atomic_load(&crew->found);
        while (answer > 0 && item < earliest && !atomic_compare_exchange_weak(&crew->found, &earliest, item))
            ;
    }
}

static void *work(void *argument)
{
    Crew *crew = argument;
    pthread_mutex_lock(&crew->lock);
    void *context = crew->contexts[crew->joined++];
    for (uint64_t seen = 0;;) {
        while (!crew->over && crew->rounds == seen)
            pthread_cond_wait(&crew->begin, &crew->lock);
        if (crew->over)
            break;
        seen = crew->rounds;
        pthread_mutex_unlock(&crew->lock);
        ask(crew, context);
        pthread_mutex_lock(&crew->lock);
        if (--crew->busy == 0)
            pthread_cond_signal(&crew->done);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

Crew *crew_begin(int threads, Question question, void *const *contexts)
{
    Crew *crew = calloc(1, sizeof *crew);
    if (crew == NULL || (crew->thread = calloc((size_t)threads, sizeof *crew->thread)) == NULL) {
        free(crew);
        return NULL;
    }
    crew->question = question;
    crew->contexts = contexts;
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->begin, NULL);
    pthread_cond_init(&crew->done, NULL);
    while (crew->threads < threads - 1 && pthread_create(&crew->thread[crew->threads], NULL, work, crew) == 0)
        crew->threads++;
    if (crew->threads > 0)
        return crew;
    crew_end(crew);
    return NULL;
}

int64_t crew_before_first(Crew *crew, int64_t first, int64_t count)
{
    pthread_mutex_lock(&crew->lock);
    crew->first = first;
    crew->count = count;
    atomic_store(&crew->next, 0);
    atomic_store(&crew->found, count);
    crew->busy = crew->threads;
    crew->rounds++;
    pthread_cond_broadcast(&crew->begin);
    pthread_mutex_unlock(&crew->lock);
    ask(crew, crew->contexts[crew->threads]);
    pthread_mutex_lock(&crew->lock);
    while (crew->busy > 0)
        pthread_cond_wait(&crew->done, &crew->lock);
    pthread_mutex_unlock(&crew->lock);
    return atomic_load(&crew->failed) ? -1 : atomic_load(&crew->found);
}

void crew_end(Crew *crew)
{
    if (crew == NULL)
        return;
    pthread_mutex_lock(&crew->lock);
    crew->over = 1;
    pthread_cond_broadcast(&crew->begin);
    pthread_mutex_unlock(&crew->lock);
    for (int each = 0; each < crew->threads; each++)
        pthread_join(crew->thread[each], NULL);
    pthread_cond_destroy(&crew->done);
    pthread_cond_destroy(&crew->begin);
    pthread_mutex_destroy(&crew->lock);
    free(crew->thread);
    free(crew);
}

#endif
