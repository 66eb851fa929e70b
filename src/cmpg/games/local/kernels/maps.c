/* Agents who all walk on one map: every action stays, or leads to one other state with a probability that is the same
   everywhere; they use the resource on which they stand, and perhaps one more by moving, an edge.

   Backward induction is then one comparison of neighbours a state. Values have the bits of `plans.c`, which is the twin:
   rounding is monotone, so that the best neighbour is found before anything is rounded; and of an action that stays
   there is nothing but the value of the state. A plan without its actions takes half of the time. */
#include "local.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TIE 1e-12 /* of the scale; see cmdp/planning.py */

static inline double larger(double one, double other)
{
    return one > other ? one : other;
}

void map_end(Map *map)
{
    free(map->target);
    free(map->edge);
    free(map->index);
    free(map->rest);
    memset(map, 0, sizeof *map);
}

/* Whether all agents go through the same matrices, one for all steps. */
static int all_alike(const World *world)
{
    for (int32_t i = 0; i < world->agents; i++)
        if (world->moves_of[i] != world->moves_of[0] || world->uses_of[i] != world->uses_of[0] ||
            world->reward_columns[i] != 1 || world->cost_of[i] >= 0)
            return 0;
    const int32_t *moves = world->moves_at + (int64_t)world->moves_of[0] * world->steps;
    const int32_t *uses = world->uses_at + (int64_t)world->uses_of[0] * world->steps;
    for (int32_t h = 1; h < world->steps; h++)
        if (moves[h] != moves[0] || uses[h] != uses[0])
            return 0;
    return 1;
}

/* Which actions move at all, and by which probabilities. 0: it is no map. */
static int read_moves(Map *map, const World *world, const int32_t *target, const double *probability)
{
    for (int32_t a = 0; a < map->actions; a++) {
        int moves = 0;
        for (int32_t s = 0; s < map->states; s++) {
            const int64_t entry = 2 * ((int64_t)s * map->actions + a);
            const double *p = probability + entry;
            if (target[entry] != s)
                return 0;
            if (p[0] == 1.0 && p[1] == 0.0)
                continue;
            if (target[entry + 1] == s || !(p[1] > 0.0) || !(p[0] >= 0.0))
                return 0;
            if (map->moves == 0.0) {
                map->stays = p[0];
                map->moves = p[1];
            }
            if (p[0] != map->stays || p[1] != map->moves)
                return 0;
            moves = 1;
        }
        if (moves)
            map->action[map->moving++] = (int16_t)a;
    }
    map->action[map->moving] = -1;
    return map->moving > 0 && world->steps > 0;
}

/* What is used by standing and by moving. 0: something else. */
static int read_uses(Map *map, const int64_t *use_start, const int32_t *used, int by_state)
{
    for (int32_t s = 0; s < map->states; s++) {
        const int64_t row = (int64_t)s * map->actions;
        if (by_state) {
            if (use_start[s + 1] - use_start[s] != 1)
                return 0;
            map->index[s] = used[use_start[s]];
            continue;
        }
        for (int32_t a = 0, j = 0; a < map->actions; a++) {
            const int slot = j < map->moving && map->action[j] == a;
            const int moves = slot && map->target[(int64_t)s * map->moving + j] < map->states;
            const int64_t begin = use_start[row + a];
            if (use_start[row + a + 1] - begin != 1 + moves || used[begin] != used[use_start[row]])
                return 0;
            if (slot)
                map->edge[(int64_t)s * map->moving + j++] = moves ? used[begin + 1] : 0;
        }
        map->index[s] = used[use_start[row]];
    }
    return 1;
}

