/* The extension module: the kernels by name. Each file of kernels ends with the methods that it brings. */
#include "arrays.h"

extern PyMethodDef agent_kernels[], judge_kernels[], load_kernels[], dynamics_kernels[];

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_compiled", "Compiled inner loops; see cmdp/kernels/choice.py.", -1, NULL, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__compiled(void)
{
    PyMethodDef *files[] = {agent_kernels, judge_kernels, load_kernels, dynamics_kernels, NULL};
    return module_with(&definition, files, INTERFACE);
}
