/* Actions of a CMDP that are left, copied to a place of their own, where they are read from front to back. */
#ifndef CMPG_ROWS_H
#define CMPG_ROWS_H

#include "process.h"

/* The rows (s, a) that are left: the last step's come first, and those of a step in ascending order. */
typedef struct {
    int32_t steps, states, actions, tables, count;
    int64_t entries;
    int32_t *begin;      /* [H·S + 1]: the first row of each step and state */
    int32_t *action;     /* [rows] */
    double *stage;       /* [rows, 1 + k]: the reward and the costs */
    int64_t *start;      /* [rows + 1]: the first entry of each row */
    int32_t *target;     /* [entries]; NULL where rows are dense */
    double *probability; /* [entries] */
    int32_t room;        /* for so many rows and entries */
    int64_t entry_room;
} Rows;

typedef struct {
    int32_t action;
    int64_t length;
    const double *probability;
    const int32_t *target; /* NULL: dense */
} Row;

static inline int32_t place_of(const Rows *rows, int32_t step, int32_t state)
{
    return (rows->steps - 1 - step) * rows->states + state;
}

static inline Row row_in(const Rows *rows, int32_t row)
{
    const int64_t first = rows->start[row];
    return (Row){.action = rows->action[row],
                 .length = rows->start[row + 1] - first,
                 .probability = rows->probability + first,
                 .target = rows->target == NULL ? NULL : rows->target + first};
}

/* The row of an action of the process itself. */
static inline Row row_of_process(const Process *process, int32_t step, int32_t state, int32_t action)
{
    const Matrix *matrix = matrix_of(process, step);
    const Py_ssize_t row = (Py_ssize_t)state * process->actions + action;
    if (matrix->start == NULL)
        return (Row){action, process->states, matrix->probability + row * process->states, NULL};
    const int32_t first = matrix->start[row];
    return (Row){action, matrix->start[row + 1] - first, matrix->probability + first, matrix->target + first};
}

/* No rows yet; NULL where memory is short. */
Rows *rows_new(const Process *process);

void rows_free(Rows *rows);

/* Make room for so many rows and entries; −1 where memory is short. */
int rows_reserve(Rows *rows, int64_t count, int64_t entries, int sparse);

/* Add a row to those of the last place that was begun; −1 where memory is short. */
int rows_append(Rows *rows, const Process *process, int32_t step, int32_t state, const Row *row);

/* The rows in a capsule; NULL with an exception if it is something else, or if they do not fit the process. */
const Rows *rows_of(PyObject *capsule, const Process *process);

/* A capsule that owns the rows, and how many they are; None if they are NULL. */
PyObject *rows_answer(Rows *rows);

#endif
