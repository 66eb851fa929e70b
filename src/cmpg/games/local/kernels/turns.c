/* Agents of a local game take turns at common prices; the twin is `settle` in equilibrium/starts/common_price.py.

   Where plans are long, the agents of a block are asked at once, against the same loads; then they move one by one, and
   whoever comes after a mover only if what it has proposed is still worth it. So every move gains, nobody rests who was
   asked before the last move, and threads that share out a block change no bit.

   In a crowd, agents of one kind take their turns one after the other: whoever does the same as one of them who has stayed since the
   last move stays, too, and need not be asked. */
#include "crew.h"
#include "local.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEGLIGIBLE_SHARE 1e-13
#define MOST_AT_ONCE 4096 /* agents */
#define MOST_STAYED 16    /* agents who are compared with the next of their kind */
#define CROWD 8           /* agents of each kind, on average, or more */

/* What one agent's usage does to loads: places as the loads have them, in the order of `key`. */
typedef struct {
    int32_t *key, *place;
    double *probability;
    int64_t count, room;
} Felt;

/* What an agent who was asked would do. */
typedef struct {
    int moves; /* whether it does; −1: no memory */
    Usage usage;
    Felt felt;
    double value, *costs; /* private; costs [k] */
    char *actions;        /* [H, S] */
} Proposal;

/* How a settling goes, and what is told of it. */
typedef struct {
    int64_t moves, quiet; /* how many there were, and for how many turns there was none */
    double worth;
    int cheapest;        /* a budget is free: spend no more of it than must be */
    const int8_t *waits; /* [n]: who keeps its policy */
    int8_t *moved;       /* [n] */
    char *actions;       /* of all agents, [H, S_i] each, one after the other */
    const int64_t *actions_of;
    int bytes;
    int32_t *kind, *order; /* [n]: of each agent, and in which order they take turns */
    int64_t turn;          /* of the first agent of the block that is asked at once */
    Proposal *proposals;   /* of those */
} Settling;

/* Agents of one kind who have stayed since the last move. */
typedef struct {
    int32_t agent[MOST_STAYED];
    int count;
} Stayed;

/* All that one settling holds. On a grid, loads are those of a world whose resources lie as the cells do, and what is too
   improbable to matter is not felt; elsewhere, everything is felt as it is. */
