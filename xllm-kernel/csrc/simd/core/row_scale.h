// The factor that makes a row's root mean square 1. Compiled for the baseline:
// include it outside of target regions.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace xllm_kernel::simd {

struct RowScale {
  float factor;
  // Whether the row times the factor is surely free of NaN and infinities: no
  // element exceeds the root of a finite sum, nor that root times a finite
  // factor the root of the width.
  bool finite;
};

// The factor of a row from its sum of squares. A width over 2^24 is rounded to
// fp32, at every level alike.
[[nodiscard]] inline RowScale row_scale(float sum, std::int64_t width,
                                        float eps) noexcept {
  const float factor = 1.0F / std::sqrt(sum / static_cast<float>(width) + eps);
  constexpr float kLargest = std::numeric_limits<float>::max();
  // NaN fails both comparisons.
  return {.factor = factor, .finite = sum <= kLargest && factor <= kLargest};
}

}  // namespace xllm_kernel::simd
