// The SIMD levels, best first, and the choice among them. A level is one entry
// here and one file an operator. Holds no kernel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "simd/core/cpu.h"
#include "xllm_kernel/core.h"

namespace xllm_kernel::simd {

enum class Level : std::uint8_t { kScalar, kAvx2, kAvx512, kAvx512Bf16, kNeon };

struct LevelInfo {
  Level level;
  const char* name;
  bool (*available)(const CpuFeatures& features) noexcept;
};

// Those built in, by falling preference.
[[nodiscard]] std::span<const LevelInfo> levels() noexcept;

struct LevelChoice {
  SimdLevel result;
  Level level = Level::kScalar;
  // Owns what result.message points to; hence no copies.
  std::array<char, 320> text{};

  LevelChoice() = default;
  LevelChoice(const LevelChoice&) = delete;
  LevelChoice& operator=(const LevelChoice&) = delete;
};

// Fills `choice` with the best level that `features` allow, or with `forced`.
void choose_level(std::optional<std::string_view> forced,
                  const CpuFeatures& features, LevelChoice* choice) noexcept;

// This process's choice, made once.
[[nodiscard]] const LevelChoice& selected_level() noexcept;

}  // namespace xllm_kernel::simd
