/* A map whose cells lie in rows: four actions lead to the neighbours, there and back, and nothing else does.

   Every cell then meets its neighbours at the same distances in memory, walls included, and backward induction runs over
   whole rows of cells, several at once. Walls are worth −∞ and stay so. Values and actions have the bits of `plans.c`,
   which is the twin, wherever an agent can come; elsewhere inside of the rectangle around that, values mean nothing, and
   they are not read. */
#include "local.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MARGIN 8          /* cells behind the last row, so that a run may end late */
#define NOWHERE INT32_MIN /* of a coordinate that is not known yet */
#define NO_ACTION 99.0

#if defined(__GNUC__) && defined(__x86_64__)
#define WIDE __attribute__((target("avx2")))
#define IS_WIDE() __builtin_cpu_supports("avx2")
#else
#define WIDE
#define IS_WIDE() 0
#endif

/* A few numbers at once. Compilers find loops of sums and maxima by themselves, but not those that choose. */
#if defined(__GNUC__)
#define LANES 4
typedef double Lanes __attribute__((vector_size(8 * LANES)));
typedef double Stored __attribute__((vector_size(8 * LANES), aligned(8), may_alias)); /* anywhere in an array */
typedef int64_t Mask __attribute__((vector_size(8 * LANES)));
#define CHOICE(mask, one, other) ((Lanes)(((mask) & (Mask)(one)) | (~(mask) & (Mask)(other))))
#else
#define LANES 1
typedef double Lanes, Stored;
typedef int Mask;
#define CHOICE(mask, one, other) ((mask) ? (one) : (other))
#endif
#if defined(__GNUC__) && !defined(__clang__)
#define UNROLLED _Pragma("GCC unroll 5")
#else
#define UNROLLED
#endif
/* Read and write LANES neighbouring cells; BROADCAST spreads one number over all lanes, and LARGER is the maximum by lane. A
   comparison of lanes with nan is false, as it is for single numbers, so that both builds choose alike. */
#define AT(array, cell) (*(Stored *)((array) + (cell)))
#define READ(array, cell) ((Lanes)*(const Stored *)((array) + (cell)))
#define BROADCAST(number) ((Lanes){0} + (number))
#define LARGER(one, other) CHOICE((one) > (other), one, other)

static inline double larger(double one, double other)
{
    return one > other ? one : other;
}

void grid_end(Grid *grid)
{
    free(grid->cell);
    free(grid->grid_index);
    free(grid->boxes);
    free(grid->rest);
    free(grid->reward);
    free(grid->chosen);
    free(grid->picked);
    free(grid->tables);
    free(grid->general_of);
    for (int z = 0; z < 2; z++) {
        free(grid->here[z]);
        free(grid->ahead[z]);
    }
    memset(grid, 0, sizeof *grid);
}

/* Which action leads back: 0 where none does everywhere. */
static int find_pairs(const Map *map, int back[4])
{
    for (int one = 0; one < 4; one++) {
        back[one] = -1;
        for (int other = 0; other < 4 && back[one] < 0; other++) {
            int fits = one != other;
            for (int32_t s = 0; fits && s < map->states; s++) {
                const int32_t t = map->target[4 * (int64_t)s + one];
                fits = t == map->states || map->target[4 * (int64_t)t + other] == s;
            }
            if (fits)
                back[one] = other;
        }
        if (back[one] < 0)
            return 0;
    }
    for (int one = 0; one < 4; one++)
        if (back[back[one]] != one)
            return 0;
    return 1;
}

/* Columns and rows of all states, from 0, parts that are not connected beside each other; at [S] the numbers of both. 0:
   they lie in no rows. −1: no memory. */
