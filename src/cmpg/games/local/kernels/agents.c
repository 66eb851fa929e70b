/* Agents of a local game, each by itself: what it can reach, what it does by a policy, and its plan at given prices. The
   twins are games/local/agent.py and relaxation.py. */
#include "local.h"

#include <stdlib.h>
#include <string.h>

/* Which states an agent can reach: breadth first, by step. States that were reached stay in the list. */
static PyObject *reach_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *packed, *orders, *reaches;
    int agent;
    if (!PyArg_ParseTuple(args, "OiOO", &packed, &agent, &orders, &reaches))
        return NULL;
    Arrays arrays = {.count = 0};
    World world;
    int8_t *known = NULL;
    PyObject *answer = NULL;
    if (world_of(&world, &arrays, packed) < 0 || !has_agent(&world, agent))
        goto done;
    const int32_t S = world.states[agent], A = world.actions[agent];
    int32_t *order = array_with(&arrays, orders, 'i', 1, "order", S);
    int32_t *reach = order == NULL ? NULL : array_with(&arrays, reaches, 'i', 1, "reach", world.steps);
    if (reach == NULL)
        goto done;
    if ((known = calloc((size_t)S, 1)) == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    int32_t count = 0;
    for (int64_t entry = world.initial_of[agent]; entry < world.initial_of[agent + 1]; entry++) {
        known[world.initial_state[entry]] = 1;
        order[count++] = world.initial_state[entry];
    }
    for (int32_t h = 0; h < world.steps; h++) {
        reach[h] = count;
        const int32_t matrix = world.moves_at[(int64_t)world.moves_of[agent] * world.steps + h];
        /* An agent that was followed by the same matrix before leads nowhere else. */
        const int same = h > 0 && matrix == world.moves_at[(int64_t)world.moves_of[agent] * world.steps + h - 1];
        for (int32_t p = same ? reach[h - 1] : 0; p < reach[h] && count < S; p++) {
            const int64_t row = world.first_row[matrix] + (int64_t)order[p] * A;
            for (int64_t entry = world.row_start[row]; entry < world.row_start[row + A]; entry++)
                if (world.probability[entry] > 0.0 && !known[world.target[entry]]) {
                    known[world.target[entry]] = 1;
                    order[count++] = world.target[entry];
                }
        }
    }
    answer = Py_NewRef(Py_None);
done:
    free(known);
    release_arrays(&arrays);
    return answer;
}

/* What agents do by actions [H, S] or by tables [H, S, A]: their usages; values and costs are written. */
static PyObject *accounts_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *packed, *agents, *policies, *values, *costs;
    if (!PyArg_ParseTuple(args, "OO!O!OO", &packed, &PyTuple_Type, &agents, &PyTuple_Type, &policies, &values, &costs))
        return NULL;
    Arrays arrays = {.count = 0};
    World world;
    Planner planner;
    Usages usages = {NULL, (int32_t)PyTuple_GET_SIZE(agents)};
    memset(&planner, 0, sizeof planner);
    PyObject *answer = NULL;
    double *value, *spent;
    if (PyTuple_GET_SIZE(policies) != usages.count) {
        PyErr_SetString(PyExc_ValueError, "one policy for each agent is required");
        return NULL;
    }
    if (world_of(&world, &arrays, packed) < 0 ||
        (value = array_with(&arrays, values, 'd', 1, "values", usages.count)) == NULL ||
        (spent = array_with(&arrays, costs, 'd', 1, "costs", (Py_ssize_t)usages.count * world.constraints)) == NULL)
        goto done;
    usages.all = calloc((size_t)usages.count + 1, sizeof(Usage));
    if (usages.all == NULL || planner_begin(&planner, &world, 0) < 0) {
        PyErr_NoMemory();
        goto done;
    }
    for (int32_t at = 0; at < usages.count; at++) {
        const long agent = PyLong_AsLong(PyTuple_GET_ITEM(agents, at));
        const int own = arrays.count;
        Policy policy;
        if (!has_agent(&world, agent) ||
            policy_of(&policy, &arrays, &world, (int32_t)agent, PyTuple_GET_ITEM(policies, at)) < 0)
            goto done;
        int failed;
        Py_BEGIN_ALLOW_THREADS;
        failed = account(&planner, (int32_t)agent, &policy, &usages.all[at], &value[at], spent + (int64_t)at * world.constraints);
        Py_END_ALLOW_THREADS;
        PyBuffer_Release(&arrays.held[own]);
        arrays.count = own;
        if (failed) {
            PyErr_NoMemory();
            goto done;
        }
    }
    answer = usages_to_python(&usages);
