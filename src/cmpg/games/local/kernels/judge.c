/* All agents of a local game in turn, each against the loads of the others, by sums of non-negative numbers alone: what
   a certificate needs. The twin is `certify` over induced CMDPs.

   "All agents but i" for all i, where a resource's marginal cost depends on the mean load alone: all agents together, and on the
   indices that agent i uses the sum of those before it and of those after it. Elsewhere: the agents outside of a block are
   known; going into one half of the block, the other half is added, and afterwards every number that this changed is put
   back as it was. So each agent is added log2 n times. Nothing is ever subtracted, and one table of loads is enough.

   In a crowd many are of one kind and do the same: what is found for one of them holds for all. */
#include "local.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What has to be put back: a mean load, or a whole distribution, as it was when a half of a block began to be added. */
typedef struct {
    int32_t index;
    int64_t half; /* the last half before this one that changed the index */
    double mean;
    Distribution before; /* probability NULL on quadratic resources */
} Change;

typedef struct {
    const World *world;
    const Usage *all;
    double *mean;                /* [H·E] */
    double *pairs;               /* [H·E]: Σ u_i·u_j, of `count_others`; else NULL */
    Distribution *distributions; /* [H·R] */
    int64_t *changed_by; /* [H·E]: the half that changed an index last */
    int64_t half;        /* which is being added */
    Change *changes;
    int64_t count, room;
    double *delays, *marginals; /* [H·E] and [k, H·E]: of the agent whose turn it is */
    double *largest; /* [k, H]: the largest sizes of marginal costs beside all agents, where all resources are quadratic; or NULL */
    const int32_t *visited; /* [n + 1]: how many of those before an agent are visited; or NULL: all of the block */
    Watch *watch;
    Stop stop;
    int (*visit)(void *visitor, int32_t agent, const double *delays, const double *marginals);
    void *visitor;
} Others;

/* Notes what an index was like, the first time that this half changes it. */
static int others_note(Others *others, int32_t index, Distribution *one)
{
    if (others->count == others->room) {
        const int64_t room = others->room < 1024 ? 1024 : 2 * others->room;
        Change *larger = realloc(others->changes, (size_t)room * sizeof *larger);
        if (larger == NULL)
            return -1;
        others->changes = larger;
        others->room = room;
    }
    Change *change = &others->changes[others->count];
    memset(change, 0, sizeof *change);
    change->index = index;
    change->half = others->changed_by[index];
    change->mean = others->mean[index];
    if (one != NULL) {
        /* The old array is kept, and a copy goes on. */
        double *copy = malloc((size_t)(one->room + 1) * sizeof *copy);
        if (copy == NULL)
            return -1;
        memcpy(copy, one->probability, (size_t)one->room * sizeof *copy);
        change->before = *one;
        one->probability = copy;
    }
    others->changed_by[index] = others->half;
    others->count++;
    return 0;
}

static Distribution *others_at(Others *others, int32_t index)
{
    const World *world = others->world;
    const int32_t r = world->general_of[index % world->resources];
    return r < 0 ? NULL : &others->distributions[(int64_t)(index / world->resources) * world->general + r];
}

static int others_add(Others *others, const Usage *usage)
{
    for (int64_t entry = 0; entry < usage->count; entry++) {
        const int32_t index = usage->index[entry];
        Distribution *one = others_at(others, index);
        if (others->changed_by[index] != others->half && others_note(others, index, one) < 0)
            return -1;
        others->mean[index] += usage->probability[entry];
        if (one != NULL && distribution_add(one, usage->probability[entry], 0.0) < 0)
            return -1;
    }
    return 0;
}

static void others_undo(Others *others, int64_t count)
{
    while (others->count > count) {
        const Change *change = &others->changes[--others->count];
        Distribution *one = others_at(others, change->index);
        others->mean[change->index] = change->mean;
        others->changed_by[change->index] = change->half;
        if (one != NULL) {
            free(one->probability);
            *one = change->before;
        }
    }
}

