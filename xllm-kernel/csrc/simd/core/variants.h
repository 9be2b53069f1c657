// The form of an operator's table of kernels, one entry a level and dtype, and
// the choice from it. Holds no table.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "simd/core/levels.h"
#include "xllm_kernel/core.h"

namespace xllm_kernel::simd {

template <class Kernel>
struct Variant {
  Level level;
  DType dtype;
  Kernel kernel;
};

// The kernel of the selected level. `kTable` is the function that returns the
// operator's table; its choice is made at the first call and kept.
template <auto kTable>
[[nodiscard]] auto selected_kernel(DType dtype) noexcept {
  using Kernel = decltype(kTable().front().kernel);
  static const std::array<Kernel, 3> by_dtype = [] {
    std::array<Kernel, 3> kernels{};
    for (const Variant<Kernel>& variant : kTable()) {
      if (variant.level == selected_level().level) {
        kernels[static_cast<std::size_t>(variant.dtype)] = variant.kernel;
      }
    }
    return kernels;
  }();
  return by_dtype[static_cast<std::size_t>(dtype)];
}

}  // namespace xllm_kernel::simd
