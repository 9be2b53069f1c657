// The aclnn functions whose values come from numbers. Names operators; computes
// nothing.
#include "abi/opapi/phases.h"
#include "operators/fill.h"

using ascend_sim::abi::given;
using ascend_sim::abi::prepare;

// The result's size says where to end.
ASCEND_SIM_EXPORT aclnnStatus aclnnArangeGetWorkspaceSize(
    const aclScalar* start, const aclScalar* /*end*/, const aclScalar* step,
    aclTensor* out, std::uint64_t* bytes, aclOpExecutor** executor) {
  return prepare("aclnnArange", bytes, executor, [&] {
    return ascend_sim::arange("aclnnArange", given(start), given(step),
                              given(out));
  });
}
ASCEND_SIM_EXECUTE(Arange)

ASCEND_SIM_EXPORT aclnnStatus aclnnInplaceUniformGetWorkspaceSize(
    aclTensor* self, double from, double to, std::uint64_t seed,
    std::uint64_t offset, std::uint64_t* bytes, aclOpExecutor** executor) {
  return prepare("aclnnInplaceUniform", bytes, executor, [&] {
    return ascend_sim::uniform("aclnnInplaceUniform", from, to,
                               {seed, offset, {}, {}}, given(self));
  });
}
ASCEND_SIM_EXECUTE(InplaceUniform)

ASCEND_SIM_EXPORT aclnnStatus aclnnInplaceUniformTensorGetWorkspaceSize(
    aclTensor* self, double from, double to, const aclTensor* seed,
    const aclTensor* offset, std::uint64_t more, std::uint64_t* bytes,
    aclOpExecutor** executor) {
  return prepare("aclnnInplaceUniformTensor", bytes, executor, [&] {
    return ascend_sim::uniform("aclnnInplaceUniformTensor", from, to,
                               {0, more, given(seed), given(offset)},
                               given(self));
  });
}
ASCEND_SIM_EXECUTE(InplaceUniformTensor)

ASCEND_SIM_EXPORT aclnnStatus aclnnInplaceNormalGetWorkspaceSize(
    aclTensor* self, float mean, float deviation, std::int64_t seed,
    std::int64_t offset, std::uint64_t* bytes, aclOpExecutor** executor) {
  return prepare("aclnnInplaceNormal", bytes, executor, [&] {
    return ascend_sim::normal("aclnnInplaceNormal", mean, deviation,
                              {static_cast<std::uint64_t>(seed),
                               static_cast<std::uint64_t>(offset),
                               {},
                               {}},
                              given(self));
  });
}
ASCEND_SIM_EXECUTE(InplaceNormal)

ASCEND_SIM_EXPORT aclnnStatus aclnnInplaceNormalTensorGetWorkspaceSize(
    aclTensor* self, float mean, float deviation, const aclTensor* seed,
    const aclTensor* offset, std::int64_t more, std::uint64_t* bytes,
    aclOpExecutor** executor) {
  return prepare("aclnnInplaceNormalTensor", bytes, executor, [&] {
    return ascend_sim::normal(
        "aclnnInplaceNormalTensor", mean, deviation,
        {0, static_cast<std::uint64_t>(more), given(seed), given(offset)},
        given(self));
  });
}
ASCEND_SIM_EXECUTE(InplaceNormalTensor)

ASCEND_SIM_EXPORT aclnnStatus aclnnInplaceRandomGetWorkspaceSize(
    aclTensor* self, std::int64_t from, std::int64_t to, std::int64_t seed,
    std::int64_t offset, std::uint64_t* bytes, aclOpExecutor** executor) {
  return prepare("aclnnInplaceRandom", bytes, executor, [&] {
    return ascend_sim::random_integers("aclnnInplaceRandom", from, to,
                                       {static_cast<std::uint64_t>(seed),
                                        static_cast<std::uint64_t>(offset),
                                        {},
                                        {}},
                                       given(self));
  });
}
ASCEND_SIM_EXECUTE(InplaceRandom)