/* Delays and marginal costs of one more user of every index, beside those who are counted. */
static void weigh(Others *others)
{
    const World *world = others->world;
    const int64_t H = world->steps, E = world->resources, n = world->agents, R = world->general, C = world->charged;
    const int64_t indices = H * E;
    const int64_t slope_size = (world->slope_stride ? H : 1) * E, first_size = (world->first_stride ? H : 1) * E;
    const int64_t cost_size = (world->general_cost_stride ? H : 1) * C * n;
    for (int64_t h = 0; h < H; h++)
        for (int64_t e = 0; e < E; e++) {
            const int64_t at = h * E + e;
            const int32_t r = world->general_of[e];
            const Distribution *one = r < 0 ? NULL : &others->distributions[h * R + r];
            if (world->has_delay)
                others->delays[at] = r < 0 ? world->first_delay[h * world->delay_stride + e] +
                                                 world->slopes[h * world->slope_stride + e] * others->mean[at]
                                           : expected(world->general_delay + (h * world->general_delay_stride * R + r) * n,
                                                      one->sure, one->probability, one->low, one->high);
            for (int j = 0; j < world->constraints; j++)
                others->marginals[j * indices + at] =
                    r < 0 ? world->first_costs[j * first_size + h * world->first_stride + e] +
                                world->slopes[(1 + j) * slope_size + h * world->slope_stride + e] * others->mean[at]
                    : r < C ? expected(world->general_steps + j * cost_size + (h * world->general_cost_stride * C + r) * n,
                                       one->sure, one->probability, one->low, one->high)
                            : 0.0;
        }
}

/* The same of one index of a quadratic resource, beside a given mean load. */
static inline void weigh_index(Others *others, int64_t h, int64_t e, double mean)
{
    const World *world = others->world;
    const int64_t H = world->steps, E = world->resources, at = h * E + e;
    const int64_t slope_size = (world->slope_stride ? H : 1) * E, first_size = (world->first_stride ? H : 1) * E;
    const double *slopes = world->slopes + h * world->slope_stride + e;
    if (world->has_delay)
        others->delays[at] = world->first_delay[h * world->delay_stride + e] + slopes[0] * mean;
    for (int j = 0; j < world->constraints; j++)
        others->marginals[j * H * E + at] =
            world->first_costs[j * first_size + h * world->first_stride + e] + slopes[(1 + j) * slope_size] * mean;
}

/* Weighs the indices of one agent beside given mean loads of theirs, or beside all agents. */
static void weigh_indices(Others *others, const Usage *usage, const double *means)
{
    const int32_t E = others->world->resources;
    int32_t h = 0;
    for (int64_t entry = 0; entry < usage->count; entry++) {
        const int32_t index = usage->index[entry];
        while (index - h * E >= E)
            h++;
        weigh_index(others, h, index - h * E, means == NULL ? others->mean[index] : means[entry]);
    }
}

static void note_largest(Others *others)
{
    const World *world = others->world;
    const int64_t H = world->steps, E = world->resources;
    for (int64_t row = 0; row < world->constraints * H; row++) {
        double found[4] = {0.0, 0.0, 0.0, 0.0}; /* one comparison need not wait for the one before */
        for (int64_t e = 0; e < E; e++) {
            const double size = fabs(others->marginals[row * E + e]);
            found[e & 3] = size > found[e & 3] ? size : found[e & 3];
        }
        for (int lane = 1; lane < 4; lane++)
            found[0] = found[lane] > found[0] ? found[lane] : found[0];
        others->largest[row] = found[0];
    }
}

/* Whether any agent of first ≤ i < last has to be visited, of from ≤ i < to. */
static int is_wanted(const Others *others, int32_t first, int32_t last, int32_t from, int32_t to)
{
    const int32_t begin = first > from ? first : from, end = last < to ? last : to;
    return begin < end && (others->visited == NULL || others->visited[end] > others->visited[begin]);
}

