/* Best-response dynamics at fixed multipliers: agents in turn move to what is best for them. The twin is `take_turns` in
   equilibrium/starts/common_price.py.

   Where plans are long, the agents of a block propose at once, against the same loads; then they move one by one, and
   after the first move only if the proposal still improves. So every move gains, no agent rests that proposed before the
   last move, and threads that share out a block change no bit.

   In a crowd, agents of one kind take their turns one after the other: an agent that does the same as one of them that
   has not moved since the last move of any agent does not move either, and need not plan. */
#include "thread_pool.h"
#include "local.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEGLIGIBLE_SHARE 1e-13
#define MAX_BLOCK 4096 /* agents */
#define MAX_UNMOVED 16    /* agents who are compared with the next of their kind */
#define CROWD 8           /* agents of each kind, on average, or more */

/* What one agent's usage adds to the loads: indices (step, resource) as the loads have them, in the order of `key`. */
typedef struct {
    int32_t *key, *index;
    double *probability;
    int64_t count, room;
} LoadDelta;

/* What an agent would do. */
typedef struct {
    int moves; /* whether it does; −1: no memory */
    Usage usage;
    LoadDelta delta;
    double value, *costs; /* private; costs [k] */
    char *actions;        /* [H, S] */
} Proposal;

/* The state of the dynamics. */
typedef struct {
    int64_t moves, quiet; /* how many there were, and for how many turns there was none */
    double min_gain;
    int cheapest;        /* a budget is free: spend no more of it than must be */
    const int8_t *waits; /* [n]: who keeps its policy */
    int8_t *moved;       /* [n] */
    char *actions;       /* of all agents, [H, S_i] each, one after the other */
    const int64_t *actions_of;
    int bytes;
    int32_t *kind, *order; /* [n]: of each agent, and in which order they take turns */
    int64_t turn;          /* of the first agent of the block that proposes */
    Proposal *proposals;   /* of those */
} Dynamics;

/* Agents of one kind who have stayed since the last move. */
typedef struct {
    int32_t agent[MAX_UNMOVED];
    int count;
} Unmoved;

/* All that one dynamics holds. On a grid, loads are those of a world whose resources lie as the cells do, and what is too
   improbable to matter is not counted; elsewhere, everything is counted as it is. */
typedef struct {
    World world;
    World gridded; /* as loads see it */
    Usages usages;
    LoadDelta *delta; /* [n] */
    Loads loads;
    Planner planner;
    Dynamics *dynamics;
    double negligible;
    double *saved; /* marginal costs that were replaced by those without one agent: [z, indices of its usage] */
    int64_t room;
    const double *multipliers;
    double *value, *costs; /* private, [n] and [n, k] */
} Table;

static inline int on_grid(const Table *table)
{
    return table->planner.grid.cells > 0;
}

static void load_delta_end(const Table *table, LoadDelta *delta)
{
    if (!on_grid(table))
        return; /* it is the usage itself */
    free(delta->key);
    free(delta->index);
    free(delta->probability);
}

/* What a usage, which must live as long, adds to the loads. −1: no memory. */
static int load_delta_of(const Table *table, const Usage *usage, LoadDelta *delta)
{
    if (!on_grid(table)) {
        *delta = (LoadDelta){usage->index, usage->index, usage->probability, usage->count, 0};
        return 0;
    }
    if (delta->room < usage->count) {
        const size_t room = (size_t)usage->count;
        int32_t *key = realloc(delta->key, room * sizeof *key);
        delta->key = key == NULL ? delta->key : key;
        int32_t *index = realloc(delta->index, room * sizeof *index);
        delta->index = index == NULL ? delta->index : index;
        double *probability = realloc(delta->probability, room * sizeof *probability);
        delta->probability = probability == NULL ? delta->probability : probability;
        if (key == NULL || index == NULL || probability == NULL)
            return -1;
        delta->room = usage->count;
    }
    const int32_t E = table->world.resources, stride = table->gridded.resources, *grid_index = table->planner.grid.grid_index;
    int32_t first = 0, begin = 0; /* of this step */
    delta->count = 0;
    for (int64_t entry = 0; entry < usage->count; entry++) {
        for (; usage->index[entry] - first >= E; first += E)
            begin += stride;
        const int32_t lies = grid_index[usage->index[entry] - first];
        delta->key[delta->count] = usage->index[entry];
        delta->index[delta->count] = begin + lies;
        delta->probability[delta->count] = usage->probability[entry];
        delta->count += usage->probability[entry] >= table->negligible && lies >= 0;
    }
    return 0;
}

