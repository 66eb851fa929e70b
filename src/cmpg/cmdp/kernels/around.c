/* Which actions of a CMDP can be best for some multipliers of a box.

   Let one policy be worth V_λ = V^r − λ·V^c, which is linear in the multipliers λ, and let an action be worth adv_λ more
   than what it plays, if it is followed afterwards. No policy gains more than
       W_h(s) = max_a max_λ [adv_λ(s, a)] + Σ_{s'} P_h(s' | s, a) W_{h+1}(s'),    W_H = 0,
   over it, whatever λ is. So where what stands in the maximum over a is negative, the action is worse than that policy for
   every λ of the box, and is best for none. Close to the best multipliers, little more
   than one action a state is left. */
#include "rows.h"

#include <stdlib.h>
#include <string.h>

/* If a larger share of the last steps is left than this, and than is wanted, the search is given up. */
#define LARGEST_SHARE 0.6

/* The rows among which some are looked for: those of the process, or those that are left already. */
typedef struct {
    const Process *process;
    const Rows *rows; /* or NULL */
} Source;

/* The i-th row of a step and state; of the process, that is the i-th action. */
static inline Row row_at(const Source *source, int32_t step, int32_t state, int32_t i)
{
    if (source->rows != NULL)
        return row_in(source->rows, source->rows->begin[place_of(source->rows, step, state)] + i);
    return row_of_process(source->process, step, state, i);
}

/* The box of multipliers, as weights of the tables; the first of them is one, that of the reward. */
typedef struct {
    const double *low, *high; /* [1 + k] */
    const double *spans;      /* [1 + k]: by how much each table differs within one step, at most */
    double *centre;           /* [1 + k] */
    double margin;
} Around;

typedef struct {
    double *worth;         /* [block, A]: at the centre of the box, with W */
    double *ahead, *here;  /* [S, 2 + k]: the tables from there on under the policy, and W */
    double *columns;       /* [2 + k, S], if rows are dense */
    double *values;        /* [S]: of the weighted sum at the centre, with W */
    double *sums, *played; /* [2 + k] */
    int32_t *close;        /* [A + 1]: the actions that may be left */
} Search;

/* By how much any two actions of a step can differ more somewhere in the box than they do at its centre. */
static double leeway(const Process *process, const Around *around, const double *ahead)
{
    const int32_t tables = process->tables, width = tables + 1;
    double sum = around->margin;
    for (int32_t l = 1; l < tables; l++) {
        double least = 0.0, most = 0.0;
        if (ahead != NULL) {
            least = most = ahead[l];
            for (int32_t s = 1; s < process->states; s++) {
                const double each = ahead[(Py_ssize_t)s * width + l];
                least = each < least ? each : least;
                most = each > most ? each : most;
            }
        }
        sum += 0.5 * (around->high[l] - around->low[l]) * (most - least + around->spans[l]);
    }
    return sum;
}

/* sums[l] = l_h(s, a) + Σ_{s'} P(s' | s, a) ahead[s', l], of the tables and of W. */
static void back_up(const Process *process, int32_t step, int32_t state, const Row *row, const double *columns,
                    double *sums)
{
    const int32_t tables = process->tables;
    if (columns == NULL)
        memset(sums, 0, (size_t)(tables + 1) * sizeof(double));
    else
        sums_apart(row->probability, row->target, row->length, columns, tables + 1, sums);
    for (int32_t l = 0; l < tables; l++)
        sums[l] += entry_of(&process->table[l], step, state, row->action);
}

/* Keep the rows of one step; returns how many there were, or −1 where memory is short. */
static int64_t keep_step(const Source *source, const Around *around, int32_t step, const int64_t *actions, Rows *rows,
                         Search *search)
{
    const Process *process = source->process;
    const int32_t states = process->states, tables = process->tables, width = tables + 1;
    const double *ahead = step == process->steps - 1 ? NULL : search->ahead, *columns = ahead;
    const double allowed = leeway(process, around, ahead);
    int64_t seen = 0;
    for (int32_t s = 0; s < states && ahead != NULL; s++)
        search->values[s] =
            weighed(around->centre, ahead + (Py_ssize_t)s * width, tables) + ahead[(Py_ssize_t)s * width + tables];
    if (ahead != NULL && process->matrix[0].start == NULL) {
        for (int32_t s = 0; s < states; s++)
            for (int32_t l = 0; l < width; l++)
                search->columns[(Py_ssize_t)l * states + s] = ahead[(Py_ssize_t)s * width + l];
        columns = search->columns;
    }
    double *worth = search->worth;
    for (int32_t s = 0, left = 0; s < states; s++, left--, worth += process->actions) {
        int32_t count = process->actions, played = source->rows == NULL ? (int32_t)actions[s] : 0, close = 0;
        if (source->rows == NULL) {
            if (left == 0) {
                left = states - s < block_of(process) ? states - s : block_of(process);
                worth = search->worth;
                weigh_stage(process, step, s, left, around->centre, worth);
            }
            if (ahead != NULL)
                add_future(process, matrix_of(process, step), s, search->values, worth);
        } else {
            const int32_t place = place_of(source->rows, step, s), first = source->rows->begin[place];
            worth = search->worth;
            count = source->rows->begin[place + 1] - first;
            for (int32_t i = 0; i < count; i++) {
                const Row row = row_in(source->rows, first + i);
                worth[i] = weighed(around->centre, source->rows->stage + (int64_t)(first + i) * tables, tables);
                if (ahead != NULL)
                    worth[i] += product(row.probability, row.target, row.length, search->values);
                played = row.action == actions[s] ? i : played;
            }
        }
        seen += count;
        rows->begin[place_of(rows, step, s)] = rows->count;
        const Row own = row_at(source, step, s, played);
        back_up(process, step, s, &own, columns, search->played);
        const double least = weighed(around->centre, search->played, tables) - allowed;
        double gain = search->played[tables];
        for (int32_t i = 0; i < count; i++) {
            search->close[close] = i;
            close += i == played || !(worth[i] < least);
        }
        for (int32_t each = 0; each < close; each++) {
            const int32_t i = search->close[each];
            const Row row = row_at(source, step, s, i);
            if (i != played) {
                back_up(process, step, s, &row, columns, search->sums);
                double most = search->sums[tables];
                for (int32_t l = 0; l < tables; l++) {
                    const double more = search->sums[l] - search->played[l];
                    most += (more > 0.0 ? around->high[l] : around->low[l]) * more;
                }
                if (most < -around->margin)
                    continue;
                gain = most > gain ? most : gain;
            }
            if (rows_append(rows, process, step, s, &row) < 0)
                return -1;
        }
        double *to = search->here + (Py_ssize_t)s * width;
        memcpy(to, search->played, (size_t)tables * sizeof(double));
        to[tables] = gain;
    }
    double *swap = search->ahead;
    search->ahead = search->here;
    search->here = swap;
    return seen;
}

