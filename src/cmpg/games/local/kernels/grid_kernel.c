/* The CMDP of one agent who walks over rows of cells, beside others who keep to their policies: the plans of `plan` and the
   bounds of `bound` in planning.c, in a fraction of the time. */
#include "local.h"

#include <stdlib.h>
#include <string.h>

#define CAPSULE "cmpg.grid_kernel"

typedef struct {
    Arrays arrays; /* held as long as the grid kernel */
    World world;
    Planner planner;
    int32_t agent;
    double *spent, *paid; /* what one more user of every index adds to the cost, as the cells lie, and that at a price */
} GridKernel;

static void grid_kernel_free(GridKernel *kernel)
{
    planner_end(&kernel->planner);
    free(kernel->spent);
    free(kernel->paid);
    release_arrays(&kernel->arrays);
    free(kernel);
}

static void capsule_free(PyObject *capsule)
{
    grid_kernel_free(PyCapsule_GetPointer(capsule, CAPSULE));
}

/* grid kernel(packed, agent, marginal cost): a capsule, or None where no agent walks over rows of cells. */
static PyObject *grid_kernel_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *packed, *marginals;
    int agent;
    if (!PyArg_ParseTuple(args, "OiO", &packed, &agent, &marginals))
        return NULL;
    GridKernel *kernel = calloc(1, sizeof *kernel);
    if (kernel == NULL)
        return PyErr_NoMemory();
    World *world = &kernel->world;
    Arrays taken = {.count = 0};
    const double *marginal = NULL;
    if (world_of(world, &kernel->arrays, packed) < 0)
        goto failed;
    if (agent < 0 || agent >= world->agents || world->constraints != 1 || world->has_delay) {
        PyErr_SetString(PyExc_ValueError, "there is no such agent, or not one constraint without delays");
        goto failed;
    }
    marginal = array_with(&taken, marginals, 'd', 0, "marginal", (Py_ssize_t)world->steps * world->resources);
    if (marginal == NULL)
        goto failed;
    kernel->agent = agent;
    if (planner_begin(&kernel->planner, world, 0) < 0) {
        PyErr_NoMemory();
        goto failed;
    }
    const Grid *grid = &kernel->planner.grid;
    if (grid->cells == 0) {
        grid_kernel_free(kernel);
        release_arrays(&taken);
        Py_RETURN_NONE;
    }
    const size_t all = (size_t)(grid_stride(grid) * world->steps);
    kernel->spent = calloc(all, sizeof(double));
    kernel->paid = malloc(all * sizeof(double));
    if (kernel->spent == NULL || kernel->paid == NULL) {
        PyErr_NoMemory();
        goto failed;
    }
    grid_scatter(grid, marginal, world->resources, kernel->spent);
    release_arrays(&taken);
    PyObject *capsule = PyCapsule_New(kernel, CAPSULE, capsule_free);
    if (capsule == NULL)
        grid_kernel_free(kernel);
    return capsule;
failed:
    grid_kernel_free(kernel);
    release_arrays(&taken);
    return NULL;
}

static PyObject *grid_plan_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *chosen_out, *totals_out;
    double price, ties[2];
    if (!PyArg_ParseTuple(args, "OdddOO", &capsule, &price, &ties[0], &ties[1], &chosen_out, &totals_out))
        return NULL;
    GridKernel *kernel = PyCapsule_GetPointer(capsule, CAPSULE);
    if (kernel == NULL)
        return NULL;
    const World *world = &kernel->world;
    Grid *grid = &kernel->planner.grid;
    const int32_t S = world->states[kernel->agent], agent = kernel->agent;
    Arrays arrays = {.count = 0};
    int64_t *chosen = array_with(&arrays, chosen_out, 'q', 1, "chosen", (Py_ssize_t)world->steps * S);
    double *totals = chosen == NULL ? NULL : array_with(&arrays, totals_out, 'd', 1, "totals", 2);
    if (totals != NULL) {
        GridPlan plan = grid_plan_of(&kernel->planner, agent, 1);
        plan.marginal = kernel->spent;
        plan.ties = ties;
        grid_plan_apart(grid, &kernel->planner.map, &plan, price);
        for (int32_t h = 0; h < world->steps; h++)
            for (int32_t s = 0; s < S; s++)
                chosen[(int64_t)h * S + s] = grid->chosen[(int64_t)h * grid->cells + grid->cell[s]];
        for (int l = 0; l < 2; l++) {
            totals[l] = 0.0;
            for (int64_t entry = world->initial_of[agent]; entry < world->initial_of[agent + 1]; entry++)
                totals[l] += world->initial_probability[entry] * grid->ahead[1 + l][grid->cell[world->initial_state[entry]]];
        }
    }
    release_arrays(&arrays);
    if (totals == NULL)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *grid_bound_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule;
    double price;
    if (!PyArg_ParseTuple(args, "Od", &capsule, &price))
        return NULL;
    GridKernel *kernel = PyCapsule_GetPointer(capsule, CAPSULE);
    if (kernel == NULL)
        return NULL;
    const int64_t all = grid_stride(&kernel->planner.grid) * kernel->world.steps;
    for (int64_t at = 0; at < all; at++)
        kernel->paid[at] = price * kernel->spent[at];
    kernel->planner.gridded[0] = kernel->paid;
    int planned;
    return PyFloat_FromDouble(plan_value(&kernel->planner, kernel->agent, kernel->paid, NULL, &planned));
}

PyMethodDef grid_kernels[] = {
    {"grid_kernel", grid_kernel_kernel, METH_VARARGS, "grid_kernel(packed, agent, marginal): one agent on rows of cells, or None."},
    {"grid_kernel_plan", grid_plan_kernel, METH_VARARGS,
     "grid_kernel_plan(kernel, price, tie, second_tie, chosen, totals): as plan, for the reward less the price of the cost."},
    {"grid_kernel_bound", grid_bound_kernel, METH_VARARGS, "grid_kernel_bound(kernel, price): the largest such value."},
    {NULL, NULL, 0, NULL},
};
