/* A CMDP with a finite horizon: its arrays, held and checked; and what all that is done with it needs. */
#include "process.h"

#include <string.h>

#define CAPSULE "cmpg.process"

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
static int check_csr(const Process *process, const Matrix *matrix)
{
    const Py_ssize_t rows = matrix->rows, entries = matrix->entries;
    if (matrix->start[0] != 0 || matrix->start[rows] != entries)
        return wrong_shape("indptr");
    int32_t falls = 0; /* collected, and looked at once: a loop that may end early is not made into vectors */
    for (Py_ssize_t row = 0; row < rows; row++)
        falls |= matrix->start[row] > matrix->start[row + 1];
    if (falls)
        return wrong_shape("indptr");
    int32_t beyond = 0; /* as unsigned numbers, targets below zero are beyond, too */
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

/* The lists name rows that exist, whichever action is played. */
static int hold_lists(Process *process, PyObject *const *parts, int stride, Matrix *matrix)
{
    const Py_buffer *begin = hold(process, parts[0], 'i', 1, 1, "begins");
    const Py_buffer *source = begin == NULL ? NULL : hold(process, parts[1], 'i', 1, 1, "rows");
    const Py_buffer *weight = source == NULL ? NULL : hold(process, parts[2], 'd', 1, 1, "weights");
    if (weight == NULL)
        return -1;
    const Py_ssize_t length = source->shape[0];
    const int64_t last = (int64_t)(process->actions - 1) * stride;
    if (begin->shape[0] != process->states + 1 || weight->shape[0] != length || stride < 0)
        return wrong_shape("begins");
    matrix->begin = begin->buf;
    matrix->source = source->buf;
    matrix->weight = weight->buf;
    matrix->stride = stride;
    if (matrix->begin[0] != 0 || matrix->begin[process->states] != length)
        return wrong_shape("begins");
    int falls = 0, beyond = 0;
    for (int32_t s = 0; s < process->states; s++)
        falls |= matrix->begin[s] > matrix->begin[s + 1];
    for (Py_ssize_t i = 0; i < length; i++)
        beyond |= matrix->source[i] < 0 || matrix->source[i] + last >= matrix->rows;
    return falls || beyond ? wrong_shape("rows") : 0;
}

/* Each matrix of a sparse one is a tuple of indptr, indices and data; where its rows are averages, of their lists and the
   stride, too. */
static int hold_sparse(Process *process, PyObject *object, int32_t step)
{
    Matrix *matrix = &process->matrix[step];
    PyObject *parts[6] = {NULL};
    int stride = 0;
    if (!PyArg_ParseTuple(object, "OOO|OOOi", &parts[0], &parts[1], &parts[2], &parts[3], &parts[4], &parts[5],
                          &stride))
        return -1;
    const Py_buffer *start = hold(process, parts[0], 'i', 1, 1, "indptr");
    const Py_buffer *target = start == NULL ? NULL : hold(process, parts[1], 'i', 1, 1, "indices");
    const Py_buffer *probability = target == NULL ? NULL : hold(process, parts[2], 'd', 1, 1, "data");
    if (probability == NULL)
        return -1;
    const Py_ssize_t own = (Py_ssize_t)process->states * process->actions, rows = start->shape[0] - 1;
    if (rows < 0 || (parts[5] == NULL && rows != own) || target->shape[0] != probability->shape[0])
        return wrong_shape("indptr");
    *matrix = (Matrix){.start = start->buf,
                       .target = target->buf,
                       .probability = probability->buf,
                       .rows = rows,
                       .entries = target->shape[0]};
    if (parts[5] != NULL && hold_lists(process, &parts[3], stride, matrix) < 0)
        return -1;
    /* Averages of one matrix come step by step: it is checked once. */
    const Matrix *before = step > 0 ? matrix - 1 : NULL;
    if (before != NULL && before->start == matrix->start && before->target == matrix->target &&
        before->rows == rows && before->entries == matrix->entries)
        return 0;
    return check_csr(process, matrix);
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
    process->held = PyMem_Calloc((size_t)(sparse ? 6 * matrices : 1) + 3, sizeof(Py_buffer));
    process->matrix = PyMem_Calloc((size_t)matrices, sizeof(Matrix));
    process->table = PyMem_Calloc((size_t)process->tables, sizeof(Table));
    int failed = process->held == NULL || process->table == NULL || process->matrix == NULL;
    if (failed)
        PyErr_NoMemory();
    failed = failed || hold_tables(process, reward, costs, initial) < 0;
    if (!failed && !sparse)
        failed = hold_dense(process, transition) < 0;
    for (int32_t step = 0; step < matrices && sparse && !failed; step++)
        failed = hold_sparse(process, PyTuple_GET_ITEM(transition, step), step) < 0;
    PyObject *capsule = failed ? NULL : PyCapsule_New(process, CAPSULE, capsule_free);
    if (capsule == NULL)
        process_free(process);
    return capsule;
}

int32_t block_of(const Process *process)
{
    const int32_t states = 4096 / process->actions; /* 32 kB of action values: they stay in the first cache */
    return states < 1 ? 1 : states < process->states ? states : process->states;
}

/* As add_future, along a list of rows. */
static void add_averages(const Process *process, const Matrix *matrix, int32_t state, const double *values,
                         double *worth)
{
    const int32_t actions = process->actions, stride = matrix->stride, end = matrix->begin[state + 1];
    if (end + 1 < matrix->begin[process->states]) { /* the states after this one */
        const int32_t first = matrix->start[matrix->source[end + 1]];
        const int32_t last = matrix->start[matrix->source[end + 1] + (Py_ssize_t)(actions - 1) * stride + 1];
        const int32_t apart = stride == 1 ? 8 : (last - first) / actions + 1;
        for (int32_t i = first; i < last; i += apart) {
            PREFETCH(matrix->probability + i);
            PREFETCH(matrix->target + i);
        }
    }
    for (int32_t i = matrix->begin[state]; i < end; i++) {
        const double weight = matrix->weight[i];
        const int32_t *start = matrix->start + matrix->source[i];
        for (int32_t a = 0; a < actions; a++, start += stride)
            worth[a] += weight * short_product(matrix->probability + start[0], matrix->target + start[0],
                                               start[1] - start[0], values);
    }
}

void average_apart(const Matrix *matrix, int32_t state, int32_t action, const double *to_go, int32_t tables,
                   double *sums)
{
    const Py_ssize_t after = (Py_ssize_t)action * matrix->stride;
    const int32_t first = matrix->begin[state], end = matrix->begin[state + 1];
    memset(sums, 0, (size_t)tables * sizeof(double));
    for (int32_t i = first; i < end; i++) {
        const int32_t *start = matrix->start + matrix->source[i] + after;
        const double *probability = matrix->probability + start[0];
        const int32_t *target = matrix->target + start[0];
        if (end - first == 1 && matrix->weight[i] == 1.0) {
            sums_apart(probability, target, start[1] - start[0], to_go, tables, sums);
            return;
        }
        for (int32_t l = 0; l < tables; l++) {
            double sum = 0.0;
            for (int32_t entry = 0; entry < start[1] - start[0]; entry++)
                sum += probability[entry] * to_go[(Py_ssize_t)target[entry] * tables + l];
            sums[l] += matrix->weight[i] * sum;
        }
    }
}

void add_future(const Process *process, const Matrix *matrix, int32_t state, const double *values, double *worth)
{
    if (matrix->begin != NULL) {
        add_averages(process, matrix, state, values, worth);
        return;
    }
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
        worth[a] += short_product(matrix->probability + entry, matrix->target + entry, end - entry, values);
        entry = end;
    }
}

