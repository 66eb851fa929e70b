/* A CMDP with a finite horizon: packing, plans, bounds, evaluation, occupancies and mixtures of plans.

   A plan backs up r − λ·c for every action, and reward and costs apart only for the action that it chooses: so its work
   hardly grows with the number of constraints. The twin backs up everything apart; both agree to rounding. */
#include "process.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CAPSULE "cmpg.process"

#ifdef _MSC_VER
#define ALWAYS_INLINE static __forceinline
#define PREFETCH(address) ((void)0)
#else
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define PREFETCH(address) __builtin_prefetch(address)
#endif

/* --- Packing ------------------------------------------------------------------------------------------------------ */

static void process_free(Process *process)
{
    if (process == NULL)
        return;
    while (process->count > 0)
        PyBuffer_Release(&process->held[--process->count]);
    PyMem_Free(process->held);
    PyMem_Free(process->matrix);
    PyMem_Free(process->table);
    PyMem_Free(process);
}

static void capsule_free(PyObject *capsule)
{
    process_free(PyCapsule_GetPointer(capsule, CAPSULE));
}

const Process *process_of(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, CAPSULE);
}

/* A buffer of so many axes whose entries have the format; NULL with an exception where it is something else. */
static Py_buffer *hold(Process *process, PyObject *object, char format, int axes, int contiguous, const char *name)
{
    Py_buffer *view = &process->held[process->count];
    if (PyObject_GetBuffer(object, view, PyBUF_FORMAT | (contiguous ? PyBUF_C_CONTIGUOUS : PyBUF_STRIDES)) < 0)
        return NULL;
    process->count++;
    const char *found = view->format == NULL ? "B" : view->format;
    const Py_ssize_t size = format == 'd' ? 8 : 4;
    const int same = found[0] == format || (format == 'i' && found[0] == 'l');
    if (!same || found[1] != '\0' || view->itemsize != size || view->ndim != axes) {
        PyErr_Format(PyExc_TypeError, "%s has %d axes of the format %s; %d of %c are required", name, view->ndim, found,
                     axes, format);
        return NULL;
    }
    return view;
}

static int wrong_shape(const char *name)
{
    PyErr_Format(PyExc_ValueError, "%s does not fit the process", name);
    return -1;
}

/* The last three axes of a buffer are [H or 1, S, A]. */
static int table_in(const Process *process, const Py_buffer *view, Table *table, const char *name)
{
    const int first = view->ndim - 3;
    const Py_ssize_t *shape = view->shape + first, *strides = view->strides + first;
    if ((shape[0] != 1 && shape[0] != process->steps) || shape[1] != process->states || shape[2] != process->actions)
        return wrong_shape(name);
    for (int axis = 0; axis < view->ndim; axis++)
        if (view->strides[axis] % (Py_ssize_t)sizeof(double))
            return wrong_shape(name);
    table->data = view->buf;
    table->step = shape[0] == 1 ? 0 : strides[0] / (Py_ssize_t)sizeof(double);
    table->state = strides[1] / (Py_ssize_t)sizeof(double);
    table->action = strides[2] / (Py_ssize_t)sizeof(double);
    return 0;
}

static int hold_tables(Process *process, PyObject *reward, PyObject *costs, PyObject *initial)
{
    const Py_buffer *own = hold(process, reward, 'd', 3, 0, "reward");
    if (own == NULL || table_in(process, own, &process->table[0], "reward") < 0)
        return -1;
    if (process->tables > 1) {
        const Py_buffer *all = hold(process, costs, 'd', 4, 0, "costs");
        if (all == NULL)
            return -1;
        if (all->shape[0] != process->tables - 1)
            return wrong_shape("costs");
        for (int32_t j = 1; j < process->tables; j++) {
            if (table_in(process, all, &process->table[j], "costs") < 0)
                return -1;
            process->table[j].data += (j - 1) * (all->strides[0] / (Py_ssize_t)sizeof(double));
        }
    }
    const Py_buffer *start = hold(process, initial, 'd', 1, 1, "initial");
    if (start == NULL)
        return -1;
    process->initial = start->buf;
    return start->shape[0] == process->states ? 0 : wrong_shape("initial");
}

