// Facts and names of tensors by torch's stable ABI. Decides nothing: the
// clauses do.
#include "torch/domain.h"

#include <array>
#include <cstddef>
#include <string_view>

#include "torch/csrc/stable/library.h"

namespace xllm_kernel::bridge {

namespace {

// Torch's numbers of dtypes, which its files and its stable ABI fix.
constexpr std::array<std::string_view, 46> kDTypeNames = {"uint8",
                                                          "int8",
                                                          "int16",
                                                          "int32",
                                                          "int64",
                                                          "float16",
                                                          "float32",
                                                          "float64",
                                                          "complex32",
                                                          "complex64",
                                                          "complex128",
                                                          "bool",
                                                          "qint8",
                                                          "quint8",
                                                          "qint32",
                                                          "bfloat16",
                                                          "quint4x2",
                                                          "quint2x4",
                                                          "bits1x8",
                                                          "bits2x4",
                                                          "bits4x2",
                                                          "bits8",
                                                          "bits16",
                                                          "float8_e5m2",
                                                          "float8_e4m3fn",
                                                          "float8_e5m2fnuz",
                                                          "float8_e4m3fnuz",
                                                          "uint16",
                                                          "uint32",
                                                          "uint64",
                                                          "uint1",
                                                          "uint2",
                                                          "uint3",
                                                          "uint4",
                                                          "uint5",
                                                          "uint6",
                                                          "uint7",
                                                          "int1",
                                                          "int2",
                                                          "int3",
                                                          "int4",
                                                          "int5",
                                                          "int6",
                                                          "int7",
                                                          "float8_e8m0fnu",
                                                          "float4_e2m1fn_x2"};

constexpr std::array<std::string_view, 21> kDeviceNames = {
    "cpu",  "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip",
    "fpga", "maia", "xla",    "vulkan", "metal",  "xpu",   "mps",
    "meta", "hpu",  "ve",     "lazy",   "ipu",    "mtia",  "privateuseone"};

template <std::size_t kCount>
std::string name_at(const std::array<std::string_view, kCount>& names,
                    std::int32_t number) {
  if (number < 0 || static_cast<std::size_t>(number) >= kCount) {
    return "number " + std::to_string(number);
  }
  return std::string(names[static_cast<std::size_t>(number)]);
}

}  // namespace

TensorFacts::TensorFacts(const torch::stable::Tensor& tensor)
    : sizes(tensor.sizes()), strides(tensor.strides()) {
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(tensor.get(), &dtype));
  TORCH_ERROR_CODE_CHECK(
      aoti_torch_get_device_type(tensor.get(), &device_type));
  TORCH_ERROR_CODE_CHECK(
      aoti_torch_get_device_index(tensor.get(), &device_index));
}

std::string dtype_name(std::int32_t dtype) {
  return name_at(kDTypeNames, dtype);
}

std::string device_name(const TensorFacts& facts) {
  std::string name = name_at(kDeviceNames, facts.device_type);
  if (facts.device_index >= 0) {
    name.append(":").append(std::to_string(facts.device_index));
  }
  return name;
}

bool count_write(const torch::stable::Tensor& tensor) {
  // The stable ABI has no call for it; every in-place operator of torch counts,
  // and this one changes nothing.
  std::array<StableIValue, 3> stack{
      torch::stable::detail::from(tensor),
      torch::stable::detail::from(std::int64_t{0}),
      torch::stable::detail::from(std::int64_t{0})};
  if (torch_call_dispatcher("aten::transpose_", "", stack.data(),
                            TORCH_ABI_VERSION) != 0) {
    return false;
  }
  // The result is the tensor again, and ours to release.
  static_cast<void>(torch::stable::detail::to<torch::stable::Tensor>(stack[0]));
  return true;
}

}  // namespace xllm_kernel::bridge
