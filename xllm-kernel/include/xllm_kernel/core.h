// What every operator's header shares: status codes, dtypes, checked tensor
// views and the SIMD level. Needs neither torch nor Python; computes nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "xllm_kernel/export.h"

namespace xllm_kernel {

// Every function of the library that can refuse returns one of these; none
// throws. kOk is zero.
enum class Status : std::int32_t {
  kOk = 0,
  // A view could not be made.
  kNullPointer,
  kRankMismatch,
  kNegativeExtent,
  kExtentOverflow,
  kMisaligned,
  kUnknownDType,
  // The SIMD level that the environment asks for.
  kUnknownLevel,
  kUnavailableLevel,
  // An operator's arguments.
  kInputRank,
  kInputWidth,
  kInputStride,
  kWeightRank,
  kWeightDType,
  kWeightWidth,
  kWeightStride,
  kEps,
  kOutputShape,
  kOutputDType,
  kOutputStride,
  kOutputOverlap,
  kResidualShape,
  kResidualDType,
  kResidualStride,
  kSumShape,
  kSumDType,
  kSumStride,
  kOutputAlias,
  kSumAlias,
};

// One sentence in static storage: what must hold.
[[nodiscard]] XLLM_KERNEL_API const char* status_message(
    Status status) noexcept;

enum class DType : std::uint8_t { kFloat32, kFloat16, kBFloat16 };

// Bytes of one element; 0 for a value outside the enumeration.
[[nodiscard]] constexpr std::int64_t dtype_size(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat32:
      return 4;
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
  }
  return 0;
}

namespace detail {

// The sizes a view needs, computed with overflow checks.
struct ViewSpan {
  std::int64_t elements = 0;
  // Byte offsets from the base of the lowest byte and past the highest one.
  std::int64_t low = 0;
  std::int64_t high = 0;
};

[[nodiscard]] XLLM_KERNEL_API Status
check_view(const void* base, std::span<const std::int64_t> extents,
           std::span<const std::int64_t> strides, DType dtype,
           ViewSpan* span) noexcept;

}  // namespace detail

// A strided tensor in memory: base, extents and strides, checked once when it
// is made. Strides count elements and may be 0 or negative; those of dimensions
// of extent 1 are ignored. Offsets are 64-bit. The view owns nothing: the
// memory and both arrays must outlive it.
template <class Byte>
class BasicTensorView final {
 public:
  using Void = std::conditional_t<std::is_const_v<Byte>, const void, void>;

  BasicTensorView() = default;

  // Fills `view` and returns kOk, or says why the description is no tensor and
  // leaves `view` as it was. A base must be aligned to its element, no more.
  [[nodiscard]] static Status make(Void* base,
                                   std::span<const std::int64_t> extents,
                                   std::span<const std::int64_t> strides,
                                   DType dtype,
                                   BasicTensorView* view) noexcept {
    detail::ViewSpan span;
    const Status status =
        detail::check_view(base, extents, strides, dtype, &span);
    if (status != Status::kOk) return status;
    view->base_ = static_cast<Byte*>(base);
    view->extents_ = extents;
    view->strides_ = strides;
    view->dtype_ = dtype;
    view->span_ = span;
    return Status::kOk;
  }

  [[nodiscard]] Byte* base() const noexcept { return base_; }
  [[nodiscard]] DType dtype() const noexcept { return dtype_; }
  [[nodiscard]] std::size_t rank() const noexcept { return extents_.size(); }
  [[nodiscard]] std::int64_t extent(std::size_t axis) const noexcept {
    return extents_[axis];
  }
  [[nodiscard]] std::int64_t stride(std::size_t axis) const noexcept {
    return strides_[axis];
  }
  [[nodiscard]] std::int64_t elements() const noexcept {
    return span_.elements;
  }
  // First byte that the view can touch, and one past the last.
  [[nodiscard]] const std::byte* begin_byte() const noexcept {
    return base_ + span_.low;
  }
  [[nodiscard]] const std::byte* end_byte() const noexcept {
    return base_ + span_.high;
  }

 private:
  Byte* base_ = nullptr;
  std::span<const std::int64_t> extents_;
  std::span<const std::int64_t> strides_;
  DType dtype_ = DType::kFloat32;
  detail::ViewSpan span_;
};

using TensorView = BasicTensorView<const std::byte>;
using MutableTensorView = BasicTensorView<std::byte>;

// The instruction set that every operator of the process uses.
struct SimdLevel {
  Status status = Status::kOk;
  // "avx2", "scalar", ...; empty if status is not kOk.
  const char* name = "";
  // Why there is no level, with those that exist; empty if status is kOk.
  const char* message = "";
};

// The best level that processor and operating system offer, or the one that
// XLLM_KERNEL_SIMD_LEVEL forces. Decided at the first call and fixed from then
// on: a host calls it while it prepares. Safe from several threads.
[[nodiscard]] XLLM_KERNEL_API const SimdLevel& simd_level() noexcept;

}  // namespace xllm_kernel
