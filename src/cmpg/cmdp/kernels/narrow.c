/* Plans of a CMDP among the actions that are left; where those hold every best one, the plans are those of `plan`.

   between.c and around.c find which actions can be best for no multiplier of an interval, or of a box. */
#include "rows.h"

#include <stdlib.h>
#include <string.h>

#define CAPSULE "cmpg.rows"

void rows_free(Rows *rows)
{
    if (rows == NULL)
        return;
    free(rows->begin);
    free(rows->action);
    free(rows->stage);
    free(rows->start);
    free(rows->target);
    free(rows->probability);
    free(rows);
}

static void capsule_free(PyObject *capsule)
{
    rows_free(PyCapsule_GetPointer(capsule, CAPSULE));
}

static int resize(void *array, size_t count, size_t size)
{
    void **place = array, *moved = realloc(*place, count * size + 1);
    if (moved == NULL)
        return -1;
    *place = moved;
    return 0;
}

Rows *rows_new(const Process *process)
{
    Rows *rows = calloc(1, sizeof *rows);
    if (rows == NULL)
        return NULL;
    *rows = (Rows){.steps = process->steps, .states = process->states, .actions = process->actions};
    rows->tables = process->tables;
    const int64_t places = (int64_t)process->steps * process->states;
    rows->room = (int32_t)places;
    int there = resize(&rows->begin, (size_t)places + 1, sizeof(int32_t)) == 0;
    there = there && resize(&rows->action, (size_t)places, sizeof(int32_t)) == 0;
    there = there && resize(&rows->stage, (size_t)places * (size_t)rows->tables, sizeof(double)) == 0;
    there = there && resize(&rows->start, (size_t)places + 1, sizeof(int64_t)) == 0;
    if (!there) {
        rows_free(rows);
        return NULL;
    }
    rows->start[0] = 0;
    return rows;
}

int rows_reserve(Rows *rows, int64_t count, int64_t entries, int sparse)
{
    if (count > rows->room && count <= INT32_MAX) {
        if (resize(&rows->action, (size_t)count, sizeof(int32_t)) < 0 ||
            resize(&rows->stage, (size_t)count * (size_t)rows->tables, sizeof(double)) < 0 ||
            resize(&rows->start, (size_t)count + 1, sizeof(int64_t)) < 0)
            return -1;
        rows->room = (int32_t)count;
    }
    if (entries > rows->entry_room) {
        if (resize(&rows->probability, (size_t)entries, sizeof(double)) < 0 ||
            (sparse && resize(&rows->target, (size_t)entries, sizeof(int32_t)) < 0))
            return -1;
        rows->entry_room = entries;
    }
    return 0;
}

int rows_append(Rows *rows, const Process *process, int32_t step, int32_t state, const Row *row)
{
    const int64_t entries = rows->entries + row->length;
    if (rows->count == rows->room || entries > rows->entry_room) {
        const int64_t room = rows->count < rows->room ? rows->room : 2 * (int64_t)rows->room;
        const int64_t entry_room = entries <= rows->entry_room ? rows->entry_room : 2 * entries;
        if (room > INT32_MAX || rows_reserve(rows, room, entry_room, row->target != NULL) < 0)
            return -1;
    }
    const int32_t place = rows->count++;
    rows->action[place] = row->action;
    for (int32_t l = 0; l < rows->tables; l++)
        rows->stage[(int64_t)place * rows->tables + l] = entry_of(&process->table[l], step, state, row->action);
    double *probability = rows->probability + rows->entries;
    for (int64_t i = 0; i < row->length; i++)
        probability[i] = row->probability[i];
    if (row->target != NULL) {
        int32_t *target = rows->target + rows->entries;
        for (int64_t i = 0; i < row->length; i++)
            target[i] = row->target[i];
    }
    rows->entries += row->length;
    rows->start[place + 1] = rows->entries;
    return 0;
}

static int fits_process(const Rows *rows, const Process *process)
{
    return rows->steps == process->steps && rows->states == process->states && rows->actions == process->actions &&
           rows->tables == process->tables;
}