/* Rows end where the next ones begin, and lead to states that exist: whatever a matrix holds, no kernel reads beyond. */
static int check_csr(const Process *process, const Matrix *matrix, Py_ssize_t rows, Py_ssize_t entries)
{
    if (matrix->start[0] != 0 || matrix->start[rows] != entries)
        return wrong_shape("indptr");
    int32_t falls = 0;
    for (Py_ssize_t row = 0; row < rows; row++)
        falls |= matrix->start[row] > matrix->start[row + 1];
    if (falls)
        return wrong_shape("indptr");
    int32_t beyond = 0;
    for (Py_ssize_t entry = 0; entry < entries; entry++)
        beyond |= (uint32_t)matrix->target[entry] >= (uint32_t)process->states;
    return beyond ? wrong_shape("indices") : 0;
}

/* A dense transition is one array [H or 1, S·A, S]. */
static int hold_dense(Process *process, PyObject *object)
{
    const Py_ssize_t rows = (Py_ssize_t)process->states * process->actions;
    const Py_buffer *dense = hold(process, object, 'd', 3, 1, "transition");
    if (dense == NULL)
        return -1;
    if (dense->shape[0] != process->matrices || dense->shape[1] != rows || dense->shape[2] != process->states)
        return wrong_shape("transition");
    for (int32_t step = 0; step < process->matrices; step++)
        process->matrix[step] = (Matrix){.probability = (const double *)dense->buf + step * rows * process->states};
    return 0;
}

/* Each matrix of a sparse one is a tuple of indptr, indices and data. */
static int hold_sparse(Process *process, PyObject *object, Matrix *matrix)
{
    const Py_ssize_t rows = (Py_ssize_t)process->states * process->actions;
    PyObject *parts[3];
    if (!PyArg_ParseTuple(object, "OOO", &parts[0], &parts[1], &parts[2]))
        return -1;
    const Py_buffer *start = hold(process, parts[0], 'i', 1, 1, "indptr");
    const Py_buffer *target = start == NULL ? NULL : hold(process, parts[1], 'i', 1, 1, "indices");
    const Py_buffer *probability = target == NULL ? NULL : hold(process, parts[2], 'd', 1, 1, "data");
    if (probability == NULL)
        return -1;
    if (start->shape[0] != rows + 1 || target->shape[0] != probability->shape[0])
        return wrong_shape("indptr");
    *matrix = (Matrix){.start = start->buf, .target = target->buf, .probability = probability->buf};
    return check_csr(process, matrix, rows, target->shape[0]);
}

static PyObject *process_pack(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *transition, *reward, *costs, *initial;
    int steps, states, actions, constraints, matrices;
    if (!PyArg_ParseTuple(args, "(iiiii)OOOO", &steps, &states, &actions, &constraints, &matrices, &transition, &reward,
                          &costs, &initial))
        return NULL;
    const int sparse = PyTuple_Check(transition);
    if (steps < 1 || states < 1 || actions < 1 || constraints < 0 || constraints > 1000000 ||
        (matrices != 1 && matrices != steps) || (int64_t)states * actions > INT32_MAX ||
        (sparse && PyTuple_GET_SIZE(transition) != matrices)) {
        PyErr_SetString(PyExc_ValueError, "the sizes of the process do not fit each other, or are too large");
        return NULL;
    }
    Process *process = PyMem_Calloc(1, sizeof *process);
    if (process == NULL)
        return PyErr_NoMemory();
    *process = (Process){.steps = steps, .states = states, .actions = actions, .tables = 1 + constraints};
    process->matrices = matrices;
    process->held = PyMem_Calloc((size_t)(sparse ? 3 * matrices : 1) + 3, sizeof(Py_buffer));
    process->matrix = PyMem_Calloc((size_t)matrices, sizeof(Matrix));
    process->table = PyMem_Calloc((size_t)process->tables, sizeof(Table));
    int failed = process->held == NULL || process->table == NULL || process->matrix == NULL;
    if (failed)
        PyErr_NoMemory();
    failed = failed || hold_tables(process, reward, costs, initial) < 0;
    if (!failed && !sparse)
        failed = hold_dense(process, transition) < 0;
    for (int32_t step = 0; step < matrices && sparse && !failed; step++)
        failed = hold_sparse(process, PyTuple_GET_ITEM(transition, step), &process->matrix[step]) < 0;
    PyObject *capsule = failed ? NULL : PyCapsule_New(process, CAPSULE, capsule_free);
    if (capsule == NULL)
        process_free(process);
    return capsule;
}

