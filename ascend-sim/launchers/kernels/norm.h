// The xlite kernel `norm` for both dtypes: RMS, layer and L2 norm of rows.
// Simulates results and refusals, not the time that the kernel takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "launchers/kernel.h"
#include "launchers/kernels/norm_block.h"

namespace ascend_sim {

[[nodiscard]] std::variant<Plan, BlockError> plan_norm_bfloat16(
    std::span<const std::byte> block, std::uint32_t cores);
[[nodiscard]] std::variant<Plan, BlockError> plan_norm_float16(
    std::span<const std::byte> block, std::uint32_t cores);

}  // namespace ascend_sim
