/* Relative value iteration of a discounted chain; the twin is `_sweeps` in cmdp/discounted.py, where the mathematics is. */
#include "process.h"

#include <float.h>
#include <stdlib.h>

/* As in cmdp/discounted.py. */
#define SWEEPS_BETWEEN_CHECKS 8
#define MAX_SWEEPS 400.0

typedef struct {
    const int32_t *start, *target; /* CSR; the rows are checked to lie inside, and the targets to be states */
    const double *probability;
    const int64_t *rows; /* [S]: the row of each state */
    int32_t states, tables;
} Chain;

/* r = stage + γ P w − w: the next w + mid(r) in ahead [S, m], min r and max r in low and high [m], and the largest |w| of
   each table in largest [m]. */
static void sweep(const Chain *chain, const double *stage, double discount, const double *relative, double *ahead,
                  double *low, double *high, double *largest, double *sums)
{
    const int32_t tables = chain->tables;
    for (int32_t l = 0; l < tables; l++) {
        low[l] = INFINITY;
        high[l] = -INFINITY;
        largest[l] = 0.0;
    }
    for (int32_t s = 0; s < chain->states; s++) {
        const int32_t first = chain->start[chain->rows[s]];
        const Py_ssize_t length = chain->start[chain->rows[s] + 1] - first;
        const Py_ssize_t at = (Py_ssize_t)s * tables;
        sums_apart(chain->probability + first, chain->target + first, length, relative, tables, sums);
        for (int32_t l = 0; l < tables; l++) {
            ahead[at + l] = stage[at + l] + discount * sums[l];
            const double residual = ahead[at + l] - relative[at + l], size = fabs(relative[at + l]);
            /* What is no number stays, because nothing compares with it. */
            low[l] = residual < low[l] || residual != residual ? residual : low[l];
            high[l] = residual > high[l] ? residual : high[l];
            largest[l] = size > largest[l] ? size : largest[l];
        }
    }
}

/* Whether sweeps that have come from `before` to `now` times the aim will not reach it soon. */
static int is_slow(double now, double before)
{
    if (!(now < before))
        return 1;
    return before < INFINITY && SWEEPS_BETWEEN_CHECKS * log(now) > MAX_SWEEPS * log(before / now);
}

/* 1: the half-width of the residual is small enough; 0: sweeps are slow; −1: interrupted, with an exception. */
static int sweeps(const Chain *chain, const double *stage, double discount, double rounding, double aim,
                  double *relative, double *middle, double *ahead, double *scratch, Watch *watch)
{
    const int32_t tables = chain->tables;
    const Py_ssize_t entries = (Py_ssize_t)chain->states * tables;
    double *low = scratch, *high = scratch + tables, *largest = scratch + 2 * tables, *size = scratch + 3 * tables;
    double *sums = scratch + 4 * tables, before = INFINITY;
    memset(size, 0, (size_t)tables * sizeof(double));
    for (Py_ssize_t i = 0; i < entries; i++) {
        const double absolute = fabs(stage[i]);
        size[i % tables] = absolute > size[i % tables] ? absolute : size[i % tables];
    }
    for (long done = 1;; done++) {
        sweep(chain, stage, discount, relative, ahead, low, high, largest, sums);
        double excess = 0.0;
        for (int32_t l = 0; l < tables; l++) {
            const double floor = rounding * (size[l] + largest[l]) + DBL_MIN;
            const double share = (high[l] - low[l]) / 2.0 / (aim > floor ? aim : floor);
            middle[l] = (low[l] + high[l]) / 2.0;
            excess = share > excess || share != share ? share : excess;
        }
        if (excess <= 1.0)
            return 1;
        for (Py_ssize_t i = 0; i < entries; i += tables)
            for (int32_t l = 0; l < tables; l++)
                relative[i + l] = ahead[i + l] - middle[l];
        if (done % SWEEPS_BETWEEN_CHECKS == 0) {
            if (is_slow(excess, before))
                return 0;
            before = excess;
            if (must_stop(watch) == INTERRUPTED)
                return -1;
        }
    }
}

/* Whether every row that is used lies inside the matrix, and leads to states. */
static int check_chain(const Chain *chain, Py_ssize_t matrix_rows, Py_ssize_t entries)
{
    for (int32_t s = 0; s < chain->states; s++) {
        const int64_t row = chain->rows[s];
        int inside = row >= 0 && row < matrix_rows && chain->start[row] >= 0;
        inside = inside && chain->start[row] <= chain->start[row + 1] && chain->start[row + 1] <= entries;
        for (int32_t i = inside ? chain->start[row] : 0; inside && i < chain->start[row + 1]; i++)
            inside = chain->target[i] >= 0 && chain->target[i] < chain->states;
        if (!inside) {
            PyErr_Format(PyExc_ValueError, "the row of state %d does not lie inside the transition", (int)s);
            return -1;
        }
    }
    return 0;
}

static PyObject *relative_sweeps(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *start, *target, *probability, *rows, *stage, *relative, *middle;
    double discount, rounding, aim;
    if (!PyArg_ParseTuple(args, "(OOO)OOdddOO:relative_sweeps", &start, &target, &probability, &rows, &stage, &discount,
                          &rounding, &aim, &relative, &middle))
        return NULL;
    Arrays arrays = {.count = 0};
    Chain chain;
    Py_ssize_t starts, entries, states, tables;
    double *ahead = NULL, *scratch = NULL;
    int outcome = -1;
    chain.start = array_of(&arrays, start, 'i', 0, "start", &starts);
    chain.target = chain.start ? array_of(&arrays, target, 'i', 0, "target", &entries) : NULL;
    chain.probability = chain.target ? array_with(&arrays, probability, 'd', 0, "probability", entries) : NULL;
    chain.rows = chain.probability ? array_of(&arrays, rows, 'q', 0, "rows", &states) : NULL;
    double *mid = chain.rows ? array_of(&arrays, middle, 'd', 1, "middle", &tables) : NULL;
    const double *worth = mid ? array_with(&arrays, stage, 'd', 0, "stage", states * tables) : NULL;
    double *values = worth ? array_with(&arrays, relative, 'd', 1, "relative", states * tables) : NULL;
    if (values == NULL)
        goto end;
    chain.states = (int32_t)states;
    chain.tables = (int32_t)tables;
    if (check_chain(&chain, starts - 1, entries) < 0)
        goto end;
    ahead = malloc((size_t)(states * tables + 1) * sizeof(double));
    scratch = malloc((size_t)(5 * tables + 1) * sizeof(double));
    if (ahead == NULL || scratch == NULL) {
        PyErr_NoMemory();
        goto end;
    }
    Watch watch;
    begin_without_lock(&watch, NO_DEADLINE);
    outcome = sweeps(&chain, worth, discount, rounding, aim, values, mid, ahead, scratch, &watch);
    end_without_lock(&watch);
end:
    free(ahead);
    free(scratch);
    release_arrays(&arrays);
    return outcome < 0 ? NULL : PyBool_FromLong(outcome);
}

PyMethodDef discounted_kernels[] = {
    {"relative_sweeps", relative_sweeps, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