/* Visits agents from ≤ i < to, where all resources are quadratic. */
static int visit_quadratic(Others *others, int32_t from, int32_t to)
{
    const World *world = others->world;
    const Usage *all = others->all;
    int64_t entries = 0, at = 0;
    for (int32_t i = from; i < to; i++)
        entries += all[i].count;
    double *without = malloc((size_t)(entries + 1) * sizeof *without);
    double *after = calloc((size_t)world->steps * (size_t)world->resources, sizeof *after);
    others->largest = malloc((size_t)(world->constraints * world->steps + 1) * sizeof(double));
    int failed = without == NULL || after == NULL || others->largest == NULL;
    for (int32_t i = 0; !failed && i < world->agents; i++)
        if (i < from || i >= to)
            for (int64_t entry = 0; entry < all[i].count; entry++)
                others->mean[all[i].index[entry]] += all[i].probability[entry];
    for (int32_t i = from; !failed && i < to; i++)
        for (int64_t entry = 0; entry < all[i].count; entry++) {
            without[at++] = others->mean[all[i].index[entry]];
            others->mean[all[i].index[entry]] += all[i].probability[entry];
        }
    /* Those before an agent, as counted above, and those after it, backwards: a sum of non-negative numbers, where the
       total less its own use would cancel. */
    for (int32_t i = to - 1; !failed && i >= from; i--)
        for (int64_t entry = all[i].count - 1; entry >= 0; entry--) {
            without[--at] += after[all[i].index[entry]];
            after[all[i].index[entry]] += all[i].probability[entry];
        }
    if (!failed) {
        weigh(others);
        note_largest(others);
    }
    for (int32_t i = from; !failed && i < to; i++) {
        if (others->watch != NULL && (others->stop = must_stop(others->watch)) != GO_ON)
            break;
        if (is_wanted(others, i, i + 1, from, to)) {
            weigh_indices(others, &all[i], without + at);
            failed = others->visit(others->visitor, i, world->has_delay ? others->delays : NULL, others->marginals) < 0;
            weigh_indices(others, &all[i], NULL);
        }
        at += all[i].count;
    }
    free(without);
    free(after);
    return failed ? -1 : 0;
}

/* Visits agents first ≤ i < last that are wanted; all outside are counted already. */
static int visit_block(Others *others, int32_t first, int32_t last, int32_t from, int32_t to)
{
    if (!is_wanted(others, first, last, from, to))
        return 0;
    if (last - first == 1) {
        if (others->watch != NULL && (others->stop = must_stop(others->watch)) != GO_ON)
            return 0;
        weigh(others);
        return others->visit(others->visitor, first, others->world->has_delay ? others->delays : NULL, others->marginals);
    }
    const int32_t middle = first + (last - first) / 2;
    for (int half = 0; half < 2 && others->stop == GO_ON; half++) {
        const int32_t outside = half ? first : middle, end = half ? middle : last;
        const int64_t before = others->count;
        if (!is_wanted(others, half ? middle : first, half ? last : middle, from, to))
            continue;
        others->half++;
        for (int32_t i = outside; i < end; i++)
            if (others_add(others, &others->all[i]) < 0)
                return -1;
        if (visit_block(others, half ? middle : first, half ? last : middle, from, to) < 0)
            return -1;
        others_undo(others, before);
    }
    return 0;
}

static int others_begin(Others *others, const World *world, const Usage *all)
{
    const size_t indices = (size_t)world->steps * (size_t)world->resources;
    const int64_t general = (int64_t)world->steps * world->general;
    others->world = world;
    others->all = all;
    others->mean = calloc(indices, sizeof(double));
    others->changed_by = calloc(indices, sizeof(int64_t));
    others->delays = malloc((indices + 1) * sizeof(double));
    others->marginals = malloc((indices * (size_t)world->constraints + 1) * sizeof(double));
    others->distributions = calloc((size_t)general + 1, sizeof(Distribution));
    if (others->mean == NULL || others->changed_by == NULL || others->delays == NULL || others->marginals == NULL || others->distributions == NULL)
        return -1;
    for (int64_t at = 0; at < general; at++)
        if (distribution_clear(&others->distributions[at]) < 0)
            return -1;
    return 0;
}

/* Counts all agents but one: the half without the agent, then a half of the other half, …. Blocks are those of
   `visit_block`, and so is the order. */