CLONED void weigh_stage(const Process *process, int32_t step, int32_t first, int32_t count, const double *weights,
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

CLONED double dense_product(const double *row, const double *values, int32_t states)
{
    double one[4] = {0.0}, two[4] = {0.0}, three[4] = {0.0}, four[4] = {0.0};
    const double *end = row + states;
    for (; end - row >= 16; row += 16, values += 16)
        for (int lane = 0; lane < 4; lane++) {
            one[lane] += row[lane] * values[lane];
            two[lane] += row[lane + 4] * values[lane + 4];
            three[lane] += row[lane + 8] * values[lane + 8];
            four[lane] += row[lane + 12] * values[lane + 12];
        }
    for (; end - row >= 4; row += 4, values += 4)
        for (int lane = 0; lane < 4; lane++)
            one[lane] += row[lane] * values[lane];
    /* Added in pairs, in an order that does not depend on the width of vectors: the same bits on every processor. */
    for (int lane = 0; lane < 4; lane++)
        one[lane] = (one[lane] + two[lane]) + (three[lane] + four[lane]);
    double sum = (one[0] + one[1]) + (one[2] + one[3]);
    for (; row < end; row++, values++)
        sum += *row * *values;
    return sum;
}

const double *columns_of(const Process *process, const double *to_go, double *columns)
{
    if (to_go == NULL || process->matrix[0].start != NULL)
        return to_go;
    for (int32_t s = 0; s < process->states; s++)
        for (int32_t l = 0; l < process->tables; l++)
            columns[(Py_ssize_t)l * process->states + s] = to_go[(Py_ssize_t)s * process->tables + l];
    return columns;
}

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

void total(const Process *process, const double *to_go, double *totals)
{
    for (int32_t l = 0; l < process->tables; l++)
        totals[l] = 0.0;
    for (int32_t s = 0; s < process->states; s++)
        for (int32_t l = 0; l < process->tables; l++)
            totals[l] += process->initial[s] * to_go[(Py_ssize_t)s * process->tables + l];
}

PyMethodDef process_kernels[] = {
    {"process", process_pack, METH_VARARGS,
     "process((H, S, A, k, matrices), transition, reward, costs, initial): a capsule that holds the arrays of a CMDP."},
    {NULL, NULL, 0, NULL},
};
