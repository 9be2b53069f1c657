// The descriptors that aclnn functions take. Copies what they describe and
// touches none of it.
#include <algorithm>
#include <cstring>
#include <memory>

#include "abi/opapi/phases.h"

namespace {

using ascend_sim::Address;
using ascend_sim::DType;
using ascend_sim::Scalar;
using ascend_sim::Sizes;
using ascend_sim::Tensor;

static_assert(static_cast<int>(DType::kFloat32) == ACL_FLOAT);
static_assert(static_cast<int>(DType::kFloat16) == ACL_FLOAT16);
static_assert(static_cast<int>(DType::kInt8) == ACL_INT8);
static_assert(static_cast<int>(DType::kInt32) == ACL_INT32);
static_assert(static_cast<int>(DType::kUint8) == ACL_UINT8);
static_assert(static_cast<int>(DType::kInt16) == ACL_INT16);
static_assert(static_cast<int>(DType::kInt64) == ACL_INT64);
static_assert(static_cast<int>(DType::kFloat64) == ACL_DOUBLE);
static_assert(static_cast<int>(DType::kBool) == ACL_BOOL);
static_assert(static_cast<int>(DType::kBfloat16) == ACL_BF16);

template <class T>
[[nodiscard]] T value_at(const void* value) {
  T out{};
  std::memcpy(&out, value, sizeof out);
  return out;
}

[[nodiscard]] Scalar scalar_from(const void* value, DType dtype) {
  Scalar scalar;
  scalar.dtype = dtype;
  switch (dtype) {
    case DType::kFloat32:
      scalar.value = static_cast<double>(value_at<float>(value));
      break;
    case DType::kFloat16:
      scalar.value = static_cast<double>(
          ascend_sim::from_float16(value_at<std::uint16_t>(value)));
      break;
    case DType::kBfloat16:
      scalar.value = static_cast<double>(
          ascend_sim::from_bfloat16(value_at<std::uint16_t>(value)));
      break;
    case DType::kFloat64:
      scalar.value = value_at<double>(value);
      break;
    case DType::kInt8:
      scalar.value = std::int64_t{value_at<std::int8_t>(value)};
      break;
    case DType::kUint8:
    case DType::kBool:
      scalar.value = std::int64_t{value_at<std::uint8_t>(value)};
      break;
    case DType::kInt16:
      scalar.value = std::int64_t{value_at<std::int16_t>(value)};
      break;
    case DType::kInt32:
      scalar.value = std::int64_t{value_at<std::int32_t>(value)};
      break;
    case DType::kInt64:
      scalar.value = value_at<std::int64_t>(value);
      break;
  }
  return scalar;
}

}  // namespace

// The pointer is the storage's; the offset to the first element is separate.
ASCEND_SIM_EXPORT aclTensor* aclCreateTensor(
    const std::int64_t* sizes, std::uint64_t rank, aclDataType dtype,
    const std::int64_t* strides, std::int64_t offset, aclFormat /*format*/,
    const std::int64_t* /*storage_sizes*/, std::uint64_t /*storage_rank*/,
    void* storage) {
  auto out = std::make_unique<aclTensor>();
  Tensor& tensor = out->tensor;
  tensor.sizes.assign(sizes, sizes + rank);
  tensor.strides.assign(strides, strides + rank);
  tensor.dtype = static_cast<DType>(dtype);
  tensor.address =
      reinterpret_cast<Address>(storage) +
      static_cast<Address>(offset) * ascend_sim::size_of(tensor.dtype);
  tensor.found = std::make_shared<Sizes>(tensor.sizes);
  return out.release();
}

ASCEND_SIM_EXPORT aclnnStatus aclDestroyTensor(const aclTensor* tensor) {
  delete tensor;
  return 0;
}

// The caller frees the array with delete[], as CANN documents.
ASCEND_SIM_EXPORT aclnnStatus aclGetViewShape(const aclTensor* tensor,
                                              std::int64_t** sizes,
                                              std::uint64_t* rank) {
  if (tensor == nullptr || sizes == nullptr || rank == nullptr) {
    return ascend_sim::abi::refused("aclGetViewShape", ascend_sim::kNullOperand,
                                    "no argument may be null");
  }
  const Sizes& found = *tensor->tensor.found;
  *sizes = new std::int64_t[found.size()];
  std::ranges::copy(found, *sizes);
  *rank = found.size();
  return 0;
}

ASCEND_SIM_EXPORT aclScalar* aclCreateScalar(void* value, aclDataType dtype) {
  return new aclScalar{scalar_from(value, static_cast<DType>(dtype))};
}

ASCEND_SIM_EXPORT aclnnStatus aclDestroyScalar(const aclScalar* scalar) {
  delete scalar;
  return 0;
}

ASCEND_SIM_EXPORT aclIntArray* aclCreateIntArray(const std::int64_t* values,
                                                 std::uint64_t count) {
  return new aclIntArray{{values, values + count}};
}

ASCEND_SIM_EXPORT aclnnStatus aclDestroyIntArray(const aclIntArray* array) {
  delete array;
  return 0;
}

// The list owns its tensors from here on.
ASCEND_SIM_EXPORT aclTensorList* aclCreateTensorList(
    const aclTensor* const* tensors, std::uint64_t count) {
  return new aclTensorList{{tensors, tensors + count}};
}

ASCEND_SIM_EXPORT aclnnStatus aclDestroyTensorList(const aclTensorList* list) {
  if (list == nullptr) return 0;
  for (const aclTensor* tensor : list->tensors) delete tensor;
  delete list;
  return 0;
}

ASCEND_SIM_EXPORT aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  delete executor;
  return 0;
}