/* --- One step ----------------------------------------------------------------------------------------------------- */

void weigh_stage(const Process *process, int32_t step, int32_t first, int32_t count, const double *weights,
                 double *stage)
{
    const int32_t actions = process->actions;
    const Py_ssize_t rows = (Py_ssize_t)count * actions;
    int empty = 1;
    for (int32_t l = 0; l < process->tables; l++) {
        const double weight = weights[l];
        if (weight == 0.0)
            continue;
        const Table *table = &process->table[l];
        const double *data = table->data + step * table->step + first * table->state;
        if (table->action == 1 && table->state == actions) {
            if (empty)
                for (Py_ssize_t row = 0; row < rows; row++)
                    stage[row] = weight * data[row];
            else
                for (Py_ssize_t row = 0; row < rows; row++)
                    stage[row] += weight * data[row];
        } else
            for (int32_t s = 0; s < count; s++)
                for (int32_t a = 0; a < actions; a++) {
                    const double term = weight * data[s * table->state + a * table->action];
                    double *to = &stage[(Py_ssize_t)s * actions + a];
                    *to = empty ? term : *to + term;
                }
        empty = 0;
    }
    if (empty)
        memset(stage, 0, (size_t)rows * sizeof(double));
}

/* States whose stages are weighed at once: few enough to stay in the fastest cache. */
static int32_t block_of(const Process *process)
{
    const int32_t states = 1024 / process->actions;
    return states < 1 ? 1 : states < process->states ? states : process->states;
}

/* worth[a] += Σ_{s'} P(s' | s, a) values[s'], for all actions of a state. */
static inline void add_future(const Process *process, const Matrix *matrix, int32_t state, const double *values,
                              double *worth)
{
    const int32_t states = process->states, actions = process->actions;
    const Py_ssize_t first = (Py_ssize_t)state * actions;
    if (matrix->start == NULL) {
        for (int32_t a = 0; a < actions; a++)
            worth[a] += dense_product(matrix->probability + (first + a) * states, values, states);
        return;
    }
    int32_t entry = matrix->start[first];
    const int32_t after = matrix->start[first + actions], length = after - entry;
    if ((int64_t)after + 2 * (int64_t)length <= matrix->start[(Py_ssize_t)states * actions]) {
        /* The state after the next one has about as many entries. */
        for (int32_t i = 0; i < length; i += 8)
            PREFETCH(matrix->probability + after + length + i);
        for (int32_t i = 0; i < length; i += 16)
            PREFETCH(matrix->target + after + length + i);
    }
    for (int32_t a = 0; a < actions; a++) {
        const int32_t end = matrix->start[first + a + 1];
        double sum = 0.0;
        for (; entry < end; entry++)
            sum += matrix->probability[entry] * values[matrix->target[entry]];
        worth[a] += sum;
    }
}

/* Rows that a plan or a policy picks out of a large sparse matrix are far apart: they are fetched some rows ahead. */
#define AHEAD 12


static inline void fetch(const Matrix *matrix, const int32_t *rows, int32_t i, int32_t count)
{
    if (matrix->start == NULL)
        return;
    if (i + 2 * AHEAD < count)
        PREFETCH(matrix->start + rows[i + 2 * AHEAD]);
    if (i + AHEAD < count) {
        const int32_t first = matrix->start[rows[i + AHEAD]], last = matrix->start[rows[i + AHEAD] + 1] - 1;
        PREFETCH(matrix->probability + first);
        PREFETCH(matrix->probability + last);
        PREFETCH(matrix->target + first);
        PREFETCH(matrix->target + last);
    }
}

/* List the rows that are not zero; returns how many. */
static int32_t rows_played(const double *weights, Py_ssize_t rows, int32_t *played)
{
    int32_t count = 0;
    for (Py_ssize_t row = 0; row < rows; row++) {
        played[count] = (int32_t)row;
        count += weights[row] != 0.0;
    }
    return count;
}

