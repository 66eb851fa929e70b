/* Loads of shared resources; the twin is games/local/loads.py.

   While agents take turns, an agent is taken out of a load by a difference (quadratic resources) or by dividing its factor
   out of the distribution (general ones), in the direction in which errors do not grow along it. A division has errors all
   the same, and the next ones multiply them: an error that alternates from one load to the next by 1/|1 − 2u|, the most
   of all, and an addition by |1 − 2u|. `error` follows that, and a load that has become too doubtful is counted again.
   Where a proof is wanted, loads are counted again anyway, by sums of non-negative numbers. */
#include "local.h"

#include <stdlib.h>
#include <string.h>

#define NEGLIGIBLE 1e-40 /* probabilities below this, at the ends of a distribution, are taken to be zero */
#define ROUNDING 1e-16   /* what a division adds to the error of a probability; sums of positive ones add next to none */
#define MAX_ERROR 1e-11   /* errors larger than this are worth the work of counting again */

/* total[m] = Σ_{a + b = m} one[a]·other[b], for distributions [length, width] with the load as the first axis. Terms are
   added in the order of the shorter one's load: the bits are those of the twin. */
static void convolve(const double *one, Py_ssize_t ones, const double *other, Py_ssize_t others, Py_ssize_t width,
                     double *total)
{
    const double *brief = ones <= others ? one : other, *wide = ones <= others ? other : one;
    Py_ssize_t few = ones <= others ? ones : others, many = ones <= others ? others : ones;
    memset(total, 0, (size_t)(few + many - 1) * (size_t)width * sizeof(double));
    for (Py_ssize_t load = 0; load < few; load++)
        for (Py_ssize_t row = 0; row < many; row++) {
            const double *weight = brief + load * width, *from = wide + row * width;
            double *to = total + (load + row) * width;
            for (Py_ssize_t index = 0; index < width; index++)
                to[index] += weight[index] * from[index];
        }
}

static PyObject *convolve_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *one, *other, *total;
    Py_ssize_t width;
    if (!PyArg_ParseTuple(args, "OOnO", &one, &other, &width, &total))
        return NULL;
    Arrays arrays = {.count = 0};
    Py_ssize_t first, second;
    const double *a = array_of(&arrays, one, 'd', 0, "one", &first);
    const double *b = a == NULL ? NULL : array_of(&arrays, other, 'd', 0, "other", &second);
    if (b != NULL && (width < 1 || first < width || second < width || first % width || second % width)) {
        PyErr_SetString(PyExc_ValueError, "both distributions need at least one row of the same width");
        b = NULL;
    }
    double *sum = b == NULL ? NULL : array_with(&arrays, total, 'd', 1, "total", first + second - width);
    if (sum != NULL) {
        Py_BEGIN_ALLOW_THREADS;
        convolve(a, first / width, b, second / width, width, sum);
        Py_END_ALLOW_THREADS;
    }
    release_arrays(&arrays);
    if (sum == NULL)
        return NULL;
    Py_RETURN_NONE;
}

PyMethodDef load_kernels[] = {
    {"convolve", convolve_kernel, METH_VARARGS,
     "convolve(one, other, width, total): the distribution of a sum of two independent loads."},
    {NULL, NULL, 0, NULL},
};

int same_usage(const Usage *one, const Usage *other)
{
    return one->count == other->count &&
           (one->count == 0 || (memcmp(one->index, other->index, (size_t)one->count * sizeof *one->index) == 0 &&
                                memcmp(one->probability, other->probability,
                                       (size_t)one->count * sizeof *one->probability) == 0));
}

void usage_end(Usage *usage)
{
    if (usage->room == 0)
        return;
    free(usage->index);
    free(usage->probability);
}