static int count_others(Others *others, int32_t agent)
{
    int32_t first = 0, last = others->world->agents;
    while (last - first > 1) {
        const int32_t middle = first + (last - first) / 2;
        const int32_t from = agent < middle ? middle : first, to = agent < middle ? last : middle;
        for (int32_t i = from; i < to; i++) {
            const Usage *usage = &others->all[i];
            for (int64_t entry = 0; entry < usage->count; entry++) {
                const int32_t index = usage->index[entry];
                const double u = usage->probability[entry];
                Distribution *one = others_at(others, index);
                others->pairs[index] += u * others->mean[index];
                others->mean[index] += u;
                if (one != NULL && distribution_add(one, u, 0.0) < 0)
                    return -1;
            }
        }
        first = agent < middle ? first : middle;
        last = agent < middle ? middle : last;
    }
    return 0;
}

static void others_end(Others *others)
{
    if (others->count > 0)
        others_undo(others, 0);
    for (int64_t at = 0; others->distributions != NULL && at < (int64_t)others->world->steps * others->world->general; at++)
        free(others->distributions[at].probability);
    free(others->distributions);
    free(others->mean);
    free(others->pairs);
    free(others->changed_by);
    free(others->delays);
    free(others->marginals);
    free(others->changes);
    free(others->largest);
}

typedef struct {
    Planner planner;
    const Others *others;
    const double *values, *costs;     /* private, [n] and [n, k] of those who are judged */
    const double *multipliers;        /* [n, k] */
    double *maxima, *current, *sizes; /* [n], [n, 1 + k], [n, 1 + k] */
    int32_t first;
    double *weighted;                 /* [H·E], or as the cells of a grid lie */
} Judge;

static double *weighted_room(const Planner *planner)
{
    const int64_t indices = planner->world->resources, gridded = grid_stride(&planner->grid);
    return calloc((size_t)(planner->world->steps * (indices > gridded ? indices : gridded)) + 1, sizeof(double));
}

/* What an agent gets and spends by what it uses, beside what one more user meets and adds. Sums of a step, then of all. */
static void current_of(const World *world, const Usage *usage, const double *delays, const double *marginals, double value,
                       const double *costs, double *current)
{
    const int64_t E = world->resources, indices = world->steps * E;
    for (int l = 0; l <= world->constraints; l++) {
        const double *met = l == 0 ? delays : marginals + (l - 1) * indices;
        double total = 0.0, step = 0.0;
        int64_t end = E;
        for (int64_t entry = 0; met != NULL && entry < usage->count; entry++) {
            if (usage->index[entry] >= end) {
                total += step;
                step = 0.0;
                end = (usage->index[entry] / E + 1) * E;
            }
            step += usage->probability[entry] * met[usage->index[entry]];
        }
        total += step;
        current[l] = l == 0 ? value - total : costs[l - 1] + total;
    }
}

/* The largest sizes among all that any agent could meet: no less than among what the agent can reach. */
static void sizes_beside_all(const World *world, const Usage *usage, const double *marginals, const double *largest,
                             int uses, double *sizes)
{
    const int64_t E = world->resources, indices = world->steps * E;
    for (int j = 0; j < world->constraints; j++) {
        int64_t entry = 0;
        for (int64_t h = 0; h < world->steps; h++) {
            double most = largest[j * world->steps + h];
            for (; entry < usage->count && usage->index[entry] < (h + 1) * E; entry++) {
                const double size = fabs(marginals[j * indices + usage->index[entry]]);
                most = size > most ? size : most;
            }
            sizes[1 + j] += uses * most;
        }
    }
}

static int judge_agent(void *visitor, int32_t agent, const double *delays, const double *marginals)
{
    Judge *own = visitor;
    Planner *planner = &own->planner;
    const World *world = planner->world;
    const Usage *usage = &own->others->all[agent];
    const int64_t k = world->constraints, at = agent - own->first;
    const double *multipliers = own->multipliers + at * k;
    double *sizes = own->sizes + at * (1 + k);
    const int on_grid = planner->grid.cells > 0 && delays == NULL && own->others->largest != NULL;
    if (on_grid)
        scatter_weighted(planner, marginals, multipliers, own->weighted);
    planner->gridded[0] = on_grid ? own->weighted : NULL;
    if (greatest(planner, agent, delays, marginals, multipliers, own->weighted, &own->maxima[at], sizes) < 0)
        return -1;
    if (on_grid)
        sizes_beside_all(world, usage, marginals, own->others->largest, planner->grid.planes > 1 ? 2 : 1, sizes);
    current_of(world, usage, delays, marginals, own->values[at], own->costs + at * k, own->current + at * (1 + k));
    return 0;
}

