/* Arrays that come from Python as buffers, and the clock that a long loop watches. */
#ifndef CMPG_ARRAYS_H
#define CMPG_ARRAYS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#define MAX_ARRAYS 64

/* The buffers that a call holds; they are given back together. */
typedef struct {
    Py_buffer held[MAX_ARRAYS];
    int count;
} Arrays;

/* The data of a contiguous buffer of float64 ('d'), int64 ('q'), int32 ('i'), int16 ('h') or int8 ('b'), and its
   number of entries in *length where that is wanted. NULL, with an exception, where it is something else. */
void *array_of(Arrays *arrays, PyObject *object, char kind, int writable, const char *name, Py_ssize_t *length);

/* The same, and it must have so many entries. */
void *array_with(Arrays *arrays, PyObject *object, char kind, int writable, const char *name, Py_ssize_t length);

void release_arrays(Arrays *arrays);

/* The module of an extension: the methods of its files, and what it was built from; see choice.py. */
#define KERNEL_MODULE(...)                                                                                             \
    PyMODINIT_FUNC PyInit__compiled(void)                                                                              \
    {                                                                                                                  \
        static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_compiled", .m_size = -1};           \
        PyMethodDef *files[] = {__VA_ARGS__, NULL};                                                                    \
        return module_with(&definition, files, INTERFACE, HEADERS);                                                    \
    }

PyObject *module_with(struct PyModuleDef *definition, PyMethodDef **files, long interface, long headers);

/* A loop that runs without the interpreter's lock asks `must_stop` at every turn. */
typedef enum { GO_ON = 0, OUT_OF_TIME = 1, INTERRUPTED = 2 } Stop;

typedef struct {
    PyThreadState *thread; /* of the call, while the lock is given away */
    double deadline;       /* seconds on `seconds_now` */
    double next_look;      /* when signals are looked for again */
} Watch;

double seconds_now(void);

void begin_without_lock(Watch *watch, double seconds);

/* INTERRUPTED: a signal handler has raised; the exception is set. */
Stop must_stop(Watch *watch);

void end_without_lock(Watch *watch);

#endif
