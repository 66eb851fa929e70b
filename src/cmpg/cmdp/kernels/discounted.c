/* Relative value iteration of a discounted chain; the twin is `_sweeps` in cmdp/discounted.py, where the mathematics is. */
#include "process.h"

#include <float.h>
#include <stdlib.h>

/* As in cmdp/discounted.py. */
#define SWEEPS_BETWEEN_CHECKS 8
#define MAX_SWEEPS 400.0

/* The rows of a chain, one after the other: sweeps read them dozens of times. */
typedef struct {
    Py_ssize_t *start; /* [S + 1] */
    double *probability;
    int32_t *target; /* states */
    int32_t states, tables;
} Chain;

typedef struct {
    double least, most, size; /* min r, max r, max |w| */
    int defined;              /* every r is a number */
} Extremes;

ALWAYS_INLINE void widen(Extremes *found, double ahead, double relative)
{
    const double residual = ahead - relative, size = fabs(relative);
    found->defined &= residual == residual;
    found->least = residual < found->least ? residual : found->least;
    found->most = residual > found->most ? residual : found->most;
    found->size = size > found->size ? size : found->size;
}

/* The next w + mid(r), ahead [S, m] = stage + γ P w, and in found [m] what there is to know of r = ahead − w. Where the
   compiler knows that tables are few, what is found so far stays in registers. */
