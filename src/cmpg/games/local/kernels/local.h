/* Local games: agents on their own states who meet at shared resources. The twins are games/local/ and
   equilibrium/starts/common_price.py.

   An index stands for a pair of step and resource, h·E + e. Agents, states, actions and indices are counted in 32 bits;
   games/local/packed.py refuses larger games. A resource is quadratic if its delay is affine and its load costs are at
   most quadratic, so that marginal costs need the mean load alone; others are general.

   world.c       the packed game, as Python gives it
   loads.c       loads, and the marginal cost of one more user
   plans.c       backward induction over the states that an agent can reach; maps.c and grids.c where those lie in rows
   agents.c      single agents: what they can reach and use, and their plans at given prices
   dynamics.c    best responses in turn, at fixed multipliers
   judge.c       bounds on what every agent could get, by sums of non-negative numbers alone */
#ifndef CMPG_LOCAL_H
#define CMPG_LOCAL_H

#include "arrays.h"
#include "world_fields.h"

#define MAX_WEIGHTINGS 3
#define MAX_MAP_ACTIONS 16

#ifdef _MSC_VER
#define ALWAYS_INLINE static __forceinline
#else
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#endif

/* Flags of uses: whether they are listed by state, and whether all rows of a state begin with the same one, and have at
   most one more. */
#define USE_BY_STATE 1
#define USE_ONE_MORE 2

/* A game as it was packed; nothing here changes. */
typedef struct {
#define SIZE(name, type) type name;
#define TABLE(name, type, format) const type *name;
    WORLD_SIZES(SIZE)
    WORLD_TABLES(TABLE)
#undef SIZE
#undef TABLE
} World;

static inline int16_t lowest_bit(uint64_t mask) /* of a mask that is not zero */
{
#if defined(__GNUC__)
    return (int16_t)__builtin_ctzll(mask);
#else
    int16_t index = 0;
    for (; !(mask & 1u); mask >>= 1)
        index++;
    return index;
#endif
}

/* Fills a world from the dict of its sizes and tables; the arrays are held. Returns −1 with an exception. */
int world_of(World *world, Arrays *arrays, PyObject *fields);

/* Whether there is such an agent; 0 with an exception. */
int has_agent(const World *world, long agent);

/* Whether two agents have the same matrices, rewards, costs, starts and states that they can reach. */
int same_kind(const World *world, int32_t one, int32_t other);
/* The first of first ≤ j < last that equals i: in like[i − first]. Equal agents must have the same hash. −1: no memory. */
int find_equal(int32_t first, int32_t last, uint64_t (*hash)(const void *context, int32_t agent),
               int (*equal)(const void *context, int32_t one, int32_t other), const void *context, int32_t *like);
/* The kind of each agent [n], counted from 0 as they come; returns how many there are. −1: no memory. */
int32_t find_kinds(const World *world, int32_t *kind);
/* FNV-1a (Fowler, Noll and Vo), by words. */
static inline uint64_t fold(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x100000001b3);
    return hash ^ (hash >> 29);
}

/* What one agent does: the probability of each index that it uses, in ascending order of indices. */
typedef struct {
    int32_t *index;
    double *probability;
    int64_t count, room; /* room 0: the arrays are borrowed, or there are none */
} Usage;

int same_usage(const Usage *one, const Usage *other); /* bit for bit */
/* Appends to a usage that was filled by appending, or that has no entries. −1: no memory. */
int usage_append(Usage *usage, int32_t index, double probability);
void usage_end(Usage *usage);

/* The load of one general resource at one step: `sure` agents, and `unsure` ones who may or may not. */
typedef struct {
    double *probability; /* that m of those do; exactly zero outside of low ≤ m < high */
    int32_t low, high, room, sure, unsure;
    double error; /* about how far a probability may be off */
} Distribution;

int distribution_clear(Distribution *one); /* the load of no agent */
int distribution_add(Distribution *one, double probability, double negligible);
double expected(const double *table, int32_t sure, const double *probability, int32_t low, int32_t high);

/* Loads of all agents but a few, and the weighted marginal cost of one more user of each index. Weighting z is
   w[z][0]·E[d(1 + N)] + Σ_j w[z][1 + j]·E[g_j(1 + N) − g_j(N)]. */
