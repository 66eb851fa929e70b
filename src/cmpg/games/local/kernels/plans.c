/* Backward induction over what an agent can reach, and where its actions lead; the twins are cmdp/planning.py and
   games/local/agent.py. */
#include "local.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TIE 1e-12 /* of the scale; see cmdp/planning.py */

/* splitmix64 (Steele, Lea and Flood): a generator in one word, which is never zero while ties are broken at random. */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    if (*state == 0)
        *state = 1;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

int planner_begin(Planner *planner, const World *world, uint64_t seed)
{
    memset(planner, 0, sizeof *planner);
    planner->world = world;
    planner->random = seed;
    int64_t states = 1, actions = 1, most = 1, resources = world->resources;
    for (int32_t i = 0; i < world->agents; i++) {
        states = world->states[i] > states ? world->states[i] : states;
        actions = world->actions[i] > actions ? world->actions[i] : actions;
        int64_t pairs = 0;
        for (int32_t h = 0; h < world->steps; h++)
            pairs += world->reach[(int64_t)i * world->steps + h];
        most = pairs > most ? pairs : most;
    }
    const size_t S = (size_t)states, marks = (size_t)(states > resources ? states : resources);
    int missing = 0;
    for (int z = 0; z < 2; z++) {
        missing |= (planner->ahead[z] = calloc(S + 1, sizeof(double))) == NULL;
        missing |= (planner->here[z] = calloc(S + 1, sizeof(double))) == NULL;
    }
    if (seed == 0) /* ties are not broken on a map */
        missing |= map_begin(&planner->map, world) < 0 || grid_begin(&planner->grid, &planner->map, world) < 0;
    missing |= (planner->chosen = calloc((size_t)most, sizeof(int16_t))) == NULL;
    missing |= (planner->current = calloc(S, sizeof(double))) == NULL;
    missing |= (planner->next = calloc(S, sizeof(double))) == NULL;
    missing |= (planner->marked = calloc(marks, 1)) == NULL;
    missing |= (planner->list = calloc(S, sizeof(int32_t))) == NULL;
    missing |= (planner->next_list = calloc(S, sizeof(int32_t))) == NULL;
    missing |= (planner->used = calloc((size_t)resources, sizeof(double))) == NULL;
    missing |= (planner->touched = calloc((size_t)resources / 64 + 1, sizeof(uint64_t))) == NULL;
    missing |= (planner->trial = calloc((size_t)actions, sizeof(double))) == NULL;
    missing |= (planner->second_trial = calloc((size_t)actions, sizeof(double))) == NULL;
    return missing ? -1 : 0;
}

void planner_end(Planner *planner)
{
    grid_end(&planner->grid);
    map_end(&planner->map);
    for (int z = 0; z < 2; z++) {
        free(planner->ahead[z]);
        free(planner->here[z]);
    }
    free(planner->chosen);
    free(planner->current);
    free(planner->next);
    free(planner->marked);
    free(planner->list);
    free(planner->next_list);
    free(planner->used);
    free(planner->touched);
    free(planner->trial);
    free(planner->second_trial);
}

/* What an agent meets at one step: its matrices, its rewards and costs, the marginal cost of its resources. */
typedef struct {
    int32_t actions, reward_columns, cost_columns;
    const int64_t *row_start; /* of the rows of this step's matrix */
    const int32_t *target;
    const double *probability;
    int by_state;             /* what is used depends on the state alone */
    const int64_t *use_start;
    const int32_t *used;
    const double *reward;     /* [S, columns] */
    const double *costs;      /* [k, …, S, columns], or NULL */
    int64_t cost_family;
    int constraints;
} Step;

static Step step_of(const World *world, int32_t agent, int32_t h)
{
    Step step;
    const int32_t moves = world->moves_at[(int64_t)world->moves_of[agent] * world->steps + h];
    const int32_t uses = world->uses_at[(int64_t)world->uses_of[agent] * world->steps + h];
    step.actions = world->actions[agent];
    step.row_start = world->row_start + world->first_row[moves];
    step.target = world->target;
    step.probability = world->probability;
    step.by_state = world->use_by_state[uses] & USE_BY_STATE;
    step.use_start = world->use_start + world->first_use_row[uses];
    step.used = world->used;
    step.reward = world->rewards + world->reward_of[agent] + h * world->reward_step[agent];
    step.reward_columns = world->reward_columns[agent];
    const int64_t of = world->cost_of[agent];
    step.costs = of < 0 ? NULL : world->costs + of + h * world->cost_step[agent];
    step.cost_family = world->cost_family[agent];
    step.cost_columns = world->cost_columns[agent];
    step.constraints = world->constraints;
    return step;
}