/* The same as below where all resources are quadratic and alike at all steps: no division to find the step of an index. */
static void take_out_quadratic(Table *table, const LoadDelta *usage)
{
    const double *base = table->loads.base[0], *slope = table->loads.slope[0], *mean = table->loads.mean;
    double *marginal = table->loads.marginal[0], *saved = table->saved;
    const int32_t E = table->gridded.resources;
    int32_t first = 0; /* index of this step's first resource */
    for (int64_t entry = 0; entry < usage->count; entry++) {
        const int32_t index = usage->index[entry];
        while (index - first >= E)
            first += E;
        const double others = mean[index] - usage->probability[entry]; /* may round to just below zero */
        saved[entry] = marginal[index];
        marginal[index] = base[index - first] + slope[index - first] * (others > 0.0 ? others : 0.0);
    }
}

static int take_out(Table *table, const LoadDelta *usage)
{
    const int weightings = table->loads.weightings;
    if (usage->count * weightings > table->room) {
        double *larger = realloc(table->saved, (size_t)(2 * usage->count * weightings) * sizeof *larger);
        if (larger == NULL)
            return -1;
        table->saved = larger;
        table->room = 2 * usage->count * weightings;
    }
    if (table->world.general == 0 && weightings == 1 && table->loads.combined_stride == 0) {
        take_out_quadratic(table, usage);
        return 0;
    }
    for (int64_t entry = 0; entry < usage->count; entry++) {
        double values[MAX_WEIGHTINGS];
        const int32_t index = usage->index[entry];
        if (loads_marginal_without(&table->loads, index, usage->probability[entry], values) < 0)
            return -1;
        for (int z = 0; z < weightings; z++) {
            table->saved[entry * weightings + z] = table->loads.marginal[z][index];
            table->loads.marginal[z][index] = values[z];
        }
    }
    return 0;
}

static void put_back(Table *table, const LoadDelta *usage)
{
    const int weightings = table->loads.weightings;
    for (int64_t entry = 0; entry < usage->count; entry++)
        for (int z = 0; z < weightings; z++)
            table->loads.marginal[z][usage->index[entry]] = table->saved[entry * weightings + z];
}

/* What an agent has at the prices by a usage; its current usage is taken out of the loads. */
static double payoff_of(const Table *table, const LoadDelta *usage, double value, const double *costs)
{
    double met = 0.0, payoff = value;
    for (int64_t entry = 0; entry < usage->count; entry++)
        met += usage->probability[entry] * table->loads.marginal[0][usage->index[entry]];
    for (int j = 0; j < table->world.constraints; j++)
        payoff -= table->multipliers[j] * costs[j];
    return payoff - met;
}

/* An agent's probability of using one (step, resource) changes; `before` and `after` are negative if it does not use it. */
static int change_load(Table *table, int32_t index, double before, double after)
{
    Loads *loads = &table->loads;
    if (before >= 0.0 && loads_remove(loads, index, before, table->usages.all) < 0)
        return -1;
    if (after >= 0.0 && loads_add(loads, index, after) < 0)
        return -1;
    return loads_reweigh(loads, index);
}

/* The same on quadratic resources that are alike at all steps; `first` is the index of the step's first resource. */
static inline void change_quadratic(Loads *loads, int32_t first, int32_t index, double before, double after)
{
    double mean = loads->mean[index];
    if (before >= 0.0)
        mean = mean - before > 0.0 ? mean - before : 0.0;
    if (after >= 0.0)
        mean += after;
    loads->mean[index] = mean;
    for (int z = 0; z < loads->weightings; z++)
        loads->marginal[z][index] = loads->base[z][index - first] + loads->slope[z][index - first] * mean;
}

/* The agent's old usage gives way to the one that it proposes; only what either touches is changed. Afterwards the
   proposal has the old one. */
