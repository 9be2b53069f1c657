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

  static Block load(const std::byte* from) noexcept {
    return load_part(from, kLanes);
  }
  static Block load_part(const std::byte* from, std::int64_t count) noexcept {
    std::array<typename Codec::Storage, kLanes> stored{};
    std::memcpy(stored.data(), from, static_cast<std::size_t>(count * kSize));
    Block result;
    for (std::size_t k = 0; k < kLanes; ++k) {
      result.value[k] = Codec::widen(stored[k]);
    }
    return result;
  }
  static void store(std::byte* to, const Block& block) noexcept {
    store_part(to, block, kLanes);
  }
  static void store_part(std::byte* to, const Block& block,
                         std::int64_t count) noexcept {
    std::array<typename Codec::Storage, kLanes> stored;
    for (std::size_t k = 0; k < kLanes; ++k) {
      stored[k] = Codec::narrow(block.value[k]);
    }
    std::memcpy(to, stored.data(), static_cast<std::size_t>(count * kSize));
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

}  // namespace
}  // namespace xllm_kernel::simd
