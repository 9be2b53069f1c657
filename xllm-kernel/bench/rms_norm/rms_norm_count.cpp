// The rms_norm calls whose instructions are counted; counts nothing itself.
#include "rms_norm/rms_norm_case.h"
#include "support/count.h"

int main() {
  namespace bench = xllm_kernel::bench;
  return bench::run_counted<bench::RmsNormCase>("rms_norm");
}
