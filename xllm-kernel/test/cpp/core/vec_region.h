// What vec_test.cpp needs from a level, as plain functions over memory.
// Included after the level's vec_*.h, inside its target region; asserts
// nothing.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/vec_levels.h"
#include "simd/core/block.h"
#include "simd/core/half.h"

namespace xllm_kernel::test {
namespace {  // NOLINT(google-build-namespaces)

using simd::kLanes;

template <class Format>
simd::Block loaded(const std::byte* from, std::int64_t count) noexcept {
  return Format::widen(count == kLanes ? Format::get(from)
                                       : Format::get_part(from, count));
}

template <class Format>
std::uint16_t encode_half(float value) noexcept {
  if constexpr (std::is_same_v<Format, simd::Fp16>) {
    return simd::fp32_to_fp16(value);
  } else {
    return simd::fp32_to_bf16(value);
  }
}

// Place of each element among a block's values in memory, found by loading the
// element numbers, which every format holds exactly.
template <class Format>
std::array<std::size_t, kLanes> places() noexcept {
  std::array<std::byte, kLanes * Format::kSize> numbers;
  for (std::size_t k = 0; k < kLanes; ++k) {
    const auto value = static_cast<float>(k);
    const std::uint32_t bits = Format::kSize == 4
                                   ? std::bit_cast<std::uint32_t>(value)
                                   : encode_half<Format>(value);
    std::memcpy(&numbers[k * Format::kSize], &bits, Format::kSize);
  }
  const simd::Block block = loaded<Format>(numbers.data(), kLanes);
  std::array<float, kLanes> values;
  std::memcpy(values.data(), &block, sizeof(values));
  std::array<std::size_t, kLanes> result{};
  for (std::size_t k = 0; k < kLanes; ++k) {
    result[static_cast<std::size_t>(values[k])] = k;
  }
  return result;
}

template <class Format>
simd::Block block_of(const float* elements) noexcept {
  static const std::array<std::size_t, kLanes> place_of = places<Format>();
  std::array<float, kLanes> values;
  for (std::size_t k = 0; k < kLanes; ++k) values[place_of[k]] = elements[k];
  simd::Block block;
  std::memcpy(&block, values.data(), sizeof(values));
  return block;
}

template <class Format>
void store_in_order(const simd::Block& block, float* to) noexcept {
  static const std::array<std::size_t, kLanes> place_of = places<Format>();
  std::array<float, kLanes> values;
  std::memcpy(values.data(), &block, sizeof(values));
  for (std::size_t k = 0; k < kLanes; ++k) to[k] = values[place_of[k]];
}

template <class Format>
constexpr BlockFormat kBlockFormat{
    .size = Format::kSize,
    .widen =
        [](const std::byte* from, std::int64_t count, float* to) {
          store_in_order<Format>(loaded<Format>(from, count), to);
        },
    .narrow =
        [](const float* from, std::int64_t count, std::byte* to) {
          const auto raw = Format::narrow(block_of<Format>(from));
          if (count == kLanes) {
            Format::put(to, raw);
          } else {
            Format::put_part(to, raw, count);
          }
        },
    .narrow_numbers =
        [](const float* from, std::byte* to) {
          Format::put(to, Format::narrow_numbers(block_of<Format>(from)));
        },
    .arrange =
        [](const float* from, float* to) {
          const auto* bytes = reinterpret_cast<const std::byte*>(from);
          const simd::Block block =
              Format::arrange(loaded<simd::Fp32>(bytes, kLanes));
          store_in_order<Format>(block, to);
        },
    .sum =
        [](const float* from) { return Format::sum(block_of<Format>(from)); },
};

}  // namespace
}  // namespace xllm_kernel::test