static int find_coordinates(const Map *map, const int along[4], const int down[4], int32_t *column, int32_t *row)
{
    const int32_t S = map->states;
    int32_t *list = malloc((size_t)S * sizeof *list), right = 0, lowest = 0;
    int fits = 1;
    if (list == NULL)
        return -1;
    for (int32_t s = 0; s < S; s++)
        column[s] = NOWHERE;
    for (int32_t first = 0; fits && first < S; first++) {
        if (column[first] != NOWHERE)
            continue;
        int32_t count = 1, left = 0, top = 0, edge = right;
        list[0] = first;
        column[first] = row[first] = 0;
        for (int32_t at = 0; at < count; at++) {
            const int32_t s = list[at];
            left = column[s] < left ? column[s] : left;
            top = row[s] < top ? row[s] : top;
            for (int j = 0; j < 4; j++) {
                const int32_t t = map->target[4 * (int64_t)s + j];
                if (t == S || column[t] != NOWHERE)
                    continue;
                column[t] = column[s] + along[j];
                row[t] = row[s] + down[j];
                list[count++] = t;
            }
        }
        for (int32_t at = 0; at < count; at++) {
            column[list[at]] += right - left;
            row[list[at]] -= top;
            edge = column[list[at]] + 2 > edge ? column[list[at]] + 2 : edge;
            lowest = row[list[at]] + 1 > lowest ? row[list[at]] + 1 : lowest;
        }
        right = edge;
    }
    column[S] = right - 1;
    row[S] = lowest;
    free(list);
    return fits;
}

/* Where the neighbours of each cell are, and where marginal costs lie. 0: there is another way between two cells, or none. */
static int find_layout(Grid *grid, const Map *map, const World *world, const int32_t *column, const int32_t *row,
                   const int along[4], const int down[4], int32_t *state)
{
    const int32_t S = map->states;
    for (int32_t cell = 0; cell < grid->cells; cell++)
        state[cell] = S;
    for (int32_t s = 0; s < S; s++) {
        grid->cell[s] = (row[s] + 1) * grid->width + column[s] + 1;
        if (state[grid->cell[s]] != S)
            return 0;
        state[grid->cell[s]] = s;
    }
    for (int32_t e = 0; e < world->resources; e++)
        grid->grid_index[e] = -1;
    for (int j = 0; j < 4; j++) {
        grid->shift[j] = along[j] + down[j] * grid->width;
        /* The edge between two cells lies where the first of them does. */
        grid->edge[j] = (along[j] ? 1 : 2) * grid->cells + (grid->shift[j] < 0 ? grid->shift[j] : 0);
    }
    for (int32_t s = 0; s < S; s++) {
        if (grid->grid_index[map->index[s]] >= 0)
            return 0;
        grid->grid_index[map->index[s]] = grid->cell[s];
        grid->rest[grid->cell[s]] = map->rest[s];
    }
    for (int32_t s = 0; s < S; s++)
        for (int j = 0; j < 4; j++) {
            const int64_t slot = 4 * (int64_t)s + j;
            if (state[grid->cell[s] + grid->shift[j]] != map->target[slot])
                return 0;
            if (map->edge == NULL || map->target[slot] == S)
                continue;
            const int32_t lies = grid->cell[s] + grid->edge[j], known = grid->grid_index[map->edge[slot]];
            if (known >= 0 && known != lies)
                return 0;
            grid->grid_index[map->edge[slot]] = lies;
        }
    return 1;
}

