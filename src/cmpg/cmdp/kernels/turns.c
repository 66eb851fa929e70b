/* Agents of a local game take turns at common prices; the twin is `settle` in equilibrium/common_price.py. */
#include "local.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEGLIGIBLE_SHARE 1e-13

/* What one agent's usage does to loads: places as the loads have them, in the order of `key`. */
typedef struct {
    int32_t *key, *place;
    double *probability;
    int64_t count, room;
} Felt;

/* All that one settling holds. On a grid, loads are those of a world whose resources lie as the cells do, and what is too
   improbable to matter is not felt; elsewhere, everything is felt as it is. */
typedef struct {
    World world;
    World laid; /* as loads see it */
    Usages usages;
    Felt *felt; /* [n] */
    Loads loads;
    Planner planner;
    Usage fresh; /* what a mover does from now on */
    Felt fresh_felt;
    double negligible;
    double *saved; /* burdens that were replaced by those without one agent: [z, places of its usage] */
    int64_t room;
    const double *multipliers;
    double *value, *costs; /* private, [n] and [n, k] */
} Table;

static inline int on_grid(const Table *table)
{
    return table->planner.grid.cells > 0;
}

/* What is felt of a usage, which lives as long. −1: no memory. */
static int feel(const Table *table, const Usage *usage, Felt *felt)
{
    if (!on_grid(table)) {
        *felt = (Felt){usage->place, usage->place, usage->probability, usage->count, 0};
        return 0;
    }
    if (felt->room < usage->count) {
        const size_t room = (size_t)usage->count;
        int32_t *key = realloc(felt->key, room * sizeof *key);
        felt->key = key == NULL ? felt->key : key;
        int32_t *place = realloc(felt->place, room * sizeof *place);
        felt->place = place == NULL ? felt->place : place;
        double *probability = realloc(felt->probability, room * sizeof *probability);
        felt->probability = probability == NULL ? felt->probability : probability;
        if (key == NULL || place == NULL || probability == NULL)
            return -1;
        felt->room = usage->count;
    }
    const int32_t E = table->world.resources, stride = table->laid.resources, *home = table->planner.grid.home;
    int32_t first = 0, begin = 0; /* of this step */
    felt->count = 0;
    for (int64_t entry = 0; entry < usage->count; entry++) {
        for (; usage->place[entry] - first >= E; first += E)
            begin += stride;
        const int32_t lies = home[usage->place[entry] - first];
        felt->key[felt->count] = usage->place[entry];
        felt->place[felt->count] = begin + lies;
        felt->probability[felt->count] = usage->probability[entry];
        felt->count += usage->probability[entry] >= table->negligible && lies >= 0;
    }
    return 0;
}

/* The same as below where all resources are smooth and alike at all steps: no division to find the step of a place. */
static void take_out_smooth(Table *table, const Felt *usage)
{
    const double *base = table->loads.base[0], *slope = table->loads.slope[0], *mean = table->loads.mean;
    double *burden = table->loads.burden[0], *saved = table->saved;
    const int32_t E = table->laid.resources;
    int32_t first = 0; /* place of this step's first resource */
    for (int64_t entry = 0; entry < usage->count; entry++) {
        const int32_t place = usage->place[entry];
        while (place - first >= E)
            first += E;
        const double others = mean[place] - usage->probability[entry];
        saved[entry] = burden[place];
        burden[place] = base[place - first] + slope[place - first] * (others > 0.0 ? others : 0.0);
    }
}

static int take_out(Table *table, const Felt *usage)
{
    const int weightings = table->loads.weightings;
    if (usage->count * weightings > table->room) {
        double *larger = realloc(table->saved, (size_t)(2 * usage->count * weightings) * sizeof *larger);
        if (larger == NULL)
            return -1;
        table->saved = larger;
        table->room = 2 * usage->count * weightings;
    }
    if (table->world.rough == 0 && weightings == 1 && table->loads.combined_stride == 0) {
        take_out_smooth(table, usage);
        return 0;
    }
    for (int64_t entry = 0; entry < usage->count; entry++) {
        double values[MOST_WEIGHTINGS];
        const int32_t place = usage->place[entry];
        if (loads_burden_without(&table->loads, place, usage->probability[entry], values) < 0)
            return -1;
        for (int z = 0; z < weightings; z++) {
            table->saved[entry * weightings + z] = table->loads.burden[z][place];
            table->loads.burden[z][place] = values[z];
        }
    }
    return 0;
}

