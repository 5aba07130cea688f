/* What the extension modules share: arguments in, results out, and Python's lock given up between.
 *
 * Only Python's stable ABI is used, so one build serves 3.11 and every later version.
 */
#ifndef SKYLOG_NATIVE_H
#define SKYLOG_NATIVE_H

#if __has_include(<Python.h>) && !defined(WITHOUT_PYTHON_H)
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#else
#include "kernel/stable_abi.h"
#endif
#include <stdint.h>

/* Raised whenever the arguments of a function or a struct change, in any of the modules;
 * kernel/native.py uses no module of another version. */
enum { VERSION = 1 };

enum { BUFFERS_MAX = 8, NUMBERS_MAX = 8 };

typedef struct {
    Py_buffer buffers[BUFFERS_MAX];
    int64_t numbers[NUMBERS_MAX];
    int buffer_count, number_count;
} arguments;

/* Sums and differences of numbers that others wrote; as in Java, they wrap. */
static inline int64_t add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }

static inline int64_t subtract(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* Does `work` without Python's lock where `when`. The buffers are held, so nobody resizes them. */
#define UNLOCKED(when, work)                                            \
    do {                                                                \
        PyThreadState *unlocked = (when) ? PyEval_SaveThread() : NULL;  \
        work;                                                           \
        if (unlocked) PyEval_RestoreThread(unlocked);                   \
    } while (0)

static inline PyObject *give_back(arguments *taken, PyObject *result) {
    for (int i = 0; i < taken->buffer_count; i++) PyBuffer_Release(&taken->buffers[i]);
    return result;
}

static inline int take_buffer(arguments *taken, PyObject *given, int flags) {
    Py_buffer *buffer = &taken->buffers[taken->buffer_count];
    if (PyObject_GetBuffer(given, buffer, flags) < 0) return 0;
    taken->buffer_count++;
    return 1;
}

static inline int take_number(arguments *taken, PyObject *given, int64_t least, int64_t most) {
    int64_t number = PyLong_AsLongLong(given);
    if (number == -1 && PyErr_Occurred()) return 0;
    if (number < least || number > most) {
        PyErr_SetString(PyExc_OverflowError, "a number of more than 32 bits");
        return 0;
    }
    taken->numbers[taken->number_count++] = number;
    return 1;
}

/* Reads arguments by `format`: r bytes, w bytes to be written to, i a number of 32 bits, l of 64.
 * False with an exception set, and nothing held, where they are others. */
static inline int take(arguments *taken, const char *format, PyObject *const *given,
                       Py_ssize_t count) {
    taken->buffer_count = taken->number_count = 0;
    Py_ssize_t at = 0;
    int good = 1;
    for (; good && format[at] && at < count; at++) switch (format[at]) {
            case 'r': good = take_buffer(taken, given[at], PyBUF_SIMPLE); break;
            case 'w': good = take_buffer(taken, given[at], PyBUF_WRITABLE); break;
            case 'i': good = take_number(taken, given[at], INT32_MIN, INT32_MAX); break;
            default: good = take_number(taken, given[at], INT64_MIN, INT64_MAX);
        }
    if (good && (format[at] || at < count)) {
        PyErr_SetString(PyExc_TypeError, "wrong number of arguments");
        good = 0;
    }
    if (!good) give_back(taken, NULL);
    return good;
}

/* False with an exception set where a buffer has another size than it must. */
static inline int check_sizes(int fit) {
    if (!fit) PyErr_SetString(PyExc_ValueError, "a buffer of the wrong size");
    return fit;
}

#define FUNCTION(name) \
    { #name, (PyCFunction)(void (*)(void))py_##name, METH_FASTCALL, NULL }

static inline int add_version(PyObject *module) {
    return PyModule_AddIntConstant(module, "VERSION", VERSION);
}

/* Defines the module `name` of the functions that follow. */
#define MODULE(name, ...)                                                                     \
    static PyMethodDef functions[] = {__VA_ARGS__, {NULL, NULL, 0, NULL}};                    \
    static PyModuleDef_Slot slots_of_module[] = {{Py_mod_exec, (void *)add_version},          \
                                                 {0, NULL}};                                  \
    static PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,                         \
                                     .m_name = #name,                                         \
                                     .m_methods = functions,                                  \
                                     .m_slots = slots_of_module};                             \
    PyMODINIT_FUNC PyInit_##name(void) { return PyModuleDef_Init(&definition); }

#endif