int grid_begin(Grid *grid, const Map *map, const World *world)
{
    memset(grid, 0, sizeof *grid);
    int back[4];
    if (map->moving != 4 || !find_pairs(map, back))
        return 0;
    const int32_t S = map->states;
    int along[4] = {0, 0, 0, 0}, down[4] = {0, 0, 0, 0};
    int across = back[0];
    along[0] = -1;
    along[across] = 1;
    for (int j = 1; j < 4; j++)
        if (j != across) {
            down[j] = -1;
            down[back[j]] = 1;
            break;
        }
    int32_t *column = malloc(((size_t)S + 1) * sizeof *column), *row = malloc(((size_t)S + 1) * sizeof *row);
    int fits = column == NULL || row == NULL ? -1 : find_coordinates(map, along, down, column, row);
    /* A grid that is nearly all walls would take longer than the states one by one. */
    if (fits > 0)
        fits = ((int64_t)row[S] + 2) * ((int64_t)column[S] + 1) <= 8 * (int64_t)S + 64;
    int32_t *state = NULL;
    if (fits > 0) {
        grid->width = column[S] + 1;
        grid->cells = (row[S] + 2) * grid->width + MARGIN;
        grid->planes = map->edge == NULL ? 1 : 3;
        grid->steps = world->steps;
        grid->wide = IS_WIDE() != 0;
        const size_t cells = (size_t)grid->cells;
        state = malloc(cells * sizeof *state);
        grid->cell = malloc((size_t)S * sizeof *grid->cell);
        grid->grid_index = malloc((size_t)world->resources * sizeof *grid->grid_index);
        grid->boxes = malloc((size_t)world->steps * sizeof *grid->boxes);
        grid->rest = calloc(cells, sizeof *grid->rest);
        grid->reward = calloc(cells, sizeof *grid->reward);
        grid->chosen = calloc(cells * (size_t)world->steps, sizeof *grid->chosen);
        grid->picked = calloc(cells, sizeof *grid->picked);
        int there = state != NULL && grid->cell != NULL && grid->grid_index != NULL && grid->boxes != NULL &&
                    grid->rest != NULL && grid->reward != NULL && grid->chosen != NULL && grid->picked != NULL;
        for (int z = 0; z < 2; z++) {
            grid->here[z] = malloc(cells * sizeof(double));
            grid->ahead[z] = malloc(cells * sizeof(double));
            there = there && grid->here[z] != NULL && grid->ahead[z] != NULL;
            for (int32_t cell = 0; there && cell < grid->cells; cell++)
                grid->here[z][cell] = grid->ahead[z][cell] = -INFINITY;
        }
        fits = there ? find_layout(grid, map, world, column, row, along, down, state) : -1;
    }
    free(state);
    free(column);
    free(row);
    if (fits <= 0)
        grid_end(grid);
    return fits < 0 ? -1 : 0;
}

void grid_scatter(const Grid *grid, const double *marginal, int32_t resources, double *gridded)
{
    const int64_t stride = grid_stride(grid);
    for (int32_t h = 0; h < grid->steps; h++)
        for (int32_t e = 0; e < resources; e++)
            if (grid->grid_index[e] >= 0)
                gridded[h * stride + grid->grid_index[e]] = marginal[(int64_t)h * resources + e];
}

/* One table of a resource's numbers, as the cells lie. */
static const double *relabelled(const Grid *grid, const double *table, int64_t families, int32_t resources, double **to)
{
    const int64_t stride = grid_stride(grid);
    const double *begin = *to;
    for (int64_t family = 0; family < families; family++)
        for (int32_t e = 0; e < resources; e++)
            if (grid->grid_index[e] >= 0)
                (*to)[family * stride + grid->grid_index[e]] = table[family * resources + e];
    *to += families * stride;
    return begin;
}

int grid_relabel(Grid *grid, const World *world, World *gridded)
{
    *gridded = *world;
    if (grid->cells == 0)
        return 0;
    const int64_t stride = grid_stride(grid), k = world->constraints;
    double *tables = grid->tables = calloc((size_t)((2 + 2 * k) * stride), sizeof *tables);
    int32_t *general_of = grid->general_of = malloc((size_t)stride * sizeof *general_of);
    if (tables == NULL || general_of == NULL)
        return -1;
    for (int64_t at = 0; at < stride; at++)
        general_of[at] = -1;
    gridded->resources = (int32_t)stride;
    gridded->general_of = general_of;
    gridded->first_delay = relabelled(grid, world->first_delay, 1, world->resources, &tables);
    gridded->slopes = relabelled(grid, world->slopes, 1 + k, world->resources, &tables);
    gridded->first_costs = relabelled(grid, world->first_costs, k, world->resources, &tables);
    return 0;
}

/* One run of cells, a step back: values alone; called with constants. */
ALWAYS_INLINE void run_back(const Grid *grid, const Map *map, int edges, const double *restrict marginal,
                            const double *restrict ahead, double *restrict here, int32_t begin, int32_t end)
{
    /* A move succeeds with probability `moves` and leaves the agent where it is otherwise, so that all actions share the
       term of staying, and without edges only the largest neighbour matters. */
    const double stays = map->stays, moves = map->moves, *restrict reward = grid->reward;
    const double *next[4], *crossed[4];
    for (int j = 0; j < 4; j++) {
        next[j] = ahead + grid->shift[j];
        crossed[j] = marginal + grid->edge[j];
    }
    for (int32_t cell = begin; cell < end; cell++) {
        const double still = stays * ahead[cell], shared = marginal[cell];
        if (!edges) {
            const double most =
                larger(larger(next[0][cell], next[1][cell]), larger(next[2][cell], next[3][cell]));
            here[cell] = (reward[cell] - shared) + larger(still + moves * most, ahead[cell]);
            continue;
        }
        double best = ahead[cell] - shared;
        for (int j = 0; j < 4; j++)
            best = larger((still + moves * next[j][cell]) - (shared + crossed[j][cell]), best);
        here[cell] = reward[cell] + best;
    }
}

