/* Threads that share out pieces of work, again and again; see `crew.c`. */
#ifndef CMPG_CREW_H
#define CMPG_CREW_H

#include <stdint.h>

#define MOST_HELPERS 63

typedef void (*Work)(void *context, int64_t item); /* each thread has a context of its own */

typedef struct Crew Crew;

/* Threads beside the caller's; NULL where there is no memory, or no thread can be had: the caller does without. */
Crew *crew_begin(int helpers, Work work, void *const *contexts);
/* Does items 0 ≤ item < count, with a context for the caller's own part; NULL is a crew of nobody but the caller. */
void crew_share(Crew *crew, Work work, void *context, int64_t count);
void crew_end(Crew *crew); /* NULL is fine */

#endif
