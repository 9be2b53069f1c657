// Normalises one row through the installed package, as a C++ host would. Uses
// no test framework: what it needs, a host needs.
#include <xllm_kernel/rms_norm.h>

#include <array>
#include <cstdio>

int main() {
  const std::array<float, 4> input = {1, -1, 1, -1};
  const std::array<float, 4> weight = {2, 2, 3, 3};
  std::array<float, 4> output{};
  const std::array<std::int64_t, 2> extents = {1, 4};
  const std::array<std::int64_t, 2> strides = {4, 1};
  const std::array<std::int64_t, 1> width = {4};
  const std::array<std::int64_t, 1> one = {1};
  constexpr auto kType = xllm_kernel::DType::kFloat32;

  xllm_kernel::TensorView x;
  xllm_kernel::TensorView w;
  xllm_kernel::MutableTensorView y;
  using xllm_kernel::Status;
  if (xllm_kernel::TensorView::make(input.data(), extents, strides, kType,
                                    &x) != Status::kOk ||
      xllm_kernel::TensorView::make(weight.data(), width, one, kType, &w) !=
          Status::kOk ||
      xllm_kernel::MutableTensorView::make(output.data(), extents, strides,
                                           kType, &y) != Status::kOk) {
    return 1;
  }
  const Status status = xllm_kernel::rms_norm(y, x, w, 0.0);
  std::printf("%s: %s, %g %g %g %g\n", xllm_kernel::simd_level().name,
              xllm_kernel::status_message(status), output[0], output[1],
              output[2], output[3]);
  const std::array<float, 4> expected = {2, -2, 3, -3};
  return status == Status::kOk && output == expected ? 0 : 1;
}
