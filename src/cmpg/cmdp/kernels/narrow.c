/* Plans of a CMDP with one constraint for multipliers that come closer together; the plans are those of `plan`.

   The value of an action is convex in the multiplier. Between two multipliers it lies below the line through what two
   plans found there; and the best action is worth at least what either of both policies is worth. Where the first is less
   than the second everywhere between them, the action can be dropped. What is left is copied to a place of its own, where
   it is read from front to back. */
#include "process.h"

#include <stdlib.h>
#include <string.h>

#define CAPSULE "cmpg.rows"

/* The rows (s, a) that are left, in ascending order, by step and state. */
typedef struct {
    int32_t steps, states, actions, count;
    int32_t *begin;      /* [H·S + 1]: the first row of each step and state */
    int32_t *action;     /* [rows] */
    double *stage;       /* [rows, 2]: the reward and the cost */
    int64_t *start;      /* [rows + 1]: the first entry of each row; NULL where rows are dense */
    int32_t *target;     /* [entries] */
    double *probability; /* [entries], or [rows, S] */
} Rows;

static void rows_free(Rows *rows)
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

/* What a plan has left behind. */
typedef struct {
    double multiplier;
    const double *worth;  /* [rows]: of the actions */
    const double *values; /* [H, S, 2]: the reward and the cost from there on */
} Record;

static int record_of(Record *record, Arrays *arrays, const Process *process, PyObject *tuple, Py_ssize_t rows)
{
    PyObject *worth, *values;
    if (!PyArg_ParseTuple(tuple, "dOO", &record->multiplier, &worth, &values))
        return -1;
    record->worth = array_with(arrays, worth, 'd', 0, "worth", rows);
    if (record->worth == NULL)
        return -1;
    record->values = array_with(arrays, values, 'd', 0, "values", 2 * (Py_ssize_t)process->steps * process->states);
    return record->values == NULL ? -1 : 0;
}

/* What the best action of a step and state is worth at least, less the margin: at both multipliers, and where the lines
   of both policies cross. Between these three, the bound is linear. */
typedef struct {
    double low, high, cross;
    double share; /* where the cross is, from low to high */
} Bound;

static Bound bound_of(const Record *low, const Record *high, Py_ssize_t place, double margin)
{
    const double *one = low->values + 2 * place, *other = high->values + 2 * place;
    const double a = low->multiplier, b = high->multiplier;
    double cross = one[1] != other[1] ? (one[0] - other[0]) / (one[1] - other[1]) : a;
    cross = cross > a ? (cross < b ? cross : b) : a;
    return (Bound){
        .low = fmax(one[0] - a * one[1], other[0] - a * other[1]) - margin,
        .high = fmax(one[0] - b * one[1], other[0] - b * other[1]) - margin,
        .cross = fmax(one[0] - cross * one[1], other[0] - cross * other[1]) - margin,
        .share = (cross - a) / (b - a),
    };
}

static inline int can_matter(const Bound *bound, double at_low, double at_high)
{
    return !(at_low < bound->low && at_high < bound->high &&
             (1.0 - bound->share) * at_low + bound->share * at_high < bound->cross);
}

/* The rows among which one is looked for: those of the process, or those that are left already. */
typedef struct {
    const Process *process;
    const Rows *rows; /* NULL: all */
} Source;

static inline int32_t first_in(const Source *source, int32_t place)
{
    return source->rows == NULL ? place * source->process->actions : source->rows->begin[place];
}

static inline int64_t length_of(const Source *source, int32_t step, int32_t row)
{
    if (source->rows != NULL)
        return source->rows->start[row + 1] - source->rows->start[row];
    const Matrix *matrix = matrix_of(source->process, step);
    const int32_t own = row - step * source->process->states * source->process->actions;
    return matrix->start[own + 1] - matrix->start[own];
}

/* Which rows can matter, in kept; returns how many, and the number of their entries. Zero where a state loses all:
   rounding was worse than the margin. */
static int32_t keep(const Source *source, const Record *low, const Record *high, double margin, int32_t *kept,
                    int64_t *entries)
{
    const Process *process = source->process;
    const int sparse = process->matrix[0].start != NULL;
    int32_t count = 0;
    *entries = 0;
    for (int32_t place = 0; place < process->steps * process->states; place++) {
        const int32_t first = first_in(source, place), last = first_in(source, place + 1), before = count;
        const Bound bound = bound_of(low, high, place, margin);
        for (int32_t row = first; row < last; row++) {
            /* A state without a choice was not asked for what its action is worth. */
            if (last - first > 1 && !can_matter(&bound, low->worth[row], high->worth[row]))
                continue;
            kept[count++] = row;
            *entries += sparse ? length_of(source, place / process->states, row) : process->states;
        }
        if (count == before)
            return 0;
    }
    return count;
}

