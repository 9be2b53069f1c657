// What kernels do to whole rows, over blocks, for any level. Included after a
// level's vec_*.h, inside its target region; holds no operator.
#pragma once

// Already included by who opened the region: here for files without one.
#include "simd/core/block.h"
#include "simd/core/caches.h"
#include "simd/core/row_scale.h"
#include "simd/core/rows.h"
#include "simd/core/variants.h"

namespace xllm_kernel::simd {
namespace {  // NOLINT(google-build-namespaces)

// Rows up to so many bytes go in groups: they share the loads and the widening
// of the weight, and hide each other's latency between the two passes. Wider
// ones would drive each other out of the first cache.
inline constexpr std::int64_t kNarrowRow = 2048;
inline constexpr int kGroup = 4;

// Bytes between what is read and what is fetched.
inline constexpr std::int64_t kFetchAhead = 8192;

// How values leave for memory.
enum class Leave : std::uint8_t {
  kAny,       // whatever they are
  kNumbers,   // none is a NaN
  kStreamed,  // none is a NaN, and the caches are left alone
};

template <class Format>
Block load(const std::byte* from) noexcept {
  return Format::widen(Format::get(from));
}

template <class Format>
Block load_part(const std::byte* from, std::int64_t count) noexcept {
  return Format::widen(Format::get_part(from, count));
}

template <class Format, Leave kLeave>
void store(std::byte* to, const Block& block) noexcept {
  if constexpr (kLeave == Leave::kAny) {
    Format::put(to, Format::narrow(block));
  } else if constexpr (kLeave == Leave::kNumbers || !Format::kStreams) {
    Format::put(to, Format::narrow_numbers(block));
  } else {
    Format::stream(to, Format::narrow_numbers(block));
  }
}

// Elements of a weight that may be fp32 beside narrower values, arranged as
// Format's blocks are.
template <class Format, class Weight>
struct WeightOf final {
  static Block load(const std::byte* weight, std::int64_t first) noexcept {
    const auto raw = Weight::get(weight + first * Weight::kSize);
    return arrange(Weight::widen(raw));
  }
  static Block load_part(const std::byte* weight, std::int64_t first,
                         std::int64_t count) noexcept {
    const auto raw = Weight::get_part(weight + first * Weight::kSize, count);
    return arrange(Weight::widen(raw));
  }

 private:
  static Block arrange(const Block& block) noexcept {
    if constexpr (std::is_same_v<Format, Weight>) {
      return block;
    } else {
      return Format::arrange(block);
    }
  }
};

// Whether no element is a NaN or an infinity: of those, the product with zero
// is a NaN.
template <class Format>
bool all_finite(const std::byte* values, std::int64_t count) noexcept {
  Block lanes = zero();
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    lanes = fma(load<Format>(values + i * Format::kSize), zero(), lanes);
  }
  if (i < count) {
    lanes = fma(load_part<Format>(values + i * Format::kSize, count - i),
                zero(), lanes);
  }
  return Format::sum(lanes) == 0.0F;
}

// Element i is added to lane i % 64, in order of i; then the fixed tree.
template <class Format>
float sum_of_squares(const std::byte* row, std::int64_t width) noexcept {
  Block lanes = zero();
  std::int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    const Block x = load<Format>(row + i * Format::kSize);
    lanes = fma(x, x, lanes);
  }
  if (i < width) {
    // A missing element adds +0 to its lane, which changes no bit of it.
    const Block x = load_part<Format>(row + i * Format::kSize, width - i);
    lanes = fma(x, x, lanes);
  }
  return Format::sum(lanes);
}

// Rows that share a weight: y = (x * factor) * weight.
template <int kCount>
struct ScaledRows final {
  std::byte* y[kCount];
  const std::byte* x[kCount];
  RowScale scale[kCount];
};

// A processor that looks a load's address up among the stores before it does so
// by the low 12 bits first, and waits where those are the same. So a row whose
// y begins little above its x or its weight, by those bits, goes from its end
// to its beginning, where a store is above what is loaded after it: forwards it
// would take up to a third longer. The first row speaks for a group.
template <int kCount>
bool better_backwards(const ScaledRows<kCount>& rows,
                      const std::byte* weight) noexcept {
  const auto little_above = [](const std::byte* a, const std::byte* b) {
    constexpr std::uintptr_t kPage = 4096;
    // As far as stores wait to be written: about 16 vectors.
    constexpr std::uintptr_t kNear = 1024;
    const std::uintptr_t above = (reinterpret_cast<std::uintptr_t>(a) -
                                  reinterpret_cast<std::uintptr_t>(b)) %
                                 kPage;
    return above != 0 && above < kNear;
  };
  const std::byte* const y = rows.y[0];
  const std::byte* const x = rows.x[0];
  if (little_above(y, x)) return true;
  return little_above(y, weight) && !little_above(x, y);
}

