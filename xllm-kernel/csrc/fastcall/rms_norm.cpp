// simd_rms_norm and simd_rms_norm_out for plain tensors. Check no argument by
// themselves: what the C++ API refuses, the operators refuse in their own
// words.
#include "xllm_kernel/rms_norm.h"

#include "fastcall/guard.h"
#include "fastcall/operands.h"

namespace xllm_kernel::fastcall {

namespace {

Signature fresh_signature{.names = {"input", "weight", "eps"}};
Signature out_signature{.names = {"output", "input", "weight", "eps"}};

PyObject* fresh(PyObject* const* values, Py_ssize_t positional,
                PyObject* keywords) {
  const Arguments given(fresh_signature, values, positional, keywords);
  Read input;
  Read weight;
  double eps = 0;
  if (!given.complete() || !input.from(given[0]) || !weight.from(given[1]) ||
      !plain_float(given[2], &eps)) {
    return nullptr;
  }
  Fresh output;
  if (!output.like(input)) return nullptr;
  const Status status = run(
      input.view.elements(),
      [&](const Threads& threads) {
        return rms_norm(output.view, input.view, weight.view, eps, threads);
      },
      input.tensor, weight.tensor);
  if (status != Status::kOk) return nullptr;
  return THPVariable_Wrap(std::move(output.tensor));
}

PyObject* out(PyObject* const* values, Py_ssize_t positional,
              PyObject* keywords) {
  const Arguments given(out_signature, values, positional, keywords);
  Written output;
  Read input;
  Read weight;
  double eps = 0;
  if (!given.complete() || !output.from(given[0]) || !input.from(given[1]) ||
      !weight.from(given[2]) || !plain_float(given[3], &eps)) {
    return nullptr;
  }
  const Status status = run(
      input.view.elements(),
      [&](const Threads& threads) {
        return rms_norm(output.view, input.view, weight.view, eps, threads);
      },
      output.tensor, input.tensor, weight.tensor);
  if (status != Status::kOk) return nullptr;
  output.count();
  Py_RETURN_NONE;
}

Entry fresh_entry("simd_rms_norm", guarded<fresh>, &fresh_signature);
Entry out_entry("simd_rms_norm_out", guarded<out>, &out_signature);

}  // namespace

}  // namespace xllm_kernel::fastcall
