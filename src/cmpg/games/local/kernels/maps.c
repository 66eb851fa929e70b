/* Agents who all walk on one map: every action stays, or leads to one other state with a probability that is the same
   everywhere; they use the resource on which they stand, and perhaps one more by moving, an edge. Where the cells of the
   map lie in rows, grids.c plans on them. */
#include "local.h"

#include <stdlib.h>
#include <string.h>

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
    if (world->agents == 0 || world->steps == 0 || world->actions[0] > MAX_MAP_ACTIONS || !all_alike(world))
        return 0;
    const int32_t matrix = world->moves_at[(int64_t)world->moves_of[0] * world->steps];
    const int32_t uses = world->uses_at[(int64_t)world->uses_of[0] * world->steps];
    if (!world->row_stays[matrix] || !(world->use_by_state[uses] & (USE_BY_STATE | USE_ONE_MORE)))
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
