/* A primal simplex method for very few rows; the twin is `best_corner` in cmdp/columns.py, where the mathematics is. */
#include "arrays.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum { OPTIMAL = 0, OUT_OF_PIVOTS = 1, SINGULAR = 2, UNBOUNDED = 3 } Outcome;

typedef struct {
    const double *objective, *matrix, *right; /* [columns], [rows, columns], [rows] */
    const int8_t *is_free;                    /* [columns] */
    Py_ssize_t rows, columns;
} Small;

/* Factor the square matrix of a basis: P·B = L·U, with the pivots' rows in `order`. */
static int factor(const Small *small, const int64_t *basis, double *lu, Py_ssize_t *order)
{
    const Py_ssize_t rows = small->rows;
    for (Py_ssize_t i = 0; i < rows; i++) {
        order[i] = i;
        for (Py_ssize_t j = 0; j < rows; j++)
            lu[i * rows + j] = small->matrix[i * small->columns + basis[j]];
    }
    for (Py_ssize_t j = 0; j < rows; j++) {
        Py_ssize_t best = j;
        for (Py_ssize_t i = j + 1; i < rows; i++)
            best = fabs(lu[i * rows + j]) > fabs(lu[best * rows + j]) ? i : best;
        for (Py_ssize_t l = 0; l < rows && best != j; l++) {
            const double swap = lu[j * rows + l];
            lu[j * rows + l] = lu[best * rows + l];
            lu[best * rows + l] = swap;
        }
        const Py_ssize_t moved = order[j];
        order[j] = order[best];
        order[best] = moved;
        if (lu[j * rows + j] == 0.0)
            return -1;
        for (Py_ssize_t i = j + 1; i < rows; i++) {
            const double share = lu[i * rows + j] /= lu[j * rows + j];
            for (Py_ssize_t l = j + 1; l < rows; l++)
                lu[i * rows + l] -= share * lu[j * rows + l];
        }
    }
    return 0;
}

/* Solve B·x = a for a column whose entries are `stride` apart. */
static void solve(const double *lu, const Py_ssize_t *order, Py_ssize_t rows, const double *column, Py_ssize_t stride,
                  double *x)
{
    for (Py_ssize_t i = 0; i < rows; i++) {
        x[i] = column[order[i] * stride];
        for (Py_ssize_t j = 0; j < i; j++)
            x[i] -= lu[i * rows + j] * x[j];
    }
    for (Py_ssize_t i = rows - 1; i >= 0; i--) {
        for (Py_ssize_t j = i + 1; j < rows; j++)
            x[i] -= lu[i * rows + j] * x[j];
        x[i] /= lu[i * rows + i];
    }
}

/* Solve Bᵀ·y = c, the objective of the basis. */
static void solve_transposed(const Small *small, const int64_t *basis, const double *lu, const Py_ssize_t *order,
                             double *scratch, double *y)
{
    const Py_ssize_t rows = small->rows;
    for (Py_ssize_t i = 0; i < rows; i++) {
        scratch[i] = small->objective[basis[i]];
        for (Py_ssize_t j = 0; j < i; j++)
            scratch[i] -= lu[j * rows + i] * scratch[j];
        scratch[i] /= lu[i * rows + i];
    }
    for (Py_ssize_t i = rows - 1; i >= 0; i--)
        for (Py_ssize_t j = i + 1; j < rows; j++)
            scratch[i] -= lu[j * rows + i] * scratch[j];
    for (Py_ssize_t i = 0; i < rows; i++)
        y[order[i]] = scratch[i];
}