/* Whether two agents are of one kind, do the same, and are judged by the same multipliers. */
static int are_alike(const void *context, int32_t one, int32_t other)
{
    const Judge *own = context;
    const World *world = own->planner.world;
    const int64_t k = world->constraints, i = one - own->first, j = other - own->first;
    return same_usage(&own->others->all[one], &own->others->all[other]) &&
           memcmp(own->values + i, own->values + j, sizeof(double)) == 0 &&
           memcmp(own->costs + i * k, own->costs + j * k, (size_t)k * sizeof(double)) == 0 &&
           memcmp(own->multipliers + i * k, own->multipliers + j * k, (size_t)k * sizeof(double)) == 0 &&
           same_kind(world, one, other);
}

static uint64_t hash_of_alike(const void *context, int32_t agent)
{
    const Judge *own = context;
    const World *world = own->planner.world;
    const Usage *usage = &own->others->all[agent];
    uint64_t hash = UINT64_C(0xcbf29ce484222325), bits;
    hash = fold(hash, (uint64_t)world->moves_of[agent]);
    hash = fold(hash, (uint64_t)world->uses_of[agent]);
    hash = fold(hash, (uint64_t)world->reward_of[agent]);
    memcpy(&bits, own->values + (agent - own->first), sizeof bits);
    hash = fold(hash, bits);
    for (int64_t entry = 0; entry < usage->count; entry++) {
        memcpy(&bits, usage->probability + entry, sizeof bits);
        hash = fold(hash, bits + (uint64_t)(uint32_t)usage->index[entry]);
    }
    return hash;
}

/* The first of first ≤ i < last that is like agent i: like[i − first]; and how many first ones there are before i:
   visited[i], for all i ≤ n. −1: no memory. */
static int find_alike(const Judge *own, int32_t first, int32_t last, int32_t *like, int32_t *visited)
{
    if (find_equal(first, last, hash_of_alike, are_alike, own, like) < 0)
        return -1;
    visited[0] = 0;
    for (int32_t i = 0; i < own->planner.world->agents; i++)
        visited[i + 1] = visited[i] + (i >= first && i < last && like[i - first] == i);
    return 0;
}

/* What was found for one agent holds for those who are like it. */
static void copy_to_alike(const Judge *own, const int32_t *like, int64_t count)
{
    const int64_t families = 1 + own->planner.world->constraints;
    for (int64_t at = 0; at < count; at++) {
        const int64_t from = like[at] - own->first;
        if (from == at)
            continue;
        own->maxima[at] = own->maxima[from];
        memcpy(own->current + at * families, own->current + from * families, (size_t)families * sizeof(double));
        memcpy(own->sizes + at * families, own->sizes + from * families, (size_t)families * sizeof(double));
    }
}