static inline double used_at(const Step *step, const double *marginal, int64_t row)
{
    double sum = 0.0;
    for (int64_t entry = step->use_start[row]; entry < step->use_start[row + 1]; entry++)
        sum += marginal[step->used[entry]];
    return sum;
}

/* The part of the weighted reward that depends on the state alone, and the part that depends on the action. */
static inline double stage_of_state(const Step *step, const double *marginal, const double *multipliers, int32_t s)
{
    double stage = step->reward_columns == 1 ? step->reward[s] : 0.0;
    if (step->by_state)
        stage -= used_at(step, marginal, s);
    if (step->costs != NULL && step->cost_columns == 1)
        for (int j = 0; j < step->constraints; j++)
            stage -= multipliers[j] * step->costs[j * step->cost_family + s];
    return stage;
}

static inline int only_by_state(const Step *step)
{
    return step->reward_columns == 1 && step->by_state && (step->costs == NULL || step->cost_columns == 1);
}

static inline double stage_of_action(const Step *step, const double *marginal, const double *multipliers, int64_t row)
{
    double stage = step->reward_columns > 1 ? step->reward[row] : 0.0;
    if (!step->by_state)
        stage -= used_at(step, marginal, row);
    if (step->costs != NULL && step->cost_columns > 1)
        for (int j = 0; j < step->constraints; j++)
            stage -= multipliers[j] * step->costs[j * step->cost_family + row];
    return stage;
}

static inline double follow(const Step *step, const double *ahead, int64_t row)
{
    double sum = 0.0;
    for (int64_t entry = step->row_start[row]; entry < step->row_start[row + 1]; entry++)
        sum += step->probability[entry] * ahead[step->target[entry]];
    return sum;
}

static inline double larger(double one, double other)
{
    return one > other ? one : other;
}

/* One step back. */
static void back(const Step *step, const double *marginal, const double *multipliers, const int32_t *order, int32_t count,
                 const double *ahead, double *here, int16_t *chosen, uint64_t *random)
{
    for (int32_t p = 0; p < count; p++) {
        const int32_t s = order[p];
        double best = -INFINITY;
        int16_t action = 0;
        uint64_t equals = 0;
        for (int32_t a = 0; a < step->actions; a++) {
            const int64_t row = (int64_t)s * step->actions + a;
            double value = stage_of_action(step, marginal, multipliers, row);
            if (ahead != NULL)
                value = follow(step, ahead, row) + value;
            if (value > best) {
                best = value;
                action = (int16_t)a;
                equals = 1;
            } else if (*random && value == best && draw(random) % ++equals == 0)
                action = (int16_t)a;
        }
        here[s] = stage_of_state(step, marginal, multipliers, s) + best;
        chosen[p] = action;
    }
}

static double at_start(const World *world, int32_t agent, const double *values)
{
    double sum = 0.0;
    for (int64_t entry = world->initial_of[agent]; entry < world->initial_of[agent + 1]; entry++)
        sum += world->initial_probability[entry] * values[world->initial_state[entry]];
    return sum;
}

static int64_t pairs_of(const World *world, int32_t agent)
{
    int64_t pairs = 0;
    for (int32_t h = 0; h < world->steps; h++)
        pairs += world->reach[(int64_t)agent * world->steps + h];
    return pairs;
}

/* The same sum on a grid. */
static double at_start_on_grid(const Planner *planner, int32_t agent, const double *values)
{
    const World *world = planner->world;
    double sum = 0.0;
    for (int64_t entry = world->initial_of[agent]; entry < world->initial_of[agent + 1]; entry++)
        sum += world->initial_probability[entry] * values[planner->grid.cell[world->initial_state[entry]]];
    return sum;
}

GridPlan grid_plan_of(const Planner *planner, int32_t agent, int choose)
{
    const World *world = planner->world;
    return (GridPlan){
        .marginal = planner->gridded[0],
        .reward = world->rewards + world->reward_of[agent],
        .reward_step = world->reward_step[agent],
        .order = world->order + world->order_of[agent],
        .reach = world->reach + (int64_t)agent * world->steps,
        .choose = choose,
    };
}

