// The table of an operator's kernels, one entry a level and pair of dtypes:
// dispatch, tests and benchmarks follow it. Knows no operator.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>

#include "simd/core/levels.h"
#include "xllm_kernel/core.h"

namespace xllm_kernel::simd {

// Runs a task of checked arguments, and uses it up.
template <class Task>
using Kernel = void (*)(Task& task) noexcept;

// The kernels of one level, named by the dtype of the rows; the weight has the
// same, or fp32.
template <class Task>
struct Kernels final {
  Kernel<Task> fp32;
  Kernel<Task> fp16;
  Kernel<Task> bf16;
  Kernel<Task> fp16_by_fp32;
  Kernel<Task> bf16_by_fp32;
};

template <class Task>
struct Variant final {
  Level level;
  DType dtype;
  DType weight;
  Kernel<Task> kernel;
};

template <class Task>
struct LevelKernels final {
  Level level;
  Kernels<Task> kernels;
};

template <class Task, std::size_t kLevelCount>
[[nodiscard]] constexpr auto table_of(
    const std::array<LevelKernels<Task>, kLevelCount>& levels) noexcept {
  std::array<Variant<Task>, 5 * kLevelCount> table{};
  std::size_t n = 0;
  for (const auto& [level, kernels] : levels) {
    using enum DType;
    table[n++] = {level, kFloat32, kFloat32, kernels.fp32};
    table[n++] = {level, kFloat16, kFloat16, kernels.fp16};
    table[n++] = {level, kBFloat16, kBFloat16, kernels.bf16};
    table[n++] = {level, kFloat16, kFloat32, kernels.fp16_by_fp32};
    table[n++] = {level, kBFloat16, kFloat32, kernels.bf16_by_fp32};
  }
  return table;
}

// The kernel of the selected level for a pair of dtypes that the table has.
// `kTable` is the function that returns the operator's table; its choice is
// made at the first call and kept.
template <auto kTable>
[[nodiscard]] auto selected_kernel(DType dtype, DType weight) noexcept {
  using KernelType = decltype(kTable().front().kernel);
  static const std::array<std::array<KernelType, 3>, 3> chosen = [] {
    std::array<std::array<KernelType, 3>, 3> kernels{};
    for (const auto& variant : kTable()) {
      if (variant.level != selected_level().level) continue;
      kernels[static_cast<std::size_t>(variant.dtype)]
             [static_cast<std::size_t>(variant.weight)] = variant.kernel;
    }
    return kernels;
  }();
  return chosen[static_cast<std::size_t>(dtype)]
               [static_cast<std::size_t>(weight)];
}

}  // namespace xllm_kernel::simd

// The levels of this architecture, each with the namespace of its kernels.
#if defined(__x86_64__)
#define XLLM_KERNEL_EVERY_LEVEL(use, name, task)                            \
  use(kAvx512Bf16, avx512bf16, name, task) use(kAvx512, avx512, name, task) \
      use(kAvx2, avx2, name, task) use(kScalar, scalar, name, task)
#elif defined(__aarch64__)
#define XLLM_KERNEL_EVERY_LEVEL(use, name, task) \
  use(kNeon, neon, name, task) use(kScalar, scalar, name, task)
#else
#define XLLM_KERNEL_EVERY_LEVEL(use, name, task) \
  use(kScalar, scalar, name, task)
#endif

// Their arguments are names, which parentheses would spoil.
// NOLINTBEGIN(bugprone-macro-parentheses)

// Declares the functions, one a level's file, that return an operator's
// kernels, and <name>_variants(), its table. For namespace xllm_kernel::simd.
#define XLLM_KERNEL_DECLARE_VARIANTS(name, task)                  \
  XLLM_KERNEL_EVERY_LEVEL(XLLM_KERNEL_DECLARE_LEVEL_, name, task) \
  [[nodiscard]] std::span<const Variant<task>> name##_variants() noexcept;
#define XLLM_KERNEL_DECLARE_LEVEL_(level, space, name, task) \
  namespace space {                                          \
  [[nodiscard]] Kernels<task> name##_kernels() noexcept;     \
  }

// Defines <name>_variants().
#define XLLM_KERNEL_DEFINE_VARIANTS(name, task)                            \
  std::span<const Variant<task>> name##_variants() noexcept {              \
    static const auto table = table_of(std::to_array<LevelKernels<task>>(  \
        {XLLM_KERNEL_EVERY_LEVEL(XLLM_KERNEL_LEVEL_ENTRY_, name, task)})); \
    return table;                                                          \
  }
#define XLLM_KERNEL_LEVEL_ENTRY_(level, space, name, task) \
  {Level::level, space::name##_kernels()},

// NOLINTEND(bugprone-macro-parentheses)
