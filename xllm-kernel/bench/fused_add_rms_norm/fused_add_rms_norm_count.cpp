// The fused_add_rms_norm calls whose instructions are counted; counts nothing
// itself. In place, which runs the same code as with fresh results.
#include "fused_add_rms_norm/fused_add_rms_norm_case.h"
#include "support/count.h"

int main() {
  namespace bench = xllm_kernel::bench;
  return bench::run_counted<
      bench::FusedAddRmsNormCase<bench::Results::kInPlace>>(
      "fused_add_rms_norm");
}
