// The aclnn functions that make one element of many, and those that compare
// tensors. Names operators; computes nothing.
#include "abi/opapi/phases.h"
#include "operators/compare.h"
#include "operators/reduce.h"

using ascend_sim::Reduction;
using ascend_sim::abi::given;
using ascend_sim::abi::prepare;

// Over dimensions that are named; a result keeps them or not by its own sizes.
#define ASCEND_SIM_REDUCTION(NAME, REDUCTION)                              \
  ASCEND_SIM_EXPORT aclnnStatus aclnn##NAME##GetWorkspaceSize(             \
      const aclTensor* self, const aclIntArray* dimensions, bool /*keep*/, \
      aclTensor* out, std::uint64_t* bytes, aclOpExecutor** executor) {    \
    return prepare("aclnn" #NAME, bytes, executor, [&] {                   \
      return ascend_sim::reduce("aclnn" #NAME, REDUCTION, given(self),     \
                                given(dimensions), given(out));            \
    });                                                                    \
  }                                                                        \
  ASCEND_SIM_EXECUTE(NAME)

ASCEND_SIM_REDUCTION(All, Reduction::kAll)
ASCEND_SIM_REDUCTION(Any, Reduction::kAny)
ASCEND_SIM_REDUCTION(Amax, Reduction::kMax)
ASCEND_SIM_REDUCTION(Amin, Reduction::kMin)

// As those, with the dtype to compute in, which the result's says already.
#define ASCEND_SIM_TYPED_REDUCTION(NAME, REDUCTION)                        \
  ASCEND_SIM_EXPORT aclnnStatus aclnn##NAME##GetWorkspaceSize(             \
      const aclTensor* self, const aclIntArray* dimensions, bool /*keep*/, \
      aclDataType /*dtype*/, aclTensor* out, std::uint64_t* bytes,         \
      aclOpExecutor** executor) {                                          \
    return prepare("aclnn" #NAME, bytes, executor, [&] {                   \
      return ascend_sim::reduce("aclnn" #NAME, REDUCTION, given(self),     \
                                given(dimensions), given(out));            \
    });                                                                    \
  }                                                                        \
  ASCEND_SIM_EXECUTE(NAME)

ASCEND_SIM_TYPED_REDUCTION(ReduceSum, Reduction::kSum)
ASCEND_SIM_TYPED_REDUCTION(Mean, Reduction::kMean)

#define ASCEND_SIM_FULL_REDUCTION(NAME, REDUCTION)                         \
  ASCEND_SIM_EXPORT aclnnStatus aclnn##NAME##GetWorkspaceSize(             \
      const aclTensor* self, aclTensor* out, std::uint64_t* bytes,         \
      aclOpExecutor** executor) {                                          \
    return prepare("aclnn" #NAME, bytes, executor, [&] {                   \
      return ascend_sim::reduce("aclnn" #NAME, REDUCTION, given(self), {}, \
                                given(out));                               \
    });                                                                    \
  }                                                                        \
  ASCEND_SIM_EXECUTE(NAME)

ASCEND_SIM_FULL_REDUCTION(Max, Reduction::kMax)
ASCEND_SIM_FULL_REDUCTION(Min, Reduction::kMin)

#define ASCEND_SIM_EXTREME(NAME, REDUCTION)                                    \
  ASCEND_SIM_EXPORT aclnnStatus aclnn##NAME##GetWorkspaceSize(                 \
      const aclTensor* self, std::int64_t dimension, bool /*keep*/,            \
      aclTensor* values, aclTensor* indices, std::uint64_t* bytes,             \
      aclOpExecutor** executor) {                                              \
    return prepare("aclnn" #NAME, bytes, executor, [&] {                       \
      return ascend_sim::reduce_to_extreme("aclnn" #NAME, REDUCTION,           \
                                           given(self), dimension,             \
                                           {&given(values), &given(indices)}); \
    });                                                                        \
  }                                                                            \
  ASCEND_SIM_EXECUTE(NAME)

ASCEND_SIM_EXTREME(MaxDim, Reduction::kMax)
ASCEND_SIM_EXTREME(MinDim, Reduction::kMin)

#define ASCEND_SIM_EXTREME_INDEX(NAME, REDUCTION)                           \
  ASCEND_SIM_EXPORT aclnnStatus aclnn##NAME##GetWorkspaceSize(              \
      const aclTensor* self, std::int64_t dimension, bool /*keep*/,         \
      aclTensor* indices, std::uint64_t* bytes, aclOpExecutor** executor) { \
    return prepare("aclnn" #NAME, bytes, executor, [&] {                    \
      return ascend_sim::reduce_to_extreme("aclnn" #NAME, REDUCTION,        \
                                           given(self), dimension,          \
                                           {nullptr, &given(indices)});     \
    });                                                                     \
  }                                                                         \
  ASCEND_SIM_EXECUTE(NAME)

ASCEND_SIM_EXTREME_INDEX(ArgMax, Reduction::kMax)
ASCEND_SIM_EXTREME_INDEX(ArgMin, Reduction::kMin)

ASCEND_SIM_EXPORT aclnnStatus aclnnEqualGetWorkspaceSize(
    const aclTensor* self, const aclTensor* other, aclTensor* out,
    std::uint64_t* bytes, aclOpExecutor** executor) {
  return prepare("aclnnEqual", bytes, executor, [&] {
    return ascend_sim::equal("aclnnEqual", given(self), given(other),
                             given(out));
  });
}
ASCEND_SIM_EXECUTE(Equal)

ASCEND_SIM_EXPORT aclnnStatus aclnnIsCloseGetWorkspaceSize(
    const aclTensor* self, const aclTensor* other, double relative,
    double absolute, bool nan_is_close, aclTensor* out, std::uint64_t* bytes,
    aclOpExecutor** executor) {
  return prepare("aclnnIsClose", bytes, executor, [&] {
    return ascend_sim::is_close("aclnnIsClose", given(self), given(other),
                                {relative, absolute, nan_is_close}, given(out));
  });
}
ASCEND_SIM_EXECUTE(IsClose)
