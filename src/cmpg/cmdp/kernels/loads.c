/* Loads of shared resources; the twin is games/local/loads.py. */
#include "arrays.h"

#include <string.h>

/* total[m] = Σ_{a + b = m} one[a]·other[b], for distributions [length, width] with the load as the first axis. Terms are
   added in the order of the shorter one's load: the bits are those of the twin. */
static void convolve(const double *one, Py_ssize_t ones, const double *other, Py_ssize_t others, Py_ssize_t width,
                     double *total)
{
    const double *brief = ones <= others ? one : other, *wide = ones <= others ? other : one;
    Py_ssize_t few = ones <= others ? ones : others, many = ones <= others ? others : ones;
    memset(total, 0, (size_t)(few + many - 1) * (size_t)width * sizeof(double));
    for (Py_ssize_t load = 0; load < few; load++)
        for (Py_ssize_t row = 0; row < many; row++) {
            const double *weight = brief + load * width, *from = wide + row * width;
            double *to = total + (load + row) * width;
            for (Py_ssize_t place = 0; place < width; place++)
                to[place] += weight[place] * from[place];
        }
}

static PyObject *convolve_kernel(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *one, *other, *total;
    Py_ssize_t width;
    if (!PyArg_ParseTuple(args, "OOnO", &one, &other, &width, &total))
        return NULL;
    Arrays arrays = {.count = 0};
    Py_ssize_t first, second;
    const double *a = array_of(&arrays, one, 'd', 0, "one", &first);
    const double *b = a == NULL ? NULL : array_of(&arrays, other, 'd', 0, "other", &second);
    if (b != NULL && (width < 1 || first < width || second < width || first % width || second % width)) {
        PyErr_SetString(PyExc_ValueError, "both distributions need at least one row of the same width");
        b = NULL;
    }
    double *sum = b == NULL ? NULL : array_with(&arrays, total, 'd', 1, "total", first + second - width);
    if (sum != NULL) {
        Py_BEGIN_ALLOW_THREADS;
        convolve(a, first / width, b, second / width, width, sum);
        Py_END_ALLOW_THREADS;
    }
    release_arrays(&arrays);
    if (sum == NULL)
        return NULL;
    Py_RETURN_NONE;
}

PyMethodDef load_kernels[] = {
    {"convolve", convolve_kernel, METH_VARARGS,
     "convolve(one, other, width, total): the distribution of a sum of two independent loads."},
    {NULL, NULL, 0, NULL},
};
