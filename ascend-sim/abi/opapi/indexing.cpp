// The aclnn functions that move elements. Names operators; computes nothing.
#include "abi/opapi/phases.h"
#include "operators/concatenate.h"
#include "operators/found.h"
#include "operators/index.h"

using ascend_sim::NonzeroForm;
using ascend_sim::Tensor;
using ascend_sim::abi::given;
using ascend_sim::abi::prepare;

namespace {

// An empty tensor stands for one that is not given.
std::vector<Tensor> all_of(const aclTensorList* list) {
  if (list == nullptr) {
    throw ascend_sim::OperandError(ascend_sim::kNullOperand,
                                   "a list of tensors must not be null");
  }
  std::vector<Tensor> out;
  for (const aclTensor* tensor : list->tensors) {
    if (tensor == nullptr) {
      out.emplace_back().sizes = {0};
      out.back().strides = {1};
    } else {
      out.push_back(tensor->tensor);
    }
  }
  return out;
}

}  // namespace

#define ASCEND_SIM_JOIN(NAME, FUNCTION)                                       \
  ASCEND_SIM_EXPORT aclnnStatus aclnn##NAME##GetWorkspaceSize(                \
      const aclTensorList* tensors, std::int64_t dimension, aclTensor* out,   \
      std::uint64_t* bytes, aclOpExecutor** executor) {                       \
    return prepare("aclnn" #NAME, bytes, executor, [&] {                      \
      return FUNCTION("aclnn" #NAME, all_of(tensors), dimension, given(out)); \
    });                                                                       \
  }                                                                           \
  ASCEND_SIM_EXECUTE(NAME)

ASCEND_SIM_JOIN(Cat, ascend_sim::concatenate)
ASCEND_SIM_JOIN(Stack, ascend_sim::stack)

#define ASCEND_SIM_TAKE(NAME, FUNCTION)                                      \
  ASCEND_SIM_EXPORT aclnnStatus aclnn##NAME##GetWorkspaceSize(               \
      const aclTensor* self, std::int64_t dimension, const aclTensor* index, \
      aclTensor* out, std::uint64_t* bytes, aclOpExecutor** executor) {      \
    return prepare("aclnn" #NAME, bytes, executor, [&] {                     \
      return FUNCTION("aclnn" #NAME, given(self), dimension, given(index),   \
                      given(out));                                           \
    });                                                                      \
  }                                                                          \
  ASCEND_SIM_EXECUTE(NAME)

ASCEND_SIM_TAKE(IndexSelect, ascend_sim::index_select)
ASCEND_SIM_TAKE(Gather, ascend_sim::gather)

ASCEND_SIM_EXPORT aclnnStatus aclnnEmbeddingGetWorkspaceSize(
    const aclTensor* weight, const aclTensor* indices, aclTensor* out,
    std::uint64_t* bytes, aclOpExecutor** executor) {
  return prepare("aclnnEmbedding", bytes, executor, [&] {
    return ascend_sim::index_select("aclnnEmbedding", given(weight), 0,
                                    given(indices), given(out));
  });
}
ASCEND_SIM_EXECUTE(Embedding)

ASCEND_SIM_EXPORT aclnnStatus aclnnIndexGetWorkspaceSize(
    const aclTensor* self, const aclTensorList* indices, aclTensor* out,
    std::uint64_t* bytes, aclOpExecutor** executor) {
  return prepare("aclnnIndex", bytes, executor, [&] {
    return ascend_sim::index("aclnnIndex", given(self), all_of(indices),
                             given(out));
  });
}
ASCEND_SIM_EXECUTE(Index)

ASCEND_SIM_EXPORT aclnnStatus aclnnIndexPutImplGetWorkspaceSize(
    aclTensor* self, const aclTensorList* indices, const aclTensor* values,
    bool accumulate, bool /*unsafe*/, std::uint64_t* bytes,
    aclOpExecutor** executor) {
  return prepare("aclnnIndexPutImpl", bytes, executor, [&] {
    ascend_sim::require(!accumulate, "aclnnIndexPutImpl",
                        "accumulating is not simulated");
    return ascend_sim::index_put("aclnnIndexPutImpl", given(self),
                                 all_of(indices), given(values));
  });
}
ASCEND_SIM_EXECUTE(IndexPutImpl)

ASCEND_SIM_EXPORT aclnnStatus aclnnMaskedSelectGetWorkspaceSize(
    const aclTensor* self, const aclTensor* mask, aclTensor* out,
    std::uint64_t* bytes, aclOpExecutor** executor) {
  return prepare("aclnnMaskedSelect", bytes, executor, [&] {
    return ascend_sim::masked_select("aclnnMaskedSelect", given(self),
                                     given(mask), given(out));
  });
}
ASCEND_SIM_EXECUTE(MaskedSelect)

ASCEND_SIM_EXPORT aclnnStatus
aclnnNonzeroGetWorkspaceSize(const aclTensor* self, aclTensor* out,
                             std::uint64_t* bytes, aclOpExecutor** executor) {
  return prepare("aclnnNonzero", bytes, executor, [&] {
    return ascend_sim::nonzero("aclnnNonzero", given(self),
                               NonzeroForm::kByElement, given(out));
  });
}
ASCEND_SIM_EXECUTE(Nonzero)

ASCEND_SIM_EXPORT aclnnStatus
aclnnNonzeroV2GetWorkspaceSize(const aclTensor* self, aclTensor* out,
                               std::uint64_t* bytes, aclOpExecutor** executor) {
  return prepare("aclnnNonzeroV2", bytes, executor, [&] {
    return ascend_sim::nonzero("aclnnNonzeroV2", given(self),
                               NonzeroForm::kByDimension, given(out));
  });
}
ASCEND_SIM_EXECUTE(NonzeroV2)
