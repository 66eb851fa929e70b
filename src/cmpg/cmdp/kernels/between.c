/* Which actions of a CMDP with one constraint can be best for some multiplier between those of two plans.

   The value of an action is convex in the multiplier. Between two multipliers it lies below the line through what two
   plans found there; and the best action is worth at least what either of both policies is worth. Where the first is less
   than the second everywhere between them, the action can be dropped. */
#include "rows.h"

#include <stdlib.h>
#include <string.h>

/* At first, one place of so many is looked at; if too many actions are left there, the rest is not. */
#define SAMPLED 61

/* Rows that are far apart are fetched so many rows ahead. */
#define AHEAD 12

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

/* How many actions of one step and state can matter; they are listed in kept [A]. */
static int32_t keep(const Process *process, const Record *low, const Record *high, double margin, Py_ssize_t place,
                    int32_t *kept)
{
    const Py_ssize_t first = place * process->actions;
    const Bound bound = bound_of(low, high, place, margin);
    int32_t count = 0;
    for (int32_t a = 0; a < process->actions; a++) {
        kept[count] = a;
        count += can_matter(&bound, low->worth[first + a], high->worth[first + a]);
    }
    if (count == 0) /* a value is no number */
        for (; count < process->actions; count++)
            kept[count] = count;
    return count;
}

/* How many entries the matrices have, step after step. */
static double entries_of(const Process *process)
{
    double sum = 0.0;
    for (int32_t step = 0; step < process->steps; step++)
        sum += matrix_of(process, step)->start[(Py_ssize_t)process->states * process->actions];
    return sum;
}

/* Fills the rows; 0 where more than a share of a sample is left, −1 where memory is short. */
static int keep_all(const Process *process, const Record *low, const Record *high, double margin, double share,
                    int32_t *kept, Rows *rows)
{
    const int32_t states = process->states;
    const Py_ssize_t places = (Py_ssize_t)process->steps * states;
    int64_t sampled = 0, looked = 0;
    for (Py_ssize_t place = 0; place < places; place += SAMPLED, looked += process->actions)
        sampled += keep(process, low, high, margin, place, kept);
    if ((double)sampled > share * (double)looked)
        return 0;
    const int sparse = process->matrix[0].start != NULL;
    const double left = 1.1 * (double)sampled / (double)looked * (double)places * process->actions;
    const double length = sparse ? entries_of(process) / ((double)places * process->actions) : states;
    if (rows_reserve(rows, (int64_t)left, (int64_t)(left * length), sparse) < 0)
        return -1;
    for (int32_t step = process->steps - 1; step >= 0; step--) {
        int32_t count = 0;
        for (int32_t s = 0; s < states; s++) {
            const int32_t more = keep(process, low, high, margin, (Py_ssize_t)step * states + s, kept + count);
            rows->begin[place_of(rows, step, s)] = rows->count + count;
            for (int32_t i = 0; i < more; i++)
                kept[count++] += s * process->actions;
        }
        const Matrix *matrix = matrix_of(process, step);
        for (int32_t i = 0; i < count; i++) {
            const int32_t s = kept[i] / process->actions;
            if (sparse && i + AHEAD < count) {
                PREFETCH(matrix->probability + matrix->start[kept[i + AHEAD]]);
                PREFETCH(matrix->target + matrix->start[kept[i + AHEAD]]);
            }
            const Row row = row_of_process(process, step, s, kept[i] - s * process->actions);
            if (rows_append(rows, process, step, s, &row) < 0)
                return -1;
        }
    }
    rows->begin[places] = rows->count;
    return 1;
}

static PyObject *between_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *low_in, *high_in;
    double margin, share;
    if (!PyArg_ParseTuple(args, "OOOdd", &capsule, &low_in, &high_in, &margin, &share))
        return NULL;
    const Process *process = process_of(capsule);
    if (process == NULL)
        return NULL;
    const int64_t all = (int64_t)process->steps * process->states * process->actions;
    if (process->tables != 2 || all > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "the process has too many rows, or more than one constraint");
        return NULL;
    }
    Arrays arrays = {.count = 0};
    Record low, high;
    int fine = record_of(&low, &arrays, process, low_in, (Py_ssize_t)all) == 0;
    fine = fine && record_of(&high, &arrays, process, high_in, (Py_ssize_t)all) == 0;
    if (fine && !(low.multiplier < high.multiplier)) {
        PyErr_SetString(PyExc_ValueError, "the records are not in order");
        fine = 0;
    }
    int32_t *kept =
        fine ? malloc(((size_t)process->states * (size_t)process->actions + 1) * sizeof(int32_t)) : NULL;
    Rows *rows = kept == NULL ? NULL : rows_new(process);
    int found = -1;
    if (rows != NULL) {
        Py_BEGIN_ALLOW_THREADS;
        found = keep_all(process, &low, &high, margin, share, kept, rows);
        Py_END_ALLOW_THREADS;
    }
    free(kept);
    release_arrays(&arrays);
    if (fine && found < 0)
        PyErr_NoMemory();
    if (found <= 0) {
        rows_free(rows);
        rows = NULL;
    }
    return fine && found >= 0 ? rows_answer(rows) : NULL;
}

PyMethodDef between_kernels[] = {
    {"narrow_between", between_kernel, METH_VARARGS,
     "narrow_between(process, low, high, margin, share): the rows that can matter between the multipliers of two plans, "
     "and how many they are; None if more than that share of a sample is left."},
    {NULL, NULL, 0, NULL},
};
