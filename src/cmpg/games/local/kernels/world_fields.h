/* The tables of a packed game, each once: its name, the type and the format of its entries, and its shape.

   `World` has a member of each name, `world_of` reads each by its name, and games/local/packed.py makes a dict with the
   same names. A new table is one line here and one entry there; a name or a format that differs is an error. */
#ifndef CMPG_WORLD_FIELDS_H
#define CMPG_WORLD_FIELDS_H

/* Sizes: n, H, E, k; R resources with general load tables, of which the first C have load costs. Strides in entries from
   one step to the next: zero where a table is the same at all steps. */
#define WORLD_SIZES(SIZE)                                                                                              \
    SIZE(agents, int32_t)                                                                                              \
    SIZE(steps, int32_t)                                                                                               \
    SIZE(resources, int32_t)                                                                                           \
    SIZE(constraints, int32_t)                                                                                         \
    SIZE(general, int32_t)                                                                                               \
    SIZE(charged, int32_t)                                                                                             \
    SIZE(has_delay, int32_t)                                                                                           \
    SIZE(delay_stride, int64_t)       /* E or 0 */                                                                     \
    SIZE(slope_stride, int64_t)       /* E or 0 */                                                                     \
    SIZE(first_stride, int64_t)       /* E or 0 */                                                                     \
    SIZE(general_delay_stride, int64_t) /* 1 or 0, in steps */                                                           \
    SIZE(general_cost_stride, int64_t)  /* 1 or 0, in steps */

#define WORLD_TABLES(TABLE)                                                                                            \
    TABLE(states, int32_t, 'i')  /* [n] */                                                                             \
    TABLE(actions, int32_t, 'i') /* [n] */                                                                             \
    /* Transitions: the rows of all matrices, one after the other. */                                                  \
    TABLE(moves_of, int32_t, 'i')   /* [n]: which sequence of matrices */                                              \
    TABLE(moves_at, int32_t, 'i')   /* [sequences, H]: the matrix of each step */                                      \
    TABLE(first_row, int64_t, 'q')  /* [matrices] */                                                                   \
    TABLE(row_stays, int8_t, 'b')   /* [matrices]: whether rows have two entries, the state itself first */              \
    TABLE(row_start, int64_t, 'q')  /* [rows + 1] */                                                                   \
    TABLE(target, int32_t, 'i')     /* [entries] */                                                                    \
    TABLE(probability, double, 'd') /* [entries] */                                                                    \
    /* Uses of resources, in the same way; a row for each state if the action does not matter. */                      \
    TABLE(uses_of, int32_t, 'i')       /* [n] */                                                                       \
    TABLE(uses_at, int32_t, 'i')       /* [sequences, H] */                                                            \
    TABLE(first_use_row, int64_t, 'q') /* [matrices] */                                                                \
    TABLE(use_by_state, int8_t, 'b')   /* [matrices]: USE_BY_STATE and USE_ONE_MORE */                                \
    TABLE(use_start, int64_t, 'q')     /* [rows + 1] */                                                                \
    TABLE(used, int32_t, 'i')          /* [entries] */                                                                 \
    /* Private rewards and costs: entry (h, s, a) is at of + h·step + s·columns + (a if there are several columns). */ \
    TABLE(reward_of, int64_t, 'q')      /* [n] */                                                                      \
    TABLE(reward_step, int64_t, 'q')    /* [n] */                                                                      \
    TABLE(reward_columns, int32_t, 'i') /* [n] */                                                                      \
    TABLE(rewards, double, 'd')                                                                                        \
    TABLE(cost_of, int64_t, 'q')      /* [n]; −1: none */                                                              \
    TABLE(cost_family, int64_t, 'q')  /* [n] */                                                                        \
    TABLE(cost_step, int64_t, 'q')    /* [n] */                                                                        \
    TABLE(cost_columns, int32_t, 'i') /* [n] */                                                                        \
    TABLE(costs, double, 'd')                                                                                          \
    /* Where agents start, and which states they can reach: the first reach[i, h] of order_i at step h. */             \
    TABLE(initial_of, int64_t, 'q') /* [n + 1] */                                                                      \
    TABLE(initial_state, int32_t, 'i')                                                                                 \
    TABLE(initial_probability, double, 'd')                                                                            \
    TABLE(order_of, int64_t, 'q') /* [n] */                                                                            \
    TABLE(order, int32_t, 'i')                                                                                         \
    TABLE(reach, int32_t, 'i') /* [n, H] */                                                                            \
    /* Loads; see `LoadTables` in games/local/loads.py. */                                                             \
    TABLE(first_delay, double, 'd')  /* [H or 1, E] */                                                                 \
    TABLE(slopes, double, 'd')       /* [1 + k, H or 1, E] */                                                          \
    TABLE(first_costs, double, 'd')  /* [k, H or 1, E] */                                                              \
    TABLE(idle_costs, double, 'd')   /* [k] */                                                                         \
    TABLE(general_of, int32_t, 'i')    /* [E]: which of the R resources with general tables, or −1 */                    \
    TABLE(general_delay, double, 'd')  /* [H or 1, R, n] */                                                              \
    TABLE(general_steps, double, 'd')  /* [k, H or 1, C, n] */                                                           \
    TABLE(general_costs, double, 'd')  /* [k, H or 1, C, n + 1] */                                                       \
    TABLE(reward_range, double, 'd') /* [n]: if nothing is delayed */                                                  \
    TABLE(rounding, double, 'd')     /* [n]: of an agent's CMDP, relative */

#endif
