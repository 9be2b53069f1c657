// One level's passes over memory and over registers, called through a table.
// Measures nothing: ceilings.cpp does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace xllm_kernel::ceilings {

struct Passes {
  // The exclusive or of all 64-bit words in order, a last partial word filled
  // up with zeros: so that no load can be left out.
  std::uint64_t (*read)(const std::byte* from, std::int64_t bytes) noexcept;
  void (*copy)(std::byte* to, const std::byte* from,
               std::int64_t bytes) noexcept;
  void (*copy_streaming)(std::byte* to, const std::byte* from,
                         std::int64_t bytes) noexcept;
  // Exclusive or of each byte with kUpdateMask.
  void (*update)(std::byte* at, std::int64_t bytes) noexcept;
  // `turns` times the loop's multiply-adds; returns something that depends on
  // all of them.
  float (*fma)(std::int64_t turns) noexcept;
  // Operations in one turn, a product and a sum counting two.
  std::int64_t operations_a_turn;
};

// Dot products of bf16 pairs, summed in fp32.
struct DotPass {
  // As Passes::fma; null where the level has no such instruction.
  float (*dot)(std::int64_t turns) noexcept = nullptr;
  std::int64_t operations_a_turn = 0;
};

inline constexpr std::byte kUpdateMask{0x5a};

// The passes of a level that the machine has, by the level's name.
[[nodiscard]] const Passes& passes_of(std::string_view level) noexcept;
[[nodiscard]] DotPass dot_pass_of(std::string_view level) noexcept;

namespace scalar {
[[nodiscard]] const Passes& passes() noexcept;
}
#if defined(__x86_64__)
namespace avx2 {
[[nodiscard]] const Passes& passes() noexcept;
}
namespace avx512 {
[[nodiscard]] const Passes& passes() noexcept;
}
namespace avx512bf16 {
[[nodiscard]] DotPass dot_pass() noexcept;
}
#elif defined(__aarch64__)
namespace neon {
[[nodiscard]] const Passes& passes() noexcept;
}
#endif

}  // namespace xllm_kernel::ceilings
