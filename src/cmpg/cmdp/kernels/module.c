/* The extension module: the kernels by name. Each file of kernels ends with the methods that it brings. */
#include "arrays.h"

extern PyMethodDef box_kernels[], corner_kernels[], discounted_kernels[], planning_kernels[], policy_kernels[],
    process_kernels[];

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_compiled", "Compiled inner loops; see `choice.py`.", -1, NULL, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__compiled(void)
{
    PyMethodDef *files[] = {box_kernels,    corner_kernels,  discounted_kernels, planning_kernels,
                            policy_kernels, process_kernels, NULL};
    return module_with(&definition, files, INTERFACE);
}
