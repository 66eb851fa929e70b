/* All agents of a local game in turn, each against the loads of the others, by sums of non-negative numbers alone: what
   a certificate needs. The twin is `certify` over induced CMDPs.

   "Everybody but i" for all i, where a resource's burden depends on the mean load alone: everybody together, and on the
   places that agent i uses the sum of those before it and of those after it. Elsewhere: the agents outside of a block are
   known; going into one half of the block, the other half is added, and afterwards every number that this changed is put
   back as it was. So each agent is added log2 n times. Nothing is ever subtracted, and one table of loads is enough.

   In a crowd many are of one kind and do the same: what is found for one of them holds for all. */
#include "local.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What has to be put back: a mean load, or a whole distribution, as it was when a half of a block began to be added. */
typedef struct {
    int32_t place;
    int64_t half; /* the last half before this one that changed the place */
    double mean;
    Distribution before; /* probability NULL on smooth resources */
} Change;

typedef struct {
    const World *world;
    const Usage *all;
    double *mean;                /* [H·E] */
    double *pairs;               /* [H·E]: Σ u_i·u_j, where costs are asked for; else NULL */
    Distribution *distributions; /* [H·R] */
    int64_t *changed_by; /* [H·E]: the half that changed a place last */
    int64_t half;        /* which is being added */
    Change *changes;
    int64_t count, room;
    double *delays, *burdens; /* [H·E] and [k, H·E]: of the agent whose turn it is */
    double *largest; /* [k, H]: the largest sizes of burdens beside everybody, where all resources are smooth; or NULL */
    const int32_t *visited; /* [n + 1]: how many of those before an agent are visited; or NULL: all who are asked for */
    Watch *watch;
    Stop stop;
    int (*visit)(void *visitor, int32_t agent, const double *delays, const double *burdens);
    void *visitor;
} Others;

/* Notes what a place was like, the first time that this half changes it. */
static int others_note(Others *others, int32_t place, Distribution *one)
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
    change->place = place;
    change->half = others->changed_by[place];
    change->mean = others->mean[place];
    if (one != NULL) {
        /* The old array is kept, and a copy goes on. */
        double *copy = malloc((size_t)(one->room + 1) * sizeof *copy);
        if (copy == NULL)
            return -1;
        memcpy(copy, one->probability, (size_t)one->room * sizeof *copy);
        change->before = *one;
        one->probability = copy;
    }
    others->changed_by[place] = others->half;
    others->count++;
    return 0;
}

static Distribution *others_at(Others *others, int32_t place)
{
    const World *world = others->world;
    const int32_t r = world->rough_of[place % world->resources];
    return r < 0 ? NULL : &others->distributions[(int64_t)(place / world->resources) * world->rough + r];
}

static int others_add(Others *others, const Usage *usage)
{
    for (int64_t entry = 0; entry < usage->count; entry++) {
        const int32_t place = usage->place[entry];
        Distribution *one = others_at(others, place);
        if (others->changed_by[place] != others->half && others_note(others, place, one) < 0)
            return -1;
        others->mean[place] += usage->probability[entry];
        if (one != NULL && distribution_add(one, usage->probability[entry], 0.0) < 0)
            return -1;
    }
    return 0;
}

static void others_undo(Others *others, int64_t count)
{
    while (others->count > count) {
        const Change *change = &others->changes[--others->count];
        Distribution *one = others_at(others, change->place);
        others->mean[change->place] = change->mean;
        others->changed_by[change->place] = change->half;
        if (one != NULL) {
            free(one->probability);
            *one = change->before;
        }
    }
}