const Rows *rows_of(PyObject *capsule, const Process *process)
{
    const Rows *rows = PyCapsule_GetPointer(capsule, CAPSULE);
    if (rows != NULL && !fits_process(rows, process)) {
        PyErr_SetString(PyExc_ValueError, "the rows do not fit the process");
        return NULL;
    }
    return rows;
}

PyObject *rows_answer(Rows *rows)
{
    if (rows == NULL)
        Py_RETURN_NONE;
    PyObject *held = PyCapsule_New(rows, CAPSULE, capsule_free);
    if (held == NULL) {
        rows_free(rows);
        return NULL;
    }
    return Py_BuildValue("Ni", held, rows->count);
}

/* apart[l] = l_h(s, a) + Σ_{s'} P(s' | s, a) to_go[s', l]; to_go comes from columns_of, and is NULL at the last step. */
ALWAYS_INLINE void back_up_row(const Rows *rows, int32_t tables, int32_t place, const double *to_go, double *apart)
{
    const Row row = row_in(rows, place);
    const double *stage = rows->stage + (int64_t)place * tables;
    if (to_go == NULL)
        memset(apart, 0, (size_t)tables * sizeof(double));
    else
        sums_apart(row.probability, row.target, row.length, to_go, tables, apart);
    for (int32_t l = 0; l < tables; l++)
        apart[l] += stage[l];
}

/* r − λ·c of one row, with what follows: the same sums in the same order as in `plan_step`. */
ALWAYS_INLINE double worth_of(const Rows *rows, int32_t tables, const double *weights, int32_t place,
                              const double *values)
{
    const double *entries = rows->stage + (int64_t)place * tables;
    double stage = 0.0;
    int empty = 1;
    for (int32_t l = 0; l < tables; l++)
        if (weights[l] != 0.0) {
            stage = empty ? weights[l] * entries[l] : stage + weights[l] * entries[l];
            empty = 0;
        }
    if (values == NULL)
        return stage;
    const Row row = row_in(rows, place);
    return stage + product(row.probability, row.target, row.length, values);
}

typedef struct {
    double *values;        /* [S] */
    double *next;          /* [S, 1 + k] */
    double *columns;       /* [1 + k, S] */
    double *apart;         /* [1 + k] */
    double *worth, *second; /* [A] */
    int32_t *tied;         /* [A + 1] */
} Scratch;

/* As `plan_step` of planning.c, among the rows that are left; faster where the compiler knows how many tables there are. */
ALWAYS_INLINE int narrow_step(const Process *process, const Rows *rows, const int32_t tables, const Rule *rule,
                              int32_t step, double *to_go, int64_t *chosen, const double *noise, int ask,
                              Scratch *scratch)
{
    const int32_t states = rows->states, *begin = rows->begin + place_of(rows, step, 0);
    const double *ahead = step == rows->steps - 1 ? NULL : to_go;
    for (int32_t s = 0; s < states && ahead != NULL; s++)
        scratch->values[s] = weighed(rule->weights, to_go + (Py_ssize_t)s * tables, tables);
    const double *columns = columns_of(process, ahead, scratch->columns);
    for (int32_t s = 0; s < states; s++) {
        const int32_t first = begin[s], count = begin[s + 1] - first, *action = rows->action + first;
        int32_t row = first;
        if (count > 1) {
            for (int32_t i = 0; i < count; i++)
                scratch->worth[i] = worth_of(rows, tables, rule->weights, first + i, ahead == NULL ? NULL : scratch->values);
            const int32_t ties = tied_actions(rule, scratch->worth, count, scratch->tied);
            row = first + scratch->tied[0];
            if (ties > 1) {
                if (ask && noise == NULL)
                    return -1;
                for (int32_t i = 0; i < ties; i++) {
                    const int32_t each = scratch->tied[i];
                    back_up_row(rows, tables, first + each, columns, scratch->apart);
                    scratch->tied[i] = action[each];
                    scratch->second[action[each]] = weighed(rule->second, scratch->apart, tables);
                }
                const int32_t best =
                    among_tied(rule, scratch->second, scratch->tied, ties, noise == NULL ? NULL : noise + s, states);
                for (row = first; rows->action[row] != best; row++)
                    ;
            }
        }
        chosen[s] = rows->action[row];
        back_up_row(rows, tables, row, columns, scratch->next + (Py_ssize_t)s * tables);
    }
    memcpy(to_go, scratch->next, (size_t)states * (size_t)tables * sizeof(double));
    return 0;
}