/* apart[l] = l_h(s, a) + Σ_{s'} P(s' | s, a) to_go[s', l], of `count` tables from the first one on. The sums stay in
   registers, because the count is known to the compiler. */
ALWAYS_INLINE void back_up_some(const Process *process, int32_t step, int32_t state, int32_t action,
                                const double *to_go, double *apart, int32_t first, const int32_t count)
{
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    if (to_go != NULL) {
        const Py_ssize_t row = (Py_ssize_t)state * process->actions + action, tables = process->tables;
        const Matrix *matrix = matrix_of(process, step);
        if (matrix->start == NULL) {
            const double *probability = matrix->probability + row * process->states;
            for (int32_t s = 0; s < process->states; s++)
                for (int32_t l = 0; l < count; l++)
                    sums[l] += probability[s] * to_go[s * tables + first + l];
        } else
            for (int32_t entry = matrix->start[row], end = matrix->start[row + 1]; entry < end; entry++) {
                const double *there = to_go + matrix->target[entry] * tables + first;
                for (int32_t l = 0; l < count; l++)
                    sums[l] += matrix->probability[entry] * there[l];
            }
    }
    for (int32_t l = 0; l < count; l++)
        apart[first + l] = sums[l] + entry_of(&process->table[first + l], step, state, action);
}

/* The same of all tables; to_go is NULL at the last step. */
static void back_up_apart(const Process *process, int32_t step, int32_t state, int32_t action, const double *to_go,
                          double *apart)
{
    int32_t first = 0;
    for (; first + 4 <= process->tables; first += 4)
        back_up_some(process, step, state, action, to_go, apart, first, 4);
    switch (process->tables - first) {
    case 3:
        back_up_some(process, step, state, action, to_go, apart, first, 3);
        break;
    case 2:
        back_up_some(process, step, state, action, to_go, apart, first, 2);
        break;
    case 1:
        back_up_some(process, step, state, action, to_go, apart, first, 1);
    }
}

/* --- Plans -------------------------------------------------------------------------------------------------------- */

int rule_of(Rule *rule, Arrays *arrays, const Process *process, PyObject *weights, PyObject *second, double tie,
            double second_tie, double relative_tie)
{
    *rule = (Rule){.tie = tie, .second_tie = second_tie, .relative_tie = relative_tie};
    rule->weights = array_with(arrays, weights, 'd', 0, "weights", process->tables);
    if (rule->weights == NULL)
        return -1;
    rule->second = array_with(arrays, second, 'd', 0, "second", process->tables);
    return rule->second == NULL ? -1 : 0;
}

int32_t among_tied(const Rule *rule, const double *second, const int32_t *tied, int32_t count, const double *noise,
                   Py_ssize_t stride)
{
    double best = second[tied[0]];
    for (int32_t i = 1; i < count; i++)
        best = second[tied[i]] > best ? second[tied[i]] : best;
    int32_t chosen = -1;
    for (int32_t i = 0; i < count; i++) {
        const int32_t a = tied[i];
        if (second[a] >= best - rule->second_tie &&
            (chosen < 0 || (noise != NULL && noise[a * stride] > noise[chosen * stride])))
            chosen = a;
    }
    return chosen < 0 ? tied[0] : chosen;
}

typedef struct {
    double *worth;   /* [block, A] */
    double *values;  /* [S]: of the weighted sum */
    double *next;    /* [S, 1 + k] */
    double *apart;   /* [1 + k] */
    double *second;  /* [A] */
    int32_t *tied;   /* [A] */
} Scratch;

static void scratch_free(Scratch *scratch)
{
    free(scratch->worth);
    free(scratch->values);
    free(scratch->next);
    free(scratch->apart);
    free(scratch->second);
    free(scratch->tied);
}

static int scratch_of(Scratch *scratch, const Process *process)
{
    const size_t states = (size_t)process->states, actions = (size_t)process->actions;
    const size_t tables = (size_t)process->tables;
    scratch->worth = malloc((size_t)block_of(process) * actions * sizeof(double));
    scratch->values = malloc(states * sizeof(double));
    scratch->next = malloc(states * tables * sizeof(double));
    scratch->apart = malloc(tables * sizeof(double));
    scratch->second = malloc(actions * sizeof(double));
    scratch->tied = malloc((actions + 1) * sizeof(int32_t));
    return scratch->worth && scratch->values && scratch->next && scratch->apart && scratch->second && scratch->tied
               ? 0
               : -1;
}

