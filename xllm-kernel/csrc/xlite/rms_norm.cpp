// xllm_kernel::xlite_rms_norm: checks its arguments and hands one launch to
// torch_npu's queue. Holds no arithmetic, waits for nothing.
#include <ATen/ops/empty.h>
#include <acl/acl.h>
#include <torch/library.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "torch_npu/csrc/core/npu/NPUGuard.h"
#include "torch_npu/csrc/core/npu/NPUStream.h"
#include "torch_npu/csrc/framework/OpCommand.h"
#include "xlite/clauses.h"
#include "xlite/launchers.h"
#include "xlite/processor.h"
#include "xlite/rows.h"

namespace xllm_kernel::xlite {

namespace {

// One launch and all that must live until it was made. Called on the queue's
// own thread, which has another current stream than the caller.
struct Launch {
  int operator()() const {
    NormLauncher& launcher = input.tensor.scalar_type() == at::kHalf
                                 ? aclrtlaunch_norm_float16_t
                                 : aclrtlaunch_norm_bfloat16_t;
    const auto width = static_cast<std::uint32_t>(input.width);
    const std::uint32_t status = launcher(
        blocks, stream, input.tensor.data_ptr(), /*added=*/nullptr,
        weight.data_ptr(), /*bias=*/nullptr, output.data_ptr(),
        static_cast<std::uint32_t>(input.count), width, eps,
        static_cast<int>(NormKind::kRootMeanSquare), /*norms_a_token=*/1,
        static_cast<std::uint32_t>(input.step), /*output_step=*/width,
        /*input_start=*/0, /*output_start=*/0, /*normalises=*/true,
        /*variance=*/nullptr, /*variance_parts=*/1, /*float32_output=*/false);
    return static_cast<int>(status);
  }

  at::Tensor output;
  Rows input;
  at::Tensor weight;
  float eps;
  std::uint32_t blocks;
  aclrtStream stream;
};

// What follows the checks; the output is contiguous and has rows.
void enqueue(const at::Tensor& output, const at::Tensor& input,
             const at::Tensor& weight, double eps) {
  const c10_npu::NPUStream stream =
      c10_npu::getCurrentNPUStream(input.device().index());
  Rows rows(input);
  const std::uint32_t cores = processor().vector_cores.at(
      static_cast<std::size_t>(input.device().index()));
  const auto blocks =
      static_cast<std::uint32_t>(std::min<std::int64_t>(rows.count, cores));
  // Given tensors may come from another stream, whose next tensors must not
  // take their memory before this one has read it.
  input.record_stream(stream.unwrap());
  weight.record_stream(stream.unwrap());
  at_npu::native::OpCommand::RunOpApi(
      "xlite_rms_norm",
      Launch{.output = unseen(output),
             .input = std::move(rows),
             .weight = unseen(weight.contiguous()),
             .eps = static_cast<float>(eps),
             .blocks = blocks,
             // Without waiting for the queue, whose order the launch keeps.
             .stream = stream.stream(false)});
}

void check(const at::Tensor& input, const at::Tensor& weight, double eps) {
  const Clauses clauses({"rms_norm", "npu.xlite.rms_norm"});
  clauses.rows_and_weight({"input", input}, {"weight", weight});
  clauses.not_negative_float32("eps", eps);
  clauses.supported_processor();
}

at::Tensor xlite_rms_norm(const at::Tensor& input, const at::Tensor& weight,
                          double eps) {
  check(input, weight, eps);
  const c10_npu::NPUGuard guard(input.device());
  at::Tensor output = at::empty(input.sizes(), input.options());
  if (output.numel() > 0) enqueue(output, input, weight, eps);
  return output;
}

// The same launch into a buffer that preparation has poisoned, to see whether
// the launcher writes at all.
void xlite_rms_norm_probe(const at::Tensor& output, const at::Tensor& input,
                          const at::Tensor& weight, double eps) {
  check(input, weight, eps);
  TORCH_CHECK(output.sizes() == input.sizes() && output.is_contiguous() &&
                  output.scalar_type() == input.scalar_type() &&
                  output.device() == input.device() && output.numel() > 0,
              "xlite_rms_norm_probe: output must be contiguous and like input");
  const c10_npu::NPUGuard guard(input.device());
  enqueue(output, input, weight, eps);
}

}  // namespace

}  // namespace xllm_kernel::xlite

TORCH_LIBRARY_FRAGMENT(xllm_kernel, library) {
  library.def(
      "xlite_rms_norm(Tensor input, Tensor weight, float eps) -> Tensor");
  library.def(
      "xlite_rms_norm_probe(Tensor(a!) output, Tensor input, Tensor weight, "
      "float eps) -> ()");
}

TORCH_LIBRARY_IMPL(xllm_kernel, PrivateUse1, library) {
  library.impl("xlite_rms_norm", &xllm_kernel::xlite::xlite_rms_norm);
  library.impl("xlite_rms_norm_probe",
               &xllm_kernel::xlite::xlite_rms_norm_probe);
}

// Every other backend gets here, and from the same checks the named error
// instead of the dispatcher's.
TORCH_LIBRARY_IMPL(xllm_kernel, CompositeExplicitAutograd, library) {
  library.impl("xlite_rms_norm", &xllm_kernel::xlite::xlite_rms_norm);
}