static int rows_room(Rows *rows, int32_t count, int64_t entries, int sparse)
{
    const size_t places = (size_t)rows->steps * (size_t)rows->states;
    rows->count = count;
    int there = (rows->begin = malloc((places + 1) * sizeof(int32_t))) != NULL;
    there &= (rows->action = malloc((size_t)count * sizeof(int32_t))) != NULL;
    there &= (rows->stage = malloc(2 * (size_t)count * sizeof(double))) != NULL;
    there &= (rows->probability = malloc((size_t)entries * sizeof(double) + 1)) != NULL;
    there &= !sparse || (rows->start = malloc(((size_t)count + 1) * sizeof(int64_t))) != NULL;
    there &= !sparse || (rows->target = malloc((size_t)entries * sizeof(int32_t) + 1)) != NULL;
    return there ? 0 : -1;
}

static void copy_row(const Source *source, int32_t step, int32_t row, Rows *to, int32_t place, int64_t *entry)
{
    const Process *process = source->process;
    const int32_t all = process->states * process->actions, own = row - step * all;
    const Matrix *matrix = matrix_of(process, step);
    const double *probability;
    const int32_t *target = NULL;
    int64_t length = process->states;
    if (source->rows != NULL) {
        const Rows *from = source->rows;
        const int64_t begin = from->start == NULL ? row * length : from->start[row];
        to->action[place] = from->action[row];
        memcpy(to->stage + 2 * place, from->stage + 2 * row, 2 * sizeof(double));
        probability = from->probability + begin;
        if (from->start != NULL) {
            length = from->start[row + 1] - begin;
            target = from->target + begin;
        }
    } else {
        to->action[place] = own % process->actions;
        for (int32_t l = 0; l < 2; l++)
            to->stage[2 * place + l] =
                entry_of(&process->table[l], step, own / process->actions, own % process->actions);
        probability = matrix->probability + (matrix->start == NULL ? own * length : matrix->start[own]);
        if (matrix->start != NULL) {
            length = matrix->start[own + 1] - matrix->start[own];
            target = matrix->target + matrix->start[own];
        }
    }
    memcpy(to->probability + *entry, probability, (size_t)length * sizeof(double));
    if (target != NULL)
        memcpy(to->target + *entry, target, (size_t)length * sizeof(int32_t));
    *entry += length;
    if (to->start != NULL)
        to->start[place + 1] = *entry;
}

static void copy_rows(const Source *source, const int32_t *kept, Rows *to)
{
    const int32_t places = to->steps * to->states;
    int64_t entry = 0;
    int32_t next = 0;
    if (to->start != NULL)
        to->start[0] = 0;
    for (int32_t place = 0; place < places; place++) {
        const int32_t last = first_in(source, place + 1);
        to->begin[place] = next;
        for (; next < to->count && kept[next] < last; next++)
            copy_row(source, place / to->states, kept[next], to, next, &entry);
    }
    to->begin[places] = to->count;
}

/* narrow(process, rows or None, low, high, margin): the rows that are left between two records, and what they were worth
   in both; or None where they are not at most half as many. */