ALWAYS_INLINE void sweep(const Chain *chain, const double *stage, double discount, const double *relative,
                         double *ahead, Extremes *found, const int32_t tables)
{
    Extremes few[2], *own = tables <= 2 ? few : found;
    for (int32_t l = 0; l < tables; l++)
        own[l] = (Extremes){INFINITY, -INFINITY, 0.0, 1};
    for (int32_t s = 0; s < chain->states; s++) {
        const Py_ssize_t first = chain->start[s], length = chain->start[s + 1] - first, at = (Py_ssize_t)s * tables;
        sums_apart(chain->probability + first, chain->target + first, length, relative, tables, ahead + at);
        for (int32_t l = 0; l < tables; l++) {
            ahead[at + l] = stage[at + l] + discount * ahead[at + l];
            widen(&own[l], ahead[at + l], relative[at + l]);
        }
    }
    for (int32_t l = 0; l < tables; l++) {
        found[l] = own[l];
        if (!own[l].defined)
            found[l].least = NAN; /* nothing compares with it */
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
                  double *relative, double *middle, double *ahead, double *sizes, Extremes *found, Watch *watch)
{
    const int32_t tables = chain->tables;
    const Py_ssize_t entries = (Py_ssize_t)chain->states * tables;
    double before = INFINITY;
    for (int32_t l = 0; l < tables; l++) {
        sizes[l] = 0.0;
        for (Py_ssize_t i = l; i < entries; i += tables)
            sizes[l] = fabs(stage[i]) > sizes[l] ? fabs(stage[i]) : sizes[l];
    }
    for (long done = 1;; done++) {
        double excess = 0.0;
        if (tables == 1)
            sweep(chain, stage, discount, relative, ahead, found, 1);
        else if (tables == 2)
            sweep(chain, stage, discount, relative, ahead, found, 2);
        else
            sweep(chain, stage, discount, relative, ahead, found, tables);
        for (int32_t l = 0; l < tables; l++) {
            const double floor = rounding * (sizes[l] + found[l].size) + DBL_MIN;
            const double share = (found[l].most - found[l].least) / 2.0 / (aim > floor ? aim : floor);
            middle[l] = (found[l].least + found[l].most) / 2.0;
            excess = share > excess || share != share ? share : excess;
        }
        if (excess <= 1.0)
            return 1;
        for (int32_t l = 0; l < tables; l++) {
            const double centre = middle[l];
            for (Py_ssize_t i = l; i < entries; i += tables)
                relative[i] = ahead[i] - centre;
        }
        if (done % SWEEPS_BETWEEN_CHECKS == 0) {
            if (is_slow(excess, before))
                return 0;
            before = excess;
            if (must_stop(watch) == INTERRUPTED)
                return -1;
        }
    }
}

/* A transition as it comes, and the row of each state in it. */
typedef struct {
    const int32_t *start, *target; /* CSR */
    const double *probability;
    const int64_t *rows; /* [S] */
    Py_ssize_t all, entries;
} Source;

/* Whether the row of a state lies inside the matrix. */
static int is_inside(const Source *source, Py_ssize_t s)
{
    const int64_t row = source->rows[s];
    return row >= 0 && row < source->all && source->start[row] >= 0 &&
           source->start[row] <= source->start[row + 1] && source->start[row + 1] <= source->entries;
}

/* Copy the rows of the states, checked: they lie inside the matrix, and lead to states. */
static int chain_of(Chain *chain, const Source *source)
{
    Py_ssize_t length = 0, s = 0, states = chain->states;
    for (; s < states && is_inside(source, s); s++)
        length += source->start[source->rows[s] + 1] - source->start[source->rows[s]];
    if (s == states) {
        chain->start = malloc((size_t)(states + 1) * sizeof(Py_ssize_t));
        chain->probability = malloc((size_t)(length + 1) * sizeof(double));
        chain->target = malloc((size_t)(length + 1) * sizeof(int32_t));
        if (chain->start == NULL || chain->probability == NULL || chain->target == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        Py_ssize_t at = 0;
        int inside = 1;
        for (s = 0; s < states && inside; s += inside) {
            chain->start[s] = at;
            for (int32_t i = source->start[source->rows[s]]; i < source->start[source->rows[s] + 1]; i++, at++) {
                inside &= source->target[i] >= 0 && source->target[i] < states;
                chain->target[at] = source->target[i];
                chain->probability[at] = source->probability[i];
            }
        }
        chain->start[states] = at;
    }
    if (s == states)
        return 0;
    PyErr_Format(PyExc_ValueError, "the row of state %d does not lie inside the transition", (int)s);
    return -1;
}

static PyObject *relative_sweeps(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *start, *target, *probability, *rows, *stage, *relative, *middle;
    double discount, rounding, aim;
    if (!PyArg_ParseTuple(args, "(OOO)OOdddOO:relative_sweeps", &start, &target, &probability, &rows, &stage, &discount,
                          &rounding, &aim, &relative, &middle))
        return NULL;
    Arrays arrays = {.count = 0};
    Chain chain = {.start = NULL};
    Source source;
    Py_ssize_t starts, states, tables;
    double *ahead = NULL, *sizes = NULL;
    Extremes *found = NULL;
    int outcome = -1;
    source.start = array_of(&arrays, start, 'i', 0, "start", &starts);
    source.target = source.start ? array_of(&arrays, target, 'i', 0, "target", &source.entries) : NULL;
    source.probability =
        source.target ? array_with(&arrays, probability, 'd', 0, "probability", source.entries) : NULL;
    source.rows = source.probability ? array_of(&arrays, rows, 'q', 0, "rows", &states) : NULL;
    double *mid = source.rows ? array_of(&arrays, middle, 'd', 1, "middle", &tables) : NULL;
    const double *worth = mid ? array_with(&arrays, stage, 'd', 0, "stage", states * tables) : NULL;
    double *values = worth ? array_with(&arrays, relative, 'd', 1, "relative", states * tables) : NULL;
    if (values == NULL)
        goto end;
    chain.states = (int32_t)states;
    chain.tables = (int32_t)tables;
    source.all = starts - 1;
    if (chain_of(&chain, &source) < 0)
        goto end;
    ahead = malloc((size_t)(states * tables + 1) * sizeof(double));
    sizes = malloc((size_t)(tables + 1) * sizeof(double));
    found = malloc((size_t)(tables + 1) * sizeof(Extremes));
    if (ahead == NULL || sizes == NULL || found == NULL) {
        PyErr_NoMemory();
        goto end;
    }
    Watch watch;
    begin_without_lock(&watch, NO_DEADLINE);
    outcome = sweeps(&chain, worth, discount, rounding, aim, values, mid, ahead, sizes, found, &watch);
    end_without_lock(&watch);
end:
    free(chain.start);
    free(chain.target);
    free(chain.probability);
    free(ahead);
    free(sizes);
    free(found);
    release_arrays(&arrays);
    return outcome < 0 ? NULL : PyBool_FromLong(outcome);
}

PyMethodDef discounted_kernels[] = {
    {"relative_sweeps", relative_sweeps, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
