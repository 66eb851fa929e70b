/* The kernels by name: each file of kernels ends with the methods that it brings. */
#include "arrays.h"

extern PyMethodDef box_kernels[], corner_kernels[], discounted_kernels[], planning_kernels[], policy_kernels[],
    process_kernels[];

KERNEL_MODULE(box_kernels, corner_kernels, discounted_kernels, planning_kernels, policy_kernels, process_kernels)
