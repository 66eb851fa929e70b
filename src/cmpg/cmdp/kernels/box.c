/* CMDPs whose transition is only known to lie in a box; the twin is cmdp/box.py.

   A row of the box is filled greedily: everything gets its lower bound, and what is left to one goes to the next states
   in their order until it is used up. So r − λ·c is backed up for every action in one pass over its row, and the kernel
   and the costs apart only for the action that is chosen. */
#include "process.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const double *lower, *width; /* [H or 1, S, A, S] */
    const double *spare;         /* [H or 1, S, A]: what the lower bounds leave to one */
    int32_t steps;               /* H or 1 */
} Box;

/* The tables come as a tuple of three arrays. */
static int box_of(Box *box, Arrays *arrays, const Process *process, PyObject *tuple)
{
    PyObject *lower, *width, *spare;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(tuple, "OOO", &lower, &width, &spare))
        return -1;
    box->spare = array_of(arrays, spare, 'd', 0, "spare", &length);
    if (box->spare == NULL)
        return -1;
    const Py_ssize_t rows = (Py_ssize_t)process->states * process->actions;
    if (length != rows && length != rows * process->steps) {
        PyErr_SetString(PyExc_ValueError, "the box does not fit the process");
        return -1;
    }
    box->steps = length == rows ? 1 : process->steps;
    box->lower = array_with(arrays, lower, 'd', 0, "lower", length * process->states);
    if (box->lower == NULL)
        return -1;
    box->width = array_with(arrays, width, 'd', 0, "width", length * process->states);
    return box->width == NULL ? -1 : 0;
}

static inline Py_ssize_t row_of(const Box *box, const Process *process, int32_t step, int32_t state, int32_t action)
{
    return ((Py_ssize_t)(box->steps == 1 ? 0 : step) * process->states + state) * process->actions + action;
}

/* A stable sort of a few indices, largest key first: by insertion in short runs, then by merging them. */
static void sort_down(int32_t *order, int32_t count, const double *key, int32_t *spare)
{
    enum { RUN = 16 };
    for (int32_t begin = 0; begin < count; begin += RUN) {
        const int32_t end = begin + RUN < count ? begin + RUN : count;
        for (int32_t i = begin + 1; i < end; i++) {
            const int32_t moved = order[i];
            int32_t j = i;
            for (; j > begin && key[order[j - 1]] < key[moved]; j--)
                order[j] = order[j - 1];
            order[j] = moved;
        }
    }
    for (int64_t length = RUN; length < count; length *= 2) {
        for (int64_t begin = 0; begin < count; begin += 2 * length) {
            const int64_t middle = begin + length < count ? begin + length : count;
            const int64_t end = begin + 2 * length < count ? begin + 2 * length : count;
            int64_t one = begin, other = middle;
            for (int64_t to = begin; to < end; to++)
                spare[to] = one < middle && (other == end || !(key[order[one]] < key[order[other]])) ? order[one++]
                                                                                                     : order[other++];
        }
        memcpy(order, spare, (size_t)count * sizeof(int32_t));
    }
}

/* Next states by what is to come, the best first; a run of neighbours that are tied is sorted by the second key. */
static void best_first(int32_t *order, int32_t states, const double *key, const double *second, double tie,
                       int32_t *spare)
{
    for (int32_t s = 0; s < states; s++)
        order[s] = s;
    sort_down(order, states, key, spare);
    for (int32_t begin = 0, end; begin < states && second != NULL; begin = end) {
        for (end = begin + 1; end < states && !(key[order[end - 1]] - key[order[end]] > tie); end++)
            ;
        if (end - begin > 1)
            sort_down(order + begin, end - begin, second, spare);
    }
}

