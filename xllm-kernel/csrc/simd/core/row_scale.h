// The factor that makes a row's root mean square 1. Compiled for the baseline:
// include it outside of target regions.
#pragma once

#include <cmath>
#include <cstdint>

namespace xllm_kernel::simd {

// The factor of a row from its sum of squares. A width over 2^24 is rounded to
// fp32, at every level alike.
[[nodiscard]] inline float row_scale(float sum, std::int64_t width,
                                     float eps) noexcept {
  return 1.0F / std::sqrt(sum / static_cast<float>(width) + eps);
}

}  // namespace xllm_kernel::simd
