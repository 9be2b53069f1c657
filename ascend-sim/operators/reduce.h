// Operators that make one element of many. Keeps no order of the results but
// row-major.
#pragma once

#include <cstdint>
#include <string>

#include "operators/tensor.h"

namespace ascend_sim {

enum class Reduction : std::uint8_t { kSum, kMean, kMax, kMin, kAll, kAny };

// Over these dimensions, or over all if none is named. Sums in float32 (64
// lanes, then the lanes pairwise), in float64 or in int64; rounds once.
[[nodiscard]] Task reduce(const std::string& name, Reduction reduction,
                          const Tensor& self, const Sizes& dimensions,
                          const Tensor& out);

// The first of the greatest (or least) along a dimension, a NaN being greater
// (and less) than any number; either result may be absent.
struct ExtremeResults {
  const Tensor* values = nullptr;
  const Tensor* indices = nullptr;
};
[[nodiscard]] Task reduce_to_extreme(const std::string& name,
                                     Reduction reduction, const Tensor& self,
                                     std::int64_t dimension,
                                     const ExtremeResults& results);

}  // namespace ascend_sim
