// xllm_kernel::simd_rms_norm and simd_rms_norm_out: check their arguments and
// lend the kernels torch's own threads. Hold no arithmetic.
#include "xllm_kernel/rms_norm.h"

#include "torch/clauses.h"
#include "torch/csrc/stable/library.h"
#include "torch/rows.h"
#include "torch/threads.h"

namespace xllm_kernel::bridge {

namespace {

using torch::stable::Tensor;

constexpr Implementation kFresh{"rms_norm", "cpu.simd.rms_norm"};
constexpr Implementation kOut{"rms_norm_out", "cpu.simd.rms_norm_out"};

// What both forms ask of what they read, in the order of the domains.
RowDTypes check_read(const Clauses& clauses, const Operand& input,
                     const Operand& weight, double eps) {
  const RowDTypes dtypes = clauses.rows_and_weight(input, weight);
  clauses.unit_stride(input);
  clauses.unit_stride(weight);
  clauses.not_negative_float32("eps", eps);
  return dtypes;
}

void normalise(const Clauses& clauses, const Operand& output,
               const Operand& input, const Operand& weight, double eps,
               const RowDTypes& dtypes) {
  const MutableTensorView to = write_view(clauses, output, dtypes.rows);
  const TensorView from = read_view(clauses, input, dtypes.rows);
  const TensorView by = read_view(clauses, weight, dtypes.weight);
  clauses.require_ok(rms_norm(to, from, by, eps, torch_threads()));
}

Tensor simd_rms_norm(const Tensor& input, const Tensor& weight, double eps) {
  const Clauses clauses(kFresh);
  const Operand in = clauses.operand("input", input);
  const Operand by = clauses.operand("weight", weight);
  const RowDTypes dtypes = check_read(clauses, in, by, eps);
  Tensor output = new_like(in.facts);
  normalise(clauses, Operand("output", output), in, by, eps, dtypes);
  return output;
}

void simd_rms_norm_out(const Tensor& output, const Tensor& input,
                       const Tensor& weight, double eps) {
  const Clauses clauses(kOut);
  const Operand out = clauses.operand("output", output);
  const Operand in = clauses.operand("input", input);
  const Operand by = clauses.operand("weight", weight);
  const RowDTypes dtypes = check_read(clauses, in, by, eps);
  clauses.same_shape(out, in);
  clauses.same_dtype(out, in);
  clauses.same_device(out, in);
  clauses.unit_stride(out);
  clauses.rows_apart(out);
  clauses.apart(out, in);
  clauses.apart(out, by);
  clauses.writable(out);
  normalise(clauses, out, in, by, eps, dtypes);
}

}  // namespace

}  // namespace xllm_kernel::bridge

STABLE_TORCH_LIBRARY_FRAGMENT(xllm_kernel, library) {
  library.def(
      "simd_rms_norm(Tensor input, Tensor weight, float eps) -> Tensor");
  library.def(
      "simd_rms_norm_out(Tensor(a!) output, Tensor input, Tensor weight, float "
      "eps) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(xllm_kernel, CPU, library) {
  library.impl("simd_rms_norm", TORCH_BOX(&xllm_kernel::bridge::simd_rms_norm));
  library.impl("simd_rms_norm_out",
               TORCH_BOX(&xllm_kernel::bridge::simd_rms_norm_out));
}

// Every other backend gets here, and from the same checks the named error
// instead of the dispatcher's.
STABLE_TORCH_LIBRARY_IMPL(xllm_kernel, CompositeExplicitAutograd, library) {
  library.impl("simd_rms_norm", TORCH_BOX(&xllm_kernel::bridge::simd_rms_norm));
  library.impl("simd_rms_norm_out",
               TORCH_BOX(&xllm_kernel::bridge::simd_rms_norm_out));
}