int map_begin(Map *map, const World *world)
{
    memset(map, 0, sizeof *map);
    if (world->agents == 0 || world->steps == 0 || world->actions[0] > SHORT_LIST || !all_alike(world))
        return 0;
    const int32_t matrix = world->moves_at[(int64_t)world->moves_of[0] * world->steps];
    const int32_t uses = world->uses_at[(int64_t)world->uses_of[0] * world->steps];
    if (!(world->row_width[matrix] & ROW_STAYS) || !(world->use_by_state[uses] & (USE_BY_STATE | USE_ONE_MORE)))
        return 0;
    const int64_t *row_start = world->row_start + world->first_row[matrix];
    const int32_t *target = world->target + row_start[0];
    const int by_state = world->use_by_state[uses] & USE_BY_STATE;
    map->states = world->states[0];
    map->actions = world->actions[0];
    if (!read_moves(map, world, target, world->probability + row_start[0])) {
        map_end(map);
        return 0;
    }
    const size_t S = (size_t)map->states, slots = S * (size_t)map->moving;
    map->target = malloc(slots * sizeof *map->target);
    map->index = malloc(S * sizeof *map->index);
    map->rest = malloc(S * sizeof *map->rest);
    map->edge = by_state ? NULL : malloc(slots * sizeof *map->edge);
    if (map->target == NULL || map->index == NULL || map->rest == NULL || (!by_state && map->edge == NULL)) {
        map_end(map);
        return -1;
    }
    int fits = 1;
    for (int32_t s = 0; s < map->states; s++) {
        map->rest[s] = -1;
        for (int32_t a = 0, j = 0; a < map->actions; a++) {
            const int32_t to = target[2 * ((int64_t)s * map->actions + a) + 1];
            const double p = world->probability[row_start[0] + 2 * ((int64_t)s * map->actions + a) + 1];
            if (p == 0.0 && map->rest[s] < 0)
                map->rest[s] = (int16_t)a;
            if (j < map->moving && map->action[j] == a)
                map->target[(int64_t)s * map->moving + j++] = p == 0.0 ? map->states : to;
        }
        fits = fits && map->rest[s] >= 0;
    }
    if (!fits || !read_uses(map, world->use_start + world->first_use_row[uses], world->used, by_state))
        map_end(map);
    return 0;
}

/* One step back: values alone, or with the first best action of each state; called with constants. */
ALWAYS_INLINE void map_back(const Map *map, int32_t moving, int edges, int choose, const double *reward,
                            const double *marginal, const int32_t *order, int32_t count, const double *ahead, double *here,
                            int16_t *chosen)
{
    const double stays = map->stays, moves = map->moves;
    for (int32_t p = 0; p < count; p++) {
        const int32_t s = order[p], *target = map->target + (int64_t)s * moving;
        const double still = stays * ahead[s], shared = marginal[map->index[s]];
        if (!edges && !choose) {
            double most = -INFINITY;
            for (int32_t j = 0; j < moving; j++)
                most = larger(ahead[target[j]], most);
            here[s] = (reward[s] - shared) + larger(still + moves * most, ahead[s]);
            continue;
        }
        const int32_t *edge = edges ? map->edge + (int64_t)s * moving : NULL;
        const double resting = edges ? ahead[s] - shared : ahead[s];
        double value[SHORT_LIST], best = resting;
        for (int32_t j = 0; j < moving; j++) {
            value[j] = still + moves * ahead[target[j]];
            if (edges)
                value[j] -= shared + marginal[edge[j]];
            best = larger(value[j], best);
        }
        here[s] = edges ? reward[s] + best : (reward[s] - shared) + best;
        if (choose) {
            /* Without a branch on values, which no processor could predict. */
            uint32_t reached = 1u << moving; /* the action behind the last one that moves is none */
            for (int32_t j = 0; j < moving; j++)
                reached |= (uint32_t)(value[j] >= best) << j;
            const int32_t by_moving = map->action[lowest_bit(reached)];
            const int32_t by_resting = map->rest[s] | -(int32_t)!(resting >= best);
            /* −1 is the largest of all. Values that are not numbers reach nothing. */
            const uint32_t action = (uint32_t)by_moving < (uint32_t)by_resting ? (uint32_t)by_moving : (uint32_t)by_resting;
            chosen[p] = (int16_t)(action & ~(uint32_t)-(action >= SHORT_LIST));
        }
    }
}

