// Decodes and checks the argument block of `norm`.
// Where the vendor says nothing, the public kernel's behaviour decides.
#include "launchers/kernels/norm_block.h"

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string_view>

namespace ascend_sim {
namespace {

constexpr std::uint64_t kLanes = 64;  // a vector's, in fp32
constexpr std::uint64_t kUnifiedBufferBytes = 196608;
constexpr std::uint64_t kNarrowBytes = 2;
constexpr std::uint64_t kWideBytes = sizeof(float);

using Check = std::optional<BlockError>;

template <typename Value>
Value field(std::span<const std::byte> block, std::size_t offset) {
  Value value;
  std::memcpy(&value, block.data() + offset, sizeof(Value));
  return value;
}

Check wrong(std::string_view name, const std::string& must,
            const std::string& seen) {
  return BlockError{std::string(name), "must " + must + ", got " + seen};
}

Check wrong(std::string_view name, const std::string& must,
            std::uint64_t seen) {
  return wrong(name, must, std::to_string(seen));
}

std::string hexadecimal(Address address) {
  char text[2 + 16 + 1];
  std::snprintf(text, sizeof(text), "0x%" PRIxPTR, address);
  return text;
}

bool gives_variance(const NormBlock& block) { return block.use_norm == 0; }

std::uint64_t out_element_bytes(const NormBlock& block) {
  return gives_variance(block) || block.out_fp32 != 0 ? kWideBytes
                                                      : kNarrowBytes;
}

std::uint64_t row_elements(const NormBlock& block) {
  return std::uint64_t{block.norm_dim} * block.cnt_per_token;
}

std::uint64_t out_row_elements(const NormBlock& block) {
  return gives_variance(block) ? 1 : row_elements(block);
}

// Inputs and outputs are double-buffered; the row, a scratch copy, weight and
// bias are held in fp32. Makes 24 bytes for a plain norm.
std::uint64_t buffer_bytes_a_lane(const NormBlock& block) {
  return 2 * kNarrowBytes + 2 * out_element_bytes(block) + 4 * kWideBytes +
         (block.variance != 0 ? 2 * kWideBytes : 0);
}

Check check_choices(const NormBlock& block) {
  if (block.kind < 0 || block.kind > static_cast<int>(NormKind::kL2)) {
    return wrong("kind", "be 0 (Rms), 1 (Layer) or 2 (L2)",
                 std::to_string(block.kind));
  }
  if (block.use_norm > 1) {
    return wrong("useNorm", "be 0 or 1", block.use_norm);
  }
  if (block.out_fp32 > 1) {
    return wrong("out_fp32", "be 0 or 1", block.out_fp32);
  }
  if (!gives_variance(block) && (!std::isfinite(block.eps) || block.eps < 0)) {
    return wrong("eps", "be finite and not negative",
                 std::to_string(block.eps));
  }
  return std::nullopt;
}

Check check_width(const NormBlock& block) {
  if (block.norm_dim == 0 || block.norm_dim % kLanes != 0) {
    return wrong("norm_dim", "be a positive multiple of 64", block.norm_dim);
  }
  if (block.cnt_per_token == 0) {
    return wrong("cnt_per_token", "be positive", block.cnt_per_token);
  }
  const std::uint64_t a_lane = buffer_bytes_a_lane(block);
  if (row_elements(block) > kUnifiedBufferBytes / a_lane) {
    return wrong("norm_dim",
                 "be at most " + std::to_string(kUnifiedBufferBytes / a_lane) +
                     " with all norms of a row: the unified buffer has " +
                     std::to_string(kUnifiedBufferBytes) +
                     " bytes, a lane "
                     "needs " +
                     std::to_string(a_lane),
                 row_elements(block));
  }
  return std::nullopt;
}

// Combinations that the kernel leaves undefined.
Check check_variance(const NormBlock& block) {
  if ((gives_variance(block) || block.variance != 0) &&
      block.cnt_per_token != 1) {
    return wrong("cnt_per_token", "be 1 where a variance is taken or given",
                 block.cnt_per_token);
  }
  if (block.variance != 0 && block.tp_size == 0) {
    return wrong("tpSize", "be positive where a variance is taken",
                 block.tp_size);
  }
  if (!gives_variance(block)) {
    return std::nullopt;
  }
  const std::pair<std::string_view, Address> unused[] = {
      {"addInOut", block.add_in_out},
      {"weight", block.weight},
      {"bias", block.bias}};
  for (const auto& [name, address] : unused) {
    if (address != 0) {
      return wrong(name, "be null where useNorm is 0", hexadecimal(address));
    }
  }
  return std::nullopt;
}

// The device computes start + row * step in 32 bits, and so wraps around.
Check check_offsets(std::string_view name, std::uint64_t start,
                    std::uint64_t rows, std::uint64_t step) {
  const std::uint64_t last = start + (rows - 1) * step;
  if (last > std::numeric_limits<std::uint32_t>::max()) {
    return wrong(name, "let the last row's offset fit 32 bits", last);
  }
  return std::nullopt;
}

Check check_rows(const NormBlock& block) {
  const bool many = block.token_num > 1;
  if (many && block.out_step < out_row_elements(block)) {
    return wrong("out_step",
                 "be at least " + std::to_string(out_row_elements(block)) +
                     ", or rows overwrite each other",
                 block.out_step);
  }
  if (many && block.add_in_out != 0 && block.in_step < row_elements(block)) {
    return wrong("in_step",
                 "be at least " + std::to_string(row_elements(block)) +
                     ", or rows of addInOut overwrite each other",
                 block.in_step);
  }
  const Check in =
      check_offsets("in_step", block.in_start, block.token_num, block.in_step);
  return in ? in
            : check_offsets("out_step", block.out_start, block.token_num,
                            block.out_step);
}

Check check_pointers(const NormBlock& block) {
  if (block.input == 0) {
    return wrong("input", "not be null", "null");
  }
  if (block.out == 0) {
    return wrong("out", "not be null", "null");
  }
  struct Aligned {
    std::string_view name;
    Address address;
    std::uint64_t bytes;
  };
  const Aligned pointers[] = {{"input", block.input, kNarrowBytes},
                              {"addInOut", block.add_in_out, kNarrowBytes},
                              {"weight", block.weight, kNarrowBytes},
                              {"bias", block.bias, kNarrowBytes},
                              {"out", block.out, out_element_bytes(block)},
                              {"variance", block.variance, kWideBytes}};
  for (const Aligned& pointer : pointers) {
    if (pointer.address % pointer.bytes != 0) {
      return wrong(pointer.name,
                   "be a multiple of " + std::to_string(pointer.bytes),
                   hexadecimal(pointer.address));
    }
  }
  return std::nullopt;
}

}  // namespace

NormBlock decode_norm(std::span<const std::byte> block) {
  return {
      .input = field<Address>(block, 0x00),
      .add_in_out = field<Address>(block, 0x08),
      .weight = field<Address>(block, 0x10),
      .bias = field<Address>(block, 0x18),
      .out = field<Address>(block, 0x20),
      .token_num = field<std::uint32_t>(block, 0x28),
      .norm_dim = field<std::uint32_t>(block, 0x2c),
      .eps = field<float>(block, 0x30),
      .kind = field<std::int32_t>(block, 0x34),
      .cnt_per_token = field<std::uint32_t>(block, 0x38),
      .in_step = field<std::uint32_t>(block, 0x3c),
      .out_step = field<std::uint32_t>(block, 0x40),
      .in_start = field<std::uint32_t>(block, 0x44),
      .out_start = field<std::uint32_t>(block, 0x48),
      .use_norm = field<std::uint8_t>(block, 0x4c),
      .variance = field<Address>(block, 0x50),
      .tp_size = field<std::uint32_t>(block, 0x58),
      .out_fp32 = field<std::uint8_t>(block, 0x5c),
  };
}

std::optional<BlockError> check_norm(const NormBlock& block) {
  for (const auto check : {check_choices, check_width, check_variance}) {
    if (Check error = check(block)) {
      return error;
    }
  }
  // Without rows the kernel looks at no pointer and at no step.
  if (block.token_num == 0) {
    return std::nullopt;
  }
  const Check error = check_pointers(block);
  return error ? error : check_rows(block);
}

std::vector<Operand> operands_of(const NormBlock& block) {
  const std::uint64_t rows = block.token_num;
  if (rows == 0) {
    return {};
  }
  const auto in_rows = [&](Address first, AccessKind kind) {
    return access_rows(first + block.in_start * kNarrowBytes, rows,
                       block.in_step * kNarrowBytes,
                       row_elements(block) * kNarrowBytes, kind);
  };
  const std::uint64_t parameters = block.norm_dim * kNarrowBytes;
  const std::uint64_t out_bytes = out_element_bytes(block);

  std::vector<Operand> operands;
  operands.push_back({"input", in_rows(block.input, AccessKind::kRead)});
  if (block.add_in_out != 0) {
    Operand sums{"addInOut", in_rows(block.add_in_out, AccessKind::kRead)};
    for (const Access& access : in_rows(block.add_in_out, AccessKind::kWrite)) {
      sums.accesses.push_back(access);
    }
    operands.push_back(std::move(sums));
  }
  if (block.weight != 0) {
    operands.push_back(
        {"weight", {{block.weight, parameters, AccessKind::kRead}}});
  }
  if (block.bias != 0) {
    operands.push_back({"bias", {{block.bias, parameters, AccessKind::kRead}}});
  }
  if (block.variance != 0) {
    operands.push_back(
        {"variance", {{block.variance, rows * kWideBytes, AccessKind::kRead}}});
  }
  operands.push_back(
      {"out",
       access_rows(block.out + block.out_start * out_bytes, rows,
                   block.out_step * out_bytes,
                   out_row_elements(block) * out_bytes, AccessKind::kWrite)});
  return operands;
}

std::vector<std::pair<std::string, std::string>> notes_of(
    const NormBlock& block) {
  return {{"input", hexadecimal(block.input)},
          {"addInOut", hexadecimal(block.add_in_out)},
          {"weight", hexadecimal(block.weight)},
          {"bias", hexadecimal(block.bias)},
          {"out", hexadecimal(block.out)},
          {"token_num", std::to_string(block.token_num)},
          {"norm_dim", std::to_string(block.norm_dim)},
          {"eps", std::to_string(block.eps)},
          {"kind", std::to_string(block.kind)},
          {"cnt_per_token", std::to_string(block.cnt_per_token)},
          {"in_step", std::to_string(block.in_step)},
          {"out_step", std::to_string(block.out_step)},
          {"in_start", std::to_string(block.in_start)},
          {"out_start", std::to_string(block.out_start)},
          {"useNorm", std::to_string(block.use_norm)},
          {"variance", hexadecimal(block.variance)},
          {"tpSize", std::to_string(block.tp_size)},
          {"out_fp32", std::to_string(block.out_fp32)}};
}

}  // namespace ascend_sim
