// Blocks in plain C++: the meaning of every other level, and what processors
// without one run. The bottleneck is std::fma, a call where the baseline has no
// such instruction.
#pragma once

#include <array>
#include <cmath>

#include "simd/core/block.h"
#include "simd/core/half.h"

namespace xllm_kernel::simd {
namespace {  // NOLINT(google-build-namespaces)

struct Block final {
  std::array<float, kLanes> value;
};

inline Block zero() noexcept { return {}; }

inline Block fma(const Block& a, const Block& b, const Block& c) noexcept {
  Block result;
  for (std::size_t k = 0; k < kLanes; ++k) {
    result.value[k] = std::fma(a.value[k], b.value[k], c.value[k]);
  }
  return result;
}

inline Block mul(const Block& a, const Block& b) noexcept {
  Block result;
  for (std::size_t k = 0; k < kLanes; ++k) {
    result.value[k] = a.value[k] * b.value[k];
  }
  return result;
}

inline Block mul(const Block& a, float b) noexcept {
  Block result;
  for (std::size_t k = 0; k < kLanes; ++k) {
    result.value[k] = a.value[k] * b;
  }
  return result;
}

inline Block add(const Block& a, const Block& b) noexcept {
  Block result;
  for (std::size_t k = 0; k < kLanes; ++k) {
    result.value[k] = a.value[k] + b.value[k];
  }
  return result;
}

struct Fp32Codec final {
  using Storage = float;
  static float widen(float value) noexcept { return value; }
  static float narrow(float value) noexcept { return canonical_fp32(value); }
};

struct Fp16Codec final {
  using Storage = std::uint16_t;
  static float widen(Storage value) noexcept { return fp16_to_fp32(value); }
  static Storage narrow(float value) noexcept { return fp32_to_fp16(value); }
};

struct Bf16Codec final {
  using Storage = std::uint16_t;
  static float widen(Storage value) noexcept { return bf16_to_fp32(value); }
  static Storage narrow(float value) noexcept { return fp32_to_bf16(value); }
};

template <class Codec>
struct Format final {
  static constexpr std::int64_t kSize = sizeof(typename Codec::Storage);
  static constexpr bool kStreams = false;
  using Raw = std::array<typename Codec::Storage, kLanes>;

  static Raw get(const std::byte* from) noexcept {
    return get_part(from, kLanes);
  }
  static Raw get_part(const std::byte* from, std::int64_t count) noexcept {
    Raw result{};
    std::memcpy(result.data(), from, static_cast<std::size_t>(count * kSize));
    return result;
  }
  static void put(std::byte* to, const Raw& raw) noexcept {
    put_part(to, raw, kLanes);
  }
  static void put_part(std::byte* to, const Raw& raw,
                       std::int64_t count) noexcept {
    std::memcpy(to, raw.data(), static_cast<std::size_t>(count * kSize));
  }
  static Block widen(const Raw& raw) noexcept {
    Block result;
    for (std::size_t k = 0; k < kLanes; ++k) {
      result.value[k] = Codec::widen(raw[k]);
    }
    return result;
  }
  static Block arrange(const Block& block) noexcept { return block; }
  static Raw narrow(const Block& block) noexcept {
    Raw result;
    for (std::size_t k = 0; k < kLanes; ++k) {
      result[k] = Codec::narrow(block.value[k]);
    }
    return result;
  }
  static Raw narrow_numbers(const Block& block) noexcept {
    return narrow(block);
  }
  static float sum(Block block) noexcept {
    for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
      for (std::size_t k = 0; k < half; ++k) {
        block.value[k] += block.value[k + half];
      }
    }
    return block.value[0];
  }
};

using Fp32 = Format<Fp32Codec>;
using Fp16 = Format<Fp16Codec>;
using Bf16 = Format<Bf16Codec>;

// No store here leaves the caches alone.
inline void drain() noexcept {}

}  // namespace
}  // namespace xllm_kernel::simd
