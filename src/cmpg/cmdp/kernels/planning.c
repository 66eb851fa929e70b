/* Plans of a CMDP and dual bounds; the twin is cmdp/planning.py.

   A plan backs up r − λ·c for every action, and reward and costs apart only for the action that it chooses: so its work
   hardly grows with the number of constraints. The twin backs up everything apart; both agree to rounding. */
#include "process.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    double *worth;   /* [block, A] */
    double *values;  /* [S]: of the weighted sum */
    double *next;    /* [S, 1 + k] */
    double *columns; /* [1 + k, S] */
    double *apart;   /* [1 + k] */
    double *second;  /* [A] */
    int32_t *tied;   /* [A] */
} Scratch;

static void scratch_free(Scratch *scratch)
{
    free(scratch->worth);
    free(scratch->values);
    free(scratch->next);
    free(scratch->columns);
    free(scratch->apart);
    free(scratch->second);
    free(scratch->tied);
}

static int scratch_of(Scratch *scratch, const Process *process)
{
    const size_t states = (size_t)process->states, actions = (size_t)process->actions;
    const size_t tables = (size_t)process->tables;
    scratch->worth = malloc((size_t)block_of(process) * actions * sizeof(double));
    scratch->values = malloc(states * sizeof(double));
    scratch->next = malloc(states * tables * sizeof(double));
    scratch->columns = malloc(states * tables * sizeof(double));
    scratch->apart = malloc(tables * sizeof(double));
    scratch->second = malloc(actions * sizeof(double));
    scratch->tied = malloc((actions + 1) * sizeof(int32_t));
    const int there = scratch->worth && scratch->values && scratch->next && scratch->columns && scratch->apart;
    return there && scratch->second && scratch->tied ? 0 : -1;
}

/* Choose at one step, and replace to_go [S, 1 + k] by the values to go before it. Returns −1, and leaves to_go alone,
   where actions are tied and the caller has to draw noise first. */
static int plan_step(const Process *process, const Rule *rule, int32_t step, double *to_go, int64_t *chosen,
                     const double *noise, int ask, Scratch *scratch)
{
    const int32_t states = process->states, actions = process->actions, tables = process->tables;
    const int32_t block = block_of(process);
    const double *ahead = step == process->steps - 1 ? NULL : to_go;
    for (int32_t s = 0; s < states && ahead != NULL; s++)
        scratch->values[s] = weighed(rule->weights, to_go + (Py_ssize_t)s * tables, tables);
    const double *columns = columns_of(process, ahead, scratch->columns);
    double *worth = scratch->worth;
    for (int32_t s = 0, left = 0; s < states; s++, left--, worth += actions) {
        if (left == 0) {
            left = states - s < block ? states - s : block;
            worth = scratch->worth;
            weigh_stage(process, step, s, left, rule->weights, worth);
        }
        if (ahead != NULL)
            add_future(process, matrix_of(process, step), s, scratch->values, worth);
        const int32_t count = tied_actions(rule, worth, actions, scratch->tied);
        int32_t action = scratch->tied[0];
        if (count > 1) {
            if (ask && noise == NULL)
                return -1;
            for (int32_t i = 0; i < count; i++) {
                back_up_apart(process, step, s, scratch->tied[i], columns, scratch->apart);
                scratch->second[scratch->tied[i]] = weighed(rule->second, scratch->apart, tables);
            }
            action = among_tied(rule, scratch->second, scratch->tied, count, noise == NULL ? NULL : noise + s, states);
        }
        chosen[s] = action;
        back_up_apart(process, step, s, action, columns, scratch->next + (Py_ssize_t)s * tables);
    }
    memcpy(to_go, scratch->next, (size_t)states * (size_t)tables * sizeof(double));
    return 0;
}

