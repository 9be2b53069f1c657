// The tensors of a call as kernels see them, where each is plain; and what
// surrounds the kernel itself. Knows no operator; needs one exact torch.
#pragma once

#include <ATen/EmptyTensor.h>

#include <array>
#include <cstddef>
#include <utility>

#include "fastcall/guard.h"
#include "torch/threads.h"
#include "xllm_kernel/core.h"

namespace xllm_kernel::fastcall {

// A plain tensor that a kernel reads, with its view. False where it is not
// plain, or nothing that a kernel takes.
struct Read final {
  const at::Tensor* tensor = nullptr;
  TensorView view;

  [[nodiscard]] bool from(PyObject* object);
};

// One that it writes, too, and may. `view` and `read` are of the same memory.
struct Written final {
  const at::Tensor* tensor = nullptr;
  MutableTensorView view;
  TensorView read;

  [[nodiscard]] bool from(PyObject* object);
  // What every in-place operator of torch does: a backward pass that saved the
  // tensor earlier then refuses to run.
  void count() const;
};

// A result: uninitialised and contiguous, otherwise like a tensor.
struct Fresh final {
  at::TensorBase tensor;
  MutableTensorView view;

  [[nodiscard]] bool like(const Read& model);
};

// The arguments in their places, or null.
class Arguments final {
 public:
  Arguments(const Signature& signature, PyObject* const* values,
            Py_ssize_t positional, PyObject* keywords)
      : given_(arguments(signature, values, positional, keywords, &scratch_)) {}
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  [[nodiscard]] bool complete() const noexcept { return given_ != nullptr; }
  [[nodiscard]] PyObject* operator[](std::size_t place) const noexcept {
    return given_[place];
  }

 private:
  std::array<PyObject*, kMaxParameters> scratch_;
  PyObject* const* given_;
};

// Calls kernel(threads). Work that takes some microseconds or more gets torch's
// threads and lets other Python threads run; whatever they drop meanwhile, the
// copies of `held` keep.
template <class Kernel, class... Tensors>
[[nodiscard]] Status run(std::int64_t elements, const Kernel& kernel,
                         const Tensors*... held) {
  if (elements <= kLongElements) return kernel(Threads());
  const std::array<at::Tensor, sizeof...(held)> kept{*held...};
  const WithoutGil released;
  return kernel(bridge::torch_threads());
}

}  // namespace xllm_kernel::fastcall