/* Choose at one step, and replace to_go [S, 1 + k] by what is to go before it. Returns −1, and leaves to_go alone, where
   actions are tied and noise is to be asked for. */
static int plan_step(const Process *process, const Rule *rule, int32_t step, double *to_go, int64_t *chosen,
                     const double *noise, int ask, Scratch *scratch)
{
    const int32_t states = process->states, actions = process->actions, tables = process->tables;
    const int32_t block = block_of(process);
    const double *ahead = step == process->steps - 1 ? NULL : to_go;
    for (int32_t s = 0; s < states && ahead != NULL; s++)
        scratch->values[s] = weighed(rule->weights, to_go + (Py_ssize_t)s * tables, tables);
    double *worth = scratch->worth;
    for (int32_t s = 0, left = 0; s < states; s++, left--, worth += actions) {
        if (left == 0) {
            left = states - s < block ? states - s : block;
            worth = scratch->worth;
            weigh_stage(process, step, s, left, rule->weights, worth);
        }
        if (ahead != NULL)
            add_future(process, matrix_of(process, step), s, scratch->values, worth);
        const int32_t count = tied_actions(rule, worth, actions, scratch->tied);
        int32_t action = scratch->tied[0];
        if (count > 1) {
            if (ask && noise == NULL)
                return -1;
            for (int32_t i = 0; i < count; i++) {
                back_up_apart(process, step, s, scratch->tied[i], ahead, scratch->apart);
                scratch->second[scratch->tied[i]] = weighed(rule->second, scratch->apart, tables);
            }
            action = among_tied(rule, scratch->second, scratch->tied, count, noise == NULL ? NULL : noise + s, states);
        }
        chosen[s] = action;
        back_up_apart(process, step, s, action, ahead, scratch->next + (Py_ssize_t)s * tables);
    }
    memcpy(to_go, scratch->next, (size_t)states * (size_t)tables * sizeof(double));
    return 0;
}

void total(const Process *process, const double *to_go, double *totals)
{
    for (int32_t l = 0; l < process->tables; l++)
        totals[l] = 0.0;
    for (int32_t s = 0; s < process->states; s++)
        for (int32_t l = 0; l < process->tables; l++)
            totals[l] += process->initial[s] * to_go[(Py_ssize_t)s * process->tables + l];
}

static PyObject *plan_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *weights, *second, *chosen_out, *to_go_out, *totals_out, *noise_in;
    double tie, second_tie, relative_tie;
    int step, ask;
    if (!PyArg_ParseTuple(args, "OOOdddiOOOOp", &capsule, &weights, &second, &tie, &second_tie, &relative_tie, &step,
                          &chosen_out, &to_go_out, &totals_out, &noise_in, &ask))
        return NULL;
    const Process *process = process_of(capsule);
    if (process == NULL)
        return NULL;
    if (step < 0 || step >= process->steps) {
        PyErr_SetString(PyExc_ValueError, "there is no such step");
        return NULL;
    }
    const Py_ssize_t states = process->states;
    Arrays arrays = {.count = 0};
    Rule rule;
    int64_t *chosen = NULL;
    double *to_go = NULL, *totals = NULL;
    const double *noise = NULL;
    int fine = rule_of(&rule, &arrays, process, weights, second, tie, second_tie, relative_tie) == 0;
    fine = fine && (chosen = array_with(&arrays, chosen_out, 'q', 1, "chosen", states * process->steps));
    fine = fine && (to_go = array_with(&arrays, to_go_out, 'd', 1, "to_go", states * process->tables));
    fine = fine && (totals = array_with(&arrays, totals_out, 'd', 1, "totals", process->tables));
    if (noise_in != Py_None)
        fine = fine && (noise = array_with(&arrays, noise_in, 'd', 0, "noise", states * process->actions));
    Scratch scratch = {NULL, NULL, NULL, NULL, NULL, NULL};
    if (fine && scratch_of(&scratch, process) < 0) {
        PyErr_NoMemory();
        fine = 0;
    }
    if (fine) {
        Watch watch;
        begin_without_lock(&watch, NO_DEADLINE);
        for (; step >= 0; step--) {
            if (plan_step(process, &rule, step, to_go, chosen + step * states, noise, ask, &scratch) < 0)
                break;
            noise = NULL; /* it was drawn for one step */
            if (must_stop(&watch) == INTERRUPTED) {
                fine = 0;
                break;
            }
        }
        end_without_lock(&watch);
        if (fine && step < 0)
            total(process, to_go, totals);
    }
    scratch_free(&scratch);
    release_arrays(&arrays);
    return fine ? PyLong_FromLong(step) : NULL;
}

