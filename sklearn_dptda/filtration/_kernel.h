/* What both files of the compiled sums need. Compile them without the contraction of a * b + c to
 * one operation. */

#ifndef SKLEARN_DPTDA_KERNEL_H
#define SKLEARN_DPTDA_KERNEL_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <float.h>

/* 16 is 0 for all types but that of 16 bits, which the files do not use. */
#if (FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16) || defined(__FAST_MATH__)
#error "This file needs floating-point operations as IEEE 754 defines them."
#endif

/* The loader of Linux selects the version of a function for the processor. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

typedef Py_ssize_t Size;

/* Buffers of the arguments of a call, which are released together. */
typedef struct {
    Py_buffer buffer[8];
    int n;
} Buffers;

static inline void *opened(Buffers *all, PyObject *array, int flags, Size n_bytes)
{
    Py_buffer *b = &all->buffer[all->n];
    if (PyObject_GetBuffer(array, b, PyBUF_C_CONTIGUOUS | flags) < 0)
        return NULL;
    all->n++;
    if (b->len != n_bytes) {
        PyErr_SetString(PyExc_ValueError, "an array has another size than expected.");
        return NULL;
    }
    return b->buf;
}

static inline void released(Buffers *all)
{
    while (all->n)
        PyBuffer_Release(&all->buffer[--all->n]);
}

PyObject *lattice_sums(PyObject *self, PyObject *args);

#endif
