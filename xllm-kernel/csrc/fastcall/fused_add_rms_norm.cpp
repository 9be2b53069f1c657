// simd_fused_add_rms_norm and simd_fused_add_rms_norm_inplace for plain
// tensors. Check no argument by themselves: what the C++ API refuses, the
// operators refuse in their own words.
#include "xllm_kernel/fused_add_rms_norm.h"

#include "fastcall/guard.h"
#include "fastcall/operands.h"

namespace xllm_kernel::fastcall {

namespace {

// Both have one signature.
Signature signature{.names = {"input", "residual", "weight", "eps"}};

PyObject* fresh(PyObject* const* values, Py_ssize_t positional,
                PyObject* keywords) {
  const Arguments given(signature, values, positional, keywords);
  Read input;
  Read residual;
  Read weight;
  double eps = 0;
  if (!given.complete() || !input.from(given[0]) || !residual.from(given[1]) ||
      !weight.from(given[2]) || !plain_float(given[3], &eps)) {
    return nullptr;
  }
  Fresh norm;
  Fresh sum;
  if (!norm.like(input) || !sum.like(input)) return nullptr;
  const Status status = run(
      input.view.elements(),
      [&](const Threads& threads) {
        return fused_add_rms_norm(norm.view, sum.view, input.view,
                                  residual.view, weight.view, eps, threads);
      },
      input.tensor, residual.tensor, weight.tensor);
  if (status != Status::kOk) return nullptr;
  // "N" takes over both references, and passes on the error of either.
  return Py_BuildValue("(NN)", THPVariable_Wrap(std::move(norm.tensor)),
                       THPVariable_Wrap(std::move(sum.tensor)));
}

PyObject* in_place(PyObject* const* values, Py_ssize_t positional,
                   PyObject* keywords) {
  const Arguments given(signature, values, positional, keywords);
  Written input;
  Written residual;
  Read weight;
  double eps = 0;
  if (!given.complete() || !input.from(given[0]) || !residual.from(given[1]) ||
      !weight.from(given[2]) || !plain_float(given[3], &eps)) {
    return nullptr;
  }
  const Status status = run(
      input.view.elements(),
      [&](const Threads& threads) {
        return fused_add_rms_norm(input.view, residual.view, input.read,
                                  residual.read, weight.view, eps, threads);
      },
      input.tensor, residual.tensor, weight.tensor);
  if (status != Status::kOk) return nullptr;
  input.count();
  residual.count();
  Py_RETURN_NONE;
}

Entry fresh_entry("simd_fused_add_rms_norm", guarded<fresh>, &signature);
Entry in_place_entry("simd_fused_add_rms_norm_inplace", guarded<in_place>,
                     &signature);

}  // namespace

}  // namespace xllm_kernel::fastcall