static PyObject *bound_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *weights_in;
    if (!PyArg_ParseTuple(args, "OO", &capsule, &weights_in))
        return NULL;
    const Process *process = process_of(capsule);
    if (process == NULL)
        return NULL;
    const int32_t states = process->states, actions = process->actions;
    Arrays arrays = {.count = 0};
    const double *weights = array_with(&arrays, weights_in, 'd', 0, "weights", process->tables);
    const int32_t block = block_of(process);
    double *worth = weights == NULL ? NULL : malloc((size_t)block * (size_t)actions * sizeof(double));
    double *ahead = worth == NULL ? NULL : malloc((size_t)states * sizeof(double));
    double *here = ahead == NULL ? NULL : malloc((size_t)states * sizeof(double));
    int fine = here != NULL;
    if (weights != NULL && !fine)
        PyErr_NoMemory();
    double sum = 0.0;
    if (fine) {
        Watch watch;
        begin_without_lock(&watch, NO_DEADLINE);
        for (int32_t step = process->steps - 1; step >= 0 && fine; step--) {
            double *own = worth;
            for (int32_t s = 0, left = 0; s < states; s++, left--, own += actions) {
                if (left == 0) {
                    left = states - s < block ? states - s : block;
                    own = worth;
                    weigh_stage(process, step, s, left, weights, own);
                }
                if (step < process->steps - 1)
                    add_future(process, matrix_of(process, step), s, ahead, own);
                double best = own[0];
                for (int32_t a = 1; a < actions; a++)
                    best = own[a] > best ? own[a] : best;
                here[s] = best;
            }
            double *swap = ahead;
            ahead = here;
            here = swap;
            fine = must_stop(&watch) != INTERRUPTED;
        }
        end_without_lock(&watch);
        for (int32_t s = 0; s < states; s++)
            sum += process->initial[s] * ahead[s];
    }
    free(worth);
    free(ahead);
    free(here);
    release_arrays(&arrays);
    return fine ? PyFloat_FromDouble(sum) : NULL;
}

/* --- Policies ----------------------------------------------------------------------------------------------------- */

static PyObject *evaluate_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *policy_in, *totals_out;
    if (!PyArg_ParseTuple(args, "OOO", &capsule, &policy_in, &totals_out))
        return NULL;
    const Process *process = process_of(capsule);
    if (process == NULL)
        return NULL;
    const int32_t states = process->states, actions = process->actions, tables = process->tables;
    const Py_ssize_t rows = (Py_ssize_t)states * actions;
    Arrays arrays = {.count = 0};
    const double *policy = array_with(&arrays, policy_in, 'd', 0, "policy", rows * process->steps);
    double *totals = policy == NULL ? NULL : array_with(&arrays, totals_out, 'd', 1, "totals", tables);
    const size_t size = (size_t)states * (size_t)tables * sizeof(double);
    double *ahead = totals == NULL ? NULL : malloc(size), *here = ahead == NULL ? NULL : malloc(size);
    double *apart = here == NULL ? NULL : malloc((size_t)tables * sizeof(double));
    int32_t *played = apart == NULL ? NULL : malloc((size_t)rows * sizeof(int32_t));
    int fine = played != NULL;
    if (totals != NULL && !fine)
        PyErr_NoMemory();
    if (fine) {
        Watch watch;
        begin_without_lock(&watch, NO_DEADLINE);
        for (int32_t step = process->steps - 1; step >= 0 && fine; step--) {
            const double *own = policy + step * rows, *to_go = step == process->steps - 1 ? NULL : ahead;
            const int32_t count = rows_played(own, rows, played);
            memset(here, 0, size);
            for (int32_t i = 0; i < count; i++) {
                const int32_t row = played[i], s = row / actions;
                if (to_go != NULL)
                    fetch(matrix_of(process, step), played, i, count);
                back_up_apart(process, step, s, row - s * actions, to_go, apart);
                for (int32_t l = 0; l < tables; l++)
                    here[(Py_ssize_t)s * tables + l] += own[row] * apart[l];
            }
            double *swap = ahead;
            ahead = here;
            here = swap;
            fine = must_stop(&watch) != INTERRUPTED;
        }
        end_without_lock(&watch);
        total(process, ahead, totals);
    }
    free(ahead);
    free(here);
    free(apart);
    free(played);
    release_arrays(&arrays);
    if (!fine)
        return NULL;
    Py_RETURN_NONE;
}