/* max Σ_{s'} p(s')·values[s'] over the rows p of the box. */
static inline double best_sum(const Box *box, Py_ssize_t row, const int32_t *order, const double *values,
                              int32_t states)
{
    const double *width = box->width + row * states;
    double left = box->spare[row], sum = dense_product(box->lower + row * states, values, states);
    for (int32_t i = 0; i < states && left > 0.0; i++) {
        const double given = width[order[i]] < left ? width[order[i]] : left;
        sum += given * values[order[i]];
        left -= given;
    }
    return sum;
}

/* The row itself. */
static inline void fill(const Box *box, Py_ssize_t row, const int32_t *order, int32_t states, double *filled)
{
    const double *width = box->width + row * states;
    double left = box->spare[row];
    memcpy(filled, box->lower + row * states, (size_t)states * sizeof(double));
    for (int32_t i = 0; i < states && left > 0.0; i++) {
        const double given = width[order[i]] < left ? width[order[i]] : left;
        filled[order[i]] += given;
        left -= given;
    }
}

typedef struct {
    double *worth;          /* [S, A] */
    double *values;         /* [S]: of the weighted sum */
    double *second_values;  /* [S]: of the second one */
    double *next;           /* [S, 1 + k] */
    double *apart;          /* [1 + k] */
    double *second;         /* [A] */
    double *filled;         /* [S] */
    int32_t *tied;          /* [A] */
    int32_t *order, *spare; /* [S] */
} Scratch;

static void scratch_free(Scratch *scratch)
{
    free(scratch->worth);
    free(scratch->values);
    free(scratch->second_values);
    free(scratch->next);
    free(scratch->apart);
    free(scratch->second);
    free(scratch->filled);
    free(scratch->tied);
    free(scratch->order);
    free(scratch->spare);
}

static int scratch_of(Scratch *scratch, const Process *process)
{
    const size_t states = (size_t)process->states, actions = (size_t)process->actions;
    const size_t tables = (size_t)process->tables;
    int there = (scratch->worth = malloc(states * actions * sizeof(double))) != NULL;
    there &= (scratch->values = malloc(states * sizeof(double))) != NULL;
    there &= (scratch->second_values = malloc(states * sizeof(double))) != NULL;
    there &= (scratch->next = malloc(states * tables * sizeof(double))) != NULL;
    there &= (scratch->apart = malloc(tables * sizeof(double))) != NULL;
    there &= (scratch->second = malloc(actions * sizeof(double))) != NULL;
    there &= (scratch->filled = malloc(states * sizeof(double))) != NULL;
    there &= (scratch->tied = malloc((actions + 1) * sizeof(int32_t))) != NULL;
    there &= (scratch->order = malloc(states * sizeof(int32_t))) != NULL;
    there &= (scratch->spare = malloc(states * sizeof(int32_t))) != NULL;
    return there ? 0 : -1;
}

/* apart[l] = l_h(s, a) + Σ_{s'} filled[s'] to_go[s', l]. */
static void back_up_filled(const Process *process, int32_t step, int32_t state, int32_t action, const double *filled,
                           const double *to_go, double *apart)
{
    const int32_t tables = process->tables;
    for (int32_t l = 0; l < tables; l++)
        apart[l] = 0.0;
    for (int32_t s = 0; s < process->states && to_go != NULL; s++)
        for (int32_t l = 0; l < tables; l++)
            apart[l] += filled[s] * to_go[(Py_ssize_t)s * tables + l];
    for (int32_t l = 0; l < tables; l++)
        apart[l] += entry_of(&process->table[l], step, state, action);
}