/* What the cells of a run have picked, as bytes. */
ALWAYS_INLINE void write_picked(const double *restrict picked, int8_t *restrict chosen, int32_t begin, int32_t end)
{
    for (int32_t cell = begin; cell < end; cell++)
        chosen[cell] = (int8_t)(int32_t)picked[cell];
}

/* The same with the first best action of each cell. */
ALWAYS_INLINE void run_choosing(const Grid *grid, const Map *map, int edges, const double *marginal, const double *ahead,
                                double *here, int8_t *chosen, int32_t begin, int32_t end)
{
    const double stays = map->stays, moves = map->moves;
    const double action[4] = {map->action[0], map->action[1], map->action[2], map->action[3]};
    for (int32_t cell = begin; cell < end; cell += LANES) {
        Lanes now, shared, reward, value[4], crossed, first;
        now = READ(ahead, cell);
        shared = READ(marginal, cell);
        reward = READ(grid->reward, cell);
        first = READ(grid->rest, cell);
        const Lanes still = stays * now, resting = edges ? now - shared : now;
        Lanes best = resting;
        UNROLLED
        for (int j = 0; j < 4; j++) {
            value[j] = READ(ahead, cell + grid->shift[j]);
            value[j] = still + moves * value[j];
            if (edges) {
                crossed = READ(marginal, cell + grid->edge[j]);
                value[j] -= shared + crossed;
            }
            best = LARGER(value[j], best);
        }
        const Lanes value_here = edges ? reward + best : (reward - shared) + best;
        AT(here, cell) = value_here;
        first = CHOICE(resting >= best, first, BROADCAST(NO_ACTION));
        UNROLLED
        for (int j = 0; j < 4; j++) {
            const Lanes own = CHOICE(value[j] >= best, BROADCAST(action[j]), BROADCAST(NO_ACTION));
            first = CHOICE(own < first, own, first);
        }
        first = CHOICE(first < NO_ACTION, first, BROADCAST(0.0)); /* what is no number reaches nothing */
        AT(grid->picked, cell) = first;
    }
    write_picked(grid->picked, chosen, begin, end);
}

/* Of five actions, of which the last is to rest, the first among those that are worth enough and have most left. */
ALWAYS_INLINE void first_of_best(const Grid *grid, const double *action, const Lanes *value, const Lanes *left, const Lanes *best,
                                 const double *ties, int32_t cell, Mask *taken)
{
    Lanes near[5], most = BROADCAST(-INFINITY), first = BROADCAST(NO_ACTION), rest;
    rest = READ(grid->rest, cell);
    UNROLLED
    for (int j = 0; j < 5; j++) {
        /* Within ties[0] of the best, actions count as equal: they differ by less than rounding explains. */
        near[j] = CHOICE(value[j] >= *best - ties[0], left[j], BROADCAST(-INFINITY));
        most = LARGER(near[j], most);
    }
    UNROLLED
    for (int j = 0; j < 5; j++) {
        const Lanes named = j < 4 ? BROADCAST(action[j]) : rest;
        const Lanes own = CHOICE(near[j] >= most - ties[1], named, BROADCAST(NO_ACTION));
        taken[j] = own < first;
        first = CHOICE(taken[j], own, first);
    }
    first = CHOICE(first < NO_ACTION, first, rest);
    AT(grid->picked, cell) = first;
}