int usage_append(Usage *usage, int32_t index, double probability)
{
    if (usage->room == 0) { /* what is borrowed is left alone */
        usage->index = NULL;
        usage->probability = NULL;
    }
    if (usage->count == usage->room) {
        int64_t room = usage->room < 16 ? 16 : 2 * usage->room;
        int32_t *indices = realloc(usage->index, (size_t)room * sizeof *indices);
        if (indices == NULL)
            return -1;
        usage->index = indices;
        double *probabilities = realloc(usage->probability, (size_t)room * sizeof *probabilities);
        if (probabilities == NULL)
            return -1;
        usage->probability = probabilities;
        usage->room = room;
    }
    usage->index[usage->count] = index;
    usage->probability[usage->count++] = probability;
    return 0;
}

static int reserve(Distribution *one, int32_t length)
{
    if (length <= one->room)
        return 0;
    int32_t room = length < 8 ? 8 : 2 * length;
    double *larger = realloc(one->probability, (size_t)room * sizeof *larger);
    if (larger == NULL)
        return -1;
    memset(larger + one->room, 0, (size_t)(room - one->room) * sizeof *larger);
    one->probability = larger;
    one->room = room;
    return 0;
}

/* Cut both ends where no probability is above `negligible`: loads that far out are never visited again. */
static void trim(Distribution *one, double negligible)
{
    double *p = one->probability;
    while (one->high - one->low > 1 && p[one->high - 1] <= negligible)
        p[--one->high] = 0.0;
    while (one->high - one->low > 1 && p[one->low] <= negligible)
        p[one->low++] = 0.0;
}

/* No agent: the load is zero for sure. */
int distribution_clear(Distribution *one)
{
    if (reserve(one, 1) < 0)
        return -1;
    memset(one->probability, 0, (size_t)one->room * sizeof(double));
    one->probability[0] = 1.0;
    one->low = 0;
    one->high = 1;
    one->sure = one->unsure = 0;
    one->error = 0.0;
    return 0;
}

/* How much less of an alternating error is left when an agent is added; the longer a division, the more it can undo. */
static double damping(const Distribution *one, double u)
{
    const double left = u <= 0.5 ? 1.0 - 2.0 * u : 2.0 * u - 1.0, least = 1.0 / (double)(one->high - one->low + 1);
    return left > least ? left : least;
}

int distribution_add(Distribution *one, double u, double negligible)
{
    if (u >= 1.0) {
        one->sure++;
        return 0;
    }
    if (reserve(one, one->high + 1) < 0)
        return -1;
    double *p = one->probability, not_u = 1.0 - u;
    p[one->high] = p[one->high - 1] * u;
    for (int32_t m = one->high - 1; m > one->low; m--)
        p[m] = p[m] * not_u + p[m - 1] * u;
    p[one->low] *= not_u;
    one->high++;
    one->unsure++;
    one->error *= damping(one, u);
    trim(one, negligible);
    return 0;
}

/* Divides one agent's factor (1 − u) + u·z out of a distribution: f[m] = (1 − u) q[m] + u q[m − 1]; q may be f. The
   result is between `low` and `high`, which are changed: what was cut off at an end must not take the next entry with
   it each time. Rounding could leave entries just below zero. */
static void divide(const Distribution *one, double u, double *q, int32_t *low, int32_t *high)
{
    const double *f = one->probability, not_u = 1.0 - u;
    double last = 0.0;
    *low = one->low;
    *high = one->high;
    if (u <= 0.5) {
        const double scale = 1.0 / not_u, ratio = u / not_u; /* ratio ≤ 1: errors do not grow upwards */
        for (int32_t m = one->low; m < one->high; m++) {
            double value = f[m] * scale - ratio * last;
            q[m] = last = value > 0.0 ? value : 0.0;
        }
    } else {
        const double scale = 1.0 / u, ratio = not_u / u; /* < 1: errors do not grow downwards */
        double next = f[one->high - 1];
        *low = one->low > 0 ? one->low - 1 : 0;
        *high = one->high - 1;
        for (int32_t m = *high; m > *low; m--) {
            double value = next * scale - ratio * last;
            next = f[m - 1];
            q[m - 1] = last = value > 0.0 ? value : 0.0;
        }
    }
    if (*high > one->unsure) /* of as many agents, less one */
        *high = one->unsure;
}