/* Delays and burdens of one more user of every place, beside those who are counted. */
static void weigh(Others *others)
{
    const World *world = others->world;
    const int64_t H = world->steps, E = world->resources, n = world->agents, R = world->rough, C = world->charged;
    const int64_t places = H * E;
    const int64_t slope_size = (world->slope_stride ? H : 1) * E, first_size = (world->first_stride ? H : 1) * E;
    const int64_t cost_size = (world->rough_cost_stride ? H : 1) * C * n;
    if (R == 0 && !world->has_delay) {
        for (int j = 0; j < world->constraints; j++)
            for (int64_t h = 0; h < H; h++) {
                const double *first = world->first_costs + j * first_size + h * world->first_stride;
                const double *slope = world->slopes + (1 + j) * slope_size + h * world->slope_stride;
                double *burden = others->burdens + j * places + h * E;
                for (int64_t e = 0; e < E; e++)
                    burden[e] = first[e] + slope[e] * others->mean[h * E + e];
            }
        return;
    }
    for (int64_t h = 0; h < H; h++)
        for (int64_t e = 0; e < E; e++) {
            const int64_t at = h * E + e;
            const int32_t r = world->rough_of[e];
            const Distribution *one = r < 0 ? NULL : &others->distributions[h * R + r];
            if (world->has_delay)
                others->delays[at] = r < 0 ? world->first_delay[h * world->delay_stride + e] +
                                                 world->slopes[h * world->slope_stride + e] * others->mean[at]
                                           : expected(world->rough_delay + (h * world->rough_delay_stride * R + r) * n,
                                                      one->sure, one->probability, one->low, one->high);
            for (int j = 0; j < world->constraints; j++)
                others->burdens[j * places + at] =
                    r < 0 ? world->first_costs[j * first_size + h * world->first_stride + e] +
                                world->slopes[(1 + j) * slope_size + h * world->slope_stride + e] * others->mean[at]
                    : r < C ? expected(world->rough_steps + j * cost_size + (h * world->rough_cost_stride * C + r) * n,
                                       one->sure, one->probability, one->low, one->high)
                            : 0.0;
        }
}

/* The same of one smooth place, beside a given mean load. */
static inline void weigh_place(Others *others, int64_t h, int64_t e, double mean)
{
    const World *world = others->world;
    const int64_t H = world->steps, E = world->resources, at = h * E + e;
    const int64_t slope_size = (world->slope_stride ? H : 1) * E, first_size = (world->first_stride ? H : 1) * E;
    const double *slopes = world->slopes + h * world->slope_stride + e;
    if (world->has_delay)
        others->delays[at] = world->first_delay[h * world->delay_stride + e] + slopes[0] * mean;
    for (int j = 0; j < world->constraints; j++)
        others->burdens[j * H * E + at] =
            world->first_costs[j * first_size + h * world->first_stride + e] + slopes[(1 + j) * slope_size] * mean;
}

/* Weighs the places of one agent beside given mean loads of theirs, or beside everybody. */
static void weigh_places(Others *others, const Usage *usage, const double *means)
{
    const int32_t E = others->world->resources;
    int32_t h = 0;
    for (int64_t entry = 0; entry < usage->count; entry++) {
        const int32_t place = usage->place[entry];
        while (place - h * E >= E)
            h++;
        weigh_place(others, h, place - h * E, means == NULL ? others->mean[place] : means[entry]);
    }
}