typedef struct {
    World world;
    World laid; /* as loads see it */
    Usages usages;
    Felt *felt; /* [n] */
    Loads loads;
    Planner planner;
    Settling *settling;
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

static void felt_end(const Table *table, Felt *felt)
{
    if (!on_grid(table))
        return; /* it is the usage itself */
    free(felt->key);
    free(felt->place);
    free(felt->probability);
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

/* What an agent has at the prices by a usage; what it does at present is taken out of the loads. */
static double worth_of(const Table *table, const Felt *usage, double value, const double *costs)
{
    double met = 0.0, worth = value;
    for (int64_t entry = 0; entry < usage->count; entry++)
        met += usage->probability[entry] * table->loads.burden[0][usage->place[entry]];
    for (int j = 0; j < table->world.constraints; j++)
        worth -= table->multipliers[j] * costs[j];
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

/* The agent's old usage gives way to the one that it proposes; only what either touches is changed. Afterwards the
   proposal has the old one. */
static int move(Table *table, Proposal *proposal, int32_t agent)
{
    Usage *usage = &table->usages.all[agent];
    const Usage old_usage = *usage;
    const Felt old = table->felt[agent], fresh = proposal->felt;
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
    *usage = proposal->usage;
    proposal->usage = old_usage;
    table->felt[agent] = fresh;
    proposal->felt = old;
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
static int is_tempted(Table *table, int32_t agent, Proposal *proposal)
{
    const Settling *settling = table->settling;
    Planner *planner = &table->planner;
    Loads *loads = &table->loads;
    const Felt *usage = &table->felt[agent];
    if (take_out(table, usage) < 0)
        return -1;
    const double *delays = table->world.has_delay ? loads->burden[1] : NULL;
    int planned;
    const double best = plan_value(planner, agent, loads->burden[0], table->multipliers, &planned);
    const double gain = best - worth_of(table, usage, table->value[agent], table->costs + agent * table->world.constraints);
    const double size = best < 0.0 ? -best : best;
    /* A value is never larger than the sizes in it, so that most gains of rounding are seen at once. */
    const int moves = gain > 4.0 * table->world.rounding[agent] * size &&
                      is_worth_it(planner, agent, loads->burden[0], delays, table->multipliers, settling->worth, gain);
    if (moves && settling->cheapest)
        plan_cheapest_of_best(planner, agent, loads->burden[0], loads->burden[loads->weightings - 1], table->multipliers);
    else if (moves && !planned)
        plan_best(planner, agent, loads->burden[0], table->multipliers);
    put_back(table, usage);
    if (!moves)
        return 0;
    if (account(planner, agent, NULL, &proposal->usage, &proposal->value, proposal->costs) < 0 ||
        feel(table, &proposal->usage, &proposal->felt) < 0)
        return -1;
    const int64_t entries = (int64_t)table->world.steps * table->world.states[agent];
    memset(proposal->actions, 0, (size_t)(entries * settling->bytes)); /* where it never is */
    write_actions(table, agent, proposal->actions, settling->bytes);
    return 1;
}

/* Whether what an agent has proposed is still worth it, beside those who have moved since. */
static int is_tempted_still(Table *table, int32_t agent, const Proposal *proposal)
{
    const Felt *usage = &table->felt[agent];
    if (take_out(table, usage) < 0)
        return -1;
    const double *burden = table->loads.burden[0], *delays = table->world.has_delay ? table->loads.burden[1] : NULL;
    const double *costs = table->costs + agent * table->world.constraints;
    const double gain =
        worth_of(table, &proposal->felt, proposal->value, proposal->costs) - worth_of(table, usage, table->value[agent], costs);
    const int moves = gain > 0.0 && is_worth_it(&table->planner, agent, burden, delays, table->multipliers,
                                                table->settling->worth, gain);
    put_back(table, usage);
    return moves;
}

static inline int32_t agent_at(const Settling *settling, int64_t turn, int64_t agents)
{
    return settling->order[turn % agents];
}

static void ask(void *context, int64_t at)
{
    Table *table = context;
    const Settling *settling = table->settling;
    const int32_t agent = agent_at(settling, settling->turn + at, table->world.agents);
    Proposal *proposal = &settling->proposals[at];
    proposal->moves = settling->waits[agent] ? 0 : is_tempted(table, agent, proposal);
}

/* Threads, each with a table of its own. */
typedef struct {
    Crew *crew; /* NULL: nobody but the caller's */
    int count;
    Table *tables;
    void *contexts[MOST_HELPERS]; /* the tables */
} Scouts;

/* A table of its own: planner and burdens; all else is that of another table, and only read. */
static int table_beside(Table *own, const Table *table)
{
    const World *laid = &table->laid;
    const size_t places = (size_t)laid->steps * (size_t)laid->resources, rough = (size_t)laid->steps * (size_t)laid->rough;
    *own = *table;
    memset(&own->planner, 0, sizeof own->planner);
    own->saved = NULL;
    own->room = 0;
    own->loads.without = NULL;
    own->loads.room = 0;
    own->loads.alike = calloc(rough + 1, sizeof(Alike));
    int missing = own->loads.alike == NULL;
    for (int z = 0; z < own->loads.weightings; z++) {
        own->loads.burden[z] = malloc((places + 1) * sizeof(double));
        missing |= own->loads.burden[z] == NULL;
        if (own->loads.burden[z] != NULL)
            memcpy(own->loads.burden[z], table->loads.burden[z], places * sizeof(double));
    }
    missing |= planner_begin(&own->planner, &table->world, 0) < 0;
    if (missing)
        return -1;
    if (!on_grid(table))
        grid_end(&own->planner.grid);
    own->planner.most_laid = table->planner.most_laid;
    for (int z = 0; z < 2; z++) /* the burdens that are laid out on the other table, on this one */
        for (int y = 0; y < own->loads.weightings; y++)
            if (table->planner.laid[z] == table->loads.burden[y])
                own->planner.laid[z] = own->loads.burden[y];
    return 0;
}

static void table_leave(Table *own)
{
    planner_end(&own->planner);
    for (int z = 0; z < own->loads.weightings; z++)
        free(own->loads.burden[z]);
    free(own->loads.alike);
    free(own->loads.without);
    free(own->saved);
}

static void scouts_end(Scouts *scouts)
{
    crew_end(scouts->crew);
    for (int each = 0; each < scouts->count; each++)
        table_leave(&scouts->tables[each]);
    free(scouts->tables);
}

/* −1: no memory. Where threads cannot be had, there are no scouts. */
static int scouts_begin(Scouts *scouts, const Table *table, int threads)
{
    const int helpers = threads - 1 < MOST_HELPERS ? threads - 1 : MOST_HELPERS;
    if (helpers < 1)
        return 0;
    if ((scouts->tables = calloc((size_t)helpers, sizeof *scouts->tables)) == NULL)
        return -1;
    while (scouts->count < helpers) {
        Table *own = &scouts->tables[scouts->count];
        scouts->contexts[scouts->count++] = own;
        if (table_beside(own, table) < 0)
            return -1;
    }
    scouts->crew = crew_begin(helpers, ask, scouts->contexts);
    return 0;
}

/* What one more user meets on these places has changed. */
static void tell_scouts(Scouts *scouts, const Table *table, const Felt *felt)
{
    const World *laid = &table->laid;
    for (int each = 0; each < scouts->count; each++) {
        Loads *own = &scouts->tables[each].loads;
        for (int64_t entry = 0; entry < felt->count; entry++) {
            const int32_t place = felt->place[entry], r = laid->rough == 0 ? -1 : laid->rough_of[place % laid->resources];
            for (int z = 0; z < own->weightings; z++)
                own->burden[z][place] = table->loads.burden[z][place];
            if (r >= 0)
                own->alike[(int64_t)(place / laid->resources) * laid->rough + r].changes++;
        }
    }
}

/* An agent does what it has proposed. −1: no memory. */
static int carry_out(Table *table, Scouts *scouts, int32_t agent, Proposal *proposal)
{
    Settling *settling = table->settling;
    const int64_t k = table->world.constraints, entries = (int64_t)table->world.steps * table->world.states[agent];
    table->value[agent] = proposal->value;
    memcpy(table->costs + agent * k, proposal->costs, (size_t)k * sizeof(double));
    settling->moved[agent] = 1;
    settling->moves++;
    memcpy(settling->actions + settling->actions_of[agent] * settling->bytes, proposal->actions, (size_t)(entries * settling->bytes));
    if (move(table, proposal, agent) < 0)
        return -1;
    tell_scouts(scouts, table, &proposal->felt); /* what it did before */
    tell_scouts(scouts, table, &table->felt[agent]);
    return 0;
}

/* Whether an agent does the same as one of its kind who has stayed. */
static int stays_like_another(const Table *table, const Stayed *stayed, int32_t agent)
{
    const int64_t k = table->world.constraints;
    const int32_t *kind = table->settling->kind;
    for (int at = 0; at < stayed->count; at++) {
        const int32_t other = stayed->agent[at];
        if (kind[other] != kind[agent])
            return 0;
        if (memcmp(&table->value[agent], &table->value[other], sizeof(double)) == 0 &&
            memcmp(table->costs + agent * k, table->costs + other * k, (size_t)k * sizeof(double)) == 0 &&
            same_usage(&table->usages.all[agent], &table->usages.all[other]))
            return 1;
    }
    return 0;
}

static void note_who_stayed(const Settling *settling, Stayed *stayed, int32_t agent)
{
    if (stayed->count > 0 && settling->kind[stayed->agent[0]] != settling->kind[agent])
        stayed->count = 0;
    if (stayed->count < MOST_STAYED)
        stayed->agent[stayed->count++] = agent;
}

/* Turns until nobody moves any more, or there were enough of them. Agents of a block are asked at once; then they move
   one by one, those after the first only if that is still worth it. 0, or −1 without memory. */
static int take_turns(Table *table, Scouts *scouts, int64_t block, int64_t turns, Watch *watch, Stop *stop)
{
    Settling *settling = table->settling;
    const int64_t n = table->world.agents;
    Stayed stayed = {.count = 0};
    for (settling->turn = 0; settling->turn < turns && settling->quiet < n;) {
        if ((*stop = must_stop(watch)) != GO_ON)
            return 0;
        const int64_t left = turns - settling->turn, unknown = n - settling->quiet;
        int64_t asked = block < left ? block : left;
        asked = asked < unknown ? asked : unknown;
        const int32_t first = agent_at(settling, settling->turn, n);
        if (asked == 1 && stays_like_another(table, &stayed, first)) {
            settling->quiet++;
            settling->turn++;
            continue;
        }
        crew_share(scouts->crew, ask, table, asked);
        int moved = 0;
        for (int64_t at = 0; at < asked; at++) {
            Proposal *proposal = &settling->proposals[at];
            const int32_t agent = agent_at(settling, settling->turn + at, n);
            if (proposal->moves > 0 && moved)
                proposal->moves = is_tempted_still(table, agent, proposal);
            if (proposal->moves < 0 || (proposal->moves > 0 && carry_out(table, scouts, agent, proposal) < 0))
                return -1;
            moved = moved || proposal->moves;
            settling->quiet = moved ? 0 : settling->quiet + 1;
        }
        if (moved)
            stayed.count = 0;
        else if (asked == 1 && !settling->waits[first])
            note_who_stayed(settling, &stayed, first);
        settling->turn += asked;
    }
    return 0;
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

/* Agents as they come; in a crowd, kind by kind. −1: no memory. */
static int order_begin(Settling *settling, const World *world)
{
    const int32_t n = world->agents;
    int32_t *kind = settling->kind = malloc((size_t)n * sizeof *kind);
    int32_t *order = settling->order = malloc((size_t)n * sizeof *order);
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
static int proposals_begin(Settling *settling, const World *world, int64_t block)
{
    int64_t states = 1;
    for (int32_t i = 0; i < world->agents; i++)
        states = world->states[i] > states ? world->states[i] : states;
    if ((settling->proposals = calloc((size_t)block, sizeof *settling->proposals)) == NULL)
        return -1;
    for (int64_t at = 0; at < block; at++) {
        Proposal *proposal = &settling->proposals[at];
        proposal->costs = malloc(((size_t)world->constraints + 1) * sizeof(double));
        proposal->actions = malloc((size_t)(world->steps * states * settling->bytes));
        if (proposal->costs == NULL || proposal->actions == NULL)
            return -1;
    }
    return 0;
}

static void proposals_end(Table *table, int64_t block)
{
    Proposal *all = table->settling->proposals;
    for (int64_t at = 0; all != NULL && at < block; at++) {
        felt_end(table, &all[at].felt);
        free(all[at].usage.place);
        free(all[at].usage.probability);
        free(all[at].costs);
        free(all[at].actions);
    }
    free(all);
}

static void table_end(Table *table)
{
    for (int32_t i = 0; table->felt != NULL && i < table->world.agents; i++)
        felt_end(table, &table->felt[i]);
    free(table->felt);
    usages_end(&table->usages);
    if (table->loads.world != NULL)
        loads_end(&table->loads);
    planner_end(&table->planner);
    free(table->saved);
}

static PyObject *settle_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *packed, *position, *value, *costs, *multipliers, *weights, *actions, *moved, *actions_of, *waiting;
    int cheapest, block, threads;
    Py_ssize_t turns;
    double worth, seconds;
    unsigned long long seed;
    if (!PyArg_ParseTuple(args, "OOOOOOpKnddiiOOOO", &packed, &position, &value, &costs, &multipliers, &weights, &cheapest,
                          &seed, &turns, &worth, &seconds, &block, &threads, &actions, &moved, &waiting, &actions_of))
        return NULL;
    Arrays arrays = {.count = 0};
    Table table;
    memset(&table, 0, sizeof table);
    Settling settling = {.worth = worth, .cheapest = cheapest};
    table.settling = &settling;
    Scouts scouts = {.crew = NULL};
    PyObject *told = NULL;
    const double *weight;
    if (world_of(&table.world, &arrays, packed) < 0 || usages_of(&table.usages, &table.world, &arrays, position) < 0)
        goto done;
    const World *world = &table.world;
    const Py_ssize_t n = world->agents, k = world->constraints;
    const int weightings = 1 + (world->has_delay != 0) + cheapest;
    int64_t end = 0;
    /* Random ties are drawn turn by turn. */
    if (block < 1 || block > MOST_AT_ONCE || (seed != 0 && (block > 1 || threads > 1))) {
        PyErr_SetString(PyExc_ValueError, "so many agents cannot be asked at once");
        goto done;
    }
    if ((table.value = array_with(&arrays, value, 'd', 1, "values", n)) == NULL ||
        (table.costs = array_with(&arrays, costs, 'd', 1, "costs", n * k)) == NULL ||
        (table.multipliers = array_with(&arrays, multipliers, 'd', 0, "multipliers", k)) == NULL ||
        (weight = array_with(&arrays, weights, 'd', 0, "weights", weightings * (1 + k))) == NULL ||
        (settling.moved = array_with(&arrays, moved, 'b', 1, "moved", n)) == NULL ||
        (settling.actions_of = array_with(&arrays, actions_of, 'q', 0, "actions_of", n)) == NULL ||
        (settling.waits = array_with(&arrays, waiting, 'b', 0, "waiting", n)) == NULL)
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
    failed = failed || order_begin(&settling, world) < 0 || proposals_begin(&settling, world, block) < 0 || scouts_begin(&scouts, &table, threads) < 0 ||
             take_turns(&table, &scouts, block, turns, &watch, &stop) < 0;
    scouts_end(&scouts);
    proposals_end(&table, block);
    free(settling.kind);
    free(settling.order);
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
