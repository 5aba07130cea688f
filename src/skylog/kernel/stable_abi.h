/* What native.h needs of Python's stable ABI, for machines that have Python without its headers.
 *
 * All of it is what PEP 384 promises not to change ("Stable ABI" in Python's C API manual). A test
 * runs modules that were built with it.
 */
#ifndef SKYLOG_STABLE_ABI_H
#define SKYLOG_STABLE_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef intptr_t Py_ssize_t;
typedef struct _object PyObject;
typedef struct _ts PyThreadState;

typedef struct {
    void *buf;
    PyObject *obj;
    Py_ssize_t len, itemsize;
    int readonly, ndim;
    char *format;
    Py_ssize_t *shape, *strides, *suboffsets;
    void *internal;
} Py_buffer;

typedef PyObject *(*PyCFunction)(PyObject *, PyObject *);

typedef struct {
    const char *ml_name;
    PyCFunction ml_meth;
    int ml_flags;
    const char *ml_doc;
} PyMethodDef;

typedef struct {
    int slot;
    void *value;
} PyModuleDef_Slot;

typedef struct {
    Py_ssize_t ob_refcnt;
    void *ob_type;
    PyObject *(*m_init)(void);
    Py_ssize_t m_index;
    PyObject *m_copy;
} PyModuleDef_Base;

typedef struct {
    PyModuleDef_Base m_base;
    const char *m_name, *m_doc;
    Py_ssize_t m_size;
    PyMethodDef *m_methods;
    PyModuleDef_Slot *m_slots;
    void *m_traverse, *m_clear, *m_free;
} PyModuleDef;

#define PyModuleDef_HEAD_INIT {1, NULL, NULL, 0, NULL}
#define PyMODINIT_FUNC __attribute__((visibility("default"))) PyObject *

enum { PyBUF_SIMPLE = 0, PyBUF_WRITABLE = 1, METH_FASTCALL = 0x80, Py_mod_exec = 2 };

extern PyObject *PyExc_OverflowError, *PyExc_TypeError, *PyExc_ValueError;

PyObject *PyBool_FromLong(long);
void PyBuffer_Release(Py_buffer *);
PyObject *Py_BuildValue(const char *, ...);
PyObject *PyErr_Occurred(void);
void PyErr_SetString(PyObject *, const char *);
void PyEval_RestoreThread(PyThreadState *);
PyThreadState *PyEval_SaveThread(void);
long long PyLong_AsLongLong(PyObject *);
PyObject *PyLong_FromLong(long);
PyObject *PyLong_FromLongLong(long long);
int PyModule_AddIntConstant(PyObject *, const char *, long);
PyObject *PyModuleDef_Init(PyModuleDef *);
int PyObject_GetBuffer(PyObject *, Py_buffer *, int);

#endif