/* The same where ties go to what spends less. */
ALWAYS_INLINE void run_cheapest(const Grid *grid, const Map *map, int edges, const double *marginal, const double *spent,
                                const double *ties, const double *ahead, const double *second_ahead, double *here,
                                double *second_here, int8_t *chosen, int32_t begin, int32_t end)
{
    const double stays = map->stays, moves = map->moves;
    const double action[4] = {map->action[0], map->action[1], map->action[2], map->action[3]};
    for (int32_t cell = begin; cell < end; cell += LANES) {
        Lanes now, later, reward, paid, spending, value[5], second[5], crossed;
        now = READ(ahead, cell);
        later = READ(second_ahead, cell);
        reward = READ(grid->reward, cell);
        paid = READ(marginal, cell);
        spending = READ(spent, cell);
        value[4] = now + (reward - paid);
        second[4] = later - spending;
        Lanes best = value[4];
        UNROLLED
        for (int j = 0; j < 4; j++) {
            Lanes stage = reward - paid, more = spending;
            if (edges) {
                crossed = READ(marginal, cell + grid->edge[j]);
                stage = reward - (paid + crossed);
                crossed = READ(spent, cell + grid->edge[j]);
                more = spending + crossed;
            }
            value[j] = READ(ahead, cell + grid->shift[j]);
            second[j] = READ(second_ahead, cell + grid->shift[j]);
            value[j] = (stays * now + moves * value[j]) + stage;
            second[j] = (stays * later + moves * second[j]) - more;
            best = LARGER(value[j], best);
        }
        Mask taken[5];
        first_of_best(grid, action, value, second, &best, ties, cell, taken);
        Lanes value_here = value[4], left = second[4];
        UNROLLED
        for (int j = 0; j < 5; j++) {
            value_here = CHOICE(taken[j], value[j], value_here);
            left = CHOICE(taken[j], second[j], left);
        }
        AT(here, cell) = value_here;
        AT(second_here, cell) = left;
    }
    write_picked(grid->picked, chosen, begin, end);
}

typedef struct {
    const double *marginal, *spent, *ties; /* the last two where ties go to what spends less, else NULL */
    const double *ahead[2];
    double *here[2];
    int8_t *chosen; /* or NULL */
} Back;

ALWAYS_INLINE void run(const Grid *grid, const Map *map, const Back *back, int32_t begin, int32_t end)
{
    const double *marginal = back->marginal, *ahead = back->ahead[0];
    double *here = back->here[0];
    int8_t *chosen = back->chosen;
    if (back->spent != NULL && grid->planes > 1)
        run_cheapest(grid, map, 1, marginal, back->spent, back->ties, ahead, back->ahead[1], here, back->here[1], chosen,
                     begin, end);
    else if (back->spent != NULL)
        run_cheapest(grid, map, 0, marginal, back->spent, back->ties, ahead, back->ahead[1], here, back->here[1], chosen,
                     begin, end);
    else if (grid->planes > 1 && chosen != NULL)
        run_choosing(grid, map, 1, marginal, ahead, here, chosen, begin, end);
    else if (grid->planes > 1)
        run_back(grid, map, 1, marginal, ahead, here, begin, end);
    else if (chosen != NULL)
        run_choosing(grid, map, 0, marginal, ahead, here, chosen, begin, end);
    else
        run_back(grid, map, 0, marginal, ahead, here, begin, end);
}

static void run_plain(const Grid *grid, const Map *map, const Back *back, int32_t begin, int32_t end)
{
    run(grid, map, back, begin, end);
}

/* The same sums and products, more of them at once. */
WIDE static void run_wide(const Grid *grid, const Map *map, const Back *back, int32_t begin, int32_t end)
{
    run(grid, map, back, begin, end);
}

/* The rectangle around what an agent can reach, for each step. */
static void find_boxes(Grid *grid, const int32_t *order, const int32_t *reach)
{
    GridBox box = {INT32_MAX, -1, INT32_MAX, -1};
    for (int32_t h = 0, p = 0; h < grid->steps; h++) {
        for (; p < reach[h]; p++) {
            const int32_t cell = grid->cell[order[p]], y = cell / grid->width, x = cell % grid->width;
            box.top = y < box.top ? y : box.top;
            box.bottom = y > box.bottom ? y : box.bottom;
            box.left = x < box.left ? x : box.left;
            box.right = x > box.right ? x : box.right;
        }
        grid->boxes[h] = box;
    }
}

static void scatter_rewards(Grid *grid, const Map *map, const double *reward)
{
    for (int32_t s = 0; s < map->states; s++)
        grid->reward[grid->cell[s]] = reward[s];
}

