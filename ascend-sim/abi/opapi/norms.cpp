// The aclnn functions that normalise rows. Names operators; computes nothing.
#include "abi/opapi/phases.h"
#include "operators/rms_norm.h"

using ascend_sim::abi::given;
using ascend_sim::abi::prepare;

ASCEND_SIM_EXPORT aclnnStatus aclnnRmsNormGetWorkspaceSize(
    const aclTensor* x, const aclTensor* gamma, double epsilon,
    const aclTensor* y, const aclTensor* rstd, std::uint64_t* bytes,
    aclOpExecutor** executor) {
  return prepare("aclnnRmsNorm", bytes, executor, [&] {
    return ascend_sim::rms_norm(
        {given(x), given(gamma), epsilon, given(y), given(rstd)});
  });
}
ASCEND_SIM_EXECUTE(RmsNorm)

ASCEND_SIM_EXPORT aclnnStatus aclnnAddRmsNormGetWorkspaceSize(
    const aclTensor* x1, const aclTensor* x2, const aclTensor* gamma,
    double epsilon, const aclTensor* y, const aclTensor* rstd,
    const aclTensor* x, std::uint64_t* bytes, aclOpExecutor** executor) {
  return prepare("aclnnAddRmsNorm", bytes, executor, [&] {
    return ascend_sim::add_rms_norm({given(x1), given(x2), given(gamma),
                                     epsilon, given(y), given(rstd), given(x)});
  });
}
ASCEND_SIM_EXECUTE(AddRmsNorm)