static double plan(Planner *planner, int32_t agent, const double *marginal, const double *multipliers, int choose)
{
    const World *world = planner->world;
    const int32_t *order = world->order + world->order_of[agent];
    const int32_t *reach = world->reach + (int64_t)agent * world->steps;
    planner->on_grid = planner->gridded[0] != NULL;
    if (planner->on_grid) {
        const GridPlan own = grid_plan_of(planner, agent, choose);
        return at_start_on_grid(planner, agent, grid_plan(&planner->grid, &planner->map, &own));
    }
    int16_t *chosen = planner->chosen + pairs_of(world, agent);
    double *ahead = NULL, *here = planner->here[0];
    for (int32_t h = world->steps - 1; h >= 0; h--) {
        const Step step = step_of(world, agent, h);
        const double *marginals = marginal + (int64_t)h * world->resources;
        chosen -= reach[h];
        back(&step, marginals, multipliers, order, reach[h], ahead, here, chosen, &planner->random);
        double *old = ahead == NULL ? planner->ahead[0] : ahead;
        ahead = here;
        here = old;
    }
    return at_start(world, agent, ahead);
}

double plan_best(Planner *planner, int32_t agent, const double *marginal, const double *multipliers)
{
    return plan(planner, agent, marginal, multipliers, 1);
}

double plan_value(Planner *planner, int32_t agent, const double *marginal, const double *multipliers, int *planned)
{
    *planned = planner->gridded[0] == NULL;
    return plan(planner, agent, marginal, multipliers, *planned);
}

/* What an action spends, and the weighted reward of an action. */
static double spending(const Step *step, const double *marginal, int32_t s, int64_t row)
{
    double total = used_at(step, marginal, step->by_state ? s : row);
    if (step->costs != NULL)
        for (int j = 0; j < step->constraints; j++)
            total += step->costs[j * step->cost_family + (step->cost_columns == 1 ? s : row)];
    return total;
}

static double stage_of(const Step *step, const double *marginal, const double *multipliers, int32_t s, int64_t row)
{
    return stage_of_state(step, marginal, multipliers, s) + stage_of_action(step, marginal, multipliers, row);
}

/* The largest sizes of both, by which ties are measured. */
static void largest_stages(const World *world, int32_t agent, const double *marginal, const double *spent,
                           const double *multipliers, double *sizes)
{
    const int32_t *order = world->order + world->order_of[agent];
    sizes[0] = sizes[1] = 0.0;
    for (int32_t h = 0; h < world->steps; h++) {
        const Step step = step_of(world, agent, h);
        const int64_t at = (int64_t)h * world->resources;
        const int32_t count = world->reach[(int64_t)agent * world->steps + h];
        for (int32_t p = 0; p < count; p++)
            for (int32_t a = 0; a < step.actions; a++) {
                const int64_t row = (int64_t)order[p] * step.actions + a;
                const double first = fabs(stage_of(&step, marginal + at, multipliers, order[p], row));
                const double second = fabs(spending(&step, spent + at, order[p], row));
                sizes[0] = first > sizes[0] ? first : sizes[0];
                sizes[1] = second > sizes[1] ? second : sizes[1];
            }
    }
}

