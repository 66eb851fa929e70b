/* A CMDP with a finite horizon, as the kernels read it; the twins are cmdp/evaluation.py, planning.py and box.py.

   The tables l = 0, …, k are the reward and the costs. A row is a pair of state and action, s·A + a. States, rows and
   the entries of one step's matrix are counted in 32 bits; packing refuses larger ones. */
#ifndef CMPG_PROCESS_H
#define CMPG_PROCESS_H

#include "arrays.h"

#include <math.h>
#include <string.h>

#define NO_DEADLINE 1e300

#ifdef _MSC_VER
#define ALWAYS_INLINE static __forceinline
#define PREFETCH(address) ((void)0)
#else
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define PREFETCH(address) __builtin_prefetch(address)
#endif

/* A table [H or 1, S, A] with its strides in entries; a stride is 0 where the same number is repeated. */
typedef struct {
    const double *data;
    Py_ssize_t step, state, action;
} Table;

/* The transition out of one step, rows [S·A]: CSR, or dense where `start` is NULL.

   Where there are lists, a row is an average of some of R rows, and is not written out: that of state s and action a is
   Σ_i weight[i]·row(source[i] + a·stride) over begin[s] ≤ i < begin[s + 1]. */
typedef struct {
    const int32_t *start;  /* [S·A + 1], or [R + 1] */
    const int32_t *target; /* [entries] */
    const double *probability;
    const int32_t *begin;  /* [S + 1]; NULL: the rows are its own */
    const int32_t *source; /* [m] */
    const double *weight;  /* [m] */
    int32_t stride;
    Py_ssize_t rows, entries; /* of a sparse one */
} Matrix;

typedef struct {
    int32_t steps, states, actions, tables; /* H, S, A, 1 + k */
    int32_t matrices;                       /* H or 1 */
    Matrix *matrix;                         /* [H or 1] */
    Table *table;                           /* [1 + k] */
    const double *initial;                  /* [S] */
    Py_buffer *held;                        /* the arrays that all this points into */
    Py_ssize_t count;
} Process;

/* The process in a capsule that `process_pack` made; NULL with an exception if it is something else. */
const Process *process_of(PyObject *capsule);

static inline const Matrix *matrix_of(const Process *process, int32_t step)
{
    return &process->matrix[process->matrices == 1 ? 0 : step];
}

static inline double entry_of(const Table *table, int32_t step, int32_t state, int32_t action)
{
    return table->data[step * table->step + state * table->state + action * table->action];
}

/* Functions of the innermost loops are compiled twice where that works, and the processor chooses; the order of sums is
   written out, so that both give the same bits. Sanitizers must run before any such choice is made. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CLONED __attribute__((target_clones("avx2", "default")))
#else
#define CLONED
#endif

/* Σ_s row[s]·values[s], as sixteen sums side by side: one sum would wait for itself. */
double dense_product(const double *row, const double *values, int32_t states);

/* Σ_i probability[i]·values[target[i]], or along a dense row if there are no targets. */
static inline double product(const double *probability, const int32_t *target, Py_ssize_t length, const double *values)
{
    if (target == NULL)
        return dense_product(probability, values, (int32_t)length);
    double sum = 0.0;
    for (Py_ssize_t i = 0; i < length; i++)
        sum += probability[i] * values[target[i]];
    return sum;
}

/* As `product`, for rows that are short, mostly: a loop would be left by a guess. */
ALWAYS_INLINE double short_product(const double *p, const int32_t *to, int32_t length, const double *v)
{
    double sum = 0.0;
    switch (length) {
    case 1:
        return sum + p[0] * v[to[0]];
    case 2:
        return sum + p[0] * v[to[0]] + p[1] * v[to[1]];
    case 3:
        return sum + p[0] * v[to[0]] + p[1] * v[to[1]] + p[2] * v[to[2]];
    case 4:
        return sum + p[0] * v[to[0]] + p[1] * v[to[1]] + p[2] * v[to[2]] + p[3] * v[to[3]];
    case 5:
        return sum + p[0] * v[to[0]] + p[1] * v[to[1]] + p[2] * v[to[2]] + p[3] * v[to[3]] + p[4] * v[to[4]];
    default:
        for (int32_t i = 0; i < length; i++)
            sum += p[i] * v[to[i]];
        return sum;
    }
}

