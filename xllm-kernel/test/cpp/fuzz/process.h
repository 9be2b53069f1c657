// What every fuzzer of an operator starts with and draws alike. Includes no
// operator.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "fuzz/shapes.h"
#include "support/kernels.h"
#include "support/threads.h"
#include "xllm_kernel/core.h"

namespace xllm_kernel::fuzz {

// Ends the process, with a reason to count, where the level that the
// environment asks for is not here.
inline void require_level() {
  const SimdLevel& level = simd_level();
  if (level.status == Status::kOk) return;
  std::printf("fuzz: Skipped\nthis machine has no level %s\n",
              std::getenv("XLLM_KERNEL_SIMD_LEVEL"));
  std::exit(level.status == Status::kUnavailableLevel ? EXIT_SUCCESS
                                                      : EXIT_FAILURE);
}

[[nodiscard]] inline Threads threads(Draw& draw) {
  static const std::vector<Threads> kinds = test::every_kind_of_threads();
  const std::int64_t last = static_cast<std::int64_t>(kinds.size()) - 1;
  return kinds[static_cast<std::size_t>(draw.between(0, last))];
}

[[nodiscard]] inline test::Flush flush(Draw& draw) {
  return draw.one_in(2) ? test::Flush::kFront : test::Flush::kBack;
}

// The scalar kernel that defines the bits of these dtypes.
template <class Variant>
[[nodiscard]] const Variant& scalar_kernel(std::span<const Variant> variants,
                                           const Shape& rows,
                                           const Shape& weight) {
  for (const Variant& variant : variants) {
    if (variant.level == simd::Level::kScalar && variant.dtype == rows.dtype &&
        variant.weight == weight.dtype) {
      return variant;
    }
  }
  std::abort();
}

}  // namespace xllm_kernel::fuzz