void plan_cheapest_of_best(Planner *planner, int32_t agent, const double *marginal, const double *second_marginal,
                             const double *multipliers)
{
    const World *world = planner->world;
    const int32_t *order = world->order + world->order_of[agent];
    const int32_t *reach = world->reach + (int64_t)agent * world->steps;
    int16_t *chosen = planner->chosen + pairs_of(world, agent);
    GridPlan on_grid = grid_plan_of(planner, agent, 1);
    double sizes[2] = {0.0, 0.0};
    planner->on_grid = planner->gridded[1] != NULL;
    on_grid.second = planner->gridded[1];
    if (planner->on_grid)
        grid_largest(&planner->grid, &planner->map, &on_grid, sizes);
    else
        largest_stages(world, agent, marginal, second_marginal, multipliers, sizes);
    const double tie = TIE * (sizes[0] > 0.0 ? sizes[0] : 1.0), second_tie = TIE * (sizes[1] > 0.0 ? sizes[1] : 1.0);
    const double ties[2] = {tie, second_tie};
    if (planner->on_grid) {
        on_grid.ties = ties;
        grid_plan(&planner->grid, &planner->map, &on_grid);
        return;
    }
    double *ahead[2] = {NULL, NULL};
    double *here[2] = {planner->here[0], planner->here[1]};
    for (int32_t h = world->steps - 1; h >= 0; h--) {
        const Step step = step_of(world, agent, h);
        const double *marginals = marginal + (int64_t)h * world->resources;
        const double *spent = second_marginal + (int64_t)h * world->resources;
        double *trial = planner->trial, *second = planner->second_trial;
        chosen -= reach[h];
        for (int32_t p = 0; p < reach[h]; p++) {
            const int32_t s = order[p];
            double best = -INFINITY, cheapest = -INFINITY;
            for (int32_t a = 0; a < step.actions; a++) {
                const int64_t row = (int64_t)s * step.actions + a;
                trial[a] = stage_of(&step, marginals, multipliers, s, row);
                second[a] = -spending(&step, spent, s, row);
                if (ahead[0] != NULL) {
                    trial[a] = follow(&step, ahead[0], row) + trial[a];
                    second[a] = follow(&step, ahead[1], row) + second[a];
                }
                best = trial[a] > best ? trial[a] : best;
            }
            for (int32_t a = 0; a < step.actions; a++)
                if (trial[a] >= best - tie && second[a] > cheapest)
                    cheapest = second[a];
            int16_t action = -1;
            uint64_t equals = 0;
            for (int32_t a = 0; a < step.actions; a++)
                if (trial[a] >= best - tie && second[a] >= cheapest - second_tie) {
                    if (action < 0)
                        action = (int16_t)a;
                    if (planner->random && draw(&planner->random) % ++equals == 0)
                        action = (int16_t)a;
                }
            action = action < 0 ? 0 : action; /* values that are not numbers */
            here[0][s] = trial[action];
            here[1][s] = second[action];
            chosen[p] = action;
        }
        for (int z = 0; z < 2; z++) {
            double *old = ahead[z] == NULL ? planner->ahead[z] : ahead[z];
            ahead[z] = here[z];
            here[z] = old;
        }
    }
}

/* The largest size in a row of numbers, four at a time: one comparison need not wait for the one before. */
static double largest_size(const double *values, int64_t count)
{
    double found[4] = {0.0, 0.0, 0.0, 0.0};
    int64_t at = 0;
    for (; at + 4 <= count; at += 4)
        for (int lane = 0; lane < 4; lane++)
            found[lane] = larger(fabs(values[at + lane]), found[lane]);
    for (; at < count; at++)
        found[0] = larger(fabs(values[at]), found[0]);
    return larger(larger(found[0], found[1]), larger(found[2], found[3]));
}

int is_significant(Planner *planner, int32_t agent, const double *marginal, const double *delays, const double *multipliers,
                double min_gain, double gain)
{
    const World *world = planner->world;
    if (delays == NULL) {
        if (gain <= min_gain * world->reward_range[agent])
            return 0;
        if (planner->gridded[0] != NULL) {
            const GridPlan own = grid_plan_of(planner, agent, 0);
            const int uses = planner->grid.planes > 1 ? 2 : 1;
            if (planner->max_gridded > 0.0 && own.reward_step == 0 &&
                gain > 4.0 * world->rounding[agent] * world->steps *
                           (largest_size(own.reward, world->states[agent]) + uses * planner->max_gridded))
                return 1;
            return gain > 4.0 * world->rounding[agent] * grid_sizes(&planner->grid, &own, world->states[agent]);
        }
    }
    const int32_t *order = world->order + world->order_of[agent];
    double range = 0.0, sizes = 0.0;
    for (int32_t h = 0; h < world->steps; h++) {
        const Step step = step_of(world, agent, h);
        const int64_t at = (int64_t)h * world->resources;
        const int32_t actions = only_by_state(&step) ? 1 : step.actions;
        double least = INFINITY, greatest = -INFINITY, size = 0.0, spent = 0.0;
        for (int32_t p = 0; p < world->reach[(int64_t)agent * world->steps + h]; p++) {
            const int32_t s = order[p];
            for (int32_t a = 0; a < actions; a++) {
                const int64_t row = (int64_t)s * step.actions + a;
                double reward = step.reward[step.reward_columns == 1 ? s : row];
                if (delays != NULL)
                    reward -= used_at(&step, delays + at, step.by_state ? s : row);
                const double total = stage_of(&step, marginal + at, multipliers, s, row);
                least = reward < least ? reward : least;
                greatest = reward > greatest ? reward : greatest;
                size = fabs(reward) > size ? fabs(reward) : size;
                spent = fabs(reward - total) > spent ? fabs(reward - total) : spent;
            }
        }
        range += greatest - least;
        sizes += size + spent;
    }
    if (delays == NULL)
        range = world->reward_range[agent];
    return gain > min_gain * range && gain > 4.0 * world->rounding[agent] * sizes;
}