done:
    planner_end(&planner);
    usages_end(&usages);
    release_arrays(&arrays);
    return answer;
}

/* What all agents together spend by their loads: written to totals [k]. */
static PyObject *totals_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *packed, *position, *totals;
    if (!PyArg_ParseTuple(args, "OOO", &packed, &position, &totals))
        return NULL;
    Arrays arrays = {.count = 0};
    World world;
    Usages usages = {NULL, 0};
    PyObject *answer = NULL;
    double *total;
    if (world_of(&world, &arrays, packed) < 0 || usages_of(&usages, &world, &arrays, position) < 0 ||
        (total = array_with(&arrays, totals, 'd', 1, "totals", world.constraints)) == NULL)
        goto done;
    int failed;
    Py_BEGIN_ALLOW_THREADS;
    failed = loads_costs(&world, usages.all, total) < 0;
    Py_END_ALLOW_THREADS;
    if (failed)
        PyErr_NoMemory();
    else
        answer = Py_NewRef(Py_None);
done:
    usages_end(&usages);
    release_arrays(&arrays);
    return answer;
}

/* Every agent plans alone at given prices [H, E], as if there were no other: values, private costs and the sum of
   all usages are written. The twin is `_alone` in games/local/relaxation.py. */
static PyObject *respond_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *packed, *prices, *multipliers, *maxima, *costs, *loads;
    if (!PyArg_ParseTuple(args, "OOOOOO", &packed, &prices, &multipliers, &maxima, &costs, &loads))
        return NULL;
    Arrays arrays = {.count = 0};
    World world;
    Planner planner;
    Usage fresh = {NULL, NULL, 0, 0};
    memset(&planner, 0, sizeof planner);
    PyObject *answer = NULL;
    const double *price, *multiplier;
    double *maximum, *spent, *load, *gridded = NULL;
    if (world_of(&world, &arrays, packed) < 0)
        goto done;
    const Py_ssize_t n = world.agents, k = world.constraints, indices = (Py_ssize_t)world.steps * world.resources;
    if ((price = array_with(&arrays, prices, 'd', 0, "prices", indices)) == NULL ||
        (multiplier = array_with(&arrays, multipliers, 'd', 0, "multipliers", k)) == NULL ||
        (maximum = array_with(&arrays, maxima, 'd', 1, "maxima", n)) == NULL ||
        (spent = array_with(&arrays, costs, 'd', 1, "costs", n * k)) == NULL ||
        (load = array_with(&arrays, loads, 'd', 1, "loads", indices)) == NULL)
        goto done;
    Watch watch;
    Stop stop = GO_ON;
    begin_without_lock(&watch, 1e9);
    int failed = planner_begin(&planner, &world, 0) < 0;
    if (!failed && planner.grid.cells > 0) {
        gridded = calloc((size_t)(grid_stride(&planner.grid) * world.steps), sizeof *gridded);
        failed = gridded == NULL;
        if (!failed)
            grid_scatter(&planner.grid, price, world.resources, gridded);
        planner.gridded[0] = gridded;
    }
    for (int32_t i = 0; !failed && i < n && (stop = must_stop(&watch)) == GO_ON; i++) {
        double value;
        maximum[i] = plan_best(&planner, i, price, multiplier);
        failed = account(&planner, i, NULL, &fresh, &value, spent + (int64_t)i * k) < 0;
        for (int64_t entry = 0; !failed && entry < fresh.count; entry++)
            load[fresh.index[entry]] += fresh.probability[entry];
    }
    end_without_lock(&watch);
    if (failed)
        PyErr_NoMemory();
    else if (stop != INTERRUPTED)
        answer = Py_NewRef(Py_None);
done:
    planner_end(&planner);
    free(gridded);
    usage_end(&fresh);
    release_arrays(&arrays);
    return answer;
}

PyMethodDef agent_kernels[] = {
    {"respond", respond_kernel, METH_VARARGS, "Let every agent plan alone at given prices, and add up what all use."},
    {"reach", reach_kernel, METH_VARARGS, "Find the states that an agent can reach, by step."},
    {"accounts", accounts_kernel, METH_VARARGS, "Find what agents use, get and spend by their policies."},
    {"totals", totals_kernel, METH_VARARGS, "Find what the loads of all agents cost."},
    {NULL, NULL, 0, NULL},
};