/* The variable that raises the objective by more than rounding: the steepest, or the first; −1 if there is none. */
static Py_ssize_t entering(const Small *small, const int64_t *basis, const double *duals, double largest, int careful)
{
    const double unit = 8.0 * (double)small->rows * DBL_EPSILON;
    Py_ssize_t best = -1;
    double most = -INFINITY;
    for (Py_ssize_t c = 0; c < small->columns; c++) {
        double spent = 0.0, noise = 0.0;
        for (Py_ssize_t i = 0; i < small->rows; i++) {
            const double part = duals[i] * small->matrix[i * small->columns + c];
            spent += part;
            noise += fabs(part);
        }
        const double gain = small->objective[c] - spent;
        int basic = 0; /* its gain is zero but for rounding */
        for (Py_ssize_t i = 0; i < small->rows; i++)
            basic |= basis[i] == c;
        if (!basic && gain > unit * (largest + noise) && gain > most) {
            if (careful)
                return c;
            best = c;
            most = gain;
        }
    }
    return best;
}

/* The row that leaves, and in *step how far the step goes; −1 if nothing bounds it. */
static Py_ssize_t leaving(const Small *small, const int64_t *basis, const double *values, const double *direction,
                          double no_step, int careful, double *step)
{
    double largest = 0.0;
    for (Py_ssize_t i = 0; i < small->rows; i++)
        largest = fabs(direction[i]) > largest ? fabs(direction[i]) : largest;
    Py_ssize_t chosen = -1;
    *step = INFINITY;
    for (int pass = 0; pass < 2; pass++) { /* the shortest step first, then who leaves among those that tie */
        for (Py_ssize_t i = 0; i < small->rows; i++) {
            /* A smaller pivot would make the next basis singular; a free variable may become negative. */
            if (!(direction[i] > 1e-10 * largest) || small->is_free[basis[i]])
                continue;
            const double ratio = (values[i] > 0.0 ? values[i] : 0.0) / direction[i];
            if (pass == 0)
                *step = ratio < *step ? ratio : *step;
            else if (ratio <= *step + no_step &&
                     (chosen < 0 || (careful ? basis[i] < basis[chosen] : direction[i] > direction[chosen])))
                chosen = i;
        }
    }
    return chosen;
}

static Outcome best_corner(const Small *small, long pivots, long patience, double no_step, int64_t *basis,
                           double *values, double *duals, double *scratch, Py_ssize_t *order)
{
    double *lu = scratch, *direction = lu + small->rows * small->rows, *more = direction + small->rows;
    double largest = 0.0;
    for (Py_ssize_t c = 0; c < small->columns; c++)
        largest = fabs(small->objective[c]) > largest ? fabs(small->objective[c]) : largest;
    long idle = 0;
    for (long pivot = 0; pivot < pivots; pivot++) {
        if (factor(small, basis, lu, order) < 0)
            return SINGULAR;
        solve(lu, order, small->rows, small->right, 1, values);
        solve_transposed(small, basis, lu, order, more, duals);
        const Py_ssize_t enters = entering(small, basis, duals, largest, idle > patience);
        if (enters < 0)
            return OPTIMAL;
        solve(lu, order, small->rows, small->matrix + enters, small->columns, direction);
        double step;
        const Py_ssize_t leaves = leaving(small, basis, values, direction, no_step, idle > patience, &step);
        if (leaves < 0)
            return UNBOUNDED;
        idle = step <= no_step ? idle + 1 : 0;
        basis[leaves] = enters;
    }
    return OUT_OF_PIVOTS;
}

/* The program of a master, laid out in `small`; the twin is `MasterProgram._program` in cmdp/columns.py. Columns are the
   plans, the common slack, the slacks of the constraints. A plan's row of `room` is its value and what it spends too
   much. */
static void lay_out(Small *small, const double *room, const double *units, const double *scale, const double *settings,
                    double *memory, int8_t *is_free)
{
    const Py_ssize_t constraints = small->rows - 1, columns = small->columns, plans = columns - small->rows;
    const double unit = settings[0], centre = settings[1], spread = settings[2], slack_counts = settings[3];
    double *objective = memory, *matrix = objective + columns, *right = matrix + small->rows * columns;
    memset(memory, 0, (size_t)((small->rows + 1) * columns + small->rows) * sizeof(double));
    for (Py_ssize_t p = 0; p < plans; p++) {
        const double *own = room + p * small->rows;
        objective[p] = slack_counts ? 0.0 : (own[0] - centre) / spread;
        for (Py_ssize_t j = 0; j < constraints; j++)
            matrix[j * columns + p] = own[1 + j] / scale[j];
        matrix[constraints * columns + p] = 1.0;
    }
    for (Py_ssize_t j = 0; j < constraints; j++) {
        matrix[j * columns + plans] = unit * units[j] / scale[j];
        matrix[j * columns + plans + 1 + j] = 1.0;
    }
    right[constraints] = 1.0;
    objective[plans] = slack_counts;
    memset(is_free, 0, (size_t)columns);
    is_free[plans] = slack_counts != 0.0;
    small->objective = objective;
    small->matrix = matrix;
    small->right = right;
    small->is_free = is_free;
}