/* arriving[s'] += amount·P(s' | row). */
static inline void flow(const Process *process, const Matrix *matrix, Py_ssize_t row, double amount, double *arriving)
{
    if (matrix->start == NULL) {
        const double *probability = matrix->probability + row * process->states;
        for (int32_t s = 0; s < process->states; s++)
            arriving[s] += amount * probability[s];
    } else
        for (int32_t entry = matrix->start[row]; entry < matrix->start[row + 1]; entry++)
            arriving[matrix->target[entry]] += amount * matrix->probability[entry];
}

static PyObject *occupancy_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *policy_in, *visits_out;
    if (!PyArg_ParseTuple(args, "OOO", &capsule, &policy_in, &visits_out))
        return NULL;
    const Process *process = process_of(capsule);
    if (process == NULL)
        return NULL;
    const int32_t states = process->states, actions = process->actions;
    const Py_ssize_t rows = (Py_ssize_t)states * actions;
    Arrays arrays = {.count = 0};
    const double *policy = array_with(&arrays, policy_in, 'd', 0, "policy", rows * process->steps);
    double *visits = policy == NULL ? NULL : array_with(&arrays, visits_out, 'd', 1, "visits", rows * process->steps);
    double *arriving = visits == NULL ? NULL : malloc((size_t)states * sizeof(double));
    int32_t *played = arriving == NULL ? NULL : malloc((size_t)rows * sizeof(int32_t));
    int fine = played != NULL;
    if (visits != NULL && !fine)
        PyErr_NoMemory();
    if (fine) {
        Watch watch;
        begin_without_lock(&watch, NO_DEADLINE);
        memcpy(arriving, process->initial, (size_t)states * sizeof(double));
        for (int32_t step = 0; step < process->steps && fine; step++) {
            double *own = visits + step * rows;
            for (int32_t s = 0; s < states; s++)
                for (Py_ssize_t row = (Py_ssize_t)s * actions; row < (Py_ssize_t)(s + 1) * actions; row++)
                    own[row] = arriving[s] * policy[step * rows + row];
            if (step + 1 < process->steps) {
                const Matrix *matrix = matrix_of(process, step);
                const int32_t count = rows_played(own, rows, played);
                memset(arriving, 0, (size_t)states * sizeof(double));
                for (int32_t i = 0; i < count; i++) {
                    fetch(matrix, played, i, count);
                    flow(process, matrix, played[i], own[played[i]], arriving);
                }
            }
            fine = must_stop(&watch) != INTERRUPTED;
        }
        end_without_lock(&watch);
    }
    free(arriving);
    free(played);
    release_arrays(&arrays);
    if (!fine)
        return NULL;
    Py_RETURN_NONE;
}

