// xllm_kernel::simd_fused_add_rms_norm and simd_fused_add_rms_norm_inplace:
// check their arguments and lend the kernels torch's own threads. Hold no
// arithmetic.
#include "xllm_kernel/fused_add_rms_norm.h"

#include <tuple>

#include "torch/clauses.h"
#include "torch/csrc/stable/library.h"
#include "torch/rows.h"
#include "torch/threads.h"

namespace xllm_kernel::bridge {

namespace {

using torch::stable::Tensor;

constexpr Implementation kFresh{"fused_add_rms_norm",
                                "cpu.simd.fused_add_rms_norm"};
constexpr Implementation kInPlace{"fused_add_rms_norm_inplace",
                                  "cpu.simd.fused_add_rms_norm_inplace"};

// What both forms ask, in the order of the domains.
RowDTypes check_forms(const Clauses& clauses, const Operand& input,
                      const Operand& residual, const Operand& weight,
                      double eps) {
  const RowDTypes dtypes = clauses.rows_and_weight(input, weight);
  clauses.same_shape(residual, input);
  clauses.same_dtype(residual, input);
  clauses.same_device(residual, input);
  clauses.unit_stride(input);
  clauses.unit_stride(residual);
  clauses.unit_stride(weight);
  clauses.not_negative_float32("eps", eps);
  return dtypes;
}

struct Operands {
  const Operand& output;
  const Operand& sum;
  const Operand& input;
  const Operand& residual;
  const Operand& weight;
};

void add_and_normalise(const Clauses& clauses, const Operands& of, double eps,
                       const RowDTypes& dtypes) {
  const MutableTensorView output = write_view(clauses, of.output, dtypes.rows);
  const MutableTensorView sum = write_view(clauses, of.sum, dtypes.rows);
  const TensorView input = read_view(clauses, of.input, dtypes.rows);
  const TensorView residual = read_view(clauses, of.residual, dtypes.rows);
  const TensorView weight = read_view(clauses, of.weight, dtypes.weight);
  clauses.require_ok(fused_add_rms_norm(output, sum, input, residual, weight,
                                        eps, torch_threads()));
}

std::tuple<Tensor, Tensor> simd_fused_add_rms_norm(const Tensor& input,
                                                   const Tensor& residual,
                                                   const Tensor& weight,
                                                   double eps) {
  const Clauses clauses(kFresh);
  const Operand in = clauses.operand("input", input);
  const Operand carried = clauses.operand("residual", residual);
  const Operand by = clauses.operand("weight", weight);
  const RowDTypes dtypes = check_forms(clauses, in, carried, by, eps);
  Tensor norm = new_like(in.facts);
  Tensor sum = new_like(in.facts);
  add_and_normalise(
      clauses, {Operand("norm", norm), Operand("sum", sum), in, carried, by},
      eps, dtypes);
  return {norm, sum};
}

void simd_fused_add_rms_norm_inplace(const Tensor& input,
                                     const Tensor& residual,
                                     const Tensor& weight, double eps) {
  const Clauses clauses(kInPlace);
  const Operand in = clauses.operand("input", input);
  const Operand carried = clauses.operand("residual", residual);
  const Operand by = clauses.operand("weight", weight);
  const RowDTypes dtypes = check_forms(clauses, in, carried, by, eps);
  clauses.rows_apart(in);
  clauses.rows_apart(carried);
  clauses.apart(in, carried);
  clauses.apart(in, by);
  clauses.apart(carried, by);
  clauses.writable(in);
  clauses.writable(carried);
  add_and_normalise(clauses, {in, carried, in, carried, by}, eps, dtypes);
}

}  // namespace

}  // namespace xllm_kernel::bridge

STABLE_TORCH_LIBRARY_FRAGMENT(xllm_kernel, library) {
  library.def(
      "simd_fused_add_rms_norm(Tensor input, Tensor residual, Tensor weight, "
      "float eps) -> (Tensor, Tensor)");
  library.def(
      "simd_fused_add_rms_norm_inplace(Tensor(a!) input, Tensor(b!) residual, "
      "Tensor weight, float eps) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(xllm_kernel, CPU, library) {
  library.impl("simd_fused_add_rms_norm",
               TORCH_BOX(&xllm_kernel::bridge::simd_fused_add_rms_norm));
  library.impl(
      "simd_fused_add_rms_norm_inplace",
      TORCH_BOX(&xllm_kernel::bridge::simd_fused_add_rms_norm_inplace));
}

// Every other backend gets here, and from the same checks the named error
// instead of the dispatcher's.
STABLE_TORCH_LIBRARY_IMPL(xllm_kernel, CompositeExplicitAutograd, library) {
  library.impl("simd_fused_add_rms_norm",
               TORCH_BOX(&xllm_kernel::bridge::simd_fused_add_rms_norm));
  library.impl(
      "simd_fused_add_rms_norm_inplace",
      TORCH_BOX(&xllm_kernel::bridge::simd_fused_add_rms_norm_inplace));
}
