// What an rms_norm kernel is given, and the table of kernels. Checks nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "simd/core/caches.h"
#include "simd/core/row_scale.h"
#include "simd/core/rows.h"
#include "simd/core/variants.h"

namespace xllm_kernel::simd {

// Checked arguments: `rows` rows from where the two cursors stand.
struct RmsNormTask final {
  RowCursor<const std::byte> input;
  RowCursor<std::byte> output;
  const std::byte* weight;
  std::int64_t rows;
  std::int64_t width;
  float eps;
  Stores stores = Stores::kCached;
};

XLLM_KERNEL_DECLARE_VARIANTS(rms_norm, RmsNormTask)

}  // namespace xllm_kernel::simd