static PyObject *narrow_plan_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *rows_in, *weights, *second, *chosen_out, *to_go_out, *totals_out, *noise_in;
    double tie, second_tie, relative_tie;
    int step, ask;
    if (!PyArg_ParseTuple(args, "OOOOdddiOOOOp", &capsule, &rows_in, &weights, &second, &tie, &second_tie, &relative_tie,
                          &step, &chosen_out, &to_go_out, &totals_out, &noise_in, &ask))
        return NULL;
    const Process *process = process_of(capsule);
    const Rows *rows = process == NULL ? NULL : rows_of(rows_in, process);
    if (rows == NULL)
        return NULL;
    if (step < 0 || step >= process->steps) {
        PyErr_SetString(PyExc_ValueError, "there is no such step");
        return NULL;
    }
    const Py_ssize_t states = process->states, tables = process->tables;
    Arrays arrays = {.count = 0};
    Rule rule;
    int64_t *chosen = NULL;
    double *to_go = NULL, *totals = NULL;
    const double *noise = NULL;
    int fine = rule_of(&rule, &arrays, process, weights, second, tie, second_tie, relative_tie) == 0;
    fine = fine && (chosen = array_with(&arrays, chosen_out, 'q', 1, "chosen", states * process->steps));
    fine = fine && (to_go = array_with(&arrays, to_go_out, 'd', 1, "to_go", tables * states));
    fine = fine && (totals = array_with(&arrays, totals_out, 'd', 1, "totals", tables));
    if (noise_in != Py_None)
        fine = fine && (noise = array_with(&arrays, noise_in, 'd', 0, "noise", states * process->actions));
    Scratch scratch = {.values = NULL};
    if (fine) {
        const size_t all = (size_t)states * (size_t)tables * sizeof(double);
        const size_t actions = (size_t)process->actions * sizeof(double);
        int there = (scratch.values = malloc((size_t)states * sizeof(double))) != NULL;
        there &= (scratch.next = malloc(all)) != NULL;
        there &= (scratch.columns = malloc(all)) != NULL;
        there &= (scratch.apart = malloc((size_t)tables * sizeof(double))) != NULL;
        there &= (scratch.worth = malloc(actions)) != NULL;
        there &= (scratch.second = malloc(actions)) != NULL;
        there &= (scratch.tied = malloc(((size_t)process->actions + 1) * sizeof(int32_t))) != NULL;
        if (!there) {
            PyErr_NoMemory();
            fine = 0;
        }
    }
    if (fine) {
        Watch watch;
        begin_without_lock(&watch, NO_DEADLINE);
        for (; step >= 0; step--) {
            int64_t *own = chosen + step * states;
            if ((tables == 2 ? narrow_step(process, rows, 2, &rule, step, to_go, own, noise, ask, &scratch)
                             : narrow_step(process, rows, rows->tables, &rule, step, to_go, own, noise, ask, &scratch)) < 0)
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
    free(scratch.values);
    free(scratch.next);
    free(scratch.columns);
    free(scratch.apart);
    free(scratch.worth);
    free(scratch.second);
    free(scratch.tied);
    release_arrays(&arrays);
    return fine ? PyLong_FromLong(step) : NULL;
}

PyMethodDef narrow_kernels[] = {
    {"narrow_plan", narrow_plan_kernel, METH_VARARGS,
     "narrow_plan(process, rows, weights, second, tie, second_tie, relative_tie, step, chosen, to_go, totals, noise, "
     "ask): as plan, among the rows that are left."},
    {NULL, NULL, 0, NULL},
};