/* Actions start ≤ a < *end of a row of a policy, which are one where that is certain. */
static inline int32_t first_action(const Policy *policy, int64_t pair, int32_t num_actions, int32_t *end)
{
    if (policy->table != NULL) {
        *end = num_actions;
        return 0;
    }
    const int32_t a = policy->bytes == 1 ? ((const int8_t *)policy->actions)[pair] : ((const int16_t *)policy->actions)[pair];
    *end = a + 1;
    return a;
}

int account(Planner *planner, int32_t agent, const Policy *policy, Usage *usage, double *value, double *costs)
{
    const World *world = planner->world;
    const int32_t S = world->states[agent], A = world->actions[agent];
    const int16_t *chosen = planner->chosen;
    const Grid *grid = &planner->grid;
    int32_t *rank = NULL; /* the index of each state in the agent's order, where its own plan is followed */
    double *current = planner->current, *next = planner->next, *used = planner->used;
    int32_t *list = planner->list, *next_list = planner->next_list, length = 0;
    uint64_t *touched = planner->touched;
    int8_t *marked = planner->marked;
    int failed = 0;
    if (policy == NULL && !planner->on_grid) {
        const int32_t *order = world->order + world->order_of[agent];
        const int32_t last = world->reach[(int64_t)agent * world->steps + world->steps - 1];
        if ((rank = malloc((size_t)S * sizeof *rank)) == NULL)
            return -1;
        for (int32_t p = 0; p < last; p++)
            rank[order[p]] = p;
    }
    usage->count = 0;
    *value = 0.0;
    memset(costs, 0, (size_t)world->constraints * sizeof *costs);
    memset(current, 0, (size_t)S * sizeof *current);
    memset(next, 0, (size_t)S * sizeof *next);
    for (int64_t entry = world->initial_of[agent]; entry < world->initial_of[agent + 1]; entry++) {
        list[length++] = world->initial_state[entry];
        current[world->initial_state[entry]] = world->initial_probability[entry];
    }
    for (int32_t h = 0; h < world->steps && !failed; h++) {
        const Step step = step_of(world, agent, h);
        const int last = h == world->steps - 1;
        int32_t next_length = 0;
        for (int32_t at = 0; at < length; at++) {
            const int32_t s = list[at];
            const double here = current[s];
            const int64_t pair = (int64_t)h * S + s;
            int32_t first, end;
            if (policy == NULL) {
                first = rank == NULL ? grid->chosen[(int64_t)h * grid->cells + grid->cell[s]] : chosen[rank[s]];
                end = first + 1;
            } else
                first = first_action(policy, pair, A, &end);
            current[s] = 0.0;
            for (int32_t a = first; a < end; a++) {
                const int64_t row = (int64_t)s * A + a, use = step.by_state ? s : row;
                const double x = policy == NULL || policy->table == NULL ? here : here * policy->table[pair * A + a];
                if (x == 0.0)
                    continue;
                *value += x * step.reward[step.reward_columns == 1 ? s : row];
                if (step.costs != NULL)
                    for (int j = 0; j < step.constraints; j++)
                        costs[j] += x * step.costs[j * step.cost_family + (step.cost_columns == 1 ? s : row)];
                for (int64_t entry = step.use_start[use]; entry < step.use_start[use + 1]; entry++) {
                    const int32_t e = step.used[entry];
                    touched[e / 64] |= UINT64_C(1) << (e % 64);
                    used[e] += x;
                }
                for (int64_t entry = step.row_start[row]; !last && entry < step.row_start[row + 1]; entry++) {
                    const int32_t t = step.target[entry];
                    const double flow = x * step.probability[entry];
                    if (flow == 0.0)
                        continue;
                    if (!marked[t]) {
                        marked[t] = 1;
                        next_list[next_length++] = t;
                    }
                    next[t] += flow;
                }
            }
        }
        /* In ascending order: by the bits that are set. */
        for (int32_t word = 0; word <= (world->resources - 1) / 64; word++)
            for (; touched[word] != 0; touched[word] &= touched[word] - 1) {
                const int32_t e = 64 * word + lowest_bit(touched[word]);
                /* The last bits of a sum can lead above one. */
                if (!failed)
                    failed =
                        usage_append(usage, (int32_t)((int64_t)h * world->resources + e), used[e] < 1.0 ? used[e] : 1.0) < 0;
                used[e] = 0.0;
            }
        for (int32_t at = 0; at < next_length; at++)
            marked[next_list[at]] = 0;
        double *there = current;
        current = next;
        next = there;
        int32_t *before = list;
        list = next_list;
        next_list = before;
        length = next_length;
        chosen += world->reach[(int64_t)agent * world->steps + h];
    }
    free(rank);
    return failed ? -1 : 0;
}

