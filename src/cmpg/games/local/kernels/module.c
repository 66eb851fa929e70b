/* The kernels by name: each file of kernels ends with the methods that it brings. */
#include "arrays.h"

extern PyMethodDef agent_kernels[], judge_kernels[], load_kernels[], dynamics_kernels[];

KERNEL_MODULE(agent_kernels, judge_kernels, load_kernels, dynamics_kernels)