typedef struct {
    const World *world;
    int weightings;
    double *mean;                    /* [H·E] */
    Distribution *distributions;     /* [H·R] */
    double *base[MAX_WEIGHTINGS];   /* [H or 1, E]: at load zero, on quadratic resources */
    double *slope[MAX_WEIGHTINGS];  /* [H or 1, E]: of each user */
    double *tables[MAX_WEIGHTINGS]; /* [H or 1, R, n]: by the load, on general ones */
    double *marginal[MAX_WEIGHTINGS]; /* [H·E] */
    double *without;                 /* scratch: a distribution with one agent less */
    int32_t room;                    /* of the scratch */
    int64_t combined_stride, general_stride;
} Loads;

int loads_begin(Loads *loads, const World *world, const double *weights, int weightings); /* weights [z, 1 + k] */
void loads_end(Loads *loads);
int loads_add(Loads *loads, int32_t index, double probability);
int loads_remove(Loads *loads, int32_t index, double probability, const Usage *all); /* all: to count again */
int loads_reweigh(Loads *loads, int32_t index);  /* the marginal cost of one more user, beside all who are counted */
/* The same beside all but one, who uses the index with this probability: in values[z]. */
int loads_marginal_without(Loads *loads, int32_t index, double probability, double *values);
/* Σ_{h,e} E[g_j(N)] of fresh loads: in costs[j]. Adds only, where nothing is negative. */
int loads_costs(const World *world, const Usage *all, double *costs);
/* The same of loads that are known: means and sums of products of pairs at each index, and the distributions of `general`
   resources a step, of which the first are charged. */
void costs_of_loads(const World *world, const double *mean, const double *pairs, const Distribution *charged, int64_t general,
                    double *costs);

/* A map on which all agents walk; see `maps.c`. */
typedef struct {
    int32_t states, actions, moving; /* S, A, and how many actions move anywhere; 0: the world is no map */
    double stays, moves;             /* the probabilities of a move */
    int16_t action[MAX_MAP_ACTIONS + 1]; /* [moving], ascending, and −1 */
    int32_t *target;                 /* [S, moving]; S where the action stays */
    int32_t *edge;                   /* [S, moving]: used by moving; or NULL */
    int32_t *index;                  /* [S]: used by standing */
    int16_t *rest;                   /* [S]: the first action that stays */
} Map;

int map_begin(Map *map, const World *world); /* −1: no memory */
void map_end(Map *map);
typedef struct {
    int32_t top, bottom, left, right;
} GridBox;

/* A map whose cells lie in rows; see `grids.c`. Marginal costs lie by step, in planes of all cells: of standing on a
   cell, and where moves use edges, of those to the right and down. */
typedef struct {
    int32_t cells, width, planes, steps, wide; /* 0 cells: the world is no grid */
    int32_t shift[4];                          /* where the moves of the map lead */
    int32_t edge[4];                           /* where the marginal cost of crossing lies, from that of standing */
    int32_t *cell;                             /* [S] */
    int32_t *grid_index;                             /* [E]: where the marginal cost of a resource lies in the planes, or −1 */
    GridBox *boxes;                            /* [H]: scratch */
    double *rest, *reward;                     /* [cells]: the first action that stays, and scratch */
    double *ahead[2], *here[2];                /* [cells] */
    int8_t *chosen;                            /* [H, cells] */
    double *picked;                            /* [cells]: scratch */
    double *tables;                            /* of `grid_relabel` */
    int32_t *general_of;
} Grid;

/* One agent's plan: marginal costs on the grid, of which the second breaks ties or is NULL. */
typedef struct {
    const double *marginal, *second, *ties;
    const double *reward; /* [H or 1, S] */
    int64_t reward_step;
    const int32_t *order, *reach;
    int choose; /* the actions are wanted in grid->chosen */
} GridPlan;

int grid_begin(Grid *grid, const Map *map, const World *world); /* −1: no memory */
void grid_end(Grid *grid);
const double *grid_plan(Grid *grid, const Map *map, const GridPlan *plan); /* the values at the first step [cells] */
void grid_scatter(const Grid *grid, const double *marginal, int32_t resources, double *gridded); /* marginal costs of all indices */
/* The world with its quadratic resources as they lie in the planes, and no others; the same world where there is no grid. */
int grid_relabel(Grid *grid, const World *world, World *gridded);
void grid_largest(const Grid *grid, const Map *map, const GridPlan *plan, double *sizes);
double grid_sizes(const Grid *grid, const GridPlan *plan, int32_t states);

