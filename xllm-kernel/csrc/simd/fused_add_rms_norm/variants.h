// What a fused_add_rms_norm kernel is given, and the table of kernels. Checks
// nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "simd/core/caches.h"
#include "simd/core/row_scale.h"
#include "simd/core/rows.h"
#include "simd/core/variants.h"

namespace xllm_kernel::simd {

// Checked arguments: `rows` rows from where the cursors stand. `output` may be
// `input` and `sum` may be `residual`, row by row.
struct FusedAddRmsNormTask final {
  RowCursor<const std::byte> input;
  RowCursor<const std::byte> residual;
  RowCursor<std::byte> sum;
  RowCursor<std::byte> output;
  const std::byte* weight;
  std::int64_t rows;
  std::int64_t width;
  float eps;
};

XLLM_KERNEL_DECLARE_VARIANTS(fused_add_rms_norm, FusedAddRmsNormTask)

}  // namespace xllm_kernel::simd