void map_back_up(const Map *map, const double *reward, const double *marginal, const int32_t *order, int32_t count,
                 const double *ahead, double *here, int16_t *chosen)
{
#define CASES(M)                                                                                                       \
    if (map->edge == NULL && chosen == NULL)                                                                           \
        map_back(map, M, 0, 0, reward, marginal, order, count, ahead, here, chosen);                                     \
    else if (map->edge == NULL)                                                                                        \
        map_back(map, M, 0, 1, reward, marginal, order, count, ahead, here, chosen);                                     \
    else if (chosen == NULL)                                                                                           \
        map_back(map, M, 1, 0, reward, marginal, order, count, ahead, here, chosen);                                     \
    else                                                                                                               \
        map_back(map, M, 1, 1, reward, marginal, order, count, ahead, here, chosen);
    if (map->moving == 4) {
        CASES(4)
    } else {
        CASES(map->moving)
    }
#undef CASES
}

/* The largest sizes of a weighted reward and of what is spent at one step, by which ties are measured. */
void map_largest(const Map *map, const double *reward, const double *marginal, const double *spent, const int32_t *order,
                 int32_t count, double *sizes)
{
    for (int32_t p = 0; p < count; p++) {
        const int32_t s = order[p], index = map->index[s];
        sizes[0] = larger(fabs(reward[s] - marginal[index]), sizes[0]);
        sizes[1] = larger(fabs(spent[index]), sizes[1]);
        for (int32_t j = 0; map->edge != NULL && j < map->moving; j++) {
            const int64_t slot = (int64_t)s * map->moving + j;
            if (map->target[slot] == map->states)
                continue;
            sizes[0] = larger(fabs(reward[s] - (marginal[index] + marginal[map->edge[slot]])), sizes[0]);
            sizes[1] = larger(fabs(spent[index] + spent[map->edge[slot]]), sizes[1]);
        }
    }
}

/* One step back where ties go to what spends less. */
void map_back_cheapest(const Map *map, const double *reward, const double *marginal, const double *spent, const double *ties,
                       const int32_t *order, int32_t count, double *const ahead[2], double *const here[2], int16_t *chosen)
{
    const int32_t moving = map->moving;
    for (int32_t p = 0; p < count; p++) {
        const int32_t s = order[p], *target = map->target + (int64_t)s * moving, index = map->index[s];
        const double still = map->stays * ahead[0][s], second_still = map->stays * ahead[1][s];
        /* The last one is to rest. */
        double value[SHORT_LIST + 1], second[SHORT_LIST + 1];
        value[moving] = ahead[0][s] + (reward[s] - marginal[index]);
        second[moving] = ahead[1][s] - spent[index];
        double best = value[moving], cheapest = -INFINITY;
        for (int32_t j = 0; j < moving; j++) {
            double stage = reward[s] - marginal[index], spending = spent[index];
            if (map->edge != NULL) {
                const int32_t edge = map->edge[(int64_t)s * moving + j];
                stage = reward[s] - (marginal[index] + marginal[edge]);
                spending = spent[index] + spent[edge];
            }
            value[j] = (still + map->moves * ahead[0][target[j]]) + stage;
            second[j] = (second_still + map->moves * ahead[1][target[j]]) - spending;
            best = larger(value[j], best);
        }
        for (int32_t j = 0; j <= moving; j++)
            if (value[j] >= best - ties[0])
                cheapest = larger(second[j], cheapest);
        int32_t at = -1;
        int16_t action = SHORT_LIST;
        for (int32_t j = 0; j <= moving; j++) {
            const int16_t own = j < moving ? map->action[j] : map->rest[s];
            if (value[j] >= best - ties[0] && second[j] >= cheapest - ties[1] && own < action) {
                action = own;
                at = j;
            }
        }
        at = at < 0 ? moving : at; /* values that are not numbers */
        here[0][s] = value[at];
        here[1][s] = second[at];
        chosen[p] = at == moving ? map->rest[s] : map->action[at];
    }
}
