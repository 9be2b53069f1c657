// Times every rms_norm kernel of this machine. Compares with nothing.
#include "rms_norm/rms_norm_case.h"
#include "support/kernels.h"

int main(int count, char** arguments) {
  namespace bench = xllm_kernel::bench;
  bench::register_kernels<bench::RmsNormCase>(
      "rms_norm", xllm_kernel::simd::rms_norm_variants());
  bench::register_public<bench::RmsNormCase>("rms_norm");
  return bench::run_benchmarks(count, arguments);
}