static void put_back(Table *table, const Felt *usage)
{
    const int weightings = table->loads.weightings;
    for (int64_t entry = 0; entry < usage->count; entry++)
        for (int z = 0; z < weightings; z++)
            table->loads.burden[z][usage->place[entry]] = table->saved[entry * weightings + z];
}

/* What an agent has at present, at the prices; its own share of the load is taken out. */
static double present_worth(const Table *table, int32_t agent)
{
    const World *world = &table->world;
    const Felt *usage = &table->felt[agent];
    double met = 0.0, worth = table->value[agent];
    for (int64_t entry = 0; entry < usage->count; entry++)
        met += usage->probability[entry] * table->loads.burden[0][usage->place[entry]];
    for (int j = 0; j < world->constraints; j++)
        worth -= table->multipliers[j] * table->costs[(int64_t)agent * world->constraints + j];
    return worth - met;
}

/* An agent's load of one place changes; `before` and `after` are negative where it is nowhere. */
static int change_load(Table *table, int32_t place, double before, double after)
{
    Loads *loads = &table->loads;
    if (before >= 0.0 && loads_remove(loads, place, before, table->usages.all) < 0)
        return -1;
    if (after >= 0.0 && loads_add(loads, place, after) < 0)
        return -1;
    return loads_reweigh(loads, place);
}

/* The same on smooth resources that are alike at all steps; `first` is the place of the step's first resource. */
static inline void change_smooth(Loads *loads, int32_t first, int32_t place, double before, double after)
{
    double mean = loads->mean[place];
    if (before >= 0.0)
        mean = mean - before > 0.0 ? mean - before : 0.0;
    if (after >= 0.0)
        mean += after;
    loads->mean[place] = mean;
    for (int z = 0; z < loads->weightings; z++)
        loads->burden[z][place] = loads->base[z][place - first] + loads->slope[z][place - first] * mean;
}

/* The agent's old usage gives way to `fresh`; only what either touches is changed. */
static int move(Table *table, int32_t agent)
{
    Usage *usage = &table->usages.all[agent];
    const Usage old_usage = *usage;
    const Felt old = table->felt[agent], fresh = table->fresh_felt;
    const int smooth = table->laid.rough == 0 && table->loads.combined_stride == 0;
    const int32_t E = table->laid.resources;
    usage->count = 0; /* while loads are counted afresh, the agent is nowhere */
    int failed = 0;
    int32_t first = 0;
    int64_t a = 0, b = 0;
    while (!failed && (a < old.count || b < fresh.count)) {
        const int before = a < old.count && (b == fresh.count || old.key[a] <= fresh.key[b]);
        const int after = b < fresh.count && (a == old.count || fresh.key[b] <= old.key[a]);
        const int32_t place = before ? old.place[a] : fresh.place[b];
        if (!(before && after && old.probability[a] == fresh.probability[b])) {
            const double was = before ? old.probability[a] : -1.0, is = after ? fresh.probability[b] : -1.0;
            while (place - first >= E)
                first += E;
            if (smooth)
                change_smooth(&table->loads, first, place, was, is);
            else
                failed = change_load(table, place, was, is) < 0;
        }
        a += before;
        b += after;
    }
    *usage = table->fresh;
    table->fresh = old_usage;
    table->felt[agent] = fresh;
    table->fresh_felt = old;
    return failed ? -1 : 0;
}

static void write_actions(const Table *table, int32_t agent, void *actions, int bytes)
{
    const World *world = &table->world;
    const int32_t *order = world->order + world->order_of[agent];
    const int16_t *chosen = table->planner.chosen;
    for (int32_t h = 0; h < world->steps; h++) {
        const int32_t count = world->reach[(int64_t)agent * world->steps + h];
        const int64_t row = (int64_t)h * world->states[agent];
        if (on_grid(table)) { /* actions of one byte */
            const Grid *grid = &table->planner.grid;
            const int8_t *on_cells = grid->chosen + (int64_t)h * grid->cells;
            for (int32_t p = 0; p < count; p++)
                ((int8_t *)actions)[row + order[p]] = on_cells[grid->cell[order[p]]];
            continue;
        }
        for (int32_t p = 0; p < count; p++)
            if (bytes == 1)
                ((int8_t *)actions)[row + order[p]] = (int8_t)chosen[p];
            else
                ((int16_t *)actions)[row + order[p]] = chosen[p];
        chosen += count;
    }
}

