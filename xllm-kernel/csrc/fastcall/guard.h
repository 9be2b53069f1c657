// What makes a call plain: a thread without modes, eager CPU tensors without
// gradients, arguments in their places. Anything else is the operator's. Knows
// no operator; needs one exact torch.
#pragma once

#include <torch/csrc/autograd/python_variable.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "xllm_kernel/core.h"

namespace xllm_kernel::fastcall {

inline constexpr std::size_t kMaxParameters = 8;

// The parameters of an operator's schema, in order. Names are interned when the
// module is made: from then on keywords of a call compare by address.
struct Signature {
  std::array<const char*, kMaxParameters> names{};
  std::array<PyObject*, kMaxParameters> interned{};

  [[nodiscard]] std::size_t count() const noexcept;
  // False with a Python error set.
  [[nodiscard]] bool intern() noexcept;
};

// Values in the order of the parameters, or null unless each is given exactly
// once: no default is filled in, no name spelt by a string made at run time.
// `scratch` must live as long as the result.
[[nodiscard]] PyObject* const* arguments(
    const Signature& signature, PyObject* const* values, Py_ssize_t positional,
    PyObject* keywords, std::array<PyObject*, kMaxParameters>* scratch);

// Whether the dispatcher would go straight to the CPU kernel on this thread, in
// or out of inference mode: no dispatch or function mode, no functorch, no
// tracing, no autocast. False too while something observes operators, such as
// torch.profiler, so that it sees the operator and not its absence.
[[nodiscard]] bool is_plain_thread() noexcept;

// The tensor of an object of exactly Tensor's or Parameter's type whose keys
// are those of a dense CPU tensor and which needs no derivative now; else null.
[[nodiscard]] const at::Tensor* plain_tensor(PyObject* object) noexcept;

// Fills `value` from an object of exactly float's type.
[[nodiscard]] inline bool plain_float(PyObject* object,
                                      double* value) noexcept {
  if (!PyFloat_CheckExact(object)) return false;
  *value = PyFloat_AS_DOUBLE(object);
  return true;
}

[[nodiscard]] bool kernel_dtype(at::ScalarType type, DType* dtype) noexcept;

// Views borrow sizes and strides from the tensor.
[[nodiscard]] Status make_view(const at::TensorBase& tensor, DType dtype,
                               TensorView* view);
[[nodiscard]] Status make_view(const at::TensorBase& tensor, DType dtype,
                               MutableTensorView* view);

// Elements of an input that take long enough, some microseconds, to let other
// Python threads run meanwhile, and to ask for more than one thread.
inline constexpr std::int64_t kLongElements = 1 << 15;

// Lets other Python threads run while it lives.
class WithoutGil final {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() { PyEval_RestoreThread(state_); }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

// METH_FASTCALL | METH_KEYWORDS; Python names the type from 3.13 on only.
using FastCall = PyObject* (*)(PyObject * self, PyObject* const* values,
                               Py_ssize_t positional, PyObject* keywords);

// One operator's builtin. Its file makes a static one, which adds itself to the
// module; `name` is the operator's, without its namespace.
class Entry final {
 public:
  Entry(const char* name, FastCall call, Signature* signature) noexcept;
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  [[nodiscard]] static Entry* first() noexcept { return first_; }
  [[nodiscard]] Entry* next() const noexcept { return next_; }
  [[nodiscard]] PyMethodDef* method() noexcept { return &method_; }
  [[nodiscard]] Signature* signature() const noexcept { return signature_; }

 private:
  static Entry* first_;
  PyMethodDef method_;
  Signature* signature_;
  Entry* next_;
};

// The builtin around `kFast`, which returns null for whatever is not plain. It
// must not have written anything by then, for the operator, which the builtin
// holds as its self, is called with the same arguments: it gives the right
// result or the named error.
template <auto kFast>
PyObject* guarded(PyObject* overload, PyObject* const* values,
                  Py_ssize_t positional, PyObject* keywords) {
  if (is_plain_thread()) {
    try {
      PyObject* result = kFast(values, positional, keywords);
      // An error that Python set is the result.
      if (result != nullptr || PyErr_Occurred() != nullptr) return result;
    } catch (...) {
      // Out of memory, or a storage that refuses access: the operator says it.
      PyErr_Clear();
    }
  }
  return PyObject_Vectorcall(overload, values,
                             static_cast<std::size_t>(positional), keywords);
}

// Reads the keys of dense CPU tensors off two real ones.
void learn_plain_keys();

}  // namespace xllm_kernel::fastcall