/* The largest sums of |r| and of each |c_j| over what the agent can reach. */
static void add_sizes(const Step *step, const World *world, int32_t agent, int32_t h, const double *delays,
                      const double *marginals, double *sizes, double *largest)
{
    const int k = step->constraints;
    const int64_t indices = (int64_t)world->steps * world->resources;
    const int32_t *order = world->order + world->order_of[agent];
    const int32_t count = world->reach[(int64_t)agent * world->steps + h];
    const int32_t actions = only_by_state(step) ? 1 : step->actions;
    memset(largest, 0, (size_t)(1 + k) * sizeof *largest);
    for (int32_t p = 0; p < count; p++)
        for (int32_t a = 0; a < actions; a++) {
            const int32_t s = order[p];
            const int64_t row = (int64_t)s * step->actions + a, use = step->by_state ? s : row;
            double reward = step->reward[step->reward_columns == 1 ? s : row];
            if (delays != NULL)
                reward -= used_at(step, delays, use);
            largest[0] = larger(fabs(reward), largest[0]);
            for (int j = 0; j < k; j++) {
                double cost = used_at(step, marginals + j * indices, use);
                if (step->costs != NULL)
                    cost += step->costs[j * step->cost_family + (step->cost_columns == 1 ? s : row)];
                largest[1 + j] = larger(fabs(cost), largest[1 + j]);
            }
        }
    for (int j = 0; j <= k; j++)
        sizes[j] += largest[j];
}

void scatter_weighted(const Planner *planner, const double *marginals, const double *multipliers, double *gridded)
{
    const World *world = planner->world;
    const Grid *grid = &planner->grid;
    const int64_t indices = (int64_t)world->steps * world->resources;
    for (int32_t h = 0; h < world->steps; h++) {
        double *step = gridded + h * grid_stride(grid);
        const double *marginal = marginals + (int64_t)h * world->resources;
        for (int32_t e = 0; e < world->resources; e++) {
            double weighted = 0.0;
            for (int j = 0; j < world->constraints; j++)
                weighted += multipliers[j] * marginal[j * indices + e];
            if (grid->grid_index[e] >= 0)
                step[grid->grid_index[e]] = weighted;
        }
    }
}

int greatest(Planner *planner, int32_t agent, const double *delays, const double *marginals, const double *multipliers,
             double *weighted, double *maximum, double *sizes)
{
    const World *world = planner->world;
    const int k = world->constraints, on_grid = planner->gridded[0] != NULL;
    const int64_t E = world->resources, indices = (int64_t)world->steps * E;
    double *largest = malloc((size_t)(1 + k) * sizeof *largest);
    if (largest == NULL)
        return -1;
    for (int64_t at = 0; !on_grid && at < indices; at++)
        weighted[at] = delays == NULL ? 0.0 : delays[at];
    for (int j = 0; j < k; j++)
        if (multipliers[j] != 0.0 && !on_grid)
            for (int64_t at = 0; at < indices; at++)
                weighted[at] += multipliers[j] * marginals[j * indices + at];
    int planned;
    *maximum = plan_value(planner, agent, weighted, multipliers, &planned);
    memset(sizes, 0, (size_t)(1 + k) * sizeof *sizes);
    for (int32_t h = world->steps - 1; h >= 0; h--) {
        const Step step = step_of(world, agent, h);
        if (on_grid)
            sizes[0] += largest_size(step.reward, world->states[agent]);
        else
            add_sizes(&step, world, agent, h, delays == NULL ? NULL : delays + h * E, marginals + h * E, sizes, largest);
    }
    free(largest);
    return 0;
}