// Rounds to the format once. A row's y may be its x. `ahead`, in bytes from a
// place in x, is what to fetch meanwhile, if values are streamed: what is
// fetched need not exist.
template <class Format, class Weight, Leave kLeave, int kCount>
void scale_rows(const ScaledRows<kCount>& given, const std::byte* weight,
                std::int64_t width, std::int64_t ahead) noexcept {
  // A copy that no store can be thought to change.
  const ScaledRows<kCount> rows = given;
  const std::int64_t whole = width / kLanes * kLanes;
  const bool backwards = better_backwards(rows, weight);
  const std::int64_t step = backwards ? -kLanes : kLanes;
  std::int64_t i = backwards ? whole - kLanes : 0;
  for (std::int64_t todo = whole; todo > 0; todo -= kLanes, i += step) {
    const std::int64_t at = i * Format::kSize;
    const Block w = WeightOf<Format, Weight>::load(weight, i);
#pragma GCC unroll 4
    for (int row = 0; row < kCount; ++row) {
      if constexpr (kLeave == Leave::kStreamed) {
        const auto next = reinterpret_cast<std::uintptr_t>(rows.x[row]) +
                          static_cast<std::uintptr_t>(at + ahead);
        for (std::int64_t line = 0; line < kLanes * Format::kSize; line += 64) {
          // For reading, into the second level. A number, since a pointer may
          // not leave its array.
          // NOLINTNEXTLINE(performance-no-int-to-ptr)
          const auto* const at_line = reinterpret_cast<const void*>(
              next + static_cast<std::uintptr_t>(line));
          __builtin_prefetch(at_line, 0, 2);
        }
      }
      store<Format, kLeave>(
          rows.y[row] + at,
          mul(mul(load<Format>(rows.x[row] + at), rows.scale[row].factor), w));
    }
  }
  if (whole == width) return;
  const std::int64_t at = whole * Format::kSize;
  const std::int64_t left = width - whole;
  const Block w = WeightOf<Format, Weight>::load_part(weight, whole, left);
  for (int row = 0; row < kCount; ++row) {
    const Block x = load_part<Format>(rows.x[row] + at, left);
    Format::put_part(rows.y[row] + at,
                     Format::narrow(mul(mul(x, rows.scale[row].factor), w)),
                     left);
  }
}

// Chooses how values may leave. `weight_finite` says that the weight was looked
// at and is.
template <class Format, class Weight, int kCount>
void scale_rows(const ScaledRows<kCount>& rows, const std::byte* weight,
                std::int64_t width, bool weight_finite, Stores stores,
                std::int64_t ahead) noexcept {
  bool numbers = weight_finite;
  std::uintptr_t places = 0;
  for (int row = 0; row < kCount; ++row) {
    numbers = numbers && rows.scale[row].finite;
    places |= reinterpret_cast<std::uintptr_t>(rows.y[row]);
  }
  if (!numbers) {
    scale_rows<Format, Weight, Leave::kAny>(rows, weight, width, ahead);
  } else if (stores == Stores::kStreamed && places % 64 == 0) {
    scale_rows<Format, Weight, Leave::kStreamed>(rows, weight, width, ahead);
  } else {
    scale_rows<Format, Weight, Leave::kNumbers>(rows, weight, width, ahead);
  }
}

// A level's kernels, from Operator<Format of the rows, of the weight>::run.
template <template <class, class> class Operator, class Task, class Fp32,
          class Fp16, class Bf16>
consteval Kernels<Task> kernels_of() noexcept {
  return {.fp32 = &Operator<Fp32, Fp32>::run,
          .fp16 = &Operator<Fp16, Fp16>::run,
          .bf16 = &Operator<Bf16, Bf16>::run,
          .fp16_by_fp32 = &Operator<Fp16, Fp32>::run,
          .bf16_by_fp32 = &Operator<Bf16, Fp32>::run};
}

}  // namespace
}  // namespace xllm_kernel::simd
