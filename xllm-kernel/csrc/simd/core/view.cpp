// Checks that extents and strides describe memory that can exist, and names
// each status. Does not touch the memory.
#include <cstdint>
#include <limits>

#include "xllm_kernel/core.h"

namespace xllm_kernel {

namespace {

// Half the range, so that one step past a view's end cannot overflow either.
constexpr std::int64_t kMaxBytes = std::numeric_limits<std::int64_t>::max() / 2;

}  // namespace

namespace detail {

Status check_view(const void* base, std::span<const std::int64_t> extents,
                  std::span<const std::int64_t> strides, DType dtype,
                  ViewSpan* span) noexcept {
  const std::int64_t size = dtype_size(dtype);
  if (size == 0) return Status::kUnknownDType;
  if (extents.size() != strides.size()) return Status::kRankMismatch;

  bool empty = false;
  for (const std::int64_t extent : extents) {
    if (extent < 0) return Status::kNegativeExtent;
    empty = empty || extent == 0;
  }
  if (empty) {
    *span = {};
    return Status::kOk;
  }

  ViewSpan result{.elements = 1, .low = 0, .high = size};
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    const std::int64_t extent = extents[axis];
    if (extent == 1) continue;
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(result.elements, extent, &result.elements) ||
        __builtin_mul_overflow(strides[axis], extent - 1, &reach) ||
        __builtin_mul_overflow(reach, size, &reach)) {
      return Status::kExtentOverflow;
    }
    std::int64_t* side = reach < 0 ? &result.low : &result.high;
    if (__builtin_add_overflow(*side, reach, side)) {
      return Status::kExtentOverflow;
    }
  }
  if (result.elements > kMaxBytes / size || result.high > kMaxBytes ||
      result.low < -kMaxBytes) {
    return Status::kExtentOverflow;
  }

  if (base == nullptr) return Status::kNullPointer;
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  if (address % static_cast<std::uintptr_t>(size) != 0) {
    return Status::kMisaligned;
  }
  // The range must lie inside the address space, without wrapping round it.
  const auto below = static_cast<std::uintptr_t>(-result.low);
  const auto above = static_cast<std::uintptr_t>(result.high);
  if (below > address ||
      above > std::numeric_limits<std::uintptr_t>::max() - address) {
    return Status::kExtentOverflow;
  }
  *span = result;
  return Status::kOk;
}

}  // namespace detail

const char* status_message(Status status) noexcept {
  switch (status) {
    case Status::kOk:
      return "ok";
    case Status::kNullPointer:
      return "the base of a view with elements must not be null";
    case Status::kRankMismatch:
      return "extents and strides must have the same length";
    case Status::kNegativeExtent:
      return "extents must not be negative";
    case Status::kExtentOverflow:
      return "extents and strides must describe fewer than 2^62 bytes, inside "
             "the address space";
    case Status::kMisaligned:
      return "the base must be aligned to its element";
    case Status::kUnknownDType:
      return "the dtype must be one of the enumeration";
    case Status::kUnknownLevel:
      return "XLLM_KERNEL_SIMD_LEVEL must name a level; see simd_level()";
    case Status::kUnavailableLevel:
      return "XLLM_KERNEL_SIMD_LEVEL must name a level that this machine has; "
             "see simd_level()";
    case Status::kInputRank:
      return "input must have at least one dimension";
    case Status::kInputWidth:
      return "input's last extent must be at least 1";
    case Status::kInputStride:
      return "input's last stride must be 1";
    case Status::kWeightRank:
      return "weight must have one dimension";
    case Status::kWeightDType:
      return "weight must have input's dtype, or be fp32";
    case Status::kWeightWidth:
      return "weight's extent must equal input's last";
    case Status::kWeightStride:
      return "weight's stride must be 1";
    case Status::kEps:
      return "eps must be finite, at least 0 and at most FLT_MAX";
    case Status::kOutputShape:
      return "output must have input's extents";
    case Status::kOutputDType:
      return "output must have input's dtype";
    case Status::kOutputStride:
      return "output's last stride must be 1 and its rows must be apart";
    case Status::kOutputOverlap:
      return "output's bytes must be apart from those of input and weight";
    case Status::kResidualShape:
      return "residual must have input's extents";
    case Status::kResidualDType:
      return "residual must have input's dtype";
    case Status::kResidualStride:
      return "residual's last stride must be 1";
    case Status::kSumShape:
      return "sum must have input's extents";
    case Status::kSumDType:
      return "sum must have input's dtype";
    case Status::kSumStride:
      return "sum's last stride must be 1 and its rows must be apart";
    case Status::kOutputAlias:
      return "output must be the very same tensor as input, or its bytes apart "
             "from those of input; they must be apart from those of sum, "
             "residual and weight";
    case Status::kSumAlias:
      return "sum must be the very same tensor as residual, or its bytes apart "
             "from those of residual; they must be apart from those of input "
             "and weight";
  }
  return "unknown status";
}

}  // namespace xllm_kernel