typedef struct {
    int64_t moves, quiet; /* how many there were, and for how many turns there was none */
    double worth;
    int cheapest;  /* a budget is free: spend no more of it than must be */
    int8_t *moved; /* [n] */
    char *actions;        /* of all agents, [H, S_i] each, one after the other */
    const int64_t *actions_of;
    int bytes;
} Settling;

/* 0, or −1 without memory. */
static int take_turn(Table *table, Settling *settling, int32_t agent)
{
    Planner *planner = &table->planner;
    Loads *loads = &table->loads;
    const Felt *usage = &table->felt[agent];
    if (take_out(table, usage) < 0)
        return -1;
    const double *delays = table->world.has_delay ? loads->burden[1] : NULL;
    int planned;
    const double best = plan_value(planner, agent, loads->burden[0], table->multipliers, &planned);
    const double gain = best - present_worth(table, agent);
    const double size = best < 0.0 ? -best : best;
    /* A value is never larger than the sizes in it, so that most gains of rounding are seen at once. */
    const int moves = gain > 4.0 * table->world.rounding[agent] * size &&
                      is_worth_it(planner, agent, loads->burden[0], delays, table->multipliers, settling->worth, gain);
    if (moves && settling->cheapest)
        plan_cheapest_of_best(planner, agent, loads->burden[0], loads->burden[loads->weightings - 1], table->multipliers);
    else if (moves && !planned)
        plan_best(planner, agent, loads->burden[0], table->multipliers);
    put_back(table, usage);
    settling->quiet = moves ? 0 : settling->quiet + 1;
    if (!moves)
        return 0;
    double *costs = table->costs + (int64_t)agent * table->world.constraints;
    if (account(planner, agent, NULL, &table->fresh, &table->value[agent], costs) < 0 ||
        feel(table, &table->fresh, &table->fresh_felt) < 0)
        return -1;
    settling->moved[agent] = 1;
    settling->moves++;
    write_actions(table, agent, settling->actions + settling->actions_of[agent] * settling->bytes, settling->bytes);
    return move(table, agent);
}

/* Below which probabilities nothing is felt: all of them together are worth less than the last bits of a plan. */
static double negligible_probability(const Table *table)
{
    const Loads *loads = &table->loads;
    double range = INFINITY, largest = 0.0;
    for (int32_t i = 0; i < table->world.agents; i++)
        range = table->world.reward_range[i] < range ? table->world.reward_range[i] : range;
    for (int z = 0; z < loads->weightings; z++)
        for (int64_t at = 0; at < table->laid.resources; at++) {
            const double slope = fabs(loads->slope[z][at]);
            largest = slope > largest ? slope : largest;
        }
    return NEGLIGIBLE_SHARE * (range < largest ? range / largest : 1.0);
}

static int table_begin(Table *table, const double *weights, int weightings, int cheapest, uint64_t seed)
{
    const World *world = &table->world;
    Planner *planner = &table->planner;
    Loads *loads = &table->loads;
    if (planner_begin(planner, world, seed) < 0)
        return -1;
    if (world->rough > 0 || world->has_delay || world->delay_stride || world->slope_stride || world->first_stride)
        grid_end(&planner->grid);
    if (grid_relabel(&planner->grid, world, &table->laid) < 0 ||
        loads_begin(loads, &table->laid, weights, weightings) < 0)
        return -1;
    if (on_grid(table)) {
        table->negligible = negligible_probability(table);
        for (int32_t e = 0; e < table->laid.resources; e++) {
            const double most = fabs(loads->base[0][e]) + fabs(loads->slope[0][e]) * world->agents;
            planner->most_laid = most > planner->most_laid ? most : planner->most_laid;
        }
        planner->laid[0] = loads->burden[0];
        planner->laid[1] = cheapest ? loads->burden[weightings - 1] : NULL;
    }
    table->felt = calloc((size_t)world->agents + 1, sizeof *table->felt);
    if (table->felt == NULL)
        return -1;
    for (int32_t i = 0; i < world->agents; i++) {
        Felt *felt = &table->felt[i];
        if (feel(table, &table->usages.all[i], felt) < 0)
            return -1;
        for (int64_t entry = 0; entry < felt->count; entry++)
            if (loads_add(loads, felt->place[entry], felt->probability[entry]) < 0)
                return -1;
    }
    const int32_t E = table->laid.resources, places = world->steps * E;
    if (table->laid.rough == 0 && loads->combined_stride == 0) {
        for (int z = 0; z < weightings; z++)
            for (int32_t first = 0; first < places; first += E)
                for (int32_t e = 0; e < E; e++)
                    loads->burden[z][first + e] = loads->base[z][e] + loads->slope[z][e] * loads->mean[first + e];
        return 0;
    }
    for (int32_t at = 0; at < places; at++)
        if (loads_reweigh(loads, at) < 0)
            return -1;
    return 0;
}

