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

int usages_of(Usages *usages, const World *world, Arrays *arrays, PyObject *tuple)
{
    Py_ssize_t places, probabilities;
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != 3) {
        PyErr_SetString(PyExc_TypeError, "usages are (start, place, probability)");
        return -1;
    }
    const int64_t *start = array_with(arrays, PyTuple_GET_ITEM(tuple, 0), 'q', 0, "start", (Py_ssize_t)world->agents + 1);
    const int32_t *place = start == NULL ? NULL : array_of(arrays, PyTuple_GET_ITEM(tuple, 1), 'i', 0, "place", &places);
    const double *probability =
        place == NULL ? NULL : array_of(arrays, PyTuple_GET_ITEM(tuple, 2), 'd', 0, "probability", &probabilities);
    if (probability == NULL)
        return -1;
    int fits = start[0] == 0 && places == start[world->agents] && probabilities == places;
    for (int32_t i = 0; fits && i < world->agents; i++)
        fits = start[i] <= start[i + 1];
    const int64_t most = (int64_t)world->steps * world->resources;
    for (Py_ssize_t entry = 0; fits && entry < places; entry++)
        fits = place[entry] >= 0 && place[entry] < most;
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "the usages of a position do not fit together");
        return -1;
    }
    usages->count = world->agents;
    usages->all = calloc((size_t)world->agents + 1, sizeof(Usage));
    for (int32_t i = 0; usages->all != NULL && i < world->agents; i++) {
        Usage *one = &usages->all[i];
        const size_t count = (size_t)(start[i + 1] - start[i]);
        one->place = malloc((count + 1) * sizeof *one->place);
        one->probability = malloc((count + 1) * sizeof *one->probability);
        if (one->place == NULL || one->probability == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        memcpy(one->place, place + start[i], count * sizeof *place);
        memcpy(one->probability, probability + start[i], count * sizeof *probability);
        one->count = one->room = (int64_t)count;
    }
    if (usages->all == NULL)
        PyErr_NoMemory();
    return usages->all == NULL ? -1 : 0;
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
    for (int32_t i = 0; usages->all != NULL && i < usages->count; i++) {
        free(usages->all[i].place);
        free(usages->all[i].probability);
    }
    free(usages->all);
}

/* (start, place, probability) as bytes objects. */
PyObject *usages_told(const Usages *usages)
{
    int64_t total = 0;
    for (int32_t i = 0; i < usages->count; i++)
        total += usages->all[i].count;
    PyObject *starts = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(usages->count + 1) * (Py_ssize_t)sizeof(int64_t));
    PyObject *places = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(total * (int64_t)sizeof(int32_t)));
    PyObject *probabilities = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(total * (int64_t)sizeof(double)));
    if (starts == NULL || places == NULL || probabilities == NULL) {
        Py_XDECREF(starts);
        Py_XDECREF(places);
        Py_XDECREF(probabilities);
        return NULL;
    }
    int64_t *start = (int64_t *)PyBytes_AS_STRING(starts), at = 0;
    char *place = PyBytes_AS_STRING(places), *probability = PyBytes_AS_STRING(probabilities);
    for (int32_t i = 0; i < usages->count; i++) {
        const Usage *one = &usages->all[i];
        start[i] = at;
        if (one->count > 0) {
            memcpy(place + at * (int64_t)sizeof(int32_t), one->place, (size_t)one->count * sizeof(int32_t));
            memcpy(probability + at * (int64_t)sizeof(double), one->probability, (size_t)one->count * sizeof(double));
        }
        at += one->count;
    }
    start[usages->count] = at;
    return Py_BuildValue("(NNN)", starts, places, probabilities);
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

int32_t find_kinds(const World *world, int32_t *kind)
{
    const int32_t n = world->agents;
    size_t room = 16;
    while (room < 2 * (size_t)n)
        room *= 2;
    int32_t *known = malloc(room * sizeof *known), kinds = 0; /* the first of each kind; −1: nobody */
    if (known == NULL)
        return -1;
    memset(known, -1, room * sizeof *known);
    for (int32_t i = 0; i < n; i++) {
        uint64_t hash = (uint64_t)world->reward_of[i] * UINT64_C(0x9E3779B97F4A7C15);
        hash = (hash ^ (uint64_t)world->order_of[i]) * UINT64_C(0x9E3779B97F4A7C15);
        hash = (hash ^ (uint64_t)world->moves_of[i]) * UINT64_C(0x9E3779B97F4A7C15);
        size_t at = (size_t)(hash >> 20) & (room - 1);
        while (known[at] >= 0 && !same_kind(world, known[at], i))
            at = (at + 1) & (room - 1);
        const int is_first = known[at] < 0;
        kind[i] = is_first ? kinds++ : kind[known[at]];
        known[at] = is_first ? i : known[at];
    }
    free(known);
    return kinds;
}