static PyObject *judge_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *packed, *position, *values, *costs, *multipliers, *maxima, *current, *sizes;
    int first, last;
    if (!PyArg_ParseTuple(args, "OOiiOOOOOO", &packed, &position, &first, &last, &values, &costs, &multipliers, &maxima,
                          &current, &sizes))
        return NULL;
    Arrays arrays = {.count = 0};
    World world;
    Usages usages = {NULL, 0};
    Others others;
    Judge own;
    memset(&others, 0, sizeof others);
    memset(&own, 0, sizeof own);
    PyObject *answer = NULL;
    int32_t *like = NULL, *visited = NULL;
    if (world_of(&world, &arrays, packed) < 0 || usages_of(&usages, &world, &arrays, position) < 0)
        goto done;
    const Py_ssize_t n = (Py_ssize_t)last - first, k = world.constraints;
    if (first < 0 || last <= first || last > world.agents) {
        PyErr_SetString(PyExc_IndexError, "there are no such agents");
        goto done;
    }
    own.first = first;
    if ((own.values = array_with(&arrays, values, 'd', 0, "values", n)) == NULL ||
        (own.costs = array_with(&arrays, costs, 'd', 0, "costs", n * k)) == NULL ||
        (own.multipliers = array_with(&arrays, multipliers, 'd', 0, "multipliers", n * k)) == NULL ||
        (own.maxima = array_with(&arrays, maxima, 'd', 1, "maxima", n)) == NULL ||
        (own.current = array_with(&arrays, current, 'd', 1, "current", n * (1 + k))) == NULL ||
        (own.sizes = array_with(&arrays, sizes, 'd', 1, "sizes", n * (1 + k))) == NULL)
        goto done;
    own.others = &others;
    Watch watch;
    int failed;
    begin_without_lock(&watch, 1e9);
    others.watch = &watch;
    others.visit = judge_agent;
    others.visitor = &own;
    failed = others_begin(&others, &world, usages.all) < 0 || planner_begin(&own.planner, &world, 0) < 0 ||
             (own.weighted = weighted_room(&own.planner)) == NULL ||
             (like = malloc((size_t)n * sizeof *like)) == NULL ||
             (visited = malloc(((size_t)world.agents + 1) * sizeof *visited)) == NULL ||
             find_alike(&own, first, last, like, visited) < 0;
    others.visited = visited;
    failed = failed || (world.general > 0 ? visit_block(&others, 0, world.agents, first, last)
                                          : visit_quadratic(&others, first, last)) < 0;
    if (!failed && others.stop == GO_ON)
        copy_to_alike(&own, like, n);
    end_without_lock(&watch);
    if (failed)
        PyErr_NoMemory();
    else if (others.stop != INTERRUPTED)
        answer = Py_NewRef(Py_None);
done:
    free(like);
    free(visited);
    free(own.weighted);
    planner_end(&own.planner);
    others_end(&others);
    usages_end(&usages);
    release_arrays(&arrays);
    return answer;
}

/* What one more user beside all agents but one meets and adds: delays [H, E], marginal costs [k, H, E]; and what the loads
   of all agents but that agent cost: totals [k]. */
static PyObject *marginal_costs_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *packed, *position, *delays, *marginals, *totals;
    int agent;
    if (!PyArg_ParseTuple(args, "OOiOOO", &packed, &position, &agent, &delays, &marginals, &totals))
        return NULL;
    Arrays arrays = {.count = 0};
    World world;
    Usages usages = {NULL, 0};
    Others others;
    memset(&others, 0, sizeof others);
    PyObject *answer = NULL;
    double *delay, *marginal, *total;
    if (world_of(&world, &arrays, packed) < 0 || usages_of(&usages, &world, &arrays, position) < 0 ||
        !has_agent(&world, agent))
        goto done;
    const int64_t indices = (int64_t)world.steps * world.resources;
    if ((delay = array_with(&arrays, delays, 'd', 1, "delays", world.has_delay ? indices : 0)) == NULL ||
        (marginal = array_with(&arrays, marginals, 'd', 1, "marginals", indices * world.constraints)) == NULL ||
        (total = array_with(&arrays, totals, 'd', 1, "totals", world.constraints)) == NULL)
        goto done;
    int failed;
    Py_BEGIN_ALLOW_THREADS;
    others.pairs = calloc((size_t)indices, sizeof(double));
    failed = others.pairs == NULL || others_begin(&others, &world, usages.all) < 0 ||
             count_others(&others, agent) < 0;
    if (!failed) {
        weigh(&others);
        if (world.has_delay)
            memcpy(delay, others.delays, (size_t)indices * sizeof(double));
        memcpy(marginal, others.marginals, (size_t)(indices * world.constraints) * sizeof(double));
        costs_of_loads(&world, others.mean, others.pairs, others.distributions, world.general, total);
    }
    Py_END_ALLOW_THREADS;
    if (failed)
        PyErr_NoMemory();
    else
        answer = Py_NewRef(Py_None);
done:
    others_end(&others);
    usages_end(&usages);
    release_arrays(&arrays);
    return answer;
}

PyMethodDef judge_kernels[] = {
    {"judge", judge_kernel, METH_VARARGS, "Bound what every agent could get, and evaluate what it has."},
    {"marginal_costs", marginal_costs_kernel, METH_VARARGS, "Find what one agent meets and adds on every resource."},
    {NULL, NULL, 0, NULL},
};
