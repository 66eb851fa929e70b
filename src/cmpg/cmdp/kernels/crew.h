/* Threads that ask the same question of several agents at once, where the answers do not depend on each other. */
#ifndef CMPG_CREW_H
#define CMPG_CREW_H

#include <stdint.h>

/* 1: yes; 0: no; −1: no memory. Each thread asks with a context of its own. */
typedef int (*Question)(void *context, int64_t item);

typedef struct Crew Crew;

/* NULL where there is no memory, or threads cannot be had: whoever asks does without. */
Crew *crew_begin(int threads, Question question, void *const *contexts);
/* How many of the items first, first + 1, … come before the first that says yes: `count` where none does; −1: no memory.
   That is the same for any number of threads. */
int64_t crew_before_first(Crew *crew, int64_t first, int64_t count);
void crew_end(Crew *crew); /* NULL is fine */

#endif
