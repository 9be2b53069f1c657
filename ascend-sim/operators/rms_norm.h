// RMS norms as the vendor's aclnnRmsNorm and aclnnAddRmsNorm document them.
// Learns nothing from the package that is tested over it.
#pragma once

#include "operators/executor.h"
#include "operators/tensor.h"

namespace ascend_sim {

struct RmsNormOperands {
  Tensor x;
  Tensor gamma;  // its sizes are x's last ones
  double epsilon = 0;
  Tensor y;     // like x
  Tensor rstd;  // float32; x's sizes with 1 for those that gamma has
};

// y = x / sqrt(mean(x^2) + epsilon) * gamma and rstd = 1 / sqrt(...), in
// float32 throughout; y is rounded once.
[[nodiscard]] Executor rms_norm(const RmsNormOperands& operands);

struct AddRmsNormOperands {
  Tensor x1;
  Tensor x2;
  Tensor gamma;
  double epsilon = 0;
  Tensor y;
  Tensor rstd;
  Tensor x;
};

// x = x1 + x2, rounded to its dtype, then the norm of that x.
[[nodiscard]] Executor add_rms_norm(const AddRmsNormOperands& operands);

}  // namespace ascend_sim
