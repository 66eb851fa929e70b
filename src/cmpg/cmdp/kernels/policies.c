/* What a policy of a CMDP is worth, and where it leads; the twin is cmdp/evaluation.py. Actions that are never played are
   not looked at. */
#include "process.h"

#include <stdlib.h>
#include <string.h>

/* Rows that a policy picks out of a large sparse matrix are far apart: they are fetched some rows ahead. */
#define AHEAD 12

static inline void fetch(const Matrix *matrix, const int32_t *rows, int32_t i, int32_t count)
{
    if (matrix->start == NULL || matrix->begin != NULL)
        return;
    if (i + 2 * AHEAD < count)
        PREFETCH(matrix->start + rows[i + 2 * AHEAD]);
    if (i + AHEAD < count) {
        const int32_t first = matrix->start[rows[i + AHEAD]], last = matrix->start[rows[i + AHEAD] + 1] - 1;
        PREFETCH(matrix->probability + first);
        PREFETCH(matrix->probability + last);
        PREFETCH(matrix->target + first);
        PREFETCH(matrix->target + last);
    }
}

/* List the rows that are not zero; returns how many. */
static int32_t rows_played(const double *weights, Py_ssize_t rows, int32_t *played)
{
    int32_t count = 0;
    for (Py_ssize_t row = 0; row < rows; row++) { /* no branch: which rows are played is hard to predict; count ≤ row */
        played[count] = (int32_t)row;
        count += weights[row] != 0.0;
    }
    return count;
}

static PyObject *evaluate_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *policy_in, *totals_out;
    if (!PyArg_ParseTuple(args, "OOO", &capsule, &policy_in, &totals_out))
        return NULL;
    const Process *process = process_of(capsule);
    if (process == NULL)
        return NULL;
    const int32_t states = process->states, actions = process->actions, tables = process->tables;
    const Py_ssize_t rows = (Py_ssize_t)states * actions;
    Arrays arrays = {.count = 0};
    const double *policy = array_with(&arrays, policy_in, 'd', 0, "policy", rows * process->steps);
    double *totals = policy == NULL ? NULL : array_with(&arrays, totals_out, 'd', 1, "totals", tables);
    const size_t size = (size_t)states * (size_t)tables * sizeof(double);
    double *ahead = totals == NULL ? NULL : malloc(size), *here = ahead == NULL ? NULL : malloc(size);
    double *columns = here == NULL ? NULL : malloc(size);
    double *apart = columns == NULL ? NULL : malloc((size_t)tables * sizeof(double));
    int32_t *played = apart == NULL ? NULL : malloc((size_t)rows * sizeof(int32_t));
    int fine = played != NULL;
    if (totals != NULL && !fine)
        PyErr_NoMemory();
    if (fine) {
        Watch watch;
        begin_without_lock(&watch, NO_DEADLINE);
        for (int32_t step = process->steps - 1; step >= 0 && fine; step--) {
            const double *own = policy + step * rows;
            const double *to_go = step == process->steps - 1 ? NULL : columns_of(process, ahead, columns);
            const int32_t count = rows_played(own, rows, played);
            memset(here, 0, size);
            for (int32_t i = 0; i < count; i++) {
                const int32_t row = played[i], s = row / actions;
                if (to_go != NULL)
                    fetch(matrix_of(process, step), played, i, count);
                back_up_apart(process, step, s, row - s * actions, to_go, apart);
                for (int32_t l = 0; l < tables; l++)
                    here[(Py_ssize_t)s * tables + l] += own[row] * apart[l];
            }
            double *swap = ahead;
            ahead = here;
            here = swap;
            fine = must_stop(&watch) != INTERRUPTED;
        }
        end_without_lock(&watch);
        total(process, ahead, totals);
    }
    free(ahead);
    free(here);
    free(columns);
    free(apart);
    free(played);
    release_arrays(&arrays);
    if (!fine)
        return NULL;
    Py_RETURN_NONE;
}

/* arriving[s'] += amount·P(s' | s, a), along a list of rows. */
static void flow_along(const Matrix *matrix, int32_t state, int32_t action, double amount, double *arriving)
{
    const Py_ssize_t after = (Py_ssize_t)action * matrix->stride;
    for (int32_t i = matrix->begin[state]; i < matrix->begin[state + 1]; i++) {
        const int32_t *start = matrix->start + matrix->source[i] + after;
        const double share = amount * matrix->weight[i];
        for (int32_t entry = start[0]; entry < start[1]; entry++)
            arriving[matrix->target[entry]] += share * matrix->probability[entry];
    }
}

