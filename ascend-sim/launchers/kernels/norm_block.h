// The argument block of the xlite kernel `norm`: its fields, what they must
// hold, and the memory that they make the kernel touch. Computes nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "launchers/kernel.h"
#include "runtime/task.h"

namespace ascend_sim {

constexpr std::uint32_t kNormBlockBytes = 0x68;

enum class NormKind : std::int32_t { kRms = 0, kLayer = 1, kL2 = 2 };

// The fields as the block holds them, with their offsets. The bytes between
// them, and the last eight, are whatever was on the launcher's stack.
// Steps and starts count elements of the input or of the output.
struct NormBlock {
  Address input = 0;                // 00, 16-bit floats
  Address add_in_out = 0;           // 08, like input, null: nothing to add
  Address weight = 0;               // 10, 16-bit floats, null: all ones
  Address bias = 0;                 // 18, 16-bit floats, null: all zeros
  Address out = 0;                  // 20
  std::uint32_t token_num = 0;      // 28, rows
  std::uint32_t norm_dim = 0;       // 2c, elements of a norm
  float eps = 0;                    // 30
  std::int32_t kind = 0;            // 34, a NormKind
  std::uint32_t cnt_per_token = 0;  // 38, norms of a row, side by side
  std::uint32_t in_step = 0;        // 3c, between rows
  std::uint32_t out_step = 0;       // 40
  std::uint32_t in_start = 0;       // 44, before the first row
  std::uint32_t out_start = 0;      // 48
  std::uint8_t use_norm = 0;        // 4c, 0: give the variance alone, in fp32
  Address variance = 0;             // 50, fp32, one a row, null: compute it
  std::uint32_t tp_size = 0;        // 58, divides a given variance
  std::uint8_t out_fp32 = 0;        // 5c, 1: the output is fp32
};

[[nodiscard]] NormBlock decode_norm(std::span<const std::byte> block);

// The first field that makes no sense.
[[nodiscard]] std::optional<BlockError> check_norm(const NormBlock& block);

// Of a block that makes sense.
[[nodiscard]] std::vector<Operand> operands_of(const NormBlock& block);

[[nodiscard]] std::vector<std::pair<std::string, std::string>> notes_of(
    const NormBlock& block);

}  // namespace ascend_sim