static int move(Table *table, Proposal *proposal, int32_t agent)
{
    Usage *usage = &table->usages.all[agent];
    const Usage old_usage = *usage;
    const LoadDelta old = table->delta[agent], fresh = proposal->delta;
    const int quadratic = table->gridded.general == 0 && table->loads.combined_stride == 0;
    const int32_t E = table->gridded.resources;
    usage->count = 0; /* while loads are recounted, the agent uses nothing */
    int failed = 0;
    int32_t first = 0;
    int64_t a = 0, b = 0;
    while (!failed && (a < old.count || b < fresh.count)) {
        const int before = a < old.count && (b == fresh.count || old.key[a] <= fresh.key[b]);
        const int after = b < fresh.count && (a == old.count || fresh.key[b] <= old.key[a]);
        const int32_t index = before ? old.index[a] : fresh.index[b];
        if (!(before && after && old.probability[a] == fresh.probability[b])) {
            const double was = before ? old.probability[a] : -1.0, is = after ? fresh.probability[b] : -1.0;
            while (index - first >= E)
                first += E;
            if (quadratic)
                change_quadratic(&table->loads, first, index, was, is);
            else
                failed = change_load(table, index, was, is) < 0;
        }
        a += before;
        b += after;
    }
    *usage = proposal->usage;
    proposal->usage = old_usage;
    table->delta[agent] = fresh;
    proposal->delta = old;
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

/* Whether an agent moves if it is its turn, and if so, what it would do: 0, 1, or −1 without memory. Nothing changes but
   what the table has for itself. */
static int improves(Table *table, int32_t agent, Proposal *proposal)
{
    const Dynamics *dynamics = table->dynamics;
    Planner *planner = &table->planner;
    Loads *loads = &table->loads;
    const LoadDelta *usage = &table->delta[agent];
    if (take_out(table, usage) < 0)
        return -1;
    const double *delays = table->world.has_delay ? loads->marginal[1] : NULL;
    int planned;
    const double best = plan_value(planner, agent, loads->marginal[0], table->multipliers, &planned);
    const double gain = best - payoff_of(table, usage, table->value[agent], table->costs + agent * table->world.constraints);
    const double size = best < 0.0 ? -best : best;
    /* A value is never larger than the sizes in it, so that most gains of rounding are seen at once. */
    const int moves = gain > 4.0 * table->world.rounding[agent] * size &&
                      is_significant(planner, agent, loads->marginal[0], delays, table->multipliers, dynamics->min_gain, gain);
    if (moves && dynamics->cheapest)
        plan_cheapest_of_best(planner, agent, loads->marginal[0], loads->marginal[loads->weightings - 1], table->multipliers);
    else if (moves && !planned)
        plan_best(planner, agent, loads->marginal[0], table->multipliers);
    put_back(table, usage);
    if (!moves)
        return 0;
    if (account(planner, agent, NULL, &proposal->usage, &proposal->value, proposal->costs) < 0 ||
        load_delta_of(table, &proposal->usage, &proposal->delta) < 0)
        return -1;
    const int64_t entries = (int64_t)table->world.steps * table->world.states[agent];
    memset(proposal->actions, 0, (size_t)(entries * dynamics->bytes)); /* where it never is */
    write_actions(table, agent, proposal->actions, dynamics->bytes);
    return 1;
}

/* Whether what an agent has proposed is still worth it, beside those who have moved since. */
static int still_improves(Table *table, int32_t agent, const Proposal *proposal)
{
    const LoadDelta *usage = &table->delta[agent];
    if (take_out(table, usage) < 0)
        return -1;
    const double *marginal = table->loads.marginal[0], *delays = table->world.has_delay ? table->loads.marginal[1] : NULL;
    const double *costs = table->costs + agent * table->world.constraints;
    const double gain =
        payoff_of(table, &proposal->delta, proposal->value, proposal->costs) - payoff_of(table, usage, table->value[agent], costs);
    /* The proposal was best against older loads; it still raises the agent's payoff, or it is dropped. */
    const int moves = gain > 0.0 && is_significant(&table->planner, agent, marginal, delays, table->multipliers,
                                                table->dynamics->min_gain, gain);
    put_back(table, usage);
    return moves;
}

static inline int32_t agent_at(const Dynamics *dynamics, int64_t turn, int64_t agents)
{
    return dynamics->order[turn % agents];
}

static void propose(void *context, int64_t at)
{
    Table *table = context;
    const Dynamics *dynamics = table->dynamics;
    const int32_t agent = agent_at(dynamics, dynamics->turn + at, table->world.agents);
    Proposal *proposal = &dynamics->proposals[at];
    proposal->moves = dynamics->waits[agent] ? 0 : improves(table, agent, proposal);
}

/* Threads, each with a table of its own. */
typedef struct {
    ThreadPool *pool; /* NULL: the caller's thread alone */
    int count;
    Table *tables;
    void *contexts[MAX_WORKERS]; /* the tables */
} Proposers;

/* A table of its own: planner and marginal costs; all else is that of another table, and only read. */
static int table_beside(Table *own, const Table *table)
{
    const World *gridded = &table->gridded;
    const size_t indices = (size_t)gridded->steps * (size_t)gridded->resources;
    *own = *table;
    memset(&own->planner, 0, sizeof own->planner);
    own->saved = NULL;
    own->room = 0;
    own->loads.without = NULL;
    own->loads.room = 0;
    int missing = 0;
    for (int z = 0; z < own->loads.weightings; z++) {
        own->loads.marginal[z] = malloc((indices + 1) * sizeof(double));
        missing |= own->loads.marginal[z] == NULL;
        if (own->loads.marginal[z] != NULL)
            memcpy(own->loads.marginal[z], table->loads.marginal[z], indices * sizeof(double));
    }
    missing |= planner_begin(&own->planner, &table->world, 0) < 0;
    if (missing)
        return -1;
    if (!on_grid(table))
        grid_end(&own->planner.grid);
    own->planner.max_gridded = table->planner.max_gridded;
    for (int z = 0; z < 2; z++) /* marginal costs on the grid: those of this table */
        for (int y = 0; y < own->loads.weightings; y++)
            if (table->planner.gridded[z] == table->loads.marginal[y])
                own->planner.gridded[z] = own->loads.marginal[y];
    return 0;
}

static void table_leave(Table *own)
{
    planner_end(&own->planner);
    for (int z = 0; z < own->loads.weightings; z++)
        free(own->loads.marginal[z]);
    free(own->loads.without);
    free(own->saved);
}

static void proposers_end(Proposers *proposers)
{
    pool_end(proposers->pool);
    for (int each = 0; each < proposers->count; each++)
        table_leave(&proposers->tables[each]);
    free(proposers->tables);
}

/* −1: no memory. Where threads cannot be had, there are no proposers. */
static int proposers_begin(Proposers *proposers, const Table *table, int threads)
{
    const int workers = threads - 1 < MAX_WORKERS ? threads - 1 : MAX_WORKERS;
    if (workers < 1)
        return 0;
    if ((proposers->tables = calloc((size_t)workers, sizeof *proposers->tables)) == NULL)
        return -1;
    while (proposers->count < workers) {
        Table *own = &proposers->tables[proposers->count];
        proposers->contexts[proposers->count++] = own;
        if (table_beside(own, table) < 0)
            return -1;
    }
    proposers->pool = pool_begin(workers, propose, proposers->contexts);
    return 0;
}

/* Marginal costs at these indices have changed. */
static void update_proposers(Proposers *proposers, const Table *table, const LoadDelta *delta)
{
    for (int each = 0; each < proposers->count; each++) {
        Loads *own = &proposers->tables[each].loads;
        for (int64_t entry = 0; entry < delta->count; entry++) {
            const int32_t index = delta->index[entry];
            for (int z = 0; z < own->weightings; z++)
                own->marginal[z][index] = table->loads.marginal[z][index];
        }
    }
}

/* An agent does what it has proposed. −1: no memory. */
static int apply(Table *table, Proposers *proposers, int32_t agent, Proposal *proposal)
{
    Dynamics *dynamics = table->dynamics;
    const int64_t k = table->world.constraints, entries = (int64_t)table->world.steps * table->world.states[agent];
    table->value[agent] = proposal->value;
    memcpy(table->costs + agent * k, proposal->costs, (size_t)k * sizeof(double));
    dynamics->moved[agent] = 1;
    dynamics->moves++;
    memcpy(dynamics->actions + dynamics->actions_of[agent] * dynamics->bytes, proposal->actions, (size_t)(entries * dynamics->bytes));
    if (move(table, proposal, agent) < 0)
        return -1;
    update_proposers(proposers, table, &proposal->delta); /* what it did before */
    update_proposers(proposers, table, &table->delta[agent]);
    return 0;
}

/* Whether an agent does the same as one of its kind who has stayed. */
static int is_like_unmoved(const Table *table, const Unmoved *unmoved, int32_t agent)
{
    const int64_t k = table->world.constraints;
    const int32_t *kind = table->dynamics->kind;
    for (int at = 0; at < unmoved->count; at++) {
        const int32_t other = unmoved->agent[at];
        if (kind[other] != kind[agent])
            return 0;
        if (memcmp(&table->value[agent], &table->value[other], sizeof(double)) == 0 &&
            memcmp(table->costs + agent * k, table->costs + other * k, (size_t)k * sizeof(double)) == 0 &&
            same_usage(&table->usages.all[agent], &table->usages.all[other]))
            return 1;
    }
    return 0;
}

static void note_unmoved(const Dynamics *dynamics, Unmoved *unmoved, int32_t agent)
{
    if (unmoved->count > 0 && dynamics->kind[unmoved->agent[0]] != dynamics->kind[agent])
        unmoved->count = 0;
    if (unmoved->count < MAX_UNMOVED)
        unmoved->agent[unmoved->count++] = agent;
}

/* Turns until no agent moves any more, or there were enough of them. Agents of a block propose at once; then they move
   one by one, those after the first only if that is still worth it. 0, or −1 without memory. */
static int take_turns(Table *table, Proposers *proposers, int64_t block, int64_t turns, Watch *watch, Stop *stop)
{
    Dynamics *dynamics = table->dynamics;
    const int64_t n = table->world.agents;
    Unmoved unmoved = {.count = 0};
    for (dynamics->turn = 0; dynamics->turn < turns && dynamics->quiet < n;) {
        if ((*stop = must_stop(watch)) != GO_ON)
            return 0;
        const int64_t left = turns - dynamics->turn, unknown = n - dynamics->quiet;
        int64_t proposing = block < left ? block : left;
        proposing = proposing < unknown ? proposing : unknown;
        const int32_t first = agent_at(dynamics, dynamics->turn, n);
        if (proposing == 1 && is_like_unmoved(table, &unmoved, first)) {
            dynamics->quiet++;
            dynamics->turn++;
            continue;
        }
        pool_run(proposers->pool, propose, table, proposing);
        int moved = 0;
        for (int64_t at = 0; at < proposing; at++) {
            Proposal *proposal = &dynamics->proposals[at];
            const int32_t agent = agent_at(dynamics, dynamics->turn + at, n);
            if (proposal->moves > 0 && moved)
                proposal->moves = still_improves(table, agent, proposal);
            if (proposal->moves < 0 || (proposal->moves > 0 && apply(table, proposers, agent, proposal) < 0))
                return -1;
            moved = moved || proposal->moves;
            dynamics->quiet = moved ? 0 : dynamics->quiet + 1;
        }
        if (moved)
            unmoved.count = 0;
        else if (proposing == 1 && !dynamics->waits[first])
            note_unmoved(dynamics, &unmoved, first);
        dynamics->turn += proposing;
    }
    return 0;
}

/* Probabilities below this are not added to loads: all of them together are worth less than the last bits of a plan. */
static double negligible_probability(const Table *table)
{
    const Loads *loads = &table->loads;
    double range = INFINITY, largest = 0.0;
    for (int32_t i = 0; i < table->world.agents; i++)
        range = table->world.reward_range[i] < range ? table->world.reward_range[i] : range;
    for (int z = 0; z < loads->weightings; z++)
        for (int64_t at = 0; at < table->gridded.resources; at++) {
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
    if (world->general > 0 || world->has_delay || world->delay_stride || world->slope_stride || world->first_stride)
        grid_end(&planner->grid);
    if (grid_relabel(&planner->grid, world, &table->gridded) < 0 ||
        loads_begin(loads, &table->gridded, weights, weightings) < 0)
        return -1;
    if (on_grid(table)) {
        table->negligible = negligible_probability(table);
        for (int32_t e = 0; e < table->gridded.resources; e++) {
            const double most = fabs(loads->base[0][e]) + fabs(loads->slope[0][e]) * world->agents;
            planner->max_gridded = most > planner->max_gridded ? most : planner->max_gridded;
        }
        planner->gridded[0] = loads->marginal[0];
        planner->gridded[1] = cheapest ? loads->marginal[weightings - 1] : NULL;
    }
    table->delta = calloc((size_t)world->agents + 1, sizeof *table->delta);
    if (table->delta == NULL)
        return -1;
    for (int32_t i = 0; i < world->agents; i++) {
        LoadDelta *delta = &table->delta[i];
        if (load_delta_of(table, &table->usages.all[i], delta) < 0)
            return -1;
        for (int64_t entry = 0; entry < delta->count; entry++)
            if (loads_add(loads, delta->index[entry], delta->probability[entry]) < 0)
                return -1;
    }
    const int32_t E = table->gridded.resources, indices = world->steps * E;
    if (table->gridded.general == 0 && loads->combined_stride == 0) {
        for (int z = 0; z < weightings; z++)
            for (int32_t first = 0; first < indices; first += E)
                for (int32_t e = 0; e < E; e++)
                    loads->marginal[z][first + e] = loads->base[z][e] + loads->slope[z][e] * loads->mean[first + e];
        return 0;
    }
    for (int32_t at = 0; at < indices; at++)
        if (loads_reweigh(loads, at) < 0)
            return -1;
    return 0;
}

/* Agents as they come; in a crowd, kind by kind. −1: no memory. */
static int order_begin(Dynamics *dynamics, const World *world)
{
    const int32_t n = world->agents;
    int32_t *kind = dynamics->kind = malloc((size_t)n * sizeof *kind);
    int32_t *order = dynamics->order = malloc((size_t)n * sizeof *order);
    const int32_t kinds = kind == NULL || order == NULL ? -1 : find_kinds(world, kind);
    int32_t *begin = kinds < 0 ? NULL : calloc((size_t)kinds + 1, sizeof *begin); /* of each kind in the order */
    if (begin == NULL)
        return -1;
    const int crowd = n / kinds >= CROWD;
    for (int32_t i = 0; i < n; i++)
        begin[kind[i] + 1]++;
    for (int32_t each = 0; each < kinds; each++)
        begin[each + 1] += begin[each];
    for (int32_t i = 0; i < n; i++)
        order[crowd ? begin[kind[i]]++ : i] = i;
    free(begin);
    return 0;
}

/* −1: no memory. */
static int proposals_begin(Dynamics *dynamics, const World *world, int64_t block)
{
    int64_t states = 1;
    for (int32_t i = 0; i < world->agents; i++)
        states = world->states[i] > states ? world->states[i] : states;
    if ((dynamics->proposals = calloc((size_t)block, sizeof *dynamics->proposals)) == NULL)
        return -1;
    for (int64_t at = 0; at < block; at++) {
        Proposal *proposal = &dynamics->proposals[at];
        proposal->costs = malloc(((size_t)world->constraints + 1) * sizeof(double));
        proposal->actions = malloc((size_t)(world->steps * states * dynamics->bytes));
        if (proposal->costs == NULL || proposal->actions == NULL)
            return -1;
    }
    return 0;
}

static void proposals_end(Table *table, int64_t block)
{
    Proposal *all = table->dynamics->proposals;
    for (int64_t at = 0; all != NULL && at < block; at++) {
        load_delta_end(table, &all[at].delta);
        usage_end(&all[at].usage);
        free(all[at].costs);
        free(all[at].actions);
    }
    free(all);
}

static void table_end(Table *table)
{
    for (int32_t i = 0; table->delta != NULL && i < table->world.agents; i++)
        load_delta_end(table, &table->delta[i]);
    free(table->delta);
    usages_end(&table->usages);
    if (table->loads.world != NULL)
        loads_end(&table->loads);
    planner_end(&table->planner);
    free(table->saved);
}

static PyObject *dynamics_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *packed, *position, *value, *costs, *multipliers, *weights, *actions, *moved, *actions_of, *waiting;
    int cheapest, block, threads;
    Py_ssize_t turns;
    double min_gain, seconds;
    unsigned long long seed;
    if (!PyArg_ParseTuple(args, "OOOOOOpKnddiiOOOO", &packed, &position, &value, &costs, &multipliers, &weights, &cheapest,
                          &seed, &turns, &min_gain, &seconds, &block, &threads, &actions, &moved, &waiting, &actions_of))
        return NULL;
    Arrays arrays = {.count = 0};
    Table table;
    memset(&table, 0, sizeof table);
    Dynamics dynamics = {.min_gain = min_gain, .cheapest = cheapest};
    table.dynamics = &dynamics;
    Proposers proposers = {.pool = NULL};
    PyObject *answer = NULL;
    const double *weight;
    if (world_of(&table.world, &arrays, packed) < 0 || usages_of(&table.usages, &table.world, &arrays, position) < 0)
        goto done;
    const World *world = &table.world;
    const Py_ssize_t n = world->agents, k = world->constraints;
    const int weightings = 1 + (world->has_delay != 0) + cheapest;
    int64_t end = 0;
    /* Random ties are drawn turn by turn. */
    if (block < 1 || block > MAX_BLOCK || (seed != 0 && (block > 1 || threads > 1))) {
        PyErr_SetString(PyExc_ValueError, "so many agents cannot propose at once");
        goto done;
    }
    if ((table.value = array_with(&arrays, value, 'd', 1, "values", n)) == NULL ||
        (table.costs = array_with(&arrays, costs, 'd', 1, "costs", n * k)) == NULL ||
        (table.multipliers = array_with(&arrays, multipliers, 'd', 0, "multipliers", k)) == NULL ||
        (weight = array_with(&arrays, weights, 'd', 0, "weights", weightings * (1 + k))) == NULL ||
        (dynamics.moved = array_with(&arrays, moved, 'b', 1, "moved", n)) == NULL ||
        (dynamics.actions_of = array_with(&arrays, actions_of, 'q', 0, "actions_of", n)) == NULL ||
        (dynamics.waits = array_with(&arrays, waiting, 'b', 0, "waiting", n)) == NULL)
        goto done;
    /* The actions of one agent, [H, S], follow those of another; an entry has one byte, or two where there are many. */
    dynamics.bytes = 1;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (dynamics.actions_of[i] != end) {
            PyErr_SetString(PyExc_ValueError, "actions_of does not fit the agents");
            goto done;
        }
        end += (int64_t)world->steps * world->states[i];
        dynamics.bytes = world->actions[i] > 128 ? 2 : dynamics.bytes;
    }
    dynamics.actions = array_with(&arrays, actions, dynamics.bytes == 1 ? 'b' : 'h', 1, "actions", (Py_ssize_t)end);
    if (dynamics.actions == NULL)
        goto done;
    Watch watch;
    Stop stop = GO_ON;
    int failed;
    begin_without_lock(&watch, seconds);
    failed = table_begin(&table, weight, weightings, cheapest, (uint64_t)seed) < 0;
    failed = failed || order_begin(&dynamics, world) < 0 || proposals_begin(&dynamics, world, block) < 0 || proposers_begin(&proposers, &table, threads) < 0 ||
             take_turns(&table, &proposers, block, turns, &watch, &stop) < 0;
    proposers_end(&proposers);
    proposals_end(&table, block);
    free(dynamics.kind);
    free(dynamics.order);
    end_without_lock(&watch);
    if (failed)
        PyErr_NoMemory();
    else if (stop != INTERRUPTED && (answer = usages_to_python(&table.usages)) != NULL)
        answer = Py_BuildValue("(Nn)", answer, (Py_ssize_t)dynamics.moves);
done:
    table_end(&table);
    release_arrays(&arrays);
    return answer;
}

PyMethodDef dynamics_kernels[] = {
    {"best_response_dynamics", dynamics_kernel, METH_VARARGS, "Let agents in turn move to what is best for them at common prices."},
    {NULL, NULL, 0, NULL},
};
