/* CMDPs whose transition is only known to lie in a box; the twin is cmdp/box.py.

   A row of the box is filled greedily: everything gets its lower bound, and what is left to one goes to the next states
   in their order until it is used up. So r − λ·c is backed up for every action in one pass over its row, and the kernel
   and the costs apart only for the action that is chosen. */
#include "process.h"

#include <stdlib.h>
#include <string.h>

int box_of(Box *box, Arrays *arrays, const Process *process, PyObject *tuple)
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

void optimistic_step(const Process *process, const Box *box, const Plan *plan, int32_t step, Scratch *scratch)
{
    const int32_t states = process->states, actions = process->actions, tables = process->tables;
    const Rule *rule = &plan->rule;
    const double *ahead = step == process->steps - 1 ? NULL : plan->to_go;
    for (int32_t s = 0; s < states; s++) {
        const double *there = plan->to_go + (Py_ssize_t)s * tables;
        scratch->values[s] = ahead == NULL ? 0.0 : weighed(rule->weights, there, tables);
        scratch->second_values[s] = ahead == NULL ? 0.0 : weighed(rule->second, there, tables);
    }
    best_first(scratch->order, states, scratch->values, scratch->second_values, rule->tie, scratch->spare);
    weigh_stage(process, step, 0, states, rule->weights, scratch->worth);
    for (int32_t s = 0; s < states; s++) {
        const Py_ssize_t visit = (Py_ssize_t)step * states + s;
        double *worth = scratch->worth + (Py_ssize_t)s * actions, *own = plan->rows + visit * states;
        for (int32_t a = 0; a < actions && ahead != NULL; a++)
            worth[a] += best_sum(box, row_of(box, process, step, s, a), scratch->order, scratch->values, states);
        const int32_t count = tied_actions(rule, worth, actions, scratch->tied);
        int32_t action = scratch->tied[0];
        if (count > 1) {
            for (int32_t i = 0; i < count; i++) {
                const int32_t a = scratch->tied[i];
                fill(box, row_of(box, process, step, s, a), scratch->order, states, scratch->filled);
                back_up_filled(process, step, s, a, scratch->filled, ahead, scratch->apart);
                scratch->second[a] = weighed(rule->second, scratch->apart, tables);
            }
            action = among_tied(rule, scratch->second, scratch->tied, count, NULL, states);
        }
        plan->chosen[visit] = action;
        fill(box, row_of(box, process, step, s, action), scratch->order, states, own);
        back_up_filled(process, step, s, action, own, ahead, scratch->next + (Py_ssize_t)s * tables);
    }
    memcpy(plan->to_go, scratch->next, (size_t)states * (size_t)tables * sizeof(double));
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
                double value = 0.0;
                for (int32_t a = 0; a < actions; a++) {
                    const Py_ssize_t row = (Py_ssize_t)s * actions + a;
                    if (own != NULL && own[row] == 0.0)
                        continue;
                    double worth = stage[row];
                    if (!last)
                        worth += best_sum(&box, row_of(&box, process, step, s, a), order, ahead, states);
                    if (own != NULL)
                        value += own[row] * worth;
                    else
                        value = a == 0 || worth > value ? worth : value;
                }
                here[s] = value;
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

PyMethodDef box_kernels[] = {
    {"greatest_sum", greatest_sum_kernel, METH_VARARGS,
     "greatest_sum(process, box, stages, policy or None): the greatest sum of stages over the kernels of the box."},
    {NULL, NULL, 0, NULL},
};