static int64_t find(const Usage *usage, int32_t index)
{
    int64_t low = 0, high = usage->count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (usage->index[middle] < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low < usage->count && usage->index[low] == index ? low : -1;
}

static int recount(Distribution *one, const World *world, int32_t index, const Usage *all)
{
    if (distribution_clear(one) < 0)
        return -1;
    for (int32_t i = 0; i < world->agents; i++) {
        int64_t at = find(&all[i], index);
        if (at >= 0 && distribution_add(one, all[i].probability[at], NEGLIGIBLE) < 0)
            return -1;
    }
    return 0;
}

int loads_begin(Loads *loads, const World *world, const double *weights, int weightings)
{
    memset(loads, 0, sizeof *loads);
    loads->world = world;
    loads->weightings = weightings;
    const int64_t E = world->resources, H = world->steps, R = world->general, n = world->agents, C = world->charged;
    const int k = world->constraints;
    loads->combined_stride = world->delay_stride || world->slope_stride || world->first_stride ? E : 0;
    loads->general_stride = world->general_delay_stride || world->general_cost_stride ? 1 : 0;
    const int64_t steps = loads->combined_stride ? H : 1, general_steps = loads->general_stride ? H : 1;
    loads->mean = calloc((size_t)(H * E), sizeof(double));
    loads->distributions = calloc((size_t)(H * R + 1), sizeof(Distribution));
    if (loads->mean == NULL || loads->distributions == NULL)
        return -1;
    for (int64_t at = 0; at < H * R; at++)
        if (distribution_clear(&loads->distributions[at]) < 0)
            return -1;
    for (int z = 0; z < weightings; z++) {
        const double *w = weights + z * (1 + k);
        double *base = loads->base[z] = malloc((size_t)(steps * E) * sizeof(double));
        double *slope = loads->slope[z] = malloc((size_t)(steps * E) * sizeof(double));
        double *table = loads->tables[z] = calloc((size_t)(general_steps * R * n + 1), sizeof(double));
        loads->marginal[z] = malloc((size_t)(H * E) * sizeof(double));
        if (base == NULL || slope == NULL || table == NULL || loads->marginal[z] == NULL)
            return -1;
        const int64_t slope_size = (world->slope_stride ? H : 1) * E, first_size = (world->first_stride ? H : 1) * E;
        for (int64_t h = 0; h < steps; h++)
            for (int64_t e = 0; e < E; e++) {
                double b = w[0] * world->first_delay[h * world->delay_stride + e];
                double m = w[0] * world->slopes[h * world->slope_stride + e];
                for (int j = 0; j < k; j++) {
                    b += w[1 + j] * world->first_costs[j * first_size + h * world->first_stride + e];
                    m += w[1 + j] * world->slopes[(1 + j) * slope_size + h * world->slope_stride + e];
                }
                base[h * E + e] = b;
                slope[h * E + e] = m;
            }
        const int64_t cost_size = (world->general_cost_stride ? H : 1) * C * n;
        for (int64_t h = 0; h < general_steps; h++)
            for (int64_t r = 0; r < R; r++) {
                const double *delay = world->general_delay + (h * world->general_delay_stride * R + r) * n;
                double *to = table + (h * R + r) * n;
                if (w[0] != 0.0)
                    for (int64_t m = 0; m < n; m++)
                        to[m] = w[0] * delay[m];
                for (int j = 0; r < C && j < k; j++) {
                    if (w[1 + j] == 0.0)
                        continue;
                    const double *rise = world->general_steps + j * cost_size + (h * world->general_cost_stride * C + r) * n;
                    for (int64_t m = 0; m < n; m++)
                        to[m] += w[1 + j] * rise[m];
                }
            }
    }
    return 0;
}

void loads_end(Loads *loads)
{
    if (loads->distributions != NULL)
        for (int64_t at = 0; at < (int64_t)loads->world->steps * loads->world->general; at++)
            free(loads->distributions[at].probability);
    free(loads->distributions);
    free(loads->mean);
    for (int z = 0; z < loads->weightings; z++) {
        free(loads->base[z]);
        free(loads->slope[z]);
        free(loads->tables[z]);
        free(loads->marginal[z]);
    }
    free(loads->without);
}

int loads_add(Loads *loads, int32_t index, double probability)
{
    const World *world = loads->world;
    const int32_t h = index / world->resources, r = world->general_of[index % world->resources];
    loads->mean[index] += probability;
    if (r < 0)
        return 0;
    return distribution_add(&loads->distributions[(int64_t)h * world->general + r], probability, NEGLIGIBLE);
}

int loads_remove(Loads *loads, int32_t index, double probability, const Usage *all)
{
    const World *world = loads->world;
    const int32_t h = index / world->resources, r = world->general_of[index % world->resources];
    double left = loads->mean[index] - probability;
    loads->mean[index] = left > 0.0 ? left : 0.0;
    if (r < 0)
        return 0;
    Distribution *one = &loads->distributions[(int64_t)h * world->general + r];
    if (probability >= 1.0) {
        one->sure--;
        return 0;
    }
    const double error = one->error / damping(one, probability) + ROUNDING;
    if (one->high - one->low < 2 || error > MAX_ERROR)
        return recount(one, world, index, all);
    const int32_t last = one->high;
    divide(one, probability, one->probability, &one->low, &one->high);
    for (int32_t m = one->high; m < last; m++)
        one->probability[m] = 0.0;
    one->unsure--;
    one->error = error;
    /* A division ends in errors, and its last entries are cut off where they may be nothing else. */
    double *p = one->probability;
    if (probability <= 0.5)
        while (one->high - one->low > 1 && p[one->high - 1] < error)
            p[--one->high] = 0.0;
    else
        while (one->high - one->low > 1 && p[one->low] < error)
            p[one->low++] = 0.0;
    /* The load has moved down, towards what was cut off below. */
    if (one->low > 0 && p[one->low] > MAX_ERROR)
        return recount(one, world, index, all);
    trim(one, NEGLIGIBLE);
    return 0;
}

double expected(const double *table, int32_t sure, const double *probability, int32_t low, int32_t high)
{
    if (high - low == 1)
        return table[sure + low];
    double sum = 0.0;
    for (int32_t m = low; m < high; m++)
        sum += probability[m] * table[sure + m];
    return sum;
}

int loads_marginal_without(Loads *loads, int32_t index, double probability, double *values)
{
    const World *world = loads->world;
    const int32_t h = index / world->resources, e = index % world->resources, r = world->general_of[e];
    if (r < 0) {
        double others = loads->mean[index] - probability;
        others = others > 0.0 ? others : 0.0;
        const int64_t at = h * loads->combined_stride + e;
        for (int z = 0; z < loads->weightings; z++)
            values[z] = loads->base[z][at] + loads->slope[z][at] * others;
        return 0;
    }
    const Distribution *one = &loads->distributions[(int64_t)h * world->general + r];
    const double *p = one->probability;
    int32_t low = one->low, high = one->high, sure = one->sure;
    if (probability >= 1.0)
        sure--;
    else if (probability > 0.0 && high - low > 1) {
        if (loads->room < high) {
            double *larger = realloc(loads->without, (size_t)(2 * high) * sizeof *larger);
            if (larger == NULL)
                return -1;
            loads->without = larger;
            loads->room = 2 * high;
        }
        divide(one, probability, loads->without, &low, &high);
        p = loads->without;
    }
    const int64_t at = (h * loads->general_stride * world->general + r) * world->agents;
    for (int z = 0; z < loads->weightings; z++)
        values[z] = expected(loads->tables[z] + at, sure, p, low, high);
    return 0;
}

int loads_reweigh(Loads *loads, int32_t index)
{
    /* One more user beside all agents: the table ends at n others less one, and no query goes beyond it, since every agent
       that can use the index is taken out of the load first. */
    const World *world = loads->world;
    const int32_t h = index / world->resources, e = index % world->resources, r = world->general_of[e];
    if (r >= 0) {
        const Distribution *one = &loads->distributions[(int64_t)h * world->general + r];
        const int32_t most = world->agents - 1;
        const int64_t at = (h * loads->general_stride * world->general + r) * world->agents;
        for (int z = 0; z < loads->weightings; z++) {
            const double *table = loads->tables[z] + at;
            double sum = 0.0;
            if (one->high - one->low == 1)
                sum = table[one->sure + one->low < most ? one->sure + one->low : most];
            else
                for (int32_t m = one->low; m < one->high; m++)
                    sum += one->probability[m] * table[one->sure + m < most ? one->sure + m : most];
            loads->marginal[z][index] = sum;
        }
        return 0;
    }
    double values[MAX_WEIGHTINGS];
    if (loads_marginal_without(loads, index, 0.0, values) < 0)
        return -1;
    for (int z = 0; z < loads->weightings; z++)
        loads->marginal[z][index] = values[z];
    return 0;
}

void costs_of_loads(const World *world, const double *mean, const double *pairs, const Distribution *charged, int64_t general,
                    double *costs)
{
    const int64_t E = world->resources, H = world->steps, C = world->charged, n = world->agents;
    const int64_t slope_size = (world->slope_stride ? H : 1) * E, first_size = (world->first_stride ? H : 1) * E;
    const int64_t cost_size = (world->general_cost_stride ? H : 1) * C * (n + 1);
    for (int j = 0; j < world->constraints; j++) {
        double total = world->idle_costs[j];
        for (int64_t h = 0; h < H; h++) {
            const double *first = world->first_costs + j * first_size + h * world->first_stride;
            const double *slope = world->slopes + (1 + j) * slope_size + h * world->slope_stride;
            for (int64_t e = 0; e < E; e++)
                total += first[e] * mean[h * E + e] + slope[e] * pairs[h * E + e];
            for (int64_t r = 0; r < C; r++) {
                const Distribution *one = &charged[h * general + r];
                const double *table = world->general_costs + j * cost_size + (h * world->general_cost_stride * C + r) * (n + 1);
                total += expected(table, one->sure, one->probability, one->low, one->high);
            }
        }
        costs[j] = total;
    }
}

int loads_costs(const World *world, const Usage *all, double *costs)
{
    const int64_t E = world->resources, H = world->steps, C = world->charged, n = world->agents;
    double *mean = calloc((size_t)(H * E), sizeof *mean), *pairs = calloc((size_t)(H * E), sizeof *pairs);
    Distribution *charged = calloc((size_t)(H * C + 1), sizeof *charged);
    int failed = mean == NULL || pairs == NULL || charged == NULL;
    for (int64_t at = 0; !failed && at < H * C; at++)
        failed = distribution_clear(&charged[at]) < 0;
    for (int64_t i = 0; !failed && i < n; i++)
        for (int64_t entry = 0; !failed && entry < all[i].count; entry++) {
            const int32_t index = all[i].index[entry], h = index / world->resources;
            const int32_t r = world->general_of[index % world->resources];
            const double u = all[i].probability[entry];
            /* Σ_{i<j} u_i·u_j = E[N(N − 1)/2] of independent users: sums of products, no difference of squares. */
            pairs[index] += u * mean[index];
            mean[index] += u;
            if (r >= 0 && r < C)
                failed = distribution_add(&charged[h * C + r], u, 0.0) < 0;
        }
    if (!failed)
        costs_of_loads(world, mean, pairs, charged, C, costs);
    for (int64_t at = 0; charged != NULL && at < H * C; at++)
        free(charged[at].probability);
    free(charged);
    free(pairs);
    free(mean);
    return failed ? -1 : 0;
}