static PyObject *narrow_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *rows_in, *low_in, *high_in, *low_out, *high_out;
    double margin;
    if (!PyArg_ParseTuple(args, "OOOOdOO", &capsule, &rows_in, &low_in, &high_in, &margin, &low_out, &high_out))
        return NULL;
    Source source = {process_of(capsule), NULL};
    if (source.process == NULL)
        return NULL;
    if (rows_in != Py_None && (source.rows = PyCapsule_GetPointer(rows_in, CAPSULE)) == NULL)
        return NULL;
    const Process *process = source.process;
    const int64_t all = (int64_t)process->steps * process->states * process->actions;
    const Rows *given = source.rows;
    if (process->tables != 2 || all > INT32_MAX ||
        (given != NULL && (given->steps != process->steps || given->states != process->states ||
                           given->actions != process->actions))) {
        PyErr_SetString(PyExc_ValueError, "the rows do not fit the process, or there is more than one constraint");
        return NULL;
    }
    const int32_t present = given == NULL ? (int32_t)all : given->count;
    const int sparse = process->matrix[0].start != NULL;
    Arrays arrays = {.count = 0};
    Record low, high;
    double *at_low = NULL, *at_high = NULL;
    int fine = record_of(&low, &arrays, process, low_in, present) == 0;
    fine = fine && record_of(&high, &arrays, process, high_in, present) == 0;
    fine = fine && (at_low = array_with(&arrays, low_out, 'd', 1, "at low", present / 2));
    fine = fine && (at_high = array_with(&arrays, high_out, 'd', 1, "at high", present / 2));
    if (fine && !(low.multiplier < high.multiplier)) {
        PyErr_SetString(PyExc_ValueError, "the records are not in order");
        fine = 0;
    }
    int32_t *kept = fine ? malloc((size_t)present * sizeof(int32_t) + 1) : NULL, count = 0;
    Rows *rows = kept == NULL ? NULL : calloc(1, sizeof *rows);
    int missing = fine && rows == NULL;
    if (rows != NULL) {
        int64_t entries;
        Py_BEGIN_ALLOW_THREADS;
        rows->steps = process->steps;
        rows->states = process->states;
        rows->actions = process->actions;
        count = keep(&source, &low, &high, margin, kept, &entries);
        if (count > present / 2)
            count = 0;
        missing = count > 0 && rows_room(rows, count, entries, sparse) < 0;
        if (count > 0 && !missing) {
            copy_rows(&source, kept, rows);
            for (int32_t row = 0; row < count; row++) {
                at_low[row] = low.worth[kept[row]];
                at_high[row] = high.worth[kept[row]];
            }
        }
        Py_END_ALLOW_THREADS;
    }
    free(kept);
    release_arrays(&arrays);
    if (missing)
        PyErr_NoMemory();
    PyObject *answer = NULL;
    if (fine && !missing && count > 0) {
        PyObject *held = PyCapsule_New(rows, CAPSULE, capsule_free);
        if (held != NULL) {
            rows = NULL;
            answer = Py_BuildValue("Ni", held, count);
        }
    } else if (fine && !missing) {
        answer = Py_None;
        Py_INCREF(answer);
    }
    rows_free(rows);
    return answer;
}

/* apart[l] = l_h(s, a) + Σ_{s'} P(s' | s, a) to_go[s', l], of the reward and the cost; to_go comes from columns_of,
   and is NULL at the last step. */
static inline void back_up_row(const Rows *rows, int32_t row, const double *to_go, double *apart)
{
    double reward = 0.0, cost = 0.0;
    if (to_go != NULL && rows->start == NULL) {
        const double *probability = rows->probability + (int64_t)row * rows->states;
        reward = dense_product(probability, to_go, rows->states);
        cost = dense_product(probability, to_go + rows->states, rows->states);
    } else if (to_go != NULL)
        for (int64_t entry = rows->start[row]; entry < rows->start[row + 1]; entry++) {
            const double *there = to_go + 2 * (int64_t)rows->target[entry];
            reward += rows->probability[entry] * there[0];
            cost += rows->probability[entry] * there[1];
        }
    apart[0] = reward + rows->stage[2 * (int64_t)row];
    apart[1] = cost + rows->stage[2 * (int64_t)row + 1];
}

/* r − λ·c of one row, with what follows: the same sums in the same order as in `plan_step`. */
static inline double worth_of(const Rows *rows, const double *weights, int32_t row, const double *values)
{
    const double *tables = rows->stage + 2 * (int64_t)row;
    double stage = weights[0] * tables[0], sum = 0.0;
    if (weights[1] != 0.0)
        stage += weights[1] * tables[1];
    if (values == NULL)
        return stage;
    if (rows->start == NULL)
        sum = dense_product(rows->probability + (int64_t)row * rows->states, values, rows->states);
    else
        for (int64_t entry = rows->start[row]; entry < rows->start[row + 1]; entry++)
            sum += rows->probability[entry] * values[rows->target[entry]];
    return stage + sum;
}

typedef struct {
    double *values;  /* [S] */
    double *next;    /* [S, 2] */
    double *columns; /* [2, S] */
    double *second;  /* [A] */
    int32_t *tied;   /* [A + 1] */
} Scratch;

