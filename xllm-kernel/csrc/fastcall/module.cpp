// The extension module that makes builtins around operators. Knows none by
// name: each operator's file adds its own entry.
#include <cstring>

#include "fastcall/derivatives.h"
#include "fastcall/guard.h"
#include "torch/threads.h"

namespace xllm_kernel::fastcall {

namespace {

constexpr const char* kName = "xllm_kernel._build.fastcall_native";

PyObject* bind(PyObject* /*module*/, PyObject* arguments) {
  const char* name = nullptr;
  PyObject* overload = nullptr;
  if (!PyArg_ParseTuple(arguments, "sO:bind", &name, &overload)) return nullptr;
  // Decides the level of this library while the caller prepares.
  const SimdLevel& level = simd_level();
  if (level.status != Status::kOk) {
    PyErr_SetString(PyExc_RuntimeError, level.message);
    return nullptr;
  }
  bridge::watch_forks();
  for (Entry* entry = Entry::first(); entry != nullptr; entry = entry->next()) {
    if (std::strcmp(entry->method()->ml_name, name) != 0) continue;
    if (!entry->signature()->intern()) return nullptr;
    PyObject* const module = PyUnicode_FromString(kName);
    if (module == nullptr) return nullptr;
    PyObject* const builtin =
        PyCFunction_NewEx(entry->method(), overload, module);
    Py_DECREF(module);
    return builtin;
  }
  return PyErr_Format(PyExc_LookupError, "no builtin is named '%s'", name);
}

PyObject* refuse(PyObject* /*module*/, PyObject* arguments) {
  const char* name = nullptr;
  const char* who = nullptr;
  if (!PyArg_ParseTuple(arguments, "ss:refuse_derivatives", &name, &who)) {
    return nullptr;
  }
  try {
    refuse_derivatives(name, who);
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
  Py_RETURN_NONE;
}

int execute(PyObject* /*module*/) {
  try {
    learn_plain_keys();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_ImportError, error.what());
    return -1;
  }
  return 0;
}

PyMethodDef methods[] = {
    {"bind", bind, METH_VARARGS,
     "bind(name, overload): the builtin that calls the kernel of an operator "
     "for plain tensors, and the overload for all else."},
    {"refuse_derivatives", refuse, METH_VARARGS,
     "refuse_derivatives(name, who): make an operator raise, in the name of "
     "who, where a derivative is wanted of it."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef_Slot slots[] = {
    {Py_mod_exec, reinterpret_cast<void*>(&execute)},
    {0, nullptr},
};

PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = kName,
    .m_doc = "Guarded C entries to the package's operators.",
    .m_size = 0,
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = nullptr,
    .m_clear = nullptr,
    .m_free = nullptr,
};

}  // namespace

}  // namespace xllm_kernel::fastcall

PyMODINIT_FUNC PyInit_fastcall_native() {
  return PyModuleDef_Init(&xllm_kernel::fastcall::definition);
}