/* As sums_apart, of `count` tables from the first one on. The sums stay in registers, because the compiler knows how many
   they are. */
ALWAYS_INLINE void sum_some(const double *probability, const int32_t *target, Py_ssize_t length, const double *to_go,
                            int32_t tables, double *to, int32_t first, const int32_t count)
{
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    for (Py_ssize_t i = 0; i < length; i++) {
        const double *there = to_go + (Py_ssize_t)target[i] * tables + first;
        for (int32_t l = 0; l < count; l++)
            sums[l] += probability[i] * there[l];
    }
    for (int32_t l = 0; l < count; l++)
        to[first + l] = sums[l];
}

/* sums[l] = Σ_i probability[i]·to_go[target[i], l] of `tables` tables; if there are no targets, to_go is [tables, length]. */
static inline void sums_apart(const double *probability, const int32_t *target, Py_ssize_t length, const double *to_go,
                              int32_t tables, double *sums)
{
    if (target == NULL) {
        for (int32_t l = 0; l < tables; l++)
            sums[l] = dense_product(probability, to_go + l * length, (int32_t)length);
        return;
    }
    int32_t first = 0;
    for (; first + 4 <= tables; first += 4)
        sum_some(probability, target, length, to_go, tables, sums, first, 4);
    switch (tables - first) {
    case 3:
        sum_some(probability, target, length, to_go, tables, sums, first, 3);
        break;
    case 2:
        sum_some(probability, target, length, to_go, tables, sums, first, 2);
        break;
    case 1:
        if (tables == 1)
            sums[0] = short_product(probability, target, (int32_t)length, to_go);
        else
            sum_some(probability, target, length, to_go, tables, sums, first, 1);
    }
}

static inline double weighed(const double *weights, const double *values, int32_t tables)
{
    double sum = 0.0;
    for (int32_t l = 0; l < tables; l++)
        sum += weights[l] * values[l];
    return sum;
}

/* totals[l] = Σ_s initial[s]·to_go[s, l]. */
void total(const Process *process, const double *to_go, double *totals);

/* stage[(s − first)·A + a] = Σ_l weights[l]·l_h(s, a), of `count` states from the first one on. */
void weigh_stage(const Process *process, int32_t step, int32_t first, int32_t count, const double *weights,
                 double *stage);

/* States whose stages are weighed at once: few enough to stay in a fast cache, enough to read every table at length. */
int32_t block_of(const Process *process);

/* sums[l] = Σ_{s'} P(s' | s, a) to_go[s', l], along a list of rows. */
void average_apart(const Matrix *matrix, int32_t state, int32_t action, const double *to_go, int32_t tables,
                   double *sums);

/* worth[a] += Σ_{s'} P(s' | s, a) values[s'], for all actions of a state. */
void add_future(const Process *process, const Matrix *matrix, int32_t state, const double *values, double *worth);

/* What is to go [S, 1 + k] as back_up_apart reads it: table after table in columns [1 + k, S] if the transition is dense,
   so that its rows are read along them; otherwise as it is. */
const double *columns_of(const Process *process, const double *to_go, double *columns);

/* apart[l] = l_h(s, a) + Σ_{s'} P(s' | s, a) to_go[s', l], of every table; to_go comes from columns_of, and is NULL at the
   last step. */