/* As `plan_step` of process.c, among the rows that are left. */
static int narrow_step(const Process *process, const Rows *rows, const Rule *rule, int32_t step, double *to_go, int64_t *chosen,
                       const double *noise, int ask, double *worth, Scratch *scratch)
{
    const int32_t states = rows->states, *begin = rows->begin + (int64_t)step * states;
    const double *ahead = step == rows->steps - 1 ? NULL : to_go;
    for (int32_t s = 0; s < states && ahead != NULL; s++)
        scratch->values[s] = weighed(rule->weights, to_go + 2 * (int64_t)s, 2);
    const double *columns = columns_of(process, ahead, scratch->columns);
    for (int32_t s = 0; s < states; s++) {
        const int32_t first = begin[s], count = begin[s + 1] - first, *action = rows->action + first;
        int32_t row = first;
        if (count > 1) {
            for (int32_t i = 0; i < count; i++)
                worth[first + i] =
                    worth_of(rows, rule->weights, first + i, ahead == NULL ? NULL : scratch->values);
            const int32_t ties = tied_actions(rule, worth + first, count, scratch->tied);
            row = first + scratch->tied[0];
            if (ties > 1) {
                double apart[2];
                if (ask && noise == NULL)
                    return -1;
                for (int32_t i = 0; i < ties; i++) {
                    const int32_t each = scratch->tied[i];
                    back_up_row(rows, first + each, columns, apart);
                    scratch->tied[i] = action[each];
                    scratch->second[action[each]] = weighed(rule->second, apart, 2);
                }
                const int32_t best =
                    among_tied(rule, scratch->second, scratch->tied, ties, noise == NULL ? NULL : noise + s, states);
                for (row = first; rows->action[row] != best; row++)
                    ;
            }
        }
        chosen[s] = rows->action[row];
        back_up_row(rows, row, columns, scratch->next + 2 * (int64_t)s);
    }
    memcpy(to_go, scratch->next, 2 * (size_t)states * sizeof(double));
    return 0;
}

static PyObject *narrow_plan_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *rows_in, *weights, *second, *chosen_out, *to_go_out, *totals_out, *noise_in, *worth_out;
    PyObject *values_out;
    double tie, second_tie, relative_tie;
    int step, ask;
    if (!PyArg_ParseTuple(args, "OOOOdddiOOOOpOO", &capsule, &rows_in, &weights, &second, &tie, &second_tie,
                          &relative_tie, &step, &chosen_out, &to_go_out, &totals_out, &noise_in, &ask, &worth_out,
                          &values_out))
        return NULL;
    const Process *process = process_of(capsule);
    const Rows *rows = process == NULL ? NULL : PyCapsule_GetPointer(rows_in, CAPSULE);
    if (rows == NULL)
        return NULL;
    if (step < 0 || step >= process->steps || process->tables != 2 || rows->steps != process->steps ||
        rows->states != process->states || rows->actions != process->actions) {
        PyErr_SetString(PyExc_ValueError, "the rows do not fit the process, or there is no such step");
        return NULL;
    }
    const Py_ssize_t states = process->states;
    Arrays arrays = {.count = 0};
    Rule rule;
    int64_t *chosen = NULL;
    double *to_go = NULL, *totals = NULL, *worth = NULL, *values = NULL;
    const double *noise = NULL;
    int fine = rule_of(&rule, &arrays, process, weights, second, tie, second_tie, relative_tie) == 0;
    fine = fine && (chosen = array_with(&arrays, chosen_out, 'q', 1, "chosen", states * process->steps));
    fine = fine && (to_go = array_with(&arrays, to_go_out, 'd', 1, "to_go", 2 * states));
    fine = fine && (totals = array_with(&arrays, totals_out, 'd', 1, "totals", 2));
    fine = fine && (worth = array_with(&arrays, worth_out, 'd', 1, "worth", rows->count));
    fine = fine && (values = array_with(&arrays, values_out, 'd', 1, "values", 2 * states * process->steps));
    if (noise_in != Py_None)
        fine = fine && (noise = array_with(&arrays, noise_in, 'd', 0, "noise", states * process->actions));
    Scratch scratch = {.values = NULL};
    if (fine) {
        int there = (scratch.values = malloc((size_t)states * sizeof(double))) != NULL;
        there &= (scratch.next = malloc(2 * (size_t)states * sizeof(double))) != NULL;
        there &= (scratch.columns = malloc(2 * (size_t)states * sizeof(double))) != NULL;
        there &= (scratch.second = malloc((size_t)process->actions * sizeof(double))) != NULL;
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
            if (narrow_step(process, rows, &rule, step, to_go, chosen + step * states, noise, ask, worth, &scratch) < 0)
                break;
            noise = NULL; /* it was drawn for one step */
            memcpy(values + 2 * step * states, to_go, 2 * (size_t)states * sizeof(double));
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
    free(scratch.second);
    free(scratch.tied);
    release_arrays(&arrays);
    return fine ? PyLong_FromLong(step) : NULL;
}

PyMethodDef narrow_kernels[] = {
    {"narrow", narrow_kernel, METH_VARARGS,
     "narrow(process, rows or None, low, high, margin, at_low, at_high): the rows that can matter between the "
     "multipliers of two plans, how many they are, and what they were worth there; None unless they are half as many."},
    {"narrow_plan", narrow_plan_kernel, METH_VARARGS,
     "narrow_plan(process, rows, weights, second, tie, second_tie, relative_tie, step, chosen, to_go, totals, noise, ask, "
     "worth, values): as plan, among the rows that are left."},
    {NULL, NULL, 0, NULL},
};