static void table_end(Table *table)
{
    for (int32_t i = 0; on_grid(table) && table->felt != NULL && i <= table->world.agents; i++) {
        Felt *felt = i < table->world.agents ? &table->felt[i] : &table->fresh_felt;
        free(felt->key);
        free(felt->place);
        free(felt->probability);
    }
    free(table->felt);
    usages_end(&table->usages);
    if (table->loads.world != NULL)
        loads_end(&table->loads);
    planner_end(&table->planner);
    free(table->fresh.place);
    free(table->fresh.probability);
    free(table->saved);
}

static PyObject *settle_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *packed, *position, *value, *costs, *multipliers, *weights, *actions, *moved, *actions_of, *waiting;
    int cheapest;
    Py_ssize_t turns;
    double worth, seconds;
    unsigned long long seed;
    if (!PyArg_ParseTuple(args, "OOOOOOpndKdOOOO", &packed, &position, &value, &costs, &multipliers, &weights, &cheapest,
                          &turns, &worth, &seed, &seconds, &actions, &moved, &waiting, &actions_of))
        return NULL;
    Arrays arrays = {.count = 0};
    Table table;
    memset(&table, 0, sizeof table);
    Settling settling = {.worth = worth, .cheapest = cheapest};
    PyObject *told = NULL;
    const double *weight;
    const int8_t *waits; /* [n]: who keeps its policy */
    if (world_of(&table.world, &arrays, packed) < 0 || usages_of(&table.usages, &table.world, &arrays, position) < 0)
        goto done;
    const World *world = &table.world;
    const Py_ssize_t n = world->agents, k = world->constraints;
    const int weightings = 1 + (world->has_delay != 0) + cheapest;
    int64_t end = 0;
    if ((table.value = array_with(&arrays, value, 'd', 1, "values", n)) == NULL ||
        (table.costs = array_with(&arrays, costs, 'd', 1, "costs", n * k)) == NULL ||
        (table.multipliers = array_with(&arrays, multipliers, 'd', 0, "multipliers", k)) == NULL ||
        (weight = array_with(&arrays, weights, 'd', 0, "weights", weightings * (1 + k))) == NULL ||
        (settling.moved = array_with(&arrays, moved, 'b', 1, "moved", n)) == NULL ||
        (settling.actions_of = array_with(&arrays, actions_of, 'q', 0, "actions_of", n)) == NULL ||
        (waits = array_with(&arrays, waiting, 'b', 0, "waiting", n)) == NULL)
        goto done;
    /* The actions of one agent, [H, S], follow those of another; an entry has one byte, or two where there are many. */
    settling.bytes = 1;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (settling.actions_of[i] != end) {
            PyErr_SetString(PyExc_ValueError, "actions_of does not fit the agents");
            goto done;
        }
        end += (int64_t)world->steps * world->states[i];
        settling.bytes = world->actions[i] > 128 ? 2 : settling.bytes;
    }
    settling.actions = array_with(&arrays, actions, settling.bytes == 1 ? 'b' : 'h', 1, "actions", (Py_ssize_t)end);
    if (settling.actions == NULL)
        goto done;
    Watch watch;
    Stop stop = GO_ON;
    int failed;
    begin_without_lock(&watch, seconds);
    failed = table_begin(&table, weight, weightings, cheapest, (uint64_t)seed) < 0;
    for (Py_ssize_t turn = 0; !failed && turn < turns && settling.quiet < n; turn++) {
        if ((stop = must_stop(&watch)) != GO_ON)
            break;
        if (waits[turn % n])
            settling.quiet++;
        else
            failed = take_turn(&table, &settling, (int32_t)(turn % n)) < 0;
    }
    end_without_lock(&watch);
    if (failed)
        PyErr_NoMemory();
    else if (stop != INTERRUPTED && (told = usages_told(&table.usages)) != NULL)
        told = Py_BuildValue("(Nn)", told, (Py_ssize_t)settling.moves);
done:
    table_end(&table);
    release_arrays(&arrays);
    return told;
}

PyMethodDef turn_kernels[] = {
    {"settle", settle_kernel, METH_VARARGS, "Let agents in turn move to what is best for them at common prices."},
    {NULL, NULL, 0, NULL},
};