static PyObject *plan_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *weights, *second, *chosen_out, *to_go_out, *totals_out, *noise_in;
    double tie, second_tie, relative_tie;
    int step, ask;
    if (!PyArg_ParseTuple(args, "OOOdddiOOOOp", &capsule, &weights, &second, &tie, &second_tie, &relative_tie, &step,
                          &chosen_out, &to_go_out, &totals_out, &noise_in, &ask))
        return NULL;
    const Process *process = process_of(capsule);
    if (process == NULL)
        return NULL;
    if (step < 0 || step >= process->steps) {
        PyErr_SetString(PyExc_ValueError, "there is no such step");
        return NULL;
    }
    const Py_ssize_t states = process->states, rows = states * process->actions, size = states * process->tables;
    Arrays arrays = {.count = 0};
    Rule rule;
    int64_t *chosen = NULL;
    double *to_go = NULL, *totals = NULL;
    const double *noise = NULL;
    int fine = rule_of(&rule, &arrays, process, weights, second, tie, second_tie, relative_tie) == 0;
    fine = fine && (chosen = array_with(&arrays, chosen_out, 'q', 1, "chosen", states * process->steps));
    fine = fine && (to_go = array_with(&arrays, to_go_out, 'd', 1, "to_go", size));
    fine = fine && (totals = array_with(&arrays, totals_out, 'd', 1, "totals", process->tables));
    if (noise_in != Py_None)
        fine = fine && (noise = array_with(&arrays, noise_in, 'd', 0, "noise", rows));
    Scratch scratch = {.worth = NULL};
    if (fine && scratch_of(&scratch, process) < 0) {
        PyErr_NoMemory();
        fine = 0;
    }
    if (fine) {
        Watch watch;
        begin_without_lock(&watch, NO_DEADLINE);
        for (; step >= 0; step--) {
            if (plan_step(process, &rule, step, to_go, chosen + step * states, noise, ask, &scratch) < 0)
                break;
            noise = NULL; /* it was drawn for one step */
            if (must_stop(&watch) == INTERRUPTED) {
                fine = 0;
                break;
            }
        }
        end_without_lock(&watch);
        if (fine && step < 0)
            total(process, to_go, totals);
    }
    scratch_free(&scratch);
    release_arrays(&arrays);
    return fine ? PyLong_FromLong(step) : NULL;
}

static PyObject *bound_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *weights_in;
    if (!PyArg_ParseTuple(args, "OO", &capsule, &weights_in))
        return NULL;
    const Process *process = process_of(capsule);
    if (process == NULL)
        return NULL;
    const int32_t states = process->states, actions = process->actions;
    Arrays arrays = {.count = 0};
    const double *weights = array_with(&arrays, weights_in, 'd', 0, "weights", process->tables);
    const int32_t block = block_of(process);
    double *worth = weights == NULL ? NULL : malloc((size_t)block * (size_t)actions * sizeof(double));
    double *ahead = worth == NULL ? NULL : malloc((size_t)states * sizeof(double));
    double *here = ahead == NULL ? NULL : malloc((size_t)states * sizeof(double));
    int fine = here != NULL;
    if (weights != NULL && !fine)
        PyErr_NoMemory();
    double sum = 0.0;
    if (fine) {
        Watch watch;
        begin_without_lock(&watch, NO_DEADLINE);
        for (int32_t step = process->steps - 1; step >= 0 && fine; step--) {
            double *own = worth;
            for (int32_t s = 0, left = 0; s < states; s++, left--, own += actions) {
                if (left == 0) {
                    left = states - s < block ? states - s : block;
                    own = worth;
                    weigh_stage(process, step, s, left, weights, own);
                }
                if (step < process->steps - 1)
                    add_future(process, matrix_of(process, step), s, ahead, own);
                double best = own[0];
                for (int32_t a = 1; a < actions; a++)
                    best = own[a] > best ? own[a] : best;
                here[s] = best;
            }
            double *swap = ahead;
            ahead = here;
            here = swap;
            fine = must_stop(&watch) != INTERRUPTED;
        }
        end_without_lock(&watch);
        for (int32_t s = 0; s < states; s++)
            sum += process->initial[s] * ahead[s];
    }
    free(worth);
    free(ahead);
    free(here);
    release_arrays(&arrays);
    return fine ? PyFloat_FromDouble(sum) : NULL;
}
PyMethodDef planning_kernels[] = {
    {"plan", plan_kernel, METH_VARARGS,
     "plan(process, weights, second, tie, second_tie, relative_tie, step, chosen, to_go, totals, noise, ask): "
     "plan from a step backwards; the step that waits for noise, or -1."},
    {"bound", bound_kernel, METH_VARARGS, "bound(process, weights): the greatest weighted sum of any policy."},
    {NULL, NULL, 0, NULL},
};