/* arriving[s'] += amount·P(s' | row): sums of non-negative terms, in which nothing cancels. */
static inline void flow(const Process *process, const Matrix *matrix, Py_ssize_t row, double amount, double *arriving)
{
    if (matrix->begin != NULL)
        flow_along(matrix, (int32_t)(row / process->actions), (int32_t)(row % process->actions), amount, arriving);
    else if (matrix->start == NULL) {
        const double *probability = matrix->probability + row * process->states;
        for (int32_t s = 0; s < process->states; s++)
            arriving[s] += amount * probability[s];
    } else
        for (int32_t entry = matrix->start[row]; entry < matrix->start[row + 1]; entry++)
            arriving[matrix->target[entry]] += amount * matrix->probability[entry];
}

static PyObject *occupancy_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *policy_in, *visits_out;
    if (!PyArg_ParseTuple(args, "OOO", &capsule, &policy_in, &visits_out))
        return NULL;
    const Process *process = process_of(capsule);
    if (process == NULL)
        return NULL;
    const int32_t states = process->states, actions = process->actions;
    const Py_ssize_t rows = (Py_ssize_t)states * actions;
    Arrays arrays = {.count = 0};
    const double *policy = array_with(&arrays, policy_in, 'd', 0, "policy", rows * process->steps);
    double *visits = policy == NULL ? NULL : array_with(&arrays, visits_out, 'd', 1, "visits", rows * process->steps);
    double *arriving = visits == NULL ? NULL : malloc((size_t)states * sizeof(double));
    int32_t *played = arriving == NULL ? NULL : malloc((size_t)rows * sizeof(int32_t));
    int fine = played != NULL;
    if (visits != NULL && !fine)
        PyErr_NoMemory();
    if (fine) {
        Watch watch;
        begin_without_lock(&watch, NO_DEADLINE);
        memcpy(arriving, process->initial, (size_t)states * sizeof(double));
        for (int32_t step = 0; step < process->steps && fine; step++) {
            double *own = visits + step * rows;
            for (int32_t s = 0; s < states; s++)
                for (Py_ssize_t row = (Py_ssize_t)s * actions; row < (Py_ssize_t)(s + 1) * actions; row++)
                    own[row] = arriving[s] * policy[step * rows + row];
            if (step + 1 < process->steps) {
                const Matrix *matrix = matrix_of(process, step);
                const int32_t count = rows_played(own, rows, played);
                memset(arriving, 0, (size_t)states * sizeof(double));
                for (int32_t i = 0; i < count; i++) {
                    fetch(matrix, played, i, count);
                    flow(process, matrix, played[i], own[played[i]], arriving);
                }
            }
            fine = must_stop(&watch) != INTERRUPTED;
        }
        end_without_lock(&watch);
    }
    free(arriving);
    free(played);
    release_arrays(&arrays);
    if (!fine)
        return NULL;
    Py_RETURN_NONE;
}

/* Where actions that are played for sure lead: the twin is `plan_visits`. */
static PyObject *visits_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *actions_in, *visits_out;
    if (!PyArg_ParseTuple(args, "OOO", &capsule, &actions_in, &visits_out))
        return NULL;
    const Process *process = process_of(capsule);
    if (process == NULL)
        return NULL;
    const Py_ssize_t states = process->states, entries = states * process->steps;
    Arrays arrays = {.count = 0};
    const int64_t *actions = array_with(&arrays, actions_in, 'q', 0, "actions", entries);
    double *visits = actions == NULL ? NULL : array_with(&arrays, visits_out, 'd', 1, "visits", entries);
    int fine = visits != NULL, beyond = 0;
    for (Py_ssize_t i = 0; i < entries && fine; i++)
        beyond |= actions[i] < 0 || actions[i] >= process->actions;
    if (beyond) {
        PyErr_SetString(PyExc_ValueError, "there is no such action");
        fine = 0;
    }
    if (fine) {
        Watch watch;
        begin_without_lock(&watch, NO_DEADLINE);
        memcpy(visits, process->initial, (size_t)states * sizeof(double));
        for (int32_t step = 0; step + 1 < process->steps && fine; step++) {
            const Matrix *matrix = matrix_of(process, step);
            const double *here = visits + step * states;
            double *arriving = visits + (step + 1) * states;
            memset(arriving, 0, (size_t)states * sizeof(double));
            for (Py_ssize_t s = 0; s < states; s++)
                if (here[s] != 0.0)
                    flow(process, matrix, s * process->actions + actions[step * states + s], here[s], arriving);
            fine = must_stop(&watch) != INTERRUPTED;
        }
        end_without_lock(&watch);
    }
    release_arrays(&arrays);
    if (!fine)
        return NULL;
    Py_RETURN_NONE;
}

PyMethodDef policy_kernels[] = {
    {"evaluate", evaluate_kernel, METH_VARARGS, "evaluate(process, policy, totals): the reward and costs of a policy."},
    {"occupancy", occupancy_kernel, METH_VARARGS, "occupancy(process, policy, visits): where a policy leads."},
    {"visits", visits_kernel, METH_VARARGS, "visits(process, actions, visits): where actions lead, by step and state."},
    {NULL, NULL, 0, NULL},
};