static PyObject *master(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *room_in, *units_in, *scale_in, *settings_in, *basis_out, *weights_out, *duals_out;
    long pivots, patience, outcome = -1;
    double no_step;
    if (!PyArg_ParseTuple(args, "OOOOlldOOO:master", &room_in, &units_in, &scale_in, &settings_in, &pivots, &patience,
                          &no_step, &basis_out, &weights_out, &duals_out))
        return NULL;
    Arrays arrays = {.count = 0};
    Py_ssize_t constraints = 0, plans = 0;
    Small small;
    double *memory = NULL;
    int8_t *is_free = NULL;
    Py_ssize_t *order = NULL;
    const double *units = array_of(&arrays, units_in, 'd', 0, "units", &constraints);
    const double *scale = units ? array_with(&arrays, scale_in, 'd', 0, "scale", constraints) : NULL;
    const double *settings = scale ? array_with(&arrays, settings_in, 'd', 0, "settings", 4) : NULL;
    double *weights = settings ? array_of(&arrays, weights_out, 'd', 1, "weights", &plans) : NULL;
    small.rows = constraints + 1;
    small.columns = plans + small.rows;
    const double *room = weights ? array_with(&arrays, room_in, 'd', 0, "room", plans * small.rows) : NULL;
    int64_t *basis = room ? array_with(&arrays, basis_out, 'q', 1, "basis", small.rows) : NULL;
    double *duals = basis ? array_with(&arrays, duals_out, 'd', 1, "duals", small.rows) : NULL;
    if (duals == NULL)
        goto end;
    for (Py_ssize_t i = 0; i < small.rows; i++) { /* slacks are numbered from the end: plans come and go before them */
        if (basis[i] < -small.rows || basis[i] >= plans) {
            PyErr_SetString(PyExc_ValueError, "the basis has a variable that is no column");
            goto end;
        }
        basis[i] += basis[i] < 0 ? small.columns : 0;
    }
    const Py_ssize_t table = (small.rows + 1) * small.columns + small.rows, own = small.rows * (small.rows + 2);
    memory = malloc((size_t)(table + small.rows + own) * sizeof(double));
    is_free = memory == NULL ? NULL : malloc((size_t)small.columns);
    order = is_free == NULL ? NULL : malloc((size_t)small.rows * sizeof(Py_ssize_t));
    if (order == NULL) {
        PyErr_NoMemory();
        goto end;
    }
    lay_out(&small, room, units, scale, settings, memory, is_free);
    double *values = memory + table;
    outcome = (long)best_corner(&small, pivots, patience, no_step, basis, values, duals, values + small.rows, order);
    memset(weights, 0, (size_t)plans * sizeof(double));
    for (Py_ssize_t i = 0; i < small.rows && outcome == (long)OPTIMAL; i++)
        if (basis[i] < plans)
            weights[basis[i]] = values[i];
        else
            basis[i] -= small.columns;
end:
    free(memory);
    free(is_free);
    free(order);
    release_arrays(&arrays);
    return outcome < 0 ? NULL : PyLong_FromLong(outcome);
}

PyMethodDef corner_kernels[] = {
    {"master", master, METH_VARARGS,
     "master(room, units, scale, (unit, centre, spread, slack counts), pivots, patience, no_step, basis, weights, "
     "duals): the best mixture of plans; 0, or why there is none."},
    {NULL, NULL, 0, NULL},
};