static inline int64_t grid_stride(const Grid *grid)
{
    return (int64_t)grid->planes * grid->cells;
}

/* Backward induction over the states that an agent can reach. */
typedef struct {
    const World *world;
    Map map;
    Grid grid;
    const double *gridded[2];      /* marginal costs on the grid, or NULL; see `plan_value` */
    double max_gridded;           /* no marginal cost on the grid is larger; 0: that is not known */
    int on_grid;                /* the last plan's actions are on the grid, and not in `chosen` */
    double *ahead[2], *here[2]; /* [S + 1]: values to go of the weighted reward, and of the second weighting */
    int16_t *chosen;            /* [Σ_h reach]: the best action, in the order of the agent's states */
    double *current, *next;     /* [S]: where the agent is */
    int8_t *marked;             /* [S or E] */
    int32_t *list, *next_list;  /* [S] */
    double *used;               /* [E] */
    uint64_t *touched;          /* [E] bits */
    double *trial;              /* [A] */
    double *second_trial;       /* [A] */
    uint64_t random;            /* state of the generator that breaks ties; 0: the first action wins */
} Planner;

int planner_begin(Planner *planner, const World *world, uint64_t seed);
void planner_end(Planner *planner);

/* max V of private reward − λ·private costs − marginal cost; the actions that reach it are in planner->chosen, or on the grid.
   Where planner->gridded has the marginal costs as well, as `grid_scatter` lays them out, plans are made on the grid. */
double plan_best(Planner *planner, int32_t agent, const double *marginal, const double *multipliers);

/* An agent's own plan on the grid; marginal costs are those of planner->gridded. */
GridPlan grid_plan_of(const Planner *planner, int32_t agent, int choose);

/* The same value; the actions are there only if that took no longer: *planned says so. */
double plan_value(Planner *planner, int32_t agent, const double *marginal, const double *multipliers, int *planned);

/* The same; ties go to what spends less, by a second marginal cost and the private costs. */
void plan_cheapest_of_best(Planner *planner, int32_t agent, const double *marginal, const double *second_marginal,
                           const double *multipliers);

/* Whether a gain is more than rounding, and more than a share of the agent's range; delays are apart where there are
   any. Takes as long as a plan. */
int is_significant(Planner *planner, int32_t agent, const double *marginal, const double *delays, const double *multipliers,
                double min_gain, double gain);

/* One agent's policy: actions [H, S] of one or two bytes, or a table [H, S, A]. */
typedef struct {
    const void *actions; /* or NULL */
    int bytes;
    const double *table; /* or NULL */
} Policy;

int policy_of(Policy *policy, Arrays *arrays, const World *world, int32_t agent, PyObject *object);

/* What an agent does by a policy, or by planner->chosen where policy is NULL. Returns −1 without memory. */
int account(Planner *planner, int32_t agent, const Policy *policy, Usage *usage, double *value, double *costs);

/* max V^{r − λc} of one agent in its CMDP, and the largest sums of |r| and of each |c_j|, in sizes [1 + k]. `delays` [H·E]
   and `marginals` [k, H·E] are what one more user meets and adds; weighted [H·E] is scratch. Where planner->gridded has
   λ·marginals already, those are read, and the sizes of costs are left at zero. */
int greatest(Planner *planner, int32_t agent, const double *delays, const double *marginals, const double *multipliers,
             double *weighted, double *maximum, double *sizes);

/* Scatters λ·marginal costs to the grid. */
void scatter_weighted(const Planner *planner, const double *marginals, const double *multipliers, double *gridded);

/* Usages as they come from Python, (start, index, probability), and go there. */
typedef struct {
    Usage *all;
    int32_t count;
} Usages;

int usages_of(Usages *usages, const World *world, Arrays *arrays, PyObject *tuple);
void usages_end(Usages *usages);
PyObject *usages_to_python(const Usages *usages);

#endif