/* As `plan_step` of process.c; rows [S, S] are those of the chosen actions. */
static int optimistic_step(const Process *process, const Box *box, const Rule *rule, int32_t step, double *to_go,
                           int64_t *chosen, double *rows, const double *noise, int ask, Scratch *scratch)
{
    const int32_t states = process->states, actions = process->actions, tables = process->tables;
    const double *ahead = step == process->steps - 1 ? NULL : to_go;
    for (int32_t s = 0; s < states; s++) {
        const double *there = to_go + (Py_ssize_t)s * tables;
        scratch->values[s] = ahead == NULL ? 0.0 : weighed(rule->weights, there, tables);
        scratch->second_values[s] = ahead == NULL ? 0.0 : weighed(rule->second, there, tables);
    }
    best_first(scratch->order, states, scratch->values, scratch->second_values, rule->tie, scratch->spare);
    weigh_stage(process, step, 0, states, rule->weights, scratch->worth);
    for (int32_t s = 0; s < states; s++) {
        double *worth = scratch->worth + (Py_ssize_t)s * actions, *own = rows + (Py_ssize_t)s * states;
        for (int32_t a = 0; a < actions && ahead != NULL; a++)
            worth[a] += best_sum(box, row_of(box, process, step, s, a), scratch->order, scratch->values, states);
        const int32_t count = tied_actions(rule, worth, actions, scratch->tied);
        int32_t action = scratch->tied[0];
        if (count > 1) {
            if (ask && noise == NULL)
                return -1;
            for (int32_t i = 0; i < count; i++) {
                const int32_t a = scratch->tied[i];
                fill(box, row_of(box, process, step, s, a), scratch->order, states, scratch->filled);
                back_up_filled(process, step, s, a, scratch->filled, ahead, scratch->apart);
                scratch->second[a] = weighed(rule->second, scratch->apart, tables);
            }
            action = among_tied(rule, scratch->second, scratch->tied, count, noise == NULL ? NULL : noise + s, states);
        }
        chosen[s] = action;
        fill(box, row_of(box, process, step, s, action), scratch->order, states, own);
        back_up_filled(process, step, s, action, own, ahead, scratch->next + (Py_ssize_t)s * tables);
    }
    memcpy(to_go, scratch->next, (size_t)states * (size_t)tables * sizeof(double));
    return 0;
}

