// rms_norm in plain C++: the meaning of every other level, and what machines
// without one run. Uses no intrinsics.
//
// Why this shape: one pass for the sum, one for the values, 64 accumulators as
// at every level so that the bits agree. The bottleneck is std::fma, a call
// where the baseline processor has no such instruction.
#include <array>
#include <cmath>
#include <cstring>

#include "simd/core/half.h"
#include "simd/rms_norm/variants.h"

namespace xllm_kernel::simd::scalar {

namespace {

struct Fp32 final {
  using Storage = float;
  static float widen(float value) noexcept { return value; }
  static float narrow(float value) noexcept { return canonical_fp32(value); }
};

struct Fp16 final {
  using Storage = std::uint16_t;
  static float widen(Storage value) noexcept { return fp16_to_fp32(value); }
  static Storage narrow(float value) noexcept { return fp32_to_fp16(value); }
};

struct Bf16 final {
  using Storage = std::uint16_t;
  static float widen(Storage value) noexcept { return bf16_to_fp32(value); }
  static Storage narrow(float value) noexcept { return fp32_to_bf16(value); }
};

template <class Format>
float load(const std::byte* row, std::int64_t index) noexcept {
  typename Format::Storage value;
  std::memcpy(&value, row + index * std::int64_t{sizeof(value)}, sizeof(value));
  return Format::widen(value);
}

template <class Format>
float sum_of_squares(const std::byte* row, std::int64_t width) noexcept {
  std::array<float, kLanes> lanes{};
  for (std::int64_t i = 0; i < width; ++i) {
    const float x = load<Format>(row, i);
    float& lane = lanes[static_cast<std::size_t>(i % kLanes)];
    lane = std::fma(x, x, lane);
  }
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t k = 0; k < half; ++k) lanes[k] += lanes[k + half];
  }
  return lanes[0];
}

template <class Format>
void rms_norm(RmsNormTask& task) noexcept {
  for (std::int64_t row = 0; row < task.rows; ++row) {
    const std::byte* x = task.input.get();
    std::byte* y = task.output.get();
    const float scale =
        row_scale(sum_of_squares<Format>(x, task.width), task.width, task.eps);
    for (std::int64_t i = 0; i < task.width; ++i) {
      const auto value = Format::narrow((load<Format>(x, i) * scale) *
                                        load<Format>(task.weight, i));
      std::memcpy(y + i * std::int64_t{sizeof(value)}, &value, sizeof(value));
    }
    task.input.advance();
    task.output.advance();
  }
}

}  // namespace

void rms_norm_fp32(RmsNormTask task) noexcept { rms_norm<Fp32>(task); }
void rms_norm_fp16(RmsNormTask task) noexcept { rms_norm<Fp16>(task); }
void rms_norm_bf16(RmsNormTask task) noexcept { rms_norm<Bf16>(task); }

}  // namespace xllm_kernel::simd::scalar
