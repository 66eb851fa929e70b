#include "arrays.h"

#include <time.h>

#define SECONDS_BETWEEN_LOOKS 0.1

static int is_kind(const Py_buffer *view, char kind)
{
    const char *format = view->format == NULL ? "B" : view->format;
    if (format[0] == '@' || format[0] == '=')
        format++;
    if (format[0] == '\0' || format[1] != '\0')
        return 0;
    switch (kind) {
    case 'd':
        return format[0] == 'd' && view->itemsize == 8;
    case 'q':
        return (format[0] == 'q' || format[0] == 'l') && view->itemsize == 8;
    case 'i':
        return (format[0] == 'i' || format[0] == 'l') && view->itemsize == 4;
    case 'h':
        return format[0] == 'h' && view->itemsize == 2;
    case 'b':
        return (format[0] == 'b' || format[0] == '?') && view->itemsize == 1;
    default:
        return 0;
    }
}

void *array_of(Arrays *arrays, PyObject *object, char kind, int writable, const char *name, Py_ssize_t *length)
{
    if (arrays->count == MAX_ARRAYS) {
        PyErr_SetString(PyExc_SystemError, "a kernel was given too many arrays");
        return NULL;
    }
    Py_buffer *view = &arrays->held[arrays->count];
    int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, view, flags) < 0)
        return NULL;
    arrays->count++;
    if (!is_kind(view, kind)) {
        PyErr_Format(PyExc_TypeError, "%s holds entries of the format %s; %c is required", name,
                     view->format == NULL ? "B" : view->format, kind);
        return NULL;
    }
    if (length != NULL)
        *length = view->len / view->itemsize;
    static double nothing;
    return view->buf == NULL ? &nothing : view->buf; /* of an empty array */
}

void *array_with(Arrays *arrays, PyObject *object, char kind, int writable, const char *name, Py_ssize_t length)
{
    Py_ssize_t found;
    void *data = array_of(arrays, object, kind, writable, name, &found);
    if (data != NULL && found != length) {
        PyErr_Format(PyExc_ValueError, "%s has %zd entries; %zd are required", name, found, length);
        return NULL;
    }
    return data;
}

void release_arrays(Arrays *arrays)
{
    while (arrays->count > 0)
        PyBuffer_Release(&arrays->held[--arrays->count]);
}

PyObject *module_with(struct PyModuleDef *definition, PyMethodDef **files, long interface, long headers)
{
    PyObject *module = PyModule_Create(definition);
    int failed = module == NULL;
    for (; !failed && *files != NULL; files++)
        failed = PyModule_AddFunctions(module, *files) < 0;
    if (!failed && PyModule_AddIntConstant(module, "INTERFACE", interface) == 0 &&
        PyModule_AddIntConstant(module, "HEADERS", headers) == 0)
        return module;
    Py_XDECREF(module);
    return NULL;
}

double seconds_now(void)
{
    struct timespec now;
#ifdef CLOCK_MONOTONIC
    clock_gettime(CLOCK_MONOTONIC, &now);
#else
    timespec_get(&now, TIME_UTC);
#endif
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void begin_without_lock(Watch *watch, double seconds)
{
    double now = seconds_now();
    watch->deadline = now + seconds;
    watch->next_look = now + SECONDS_BETWEEN_LOOKS;
    watch->thread = PyEval_SaveThread();
}

Stop must_stop(Watch *watch)
{
    double now = seconds_now();
    if (now > watch->deadline)
        return OUT_OF_TIME;
    if (now < watch->next_look)
        return GO_ON;
    watch->next_look = now + SECONDS_BETWEEN_LOOKS;
    PyEval_RestoreThread(watch->thread);
    int interrupted = PyErr_CheckSignals() < 0;
    watch->thread = PyEval_SaveThread();
    return interrupted ? INTERRUPTED : GO_ON;
}

void end_without_lock(Watch *watch)
{
    PyEval_RestoreThread(watch->thread);
}