static inline void back_up_apart(const Process *process, int32_t step, int32_t state, int32_t action,
                                 const double *to_go, double *apart)
{
    const Matrix *matrix = matrix_of(process, step);
    const Py_ssize_t row = (Py_ssize_t)state * process->actions + action;
    if (to_go == NULL)
        memset(apart, 0, (size_t)process->tables * sizeof(double));
    else if (matrix->begin != NULL)
        average_apart(matrix, state, action, to_go, process->tables, apart);
    else if (matrix->start == NULL)
        sums_apart(matrix->probability + row * process->states, NULL, process->states, to_go, process->tables, apart);
    else {
        const int32_t first = matrix->start[row];
        sums_apart(matrix->probability + first, matrix->target + first, matrix->start[row + 1] - first, to_go,
                   process->tables, apart);
    }
    for (int32_t l = 0; l < process->tables; l++)
        apart[l] += entry_of(&process->table[l], step, state, action);
}

/* How a plan chooses among actions; see `ChoiceRule` in planning.py. */
typedef struct {
    const double *weights, *second; /* [1 + k] */
    double tie, second_tie;
    double relative_tie; /* negative: none */
} Rule;

int rule_of(Rule *rule, Arrays *arrays, const Process *process, PyObject *weights, PyObject *second, double tie,
            double second_tie, double relative_tie);

/* Which actions are tied for the best of values [A]; returns how many, and they are listed in tied [A]. */
static inline int32_t tied_actions(const Rule *rule, const double *values, int32_t actions, int32_t *tied)
{
    double best = values[0], runner_up = -INFINITY;
    int32_t first = 0;
    for (int32_t a = 1; a < actions; a++) {
        const double less = values[a] < best ? values[a] : best;
        runner_up = less > runner_up ? less : runner_up;
        first = values[a] > best ? a : first;
        best = values[a] > best ? values[a] : best;
    }
    double width = rule->tie;
    if (rule->relative_tie >= 0.0 && rule->relative_tie * fabs(best) < width)
        width = rule->relative_tie * fabs(best);
    if (runner_up < best - width) {
        tied[0] = first;
        return 1;
    }
    int32_t count = 0;
    for (int32_t a = 0; a < actions; a++) {
        tied[count] = a;
        count += values[a] >= best - width;
    }
    if (count == 0) /* a value is no number: something has to be chosen all the same */
        tied[count++] = 0;
    return count;
}

/* The one of tied actions that the second weighting prefers, given its values by action [A]; of those still tied the
   first, or that of the largest noise[a·stride]. */
int32_t among_tied(const Rule *rule, const double *second, const int32_t *tied, int32_t count, const double *noise,
                   Py_ssize_t stride);

/* What one step of a plan computes, in one piece of memory. */
typedef struct {
    double *memory;
    double *worth;                 /* [S, A], or [block, A] where a block of states is weighed at once */
    double *values;                /* [S]: of the weighted sum */
    double *second_values;         /* [S]: of the second one */
    double *next;                  /* [S, 1 + k] */
    double *columns;               /* [1 + k, S] */
    double *filled;                /* [S]: a row of a box */
    double *apart;                 /* [1 + k] */
    double *second;                /* [A] */
    int32_t *tied, *order, *spare; /* [A + 1], [S], [S] */
} Scratch;

/* The arrays of a plan while it goes backwards. */
typedef struct {
    Rule rule;
    double *to_go;       /* [S, 1 + k]: what follows the step, then what follows the one before */
    int64_t *chosen;     /* [H, S] */
    double *rows;        /* [H, S, S]: the chosen rows of a box; NULL without one */
    const double *noise; /* [A, S], of one step; NULL: ties go to the first action, or wait */
    int ask;             /* whether a step whose ties need noise waits for it */
} Plan;

/* A transition that is only known to lie in a box; see box.c. */
typedef struct {
    const double *lower, *width; /* [H or 1, S, A, S] */
    const double *spare;         /* [H or 1, S, A]: what the lower bounds leave to one */
    int32_t steps;               /* H or 1 */
} Box;

/* The box in a tuple of three arrays; −1 with an exception if it is something else. */
int box_of(Box *box, Arrays *arrays, const Process *process, PyObject *tuple);

/* Plan one step with the rows of the box that suit the plan best; as plan_step in planning.c. */
void optimistic_step(const Process *process, const Box *box, const Plan *plan, int32_t step, Scratch *scratch);

#endif
