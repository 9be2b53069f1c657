// Times every fused_add_rms_norm kernel of this machine, with fresh results and
// in place. Compares with nothing.
#include "fused_add_rms_norm/fused_add_rms_norm_case.h"
#include "support/kernels.h"

int main(int count, char** arguments) {
  namespace bench = xllm_kernel::bench;
  using bench::Results;
  const auto variants = xllm_kernel::simd::fused_add_rms_norm_variants();
  bench::register_kernels<bench::FusedAddRmsNormCase<Results::kFresh>>(
      "fused_add_rms_norm", variants);
  bench::register_kernels<bench::FusedAddRmsNormCase<Results::kInPlace>>(
      "fused_add_rms_norm_inplace", variants);
  bench::register_public<bench::FusedAddRmsNormCase<Results::kInPlace>>(
      "fused_add_rms_norm_inplace");
  return bench::run_benchmarks(count, arguments);
}
