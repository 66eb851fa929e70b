/* The CMDP of one agent who walks over rows of cells, beside others who keep to their policies: the plans of `plan` and the
   bounds of `bound` in planning.c, in a fraction of the time. */
#include "local.h"

#include <stdlib.h>
#include <string.h>

#define CAPSULE "cmpg.walker"

typedef struct {
    Arrays arrays; /* held as long as the walker */
    World world;
    Planner planner;
    int32_t agent;
    double *spent, *paid; /* what one more user of every place adds to the cost, as the cells lie, and that at a price */
} Walker;

static void walker_free(Walker *walker)
{
    planner_end(&walker->planner);
    free(walker->spent);
    free(walker->paid);
    release_arrays(&walker->arrays);
    free(walker);
}

static void capsule_free(PyObject *capsule)
{
    walker_free(PyCapsule_GetPointer(capsule, CAPSULE));
}

/* walker(packed, agent, burden): a capsule, or None where nobody walks over rows of cells. */
static PyObject *walker_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *packed, *burdens;
    int agent;
    if (!PyArg_ParseTuple(args, "OiO", &packed, &agent, &burdens))
        return NULL;
    Walker *walker = calloc(1, sizeof *walker);
    if (walker == NULL)
        return PyErr_NoMemory();
    World *world = &walker->world;
    Arrays taken = {.count = 0};
    const double *burden = NULL;
    if (world_of(world, &walker->arrays, packed) < 0)
        goto failed;
    if (agent < 0 || agent >= world->agents || world->constraints != 1 || world->has_delay) {
        PyErr_SetString(PyExc_ValueError, "there is no such agent, or not one constraint without delays");
        goto failed;
    }
    burden = array_with(&taken, burdens, 'd', 0, "burden", (Py_ssize_t)world->steps * world->resources);
    if (burden == NULL)
        goto failed;
    walker->agent = agent;
    if (planner_begin(&walker->planner, world, 0) < 0) {
        PyErr_NoMemory();
        goto failed;
    }
    const Grid *grid = &walker->planner.grid;
    if (grid->cells == 0) {
        walker_free(walker);
        release_arrays(&taken);
        Py_RETURN_NONE;
    }
    const size_t all = (size_t)(grid_stride(grid) * world->steps);
    walker->spent = calloc(all, sizeof(double));
    walker->paid = malloc(all * sizeof(double));
    if (walker->spent == NULL || walker->paid == NULL) {
        PyErr_NoMemory();
        goto failed;
    }
    grid_lay(grid, burden, world->resources, walker->spent);
    release_arrays(&taken);
    PyObject *capsule = PyCapsule_New(walker, CAPSULE, capsule_free);
    if (capsule == NULL)
        walker_free(walker);
    return capsule;
failed:
    walker_free(walker);
    release_arrays(&taken);
    return NULL;
}

static PyObject *walker_plan_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *chosen_out, *totals_out;
    double price, ties[2];
    if (!PyArg_ParseTuple(args, "OdddOO", &capsule, &price, &ties[0], &ties[1], &chosen_out, &totals_out))
        return NULL;
    Walker *walker = PyCapsule_GetPointer(capsule, CAPSULE);
    if (walker == NULL)
        return NULL;
    const World *world = &walker->world;
    Grid *grid = &walker->planner.grid;
    const int32_t S = world->states[walker->agent], agent = walker->agent;
    Arrays arrays = {.count = 0};
    int64_t *chosen = array_with(&arrays, chosen_out, 'q', 1, "chosen", (Py_ssize_t)world->steps * S);
    double *totals = chosen == NULL ? NULL : array_with(&arrays, totals_out, 'd', 1, "totals", 2);
    if (totals != NULL) {
        GridPlan plan = grid_plan_of(&walker->planner, agent, 1);
        plan.burden = walker->spent;
        plan.ties = ties;
        grid_plan_apart(grid, &walker->planner.map, &plan, price);
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

static PyObject *walker_bound_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule;
    double price;
    if (!PyArg_ParseTuple(args, "Od", &capsule, &price))
        return NULL;
    Walker *walker = PyCapsule_GetPointer(capsule, CAPSULE);
    if (walker == NULL)
        return NULL;
    const int64_t all = grid_stride(&walker->planner.grid) * walker->world.steps;
    for (int64_t at = 0; at < all; at++)
        walker->paid[at] = price * walker->spent[at];
    walker->planner.laid[0] = walker->paid;
    int planned;
    return PyFloat_FromDouble(plan_value(&walker->planner, walker->agent, walker->paid, NULL, &planned));
}

PyMethodDef walker_kernels[] = {
    {"walker", walker_kernel, METH_VARARGS, "walker(packed, agent, burden): one agent on rows of cells, or None."},
    {"walker_plan", walker_plan_kernel, METH_VARARGS,
     "walker_plan(walker, price, tie, second_tie, chosen, totals): as plan, for the reward less the price of the cost."},
    {"walker_bound", walker_bound_kernel, METH_VARARGS, "walker_bound(walker, price): the largest such value."},
    {NULL, NULL, 0, NULL},
};