const double *grid_plan(Grid *grid, const Map *map, const GridPlan *plan)
{
    void (*const back_run)(const Grid *, const Map *, const Back *, int32_t, int32_t) = grid->wide ? run_wide : run_plain;
    const int weightings = plan->second == NULL ? 1 : 2;
    const int64_t stride = grid_stride(grid);
    find_boxes(grid, plan->order, plan->reach);
    for (int z = 0; z < weightings; z++)
        for (int32_t s = 0; s < map->states; s++)
            grid->ahead[z][grid->cell[s]] = 0.0; /* after the last step */
    if (plan->reward_step == 0)
        scatter_rewards(grid, map, plan->reward);
    for (int32_t h = grid->steps - 1; h >= 0; h--) {
        const GridBox box = grid->boxes[h];
        const Back back = {
            plan->marginal + h * stride,
            plan->second == NULL ? NULL : plan->second + h * stride,
            plan->ties,
            {grid->ahead[0], grid->ahead[1]},
            {grid->here[0], grid->here[1]},
            plan->choose ? grid->chosen + (int64_t)h * grid->cells : NULL,
        };
        if (plan->reward_step != 0)
            scatter_rewards(grid, map, plan->reward + h * plan->reward_step);
        if (4 * (box.right - box.left) > 3 * grid->width)
            back_run(grid, map, &back, box.top * grid->width + box.left, box.bottom * grid->width + box.right + 1);
        else
            for (int32_t y = box.top; y <= box.bottom; y++) {
                /* Rounded up to whole lanes: cells beyond the rectangle are computed, and their values are not read. */
                const int32_t begin = y * grid->width + box.left, length = (box.right - box.left + 4) & ~3;
                back_run(grid, map, &back, begin, begin + length);
            }
        for (int z = 0; z < weightings; z++) {
            double *old = grid->ahead[z];
            grid->ahead[z] = grid->here[z];
            grid->here[z] = old;
        }
    }
    return grid->ahead[0];
}

/* The largest sizes of a weighted reward and of what is spent, by which ties are measured. */
void grid_largest(const Grid *grid, const Map *map, const GridPlan *plan, double *sizes)
{
    const int64_t stride = grid_stride(grid);
    for (int32_t h = 0; h < grid->steps; h++) {
        const double *reward = plan->reward + h * plan->reward_step, *marginal = plan->marginal + h * stride;
        const double *spent = plan->second + h * stride;
        for (int32_t p = 0; p < plan->reach[h]; p++) {
            const int32_t s = plan->order[p], cell = grid->cell[s];
            sizes[0] = larger(fabs(reward[s] - marginal[cell]), sizes[0]);
            sizes[1] = larger(fabs(spent[cell]), sizes[1]);
            for (int j = 0; map->edge != NULL && j < 4; j++) {
                const int32_t edge = cell + grid->edge[j];
                if (map->target[4 * (int64_t)s + j] == map->states)
                    continue;
                sizes[0] = larger(fabs(reward[s] - (marginal[cell] + marginal[edge])), sizes[0]);
                sizes[1] = larger(fabs(spent[cell] + spent[edge]), sizes[1]);
            }
        }
    }
}

/* Σ_h max |r| and Σ_h max |what is paid|, over all cells: no less than over those that can be reached. */
double grid_sizes(const Grid *grid, const GridPlan *plan, int32_t states)
{
    const int64_t stride = grid_stride(grid);
    double sum = 0.0, size = 0.0;
    for (int32_t h = 0; h < grid->steps; h++) {
        double paid[3] = {0.0, 0.0, 0.0};
        if (h == 0 || plan->reward_step != 0) {
            size = 0.0;
            for (int32_t s = 0; s < states; s++)
                size = larger(fabs(plan->reward[h * plan->reward_step + s]), size);
        }
        for (int plane = 0; plane < grid->planes; plane++)
            for (int32_t cell = 0; cell < grid->cells; cell++)
                paid[plane] = larger(fabs(plan->marginal[h * stride + plane * grid->cells + cell]), paid[plane]);
        sum += size + paid[0] + larger(paid[1], paid[2]);
    }
    return sum;
}