static void search_free(Search *search)
{
    free(search->worth);
    free(search->ahead);
    free(search->here);
    free(search->columns);
    free(search->values);
    free(search->sums);
    free(search->played);
    free(search->close);
}

static int search_of(Search *search, const Process *process)
{
    const size_t states = (size_t)process->states, width = (size_t)process->tables + 1;
    const size_t actions = (size_t)process->actions;
    int there = (search->worth = malloc((size_t)block_of(process) * actions * sizeof(double))) != NULL;
    there &= (search->close = malloc((actions + 1) * sizeof(int32_t))) != NULL;
    there &= (search->ahead = malloc(states * width * sizeof(double))) != NULL;
    there &= (search->here = malloc(states * width * sizeof(double))) != NULL;
    there &= (search->columns = malloc(states * width * sizeof(double))) != NULL;
    there &= (search->values = malloc(states * sizeof(double))) != NULL;
    there &= (search->sums = malloc(width * sizeof(double))) != NULL;
    there &= (search->played = malloc(width * sizeof(double))) != NULL;
    return there ? 0 : -1;
}

static PyObject *around_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *rows_in, *actions_in, *low_in, *high_in, *spans_in;
    Around around = {.centre = NULL};
    double share;
    if (!PyArg_ParseTuple(args, "OOOOOOdd", &capsule, &rows_in, &actions_in, &low_in, &high_in, &spans_in,
                          &around.margin, &share))
        return NULL;
    Source source = {process_of(capsule), NULL};
    if (source.process == NULL)
        return NULL;
    if (rows_in != Py_None && (source.rows = rows_of(rows_in, source.process)) == NULL)
        return NULL;
    const Process *process = source.process;
    const int64_t places = (int64_t)process->steps * process->states;
    if (places * process->actions > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "the process has too many rows");
        return NULL;
    }
    Arrays arrays = {.count = 0};
    const int64_t *actions = NULL;
    int fine = (actions = array_with(&arrays, actions_in, 'q', 0, "actions", places)) != NULL;
    fine = fine && (around.low = array_with(&arrays, low_in, 'd', 0, "low", process->tables));
    fine = fine && (around.high = array_with(&arrays, high_in, 'd', 0, "high", process->tables));
    fine = fine && (around.spans = array_with(&arrays, spans_in, 'd', 0, "spans", process->tables));
    for (Py_ssize_t place = 0; fine && place < places; place++)
        if (actions[place] < 0 || actions[place] >= process->actions) {
            PyErr_SetString(PyExc_ValueError, "a plan has an action that does not exist");
            fine = 0;
        }
    Search search = {.worth = NULL};
    Rows *rows = NULL;
    if (fine) {
        around.centre = malloc((size_t)process->tables * sizeof(double));
        rows = rows_new(process);
        if (around.centre == NULL || rows == NULL || search_of(&search, process) < 0) {
            PyErr_NoMemory();
            fine = 0;
        }
    }
    const int64_t present = source.rows == NULL ? places * process->actions : source.rows->count;
    int few = fine;
    if (fine) {
        for (int32_t l = 0; l < process->tables; l++)
            around.centre[l] = 0.5 * (around.low[l] + around.high[l]);
        int64_t all = 0, seen = 0;
        Watch watch;
        begin_without_lock(&watch, NO_DEADLINE);
        for (int32_t step = process->steps - 1; step >= 0 && fine && few; step--) {
            seen = keep_step(&source, &around, step, actions + (Py_ssize_t)step * process->states, rows, &search);
            all += seen;
            fine = seen >= 0 && must_stop(&watch) != INTERRUPTED;
            /* W grows from step to step, so that ever fewer are dropped. */
            few = rows->count <= share * (double)present &&
                  (source.rows != NULL || rows->count <= fmax(share, LARGEST_SHARE) * (double)all);
        }
        end_without_lock(&watch);
        if (seen < 0)
            PyErr_NoMemory();
        rows->begin[places] = rows->count;
    }
    free(around.centre);
    search_free(&search);
    release_arrays(&arrays);
    if (!fine || !few) {
        rows_free(rows);
        rows = NULL;
    }
    return fine ? rows_answer(rows) : NULL;
}

PyMethodDef around_kernels[] = {
    {"narrow_around", around_kernel, METH_VARARGS,
     "narrow_around(process, rows or None, actions, low, high, spans, margin, share): the rows that can matter while the "
     "weights of the tables lie between low and high, and how many they are; None if more than that share is left."},
    {NULL, NULL, 0, NULL},
};