static void note_largest(Others *others)
{
    const World *world = others->world;
    const int64_t H = world->steps, E = world->resources;
    for (int64_t row = 0; row < world->constraints * H; row++) {
        double found[4] = {0.0, 0.0, 0.0, 0.0}; /* one comparison need not wait for the one before */
        for (int64_t e = 0; e < E; e++) {
            const double size = fabs(others->burdens[row * E + e]);
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

/* Visits agents from ≤ i < to, where all resources are smooth; everybody outside of first ≤ i < last is counted already. */
static int visit_smooth(Others *others, int32_t first, int32_t last, int32_t from, int32_t to)
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
    for (int32_t i = first; !failed && i < last; i++)
        if (i < from || i >= to)
            for (int64_t entry = 0; entry < all[i].count; entry++)
                others->mean[all[i].place[entry]] += all[i].probability[entry];
    for (int32_t i = from; !failed && i < to; i++)
        for (int64_t entry = 0; entry < all[i].count; entry++) {
            without[at++] = others->mean[all[i].place[entry]];
            others->mean[all[i].place[entry]] += all[i].probability[entry];
        }
    for (int32_t i = to - 1; !failed && i >= from; i--)
        for (int64_t entry = all[i].count - 1; entry >= 0; entry--) {
            without[--at] += after[all[i].place[entry]];
            after[all[i].place[entry]] += all[i].probability[entry];
        }
    if (!failed) {
        weigh(others);
        note_largest(others);
    }
    for (int32_t i = from; !failed && i < to; i++) {
        if (others->watch != NULL && (others->stop = must_stop(others->watch)) != GO_ON)
            break;
        if (is_wanted(others, i, i + 1, from, to)) {
            weigh_places(others, &all[i], without + at);
            failed = others->visit(others->visitor, i, world->has_delay ? others->delays : NULL, others->burdens) < 0;
            weigh_places(others, &all[i], NULL);
        }
        at += all[i].count;
    }
    free(without);
    free(after);
    return failed ? -1 : 0;
}

/* Visits agents first ≤ i < last that are wanted; everybody outside is counted already. */
static int visit_block(Others *others, int32_t first, int32_t last, int32_t from, int32_t to)
{
    if (!is_wanted(others, first, last, from, to))
        return 0;
    if (last - first == 1) {
        if (others->watch != NULL && (others->stop = must_stop(others->watch)) != GO_ON)
            return 0;
        weigh(others);
        return others->visit(others->visitor, first, others->world->has_delay ? others->delays : NULL, others->burdens);
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
    const size_t places = (size_t)world->steps * (size_t)world->resources;
    const int64_t rough = (int64_t)world->steps * world->rough;
    others->world = world;
    others->all = all;
    others->mean = calloc(places, sizeof(double));
    others->changed_by = calloc(places, sizeof(int64_t));
    others->delays = malloc((places + 1) * sizeof(double));
    others->burdens = malloc((places * (size_t)world->constraints + 1) * sizeof(double));
    others->distributions = calloc((size_t)rough + 1, sizeof(Distribution));
    if (others->mean == NULL || others->changed_by == NULL || others->delays == NULL || others->burdens == NULL || others->distributions == NULL)
        return -1;
    for (int64_t at = 0; at < rough; at++)
        if (distribution_clear(&others->distributions[at]) < 0)
            return -1;
    return 0;
}

/* Counts the half of a block without the agent, then a half of the other half, …, until a block of no more than `size`
   agents is left, everybody outside of which is counted then. Blocks are those of `visit_block`, and so is the order. */
static int count_outside(Others *others, int32_t *first, int32_t *last, int32_t agent, int32_t size)
{
    while (*last - *first > size) {
        const int32_t middle = *first + (*last - *first) / 2;
        const int32_t from = agent < middle ? middle : *first, to = agent < middle ? *last : middle;
        for (int32_t i = from; i < to; i++) {
            const Usage *usage = &others->all[i];
            for (int64_t entry = 0; entry < usage->count; entry++) {
                const int32_t place = usage->place[entry];
                const double u = usage->probability[entry];
                Distribution *one = others_at(others, place);
                if (others->pairs != NULL)
                    others->pairs[place] += u * others->mean[place];
                others->mean[place] += u;
                if (one != NULL && distribution_add(one, u, 0.0) < 0)
                    return -1;
            }
        }
        *first = agent < middle ? *first : middle;
        *last = agent < middle ? middle : *last;
    }
    return 0;
}

/* Everybody outside of a block of agents, counted once for all that is asked about agents inside. */
typedef struct {
    int32_t agents, first, last; /* n, and the block first ≤ i < last */
    int64_t places, rough;       /* H·E, H·R */
    double *mean, *pairs;        /* [H·E] */
    Distribution *distributions; /* [H·R] */
} Outside;

static const char OUTSIDE[] = "cmpg.outside";

static void outside_free(Outside *outside)
{
    for (int64_t at = 0; outside->distributions != NULL && at < outside->rough; at++)
        free(outside->distributions[at].probability);
    free(outside->distributions);
    free(outside->mean);
    free(outside->pairs);
    free(outside);
}

static void outside_end(PyObject *capsule)
{
    outside_free(PyCapsule_GetPointer(capsule, OUTSIDE));
}

/* Of a capsule or None, for agents from ≤ i < to of a world: 0 with *outside, which is NULL for None, or −1. */
static int outside_of(const Outside **outside, PyObject *object, const World *world, int32_t from, int32_t to)
{
    *outside = NULL;
    if (object == Py_None)
        return 0;
    const Outside *known = PyCapsule_GetPointer(object, OUTSIDE);
    if (known == NULL)
        return -1;
    if (known->agents != world->agents || known->places != (int64_t)world->steps * world->resources ||
        known->rough != (int64_t)world->steps * world->rough || from < known->first || to > known->last) {
        PyErr_SetString(PyExc_ValueError, "the agents outside are those of other agents, or of another game");
        return -1;
    }
    *outside = known;
    return 0;
}

/* Begins where everybody outside is counted. */
static int others_resume(Others *others, const Outside *outside)
{
    memcpy(others->mean, outside->mean, (size_t)outside->places * sizeof(double));
    if (others->pairs != NULL)
        memcpy(others->pairs, outside->pairs, (size_t)outside->places * sizeof(double));
    for (int64_t at = 0; at < outside->rough; at++) {
        const Distribution *known = &outside->distributions[at];
        double *copy = malloc((size_t)(known->room + 1) * sizeof *copy);
        if (copy == NULL)
            return -1;
        memcpy(copy, known->probability, (size_t)known->room * sizeof *copy);
        free(others->distributions[at].probability);
        others->distributions[at] = *known;
        others->distributions[at].probability = copy;
    }
    return 0;
}

static void others_end(Others *others)
{
    if (others->count > 0)
        others_undo(others, 0);
    for (int64_t at = 0; others->distributions != NULL && at < (int64_t)others->world->steps * others->world->rough; at++)
        free(others->distributions[at].probability);
    free(others->distributions);
    free(others->mean);
    free(others->pairs);
    free(others->changed_by);
    free(others->delays);
    free(others->burdens);
    free(others->changes);
    free(others->largest);
}

typedef struct {
    Planner planner;
    const Others *others;
    const double *values, *costs;     /* private, [n] and [n, k] of those who are judged */
    const double *multipliers;        /* [n, k] */
    double *maxima, *present, *sizes; /* [n], [n, 1 + k], [n, 1 + k] */
    int32_t first;
    double *weighted;                 /* [H·E], or as the cells of a grid lie */
    const double *laid;               /* the multipliers of what lies there, or NULL */
    const Usage *last;                /* the usage beside which that was last, where all resources are smooth */
} Judge;

static double *weighted_room(const Planner *planner)
{
    const int64_t places = planner->world->resources, laid = grid_stride(&planner->grid);
    return calloc((size_t)(planner->world->steps * (places > laid ? places : laid)) + 1, sizeof(double));
}

/* What an agent gets and spends by what it uses, beside what one more user meets and adds. Sums of a step, then of all. */
static void present_of(const World *world, const Usage *usage, const double *delays, const double *burdens, double value,
                       const double *costs, double *present)
{
    const int64_t E = world->resources, places = world->steps * E;
    for (int l = 0; l <= world->constraints; l++) {
        const double *met = l == 0 ? delays : burdens + (l - 1) * places;
        double total = 0.0, step = 0.0;
        int64_t end = E;
        for (int64_t entry = 0; met != NULL && entry < usage->count; entry++) {
            if (usage->place[entry] >= end) {
                total += step;
                step = 0.0;
                end = (usage->place[entry] / E + 1) * E;
            }
            step += usage->probability[entry] * met[usage->place[entry]];
        }
        total += step;
        present[l] = l == 0 ? value - total : costs[l - 1] + total;
    }
}

/* The largest sizes among all that anybody could meet: no less than among what the agent can reach. */
static void sizes_beside_all(const World *world, const Usage *usage, const double *burdens, const double *largest,
                             int uses, double *sizes)
{
    const int64_t E = world->resources, places = world->steps * E;
    for (int j = 0; j < world->constraints; j++) {
        int64_t entry = 0;
        for (int64_t h = 0; h < world->steps; h++) {
            double most = largest[j * world->steps + h];
            for (; entry < usage->count && usage->place[entry] < (h + 1) * E; entry++) {
                const double size = fabs(burdens[j * places + usage->place[entry]]);
                most = size > most ? size : most;
            }
            sizes[1 + j] += uses * most;
        }
    }
}

/* On a grid, λ·burdens as its cells lie: all of them, or where nothing else has changed, those beside two agents. */
static void lay_beside(Judge *own, const Usage *usage, const double *burdens, const double *multipliers)
{
    const int64_t k = own->planner.world->constraints;
    const int same = own->laid != NULL && memcmp(own->laid, multipliers, (size_t)k * sizeof(double)) == 0;
    if (same && own->last != NULL) {
        lay_weighted_at(&own->planner, own->last, burdens, multipliers, own->weighted);
        lay_weighted_at(&own->planner, usage, burdens, multipliers, own->weighted);
    } else
        lay_weighted(&own->planner, burdens, multipliers, own->weighted);
    own->laid = multipliers;
    own->last = own->others->largest != NULL ? usage : NULL;
}

static int judge_agent(void *visitor, int32_t agent, const double *delays, const double *burdens)
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
        lay_beside(own, usage, burdens, multipliers);
    planner->laid[0] = on_grid ? own->weighted : NULL;
    if (greatest(planner, agent, delays, burdens, multipliers, own->weighted, &own->maxima[at], sizes) < 0)
        return -1;
    if (on_grid)
        sizes_beside_all(world, usage, burdens, own->others->largest, planner->grid.planes > 1 ? 2 : 1, sizes);
    present_of(world, usage, delays, burdens, own->values[at], own->costs + at * k, own->present + at * (1 + k));
    return 0;
}

/* Whether two agents are of one kind, do the same, and are judged by the same multipliers. */
static int are_alike(const Judge *own, int32_t one, int32_t other)
{
    const World *world = own->planner.world;
    const int64_t k = world->constraints, i = one - own->first, j = other - own->first;
    return same_usage(&own->others->all[one], &own->others->all[other]) &&
           memcmp(own->values + i, own->values + j, sizeof(double)) == 0 &&
           memcmp(own->costs + i * k, own->costs + j * k, (size_t)k * sizeof(double)) == 0 &&
           memcmp(own->multipliers + i * k, own->multipliers + j * k, (size_t)k * sizeof(double)) == 0 &&
           same_kind(world, one, other);
}

/* FNV-1a (Fowler, Noll and Vo), by words: alike agents have the same. */
static uint64_t fingerprint_of(const Judge *own, int32_t agent)
{
    const World *world = own->planner.world;
    const Usage *usage = &own->others->all[agent];
    uint64_t hash = UINT64_C(0xcbf29ce484222325), bits;
#define FOLD(word) hash = (hash ^ (uint64_t)(word)) * UINT64_C(0x100000001b3), hash ^= hash >> 29
    FOLD(world->moves_of[agent]);
    FOLD(world->uses_of[agent]);
    FOLD(world->reward_of[agent]);
    memcpy(&bits, own->values + (agent - own->first), sizeof bits);
    FOLD(bits);
    for (int64_t entry = 0; entry < usage->count; entry++) {
        memcpy(&bits, usage->probability + entry, sizeof bits);
        FOLD(bits + (uint64_t)(uint32_t)usage->place[entry]);
    }
#undef FOLD
    return hash;
}

/* The first of first ≤ i < last who is like agent i: like[i − first]; and how many first ones there are before i:
   visited[i], for all i ≤ n. −1: no memory. */
static int find_alike(const Judge *own, int32_t first, int32_t last, int32_t *like, int32_t *visited)
{
    const int32_t n = own->planner.world->agents;
    size_t room = 16;
    while (room < 2 * (size_t)(last - first))
        room *= 2;
    int32_t *known = malloc(room * sizeof *known); /* agents, in the places that their fingerprints have; −1: nobody */
    if (known == NULL)
        return -1;
    memset(known, -1, room * sizeof *known);
    visited[0] = 0;
    for (int32_t i = 0; i < n; i++) {
        int is_first = 0;
        if (i >= first && i < last) {
            size_t at = (size_t)fingerprint_of(own, i) & (room - 1);
            while (known[at] >= 0 && !are_alike(own, known[at], i))
                at = (at + 1) & (room - 1);
            is_first = known[at] < 0;
            known[at] = is_first ? i : known[at];
            like[i - first] = known[at];
        }
        visited[i + 1] = visited[i] + is_first;
    }
    free(known);
    return 0;
}

/* What was found for one agent holds for those who are like it. */
static void tell_alike(const Judge *own, const int32_t *like, int64_t count)
{
    const int64_t families = 1 + own->planner.world->constraints;
    for (int64_t at = 0; at < count; at++) {
        const int64_t from = like[at] - own->first;
        if (from == at)
            continue;
        own->maxima[at] = own->maxima[from];
        memcpy(own->present + at * families, own->present + from * families, (size_t)families * sizeof(double));
        memcpy(own->sizes + at * families, own->sizes + from * families, (size_t)families * sizeof(double));
    }
}

static PyObject *judge_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *packed, *position, *values, *costs, *multipliers, *maxima, *present, *sizes, *counted;
    int first, last;
    if (!PyArg_ParseTuple(args, "OOOiiOOOOOO", &packed, &position, &counted, &first, &last, &values, &costs, &multipliers,
                          &maxima, &present, &sizes))
        return NULL;
    const Outside *outside;
    Arrays arrays = {.count = 0};
    World world;
    Usages usages = {NULL, 0};
    Others others;
    Judge own;
    memset(&others, 0, sizeof others);
    memset(&own, 0, sizeof own);
    PyObject *told = NULL;
    int32_t *like = NULL, *visited = NULL;
    if (world_of(&world, &arrays, packed) < 0 || usages_of(&usages, &world, &arrays, position) < 0)
        goto done;
    const Py_ssize_t n = (Py_ssize_t)last - first, k = world.constraints;
    if (first < 0 || last <= first || last > world.agents) {
        PyErr_SetString(PyExc_IndexError, "there are no such agents");
        goto done;
    }
    if (outside_of(&outside, counted, &world, first, last) < 0)
        goto done;
    own.first = first;
    if ((own.values = array_with(&arrays, values, 'd', 0, "values", n)) == NULL ||
        (own.costs = array_with(&arrays, costs, 'd', 0, "costs", n * k)) == NULL ||
        (own.multipliers = array_with(&arrays, multipliers, 'd', 0, "multipliers", n * k)) == NULL ||
        (own.maxima = array_with(&arrays, maxima, 'd', 1, "maxima", n)) == NULL ||
        (own.present = array_with(&arrays, present, 'd', 1, "present", n * (1 + k))) == NULL ||
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
             find_alike(&own, first, last, like, visited) < 0 ||
             (outside != NULL && others_resume(&others, outside) < 0);
    others.visited = visited;
    failed = failed ||
             (world.rough > 0 ? visit_block : visit_smooth)(&others, outside == NULL ? 0 : outside->first,
                                                            outside == NULL ? world.agents : outside->last, first, last) < 0;
    if (!failed && others.stop == GO_ON)
        tell_alike(&own, like, n);
    end_without_lock(&watch);
    if (failed)
        PyErr_NoMemory();
    else if (others.stop != INTERRUPTED)
        told = Py_NewRef(Py_None);
done:
    free(like);
    free(visited);
    free(own.weighted);
    planner_end(&own.planner);
    others_end(&others);
    usages_end(&usages);
    release_arrays(&arrays);
    return told;
}

/* Counts everybody outside of a block of agents around one: a capsule, and where the block begins and ends. */
static PyObject *outside_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *packed, *position;
    int agent, size;
    if (!PyArg_ParseTuple(args, "OOii", &packed, &position, &agent, &size))
        return NULL;
    Arrays arrays = {.count = 0};
    World world;
    Usages usages = {NULL, 0};
    Others others;
    memset(&others, 0, sizeof others);
    Outside *outside = NULL;
    PyObject *told = NULL;
    if (world_of(&world, &arrays, packed) < 0 || usages_of(&usages, &world, &arrays, position) < 0)
        goto done;
    if (agent < 0 || agent >= world.agents || size < 1) {
        PyErr_SetString(PyExc_IndexError, "there is no such agent, or no such block");
        goto done;
    }
    const int64_t places = (int64_t)world.steps * world.resources;
    int32_t first = 0, last = world.agents;
    int failed;
    Py_BEGIN_ALLOW_THREADS;
    outside = calloc(1, sizeof *outside);
    others.pairs = calloc((size_t)places, sizeof(double));
    failed = outside == NULL || others.pairs == NULL || others_begin(&others, &world, usages.all) < 0 ||
             count_outside(&others, &first, &last, agent, size) < 0;
    Py_END_ALLOW_THREADS;
    if (failed) {
        free(outside);
        PyErr_NoMemory();
        goto done;
    }
    *outside = (Outside){world.agents, first, last, places, (int64_t)world.steps * world.rough,
                         others.mean, others.pairs, others.distributions};
    others.mean = others.pairs = NULL;
    others.distributions = NULL;
    PyObject *capsule = PyCapsule_New(outside, OUTSIDE, outside_end);
    if (capsule == NULL)
        outside_free(outside);
    else
        told = Py_BuildValue("(Nii)", capsule, (int)first, (int)last);
done:
    others_end(&others);
    usages_end(&usages);
    release_arrays(&arrays);
    return told;
}

/* What one more user beside everybody but one agent meets and adds: delays [H, E], burdens [k, H, E]; and what the loads
   of everybody but that agent cost: totals [k]. */
static PyObject *burden_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *packed, *position, *counted, *delays, *burdens, *totals;
    int agent;
    if (!PyArg_ParseTuple(args, "OOOiOOO", &packed, &position, &counted, &agent, &delays, &burdens, &totals))
        return NULL;
    Arrays arrays = {.count = 0};
    World world;
    Usages usages = {NULL, 0};
    Others others;
    memset(&others, 0, sizeof others);
    const Outside *outside;
    PyObject *told = NULL;
    double *delay, *burden, *total;
    if (world_of(&world, &arrays, packed) < 0 || usages_of(&usages, &world, &arrays, position) < 0)
        goto done;
    if (agent < 0 || agent >= world.agents) {
        PyErr_SetString(PyExc_IndexError, "there is no such agent");
        goto done;
    }
    const int64_t places = (int64_t)world.steps * world.resources;
    if (outside_of(&outside, counted, &world, agent, agent + 1) < 0 ||
        (delay = array_with(&arrays, delays, 'd', 1, "delays", world.has_delay ? places : 0)) == NULL ||
        (burden = array_with(&arrays, burdens, 'd', 1, "burdens", places * world.constraints)) == NULL ||
        (total = array_with(&arrays, totals, 'd', 1, "totals", world.constraints)) == NULL)
        goto done;
    int32_t first = outside == NULL ? 0 : outside->first, last = outside == NULL ? world.agents : outside->last;
    int failed;
    Py_BEGIN_ALLOW_THREADS;
    others.pairs = calloc((size_t)places, sizeof(double));
    failed = others.pairs == NULL || others_begin(&others, &world, usages.all) < 0 ||
             (outside != NULL && others_resume(&others, outside) < 0) ||
             count_outside(&others, &first, &last, agent, 1) < 0;
    if (!failed) {
        weigh(&others);
        if (world.has_delay)
            memcpy(delay, others.delays, (size_t)places * sizeof(double));
        memcpy(burden, others.burdens, (size_t)(places * world.constraints) * sizeof(double));
        costs_of_loads(&world, others.mean, others.pairs, others.distributions, world.rough, total);
    }
    Py_END_ALLOW_THREADS;
    if (failed)
        PyErr_NoMemory();
    else
        told = Py_NewRef(Py_None);
done:
    others_end(&others);
    usages_end(&usages);
    release_arrays(&arrays);
    return told;
}

PyMethodDef judge_kernels[] = {
    {"judge", judge_kernel, METH_VARARGS, "Bound what every agent could get, and evaluate what it has."},
    {"outside", outside_kernel, METH_VARARGS, "Count everybody outside of a block of agents."},
    {"burden", burden_kernel, METH_VARARGS, "Find what one agent meets and adds on every resource."},
    {NULL, NULL, 0, NULL},
};