static PyObject *optimistic_plan_kernel(PyObject *module, PyObject *args)
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
    const Py_ssize_t states = process->states;
    Arrays arrays = {.count = 0};
    Rule rule;
    Box box;
    int64_t *chosen = NULL;
    double *rows = NULL, *to_go = NULL, *totals = NULL;
    const double *noise = NULL;
    int fine = rule_of(&rule, &arrays, process, weights, second, tie, second_tie, relative_tie) == 0;
    fine = fine && box_of(&box, &arrays, process, box_in) == 0;
    fine = fine && (chosen = array_with(&arrays, chosen_out, 'q', 1, "chosen", states * process->steps));
    fine = fine && (rows = array_with(&arrays, rows_out, 'd', 1, "rows", states * states * process->steps));
    fine = fine && (to_go = array_with(&arrays, to_go_out, 'd', 1, "to_go", states * process->tables));
    fine = fine && (totals = array_with(&arrays, totals_out, 'd', 1, "totals", process->tables));
    if (noise_in != Py_None)
        fine = fine && (noise = array_with(&arrays, noise_in, 'd', 0, "noise", states * process->actions));
    Scratch scratch = {.worth = NULL};
    if (fine && scratch_of(&scratch, process) < 0) {
        PyErr_NoMemory();
        fine = 0;
    }
    if (fine) {
        Watch watch;
        begin_without_lock(&watch, NO_DEADLINE);
        for (; step >= 0; step--) {
            if (optimistic_step(process, &box, &rule, step, to_go, chosen + step * states, rows + step * states * states,
                                noise, ask, &scratch) < 0)
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

/* The greatest sum of stages [H or 1, S, A] over the kernels of the box: under a policy, or under the best one. */
static PyObject *greatest_sum_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *box_in, *stages_in, *policy_in;
    if (!PyArg_ParseTuple(args, "OOOO", &capsule, &box_in, &stages_in, &policy_in))
        return NULL;
    const Process *process = process_of(capsule);
    if (process == NULL)
        return NULL;
    const int32_t states = process->states, actions = process->actions;
    const Py_ssize_t rows = (Py_ssize_t)states * actions;
    Arrays arrays = {.count = 0};
    Box box;
    const double *stages = NULL, *policy = NULL;
    Py_ssize_t length = 0;
    int fine = box_of(&box, &arrays, process, box_in) == 0;
    fine = fine && (stages = array_of(&arrays, stages_in, 'd', 0, "stages", &length));
    if (fine && length != rows && length != rows * process->steps) {
        PyErr_SetString(PyExc_ValueError, "the stages do not fit the process");
        fine = 0;
    }
    if (policy_in != Py_None)
        fine = fine && (policy = array_with(&arrays, policy_in, 'd', 0, "policy", rows * process->steps));
    double *ahead = fine ? malloc((size_t)states * sizeof(double)) : NULL;
    double *here = ahead == NULL ? NULL : malloc((size_t)states * sizeof(double));
    int32_t *order = here == NULL ? NULL : malloc(2 * (size_t)states * sizeof(int32_t));
    if (fine && order == NULL) {
        PyErr_NoMemory();
        fine = 0;
    }
    double sum = 0.0;
    if (fine) {
        Watch watch;
        begin_without_lock(&watch, NO_DEADLINE);
        for (int32_t step = process->steps - 1; step >= 0 && fine; step--) {
            const double *stage = stages + (length == rows ? 0 : step * rows);
            const double *own = policy == NULL ? NULL : policy + step * rows;
            const int last = step == process->steps - 1;
            if (!last)
                best_first(order, states, ahead, NULL, 0.0, order + states);
            for (int32_t s = 0; s < states; s++) {
                double settled = 0.0;
                for (int32_t a = 0; a < actions; a++) {
                    const Py_ssize_t row = (Py_ssize_t)s * actions + a;
                    if (own != NULL && own[row] == 0.0)
                        continue;
                    double worth = stage[row];
                    if (!last)
                        worth += best_sum(&box, row_of(&box, process, step, s, a), order, ahead, states);
                    if (own != NULL)
                        settled += own[row] * worth;
                    else
                        settled = a == 0 || worth > settled ? worth : settled;
                }
                here[s] = settled;
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
    free(ahead);
    free(here);
    free(order);
    release_arrays(&arrays);
    return fine ? PyFloat_FromDouble(sum) : NULL;
}

/* Mix plans: what flows through (s, a, s') under all of them makes the policy and the kernel of the mixture. */
static PyObject *optimistic_mixture_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *box_in, *plans_in, *rows_in, *weights_in, *policy_out, *kernel_out;
    if (!PyArg_ParseTuple(args, "OOOOOOO", &capsule, &box_in, &plans_in, &rows_in, &weights_in, &policy_out,
                          &kernel_out))
        return NULL;
    const Process *process = process_of(capsule);
    if (process == NULL)
        return NULL;
    const int32_t states = process->states, actions = process->actions, steps = process->steps;
    const Py_ssize_t pairs = (Py_ssize_t)states * actions, visits = (Py_ssize_t)steps * states;
    Arrays arrays = {.count = 0};
    Box box;
    Py_ssize_t count = 0;
    const double *weights = NULL, *rows = NULL;
    const int64_t *plans = NULL;
    double *policy = NULL, *kernel = NULL;
    int fine = box_of(&box, &arrays, process, box_in) == 0;
    fine = fine && (weights = array_of(&arrays, weights_in, 'd', 0, "weights", &count));
    fine = fine && (plans = array_with(&arrays, plans_in, 'q', 0, "plans", count * visits));
    fine = fine && (rows = array_with(&arrays, rows_in, 'd', 0, "rows", count * visits * states));
    fine = fine && (policy = array_with(&arrays, policy_out, 'd', 1, "policy", pairs * steps));
    fine = fine && (kernel = array_with(&arrays, kernel_out, 'd', 1, "kernel", pairs * steps * states));
    for (Py_ssize_t entry = 0; fine && entry < count * visits; entry++)
        if (plans[entry] < 0 || plans[entry] >= actions) {
            PyErr_SetString(PyExc_ValueError, "a plan has an action that does not exist");
            fine = 0;
        }
    const size_t size = (size_t)count * (size_t)states * sizeof(double);
    double *present = fine ? malloc(size + 1) : NULL, *next = present == NULL ? NULL : malloc(size + 1);
    if (fine && next == NULL) {
        PyErr_NoMemory();
        fine = 0;
    }
    if (fine) {
        Watch watch;
        begin_without_lock(&watch, NO_DEADLINE);
        for (Py_ssize_t p = 0; p < count; p++)
            for (int32_t s = 0; s < states; s++)
                present[p * states + s] = weights[p] * process->initial[s];
        for (int32_t step = 0; step < steps && fine; step++) {
            double *own_policy = policy + step * pairs, *own_kernel = kernel + step * pairs * states;
            memset(own_kernel, 0, (size_t)pairs * (size_t)states * sizeof(double));
            memset(next, 0, size);
            for (Py_ssize_t p = 0; p < count; p++)
                for (int32_t s = 0; s < states; s++) {
                    const Py_ssize_t visit = (p * steps + step) * states + s;
                    const double amount = present[p * states + s], *row = rows + visit * states;
                    double *flow = own_kernel + ((Py_ssize_t)s * actions + plans[visit]) * states;
                    double *arriving = next + p * states;
                    for (int32_t t = 0; t < states; t++) {
                        flow[t] += amount * row[t];
                        arriving[t] += amount * row[t];
                    }
                }
            for (int32_t s = 0; s < states; s++) {
                double played = 0.0;
                for (int32_t a = 0; a < actions; a++)
                    for (int32_t t = 0; t < states; t++)
                        played += own_kernel[((Py_ssize_t)s * actions + a) * states + t];
                for (int32_t a = 0; a < actions; a++) {
                    const Py_ssize_t pair = (Py_ssize_t)s * actions + a, row = row_of(&box, process, step, s, a);
                    const double *lower = box.lower + row * states, *width = box.width + row * states;
                    double *to = own_kernel + pair * states, sum = 0.0, room = 0.0;
                    for (int32_t t = 0; t < states; t++)
                        sum += to[t];
                    if (played > 0.0)
                        own_policy[pair] = sum / played;
                    if (sum > 0.0) {
                        for (int32_t t = 0; t < states; t++)
                            to[t] /= sum;
                        continue;
                    }
                    /* Nothing flows: all entries stand at the same share of their width. */
                    for (int32_t t = 0; t < states; t++)
                        room += width[t];
                    double share = room > 0.0 ? box.spare[row] / room : 0.0;
                    share = share < 1.0 ? share : 1.0;
                    for (int32_t t = 0; t < states; t++)
                        to[t] = lower[t] + share * width[t];
                }
            }
            double *swap = present;
            present = next;
            next = swap;
            fine = must_stop(&watch) != INTERRUPTED;
        }
        end_without_lock(&watch);
    }
    free(present);
    free(next);
    release_arrays(&arrays);
    if (!fine)
        return NULL;
    Py_RETURN_NONE;
}

PyMethodDef box_kernels[] = {
    {"optimistic_plan", optimistic_plan_kernel, METH_VARARGS,
     "optimistic_plan(process, box, weights, second, tie, second_tie, relative_tie, step, chosen, rows, to_go, totals, "
     "noise, ask): as plan, with the kernel of the box that suits it best."},
    {"greatest_sum", greatest_sum_kernel, METH_VARARGS,
     "greatest_sum(process, box, stages, policy or None): the greatest sum of stages over the kernels of the box."},
    {"optimistic_mixture", optimistic_mixture_kernel, METH_VARARGS,
     "optimistic_mixture(process, box, plans, rows, weights, policy, kernel): the policy and kernel of mixed plans."},
    {NULL, NULL, 0, NULL},
};
