/* Plans of a CMDP and dual bounds; the twin is cmdp/planning.py.

   A plan backs up r − λ·c for every action, and reward and costs apart only for the action that it chooses: so its work
   hardly grows with the number of constraints. The twin backs up everything apart; both agree to rounding. */
#include "process.h"

#include <stdlib.h>
#include <string.h>

static int scratch_of(Scratch *scratch, const Process *process)
{
    const size_t states = (size_t)process->states, actions = (size_t)process->actions;
    const size_t tables = (size_t)process->tables;
    double *at = malloc((states * (actions + 3 + 2 * tables) + tables + actions) * sizeof(double) +
                        (2 * states + actions + 1) * sizeof(int32_t));
    scratch->memory = at;
    if (at == NULL)
        return -1;
    scratch->worth = at;
    scratch->values = at += states * actions;
    scratch->second_values = at += states;
    scratch->filled = at += states;
    scratch->next = at += states;
    scratch->columns = at += states * tables;
    scratch->apart = at += states * tables;
    scratch->second = at += tables;
    scratch->order = (int32_t *)(at + actions);
    scratch->spare = scratch->order + states;
    scratch->tied = scratch->spare + states;
    return 0;
}

/* Choose at one step, and replace to_go [S, 1 + k] by the values to go before it. Returns −1, and leaves to_go alone,
   where actions are tied and the caller has to draw noise first. */
static int plan_step(const Process *process, const Plan *plan, int32_t step, Scratch *scratch)
{
    const int32_t states = process->states, actions = process->actions, tables = process->tables;
    const int32_t block = block_of(process);
    const Rule *rule = &plan->rule;
    const double *ahead = step == process->steps - 1 ? NULL : plan->to_go;
    /* Expectations are linear: Σ_l w_l E[V_l] = E[Σ_l w_l V_l], so that one product per action decides, whatever k is. */
    for (int32_t s = 0; s < states && ahead != NULL; s++)
        scratch->values[s] = weighed(rule->weights, ahead + (Py_ssize_t)s * tables, tables);
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
        if (count > 1) { /* rounding may decide among them: the second weights do instead */
            if (plan->ask && plan->noise == NULL)
                return -1;
            for (int32_t i = 0; i < count; i++) {
                back_up_apart(process, step, s, scratch->tied[i], columns, scratch->apart);
                scratch->second[scratch->tied[i]] = weighed(rule->second, scratch->apart, tables);
            }
            const double *noise = plan->noise == NULL ? NULL : plan->noise + s;
            action = among_tied(rule, scratch->second, scratch->tied, count, noise, states);
        }
        plan->chosen[(Py_ssize_t)step * states + s] = action;
        back_up_apart(process, step, s, action, columns, scratch->next + (Py_ssize_t)s * tables);
    }
    /* Not before: every state has read the values to go of the step after, and a step that waits for noise needs them. */
    memcpy(plan->to_go, scratch->next, (size_t)states * (size_t)tables * sizeof(double));
    return 0;
}

/* Plan from a step backwards. Returns the step that waits for noise, −1 at the end, −2 if a signal handler has raised. */
static int plan_backwards(const Process *process, const Box *box, Plan *plan, int step, Scratch *scratch)
{
    Watch watch;
    Stop stop = GO_ON;
    begin_without_lock(&watch, NO_DEADLINE);
    for (; step >= 0 && stop != INTERRUPTED; step--) {
        if (box != NULL)
            optimistic_step(process, box, plan, step, scratch);
        else if (plan_step(process, plan, step, scratch) < 0)
            break;
        plan->noise = NULL; /* it was drawn for one step */
        stop = must_stop(&watch);
    }
    end_without_lock(&watch);
    return stop == INTERRUPTED ? -2 : step;
}

static PyObject *plan_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *box_in, *weights, *second, *chosen_out, *rows_out, *to_go_out, *totals_out, *noise_in;
    double tie, second_tie, relative_tie;
    int step, ask;
    if (!PyArg_ParseTuple(args, "OOOOdddiOOOOOp", &capsule, &box_in, &weights, &second, &tie, &second_tie, &relative_tie,
                          &step, &chosen_out, &rows_out, &to_go_out, &totals_out, &noise_in, &ask))
        return NULL;
    const Process *process = process_of(capsule);
    if (process == NULL)
        return NULL;
    if (step < 0 || step >= process->steps) {
        PyErr_SetString(PyExc_ValueError, "there is no such step");
        return NULL;
    }
    const Py_ssize_t states = process->states, visits = states * process->steps;
    const int boxed = box_in != Py_None;
    Arrays arrays = {.count = 0};
    Plan plan = {.ask = ask};
    Box box;
    double *totals = NULL;
    int fine = rule_of(&plan.rule, &arrays, process, weights, second, tie, second_tie, relative_tie) == 0;
    fine = fine && (plan.chosen = array_with(&arrays, chosen_out, 'q', 1, "chosen", visits));
    fine = fine && (plan.to_go = array_with(&arrays, to_go_out, 'd', 1, "to_go", states * process->tables));
    fine = fine && (totals = array_with(&arrays, totals_out, 'd', 1, "totals", process->tables));
    if (boxed) {
        fine = fine && box_of(&box, &arrays, process, box_in) == 0;
        fine = fine && (plan.rows = array_with(&arrays, rows_out, 'd', 1, "rows", visits * states));
    }
    if (noise_in != Py_None)
        fine = fine && (plan.noise = array_with(&arrays, noise_in, 'd', 0, "noise", states * process->actions));
    Scratch scratch = {.memory = NULL};
    if (fine && scratch_of(&scratch, process) < 0) {
        PyErr_NoMemory();
        fine = 0;
    }
    if (fine) {
        step = plan_backwards(process, boxed ? &box : NULL, &plan, step, &scratch);
        fine = step > -2;
        if (step == -1)
            total(process, plan.to_go, totals);
    }
    free(scratch.memory);
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
                double best = own[0]; /* a maximum does not round, and the sums before it are allowed for by the caller */
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
     "plan(process, box or None, weights, second, tie, second_tie, relative_tie, step, chosen, rows or None, to_go, "
     "totals, noise, ask): plan from a step backwards; the step that waits for noise, or -1."},
    {"bound", bound_kernel, METH_VARARGS, "bound(process, weights): the greatest weighted sum of any policy."},
    {NULL, NULL, 0, NULL},
};
