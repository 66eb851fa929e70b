/* A packed game, as it comes from Python: a dict of sizes and arrays. */
#include "local.h"

#include <stdlib.h>
#include <string.h>

static PyObject *field_of(PyObject *fields, const char *name)
{
    PyObject *field = PyDict_GetItemString(fields, name);
    if (field == NULL)
        PyErr_Format(PyExc_KeyError, "a packed game needs %s", name);
    return field;
}

static int size_of(int64_t *size, PyObject *fields, const char *name)
{
    PyObject *field = field_of(fields, name);
    *size = field == NULL ? -1 : PyLong_AsLongLong(field);
    return PyErr_Occurred() ? -1 : 0;
}

int world_of(World *world, Arrays *arrays, PyObject *fields)
{
    int64_t size;
    Py_ssize_t count = 0;
    PyObject *field;
    if (!PyDict_Check(fields)) {
        PyErr_SetString(PyExc_TypeError, "a packed game is a dict of sizes and arrays");
        return -1;
    }
#define SIZE(name, type)                                                                                               \
    if (size_of(&size, fields, #name) < 0)                                                                             \
        return -1;                                                                                                     \
    world->name = (type)size;                                                                                          \
    count++;
#define TABLE(name, type, format)                                                                                      \
    if ((field = field_of(fields, #name)) == NULL ||                                                                   \
        (world->name = array_of(arrays, field, format, 0, #name, NULL)) == NULL)                                       \
        return -1;                                                                                                     \
    count++;
    WORLD_SIZES(SIZE)
    WORLD_TABLES(TABLE)
#undef SIZE
#undef TABLE
    if (PyDict_Size(fields) == count)
        return 0;
    PyErr_Format(PyExc_TypeError, "a packed game has %zd fields; %zd are known", PyDict_Size(fields), count);
    return -1;
}

int has_agent(const World *world, long agent)
{
    if (agent >= 0 && agent < world->agents)
        return 1;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_IndexError, "there is no such agent");
    return 0;
}

int usages_of(Usages *usages, const World *world, Arrays *arrays, PyObject *tuple)
{
    Py_ssize_t indices, probabilities;
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != 3) {
        PyErr_SetString(PyExc_TypeError, "usages are (start, index, probability)");
        return -1;
    }
    const int64_t *start = array_with(arrays, PyTuple_GET_ITEM(tuple, 0), 'q', 0, "start", (Py_ssize_t)world->agents + 1);
    const int32_t *index = start == NULL ? NULL : array_of(arrays, PyTuple_GET_ITEM(tuple, 1), 'i', 0, "index", &indices);
    const double *probability =
        index == NULL ? NULL : array_of(arrays, PyTuple_GET_ITEM(tuple, 2), 'd', 0, "probability", &probabilities);
    if (probability == NULL)
        return -1;
    int fits = start[0] == 0 && indices == start[world->agents] && probabilities == indices;
    for (int32_t i = 0; fits && i < world->agents; i++)
        fits = start[i] <= start[i + 1];
    const int64_t most = (int64_t)world->steps * world->resources;
    for (Py_ssize_t entry = 0; fits && entry < indices; entry++)
        fits = index[entry] >= 0 && index[entry] < most;
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "the usages of a position do not fit together");
        return -1;
    }
    usages->count = world->agents;
    usages->all = calloc((size_t)world->agents + 1, sizeof(Usage));
    if (usages->all == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (int32_t i = 0; i < world->agents; i++) /* borrowed: the arrays are held as long as the call lasts */
        usages->all[i] = (Usage){(int32_t *)index + start[i], (double *)probability + start[i], start[i + 1] - start[i], 0};
    return 0;
}

int policy_of(Policy *policy, Arrays *arrays, const World *world, int32_t agent, PyObject *object)
{
    const Py_ssize_t pairs = (Py_ssize_t)world->steps * world->states[agent];
    const int own = arrays->count;
    Py_ssize_t length;
    memset(policy, 0, sizeof *policy);
    policy->table = array_of(arrays, object, 'd', 0, "policy", &length);
    if (policy->table == NULL) {
        /* Not a table of floats: actions of one byte, or of two. */
        PyErr_Clear();
        for (policy->bytes = 1; policy->bytes <= 2 && policy->actions == NULL; policy->bytes += policy->actions == NULL) {
            if (arrays->count > own)
                PyBuffer_Release(&arrays->held[--arrays->count]);
            PyErr_Clear();
            policy->actions = array_of(arrays, object, policy->bytes == 1 ? 'b' : 'h', 0, "policy", &length);
        }
        if (policy->actions == NULL)
            return -1;
    }
    if (length != (policy->table == NULL ? pairs : pairs * world->actions[agent])) {
        PyErr_Format(PyExc_ValueError, "a policy has %zd entries, which does not fit agent %d", length, (int)agent);
        return -1;
    }
    for (Py_ssize_t pair = 0; policy->table == NULL && pair < pairs; pair++) {
        const int a = policy->bytes == 1 ? ((const int8_t *)policy->actions)[pair] : ((const int16_t *)policy->actions)[pair];
        if (a < 0 || a >= world->actions[agent]) {
            PyErr_Format(PyExc_ValueError, "agent %d has no action %d", (int)agent, a);
            return -1;
        }
    }
    return 0;
}

void usages_end(Usages *usages)
{
    for (int32_t i = 0; usages->all != NULL && i < usages->count; i++)
        usage_end(&usages->all[i]);
    free(usages->all);
}

/* (start, index, probability) as bytes objects. */
PyObject *usages_to_python(const Usages *usages)
{
    int64_t total = 0;
    for (int32_t i = 0; i < usages->count; i++)
        total += usages->all[i].count;
    PyObject *starts = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(usages->count + 1) * (Py_ssize_t)sizeof(int64_t));
    PyObject *indices = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(total * (int64_t)sizeof(int32_t)));
    PyObject *probabilities = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(total * (int64_t)sizeof(double)));
    if (starts == NULL || indices == NULL || probabilities == NULL) {
        Py_XDECREF(starts);
        Py_XDECREF(indices);
        Py_XDECREF(probabilities);
        return NULL;
    }
    int64_t *start = (int64_t *)PyBytes_AS_STRING(starts), at = 0;
    char *index = PyBytes_AS_STRING(indices), *probability = PyBytes_AS_STRING(probabilities);
    for (int32_t i = 0; i < usages->count; i++) {
        const Usage *one = &usages->all[i];
        start[i] = at;
        if (one->count > 0) {
            memcpy(index + at * (int64_t)sizeof(int32_t), one->index, (size_t)one->count * sizeof(int32_t));
            memcpy(probability + at * (int64_t)sizeof(double), one->probability, (size_t)one->count * sizeof(double));
        }
        at += one->count;
    }
    start[usages->count] = at;
    return Py_BuildValue("(NNN)", starts, indices, probabilities);
}

int same_kind(const World *world, int32_t one, int32_t other)
{
    const World *w = world;
    const int64_t H = w->steps;
    if (w->states[one] != w->states[other] || w->actions[one] != w->actions[other] || w->moves_of[one] != w->moves_of[other] ||
        w->uses_of[one] != w->uses_of[other] || w->reward_of[one] != w->reward_of[other] ||
        w->reward_step[one] != w->reward_step[other] || w->reward_columns[one] != w->reward_columns[other] ||
        w->cost_of[one] != w->cost_of[other] || w->cost_family[one] != w->cost_family[other] ||
        w->cost_step[one] != w->cost_step[other] || w->cost_columns[one] != w->cost_columns[other] ||
        w->order_of[one] != w->order_of[other])
        return 0;
    const int64_t from = w->initial_of[one], to = w->initial_of[other], starts = w->initial_of[one + 1] - from;
    return w->initial_of[other + 1] - to == starts &&
           memcmp(w->initial_state + from, w->initial_state + to, (size_t)starts * sizeof(int32_t)) == 0 &&
           memcmp(w->initial_probability + from, w->initial_probability + to, (size_t)starts * sizeof(double)) == 0 &&
           memcmp(w->reach + one * H, w->reach + other * H, (size_t)H * sizeof(int32_t)) == 0;
}

int find_equal(int32_t first, int32_t last, uint64_t (*hash)(const void *context, int32_t agent),
               int (*equal)(const void *context, int32_t one, int32_t other), const void *context, int32_t *like)
{
    size_t room = 16; /* a power of two, at least half empty */
    while (room < 2 * (size_t)(last - first))
        room *= 2;
    int32_t *known = malloc(room * sizeof *known); /* open addressing; −1: empty */
    if (known == NULL)
        return -1;
    memset(known, -1, room * sizeof *known);
    for (int32_t i = first; i < last; i++) {
        size_t slot = (size_t)hash(context, i) & (room - 1);
        while (known[slot] >= 0 && !equal(context, known[slot], i))
            slot = (slot + 1) & (room - 1);
        if (known[slot] < 0)
            known[slot] = i;
        like[i - first] = known[slot];
    }
    free(known);
    return 0;
}

static uint64_t hash_of_kind(const void *context, int32_t agent)
{
    const World *world = context;
    uint64_t hash = fold(UINT64_C(0xcbf29ce484222325), (uint64_t)world->reward_of[agent]);
    hash = fold(hash, (uint64_t)world->order_of[agent]);
    return fold(hash, (uint64_t)world->moves_of[agent]);
}

static int are_of_one_kind(const void *context, int32_t one, int32_t other)
{
    return same_kind(context, one, other);
}

int32_t find_kinds(const World *world, int32_t *kind)
{
    if (find_equal(0, world->agents, hash_of_kind, are_of_one_kind, world, kind) < 0)
        return -1;
    int32_t kinds = 0;
    for (int32_t i = 0; i < world->agents; i++) /* first ones come before those like them */
        kind[i] = kind[i] == i ? kinds++ : kind[kind[i]];
    return kinds;
}