/* The policy with the mean occupancy of plans: each plan carries its weight through the states. */
static PyObject *mixture_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *plans_in, *weights_in, *policy_out;
    if (!PyArg_ParseTuple(args, "OOOO", &capsule, &plans_in, &weights_in, &policy_out))
        return NULL;
    const Process *process = process_of(capsule);
    if (process == NULL)
        return NULL;
    const int32_t states = process->states, actions = process->actions, steps = process->steps;
    const Py_ssize_t rows = (Py_ssize_t)states * actions;
    Arrays arrays = {.count = 0};
    Py_ssize_t count = 0;
    const double *weights = array_of(&arrays, weights_in, 'd', 0, "weights", &count);
    const int64_t *plans =
        weights == NULL ? NULL : array_with(&arrays, plans_in, 'q', 0, "plans", count * steps * (Py_ssize_t)states);
    double *policy = plans == NULL ? NULL : array_with(&arrays, policy_out, 'd', 1, "policy", rows * steps);
    int fine = policy != NULL;
    for (Py_ssize_t entry = 0; fine && entry < count * steps * (Py_ssize_t)states; entry++)
        if (plans[entry] < 0 || plans[entry] >= actions) {
            PyErr_SetString(PyExc_ValueError, "a plan has an action that does not exist");
            fine = 0;
        }
    const size_t size = (size_t)count * (size_t)states * sizeof(double);
    double *present = fine ? malloc(size + 1) : NULL, *next = present == NULL ? NULL : malloc(size + 1);
    int32_t *played = next == NULL ? NULL : malloc((size_t)states * sizeof(int32_t));
    if (fine && played == NULL) {
        PyErr_NoMemory();
        fine = 0;
    }
    if (fine) {
        Watch watch;
        begin_without_lock(&watch, NO_DEADLINE);
        for (Py_ssize_t p = 0; p < count; p++)
            for (int32_t s = 0; s < states; s++)
                present[p * states + s] = weights[p] * process->initial[s];
        for (int32_t step = 0; step < steps && fine; step++) {
            for (int32_t s = 0; s < states; s++) {
                double sum = 0.0, *own = policy + step * rows + (Py_ssize_t)s * actions;
                for (Py_ssize_t p = 0; p < count; p++)
                    sum += present[p * states + s];
                if (!(sum > 0.0))
                    continue; /* the row stays what it was: that of a state which is never visited */
                for (int32_t a = 0; a < actions; a++)
                    own[a] = 0.0;
                for (Py_ssize_t p = 0; p < count; p++)
                    own[plans[(p * steps + step) * states + s]] += present[p * states + s];
                for (int32_t a = 0; a < actions; a++)
                    own[a] /= sum;
            }
            if (step + 1 < steps) {
                const Matrix *matrix = matrix_of(process, step);
                memset(next, 0, size);
                for (Py_ssize_t p = 0; p < count; p++) {
                    const int64_t *own = plans + (p * steps + step) * states;
                    for (int32_t s = 0; s < states; s++)
                        played[s] = s * actions + (int32_t)own[s];
                    for (int32_t s = 0; s < states; s++) {
                        fetch(matrix, played, s, states);
                        flow(process, matrix, played[s], present[p * states + s], next + p * states);
                    }
                }
                double *swap = present;
                present = next;
                next = swap;
            }
            fine = must_stop(&watch) != INTERRUPTED;
        }
        end_without_lock(&watch);
    }
    free(present);
    free(next);
    free(played);
    release_arrays(&arrays);
    if (!fine)
        return NULL;
    Py_RETURN_NONE;
}

PyMethodDef process_kernels[] = {
    {"process", process_pack, METH_VARARGS,
     "process((H, S, A, k, matrices), transition, reward, costs, initial): a capsule that holds the arrays of a CMDP."},
    {"plan", plan_kernel, METH_VARARGS,
     "plan(process, weights, second, tie, second_tie, relative_tie, step, chosen, to_go, totals, noise, ask): plan from "
     "a step backwards; the step that waits for noise, or -1."},
    {"bound", bound_kernel, METH_VARARGS, "bound(process, weights): the greatest weighted sum of any policy."},
    {"evaluate", evaluate_kernel, METH_VARARGS, "evaluate(process, policy, totals): the reward and costs of a policy."},
    {"occupancy", occupancy_kernel, METH_VARARGS, "occupancy(process, policy, visits): where a policy leads."},
    {"mixture", mixture_kernel, METH_VARARGS,
     "mixture(process, plans, weights, policy): the policy with the mean occupancy of plans; rows that are never "
     "visited stay as they are."},
    {NULL, NULL, 0, NULL},
};
