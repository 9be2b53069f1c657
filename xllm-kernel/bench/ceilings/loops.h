// The passes as loops over a level's `Vector`, included after it and inside its
// target region. Only the level's file knows instructions.
//
// Why this shape: one sequential stream, four vectors a turn. On a Zen 4, in
// memory, two to eight streams side by side reached 60 to 100 % of one stream's
// rate, and 8 or 16 vectors a turn gained nothing. Prefetching 1 or 2 KB ahead
// of the streaming copy was worth at most 1 %, 8 or 16 KB ahead cost up to a
// fifth; the other passes lost by it inside L3, so they leave it to the
// hardware.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ceilings/passes.h"

namespace xllm_kernel::ceilings {
namespace {  // NOLINT(google-build-namespaces)

constexpr std::int64_t kUnroll = 4;
constexpr std::int64_t kTurn = kUnroll * Vector::kBytes;
// How far ahead of its loads the streaming copy prefetches, in bytes.
constexpr std::int64_t kAhead = 2048;
constexpr std::int64_t kLine = 64;

// Bytes up to the next multiple of a vector.
std::int64_t bytes_to_aligned(const std::byte* at, std::int64_t bytes) {
  const auto past = static_cast<std::int64_t>(
      reinterpret_cast<std::uintptr_t>(at) % Vector::kBytes);
  const std::int64_t head = past == 0 ? 0 : Vector::kBytes - past;
  return head < bytes ? head : bytes;
}

std::uint64_t read_rest(const std::byte* from, std::int64_t bytes) {
  std::uint64_t all = 0;
  for (std::int64_t i = 0; i < bytes; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, from + i,
                static_cast<std::size_t>(bytes - i < 8 ? bytes - i : 8));
    all ^= word;
  }
  return all;
}

void update_rest(std::byte* at, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; ++i) at[i] ^= kUpdateMask;
}

std::uint64_t read_pass(const std::byte* from, std::int64_t bytes) noexcept {
  Vector all[kUnroll]{};
  std::int64_t i = 0;
  for (; i + kTurn <= bytes; i += kTurn) {
    for (std::int64_t k = 0; k < kUnroll; ++k) {
      all[k] = all[k].exclusive_or(Vector::load(from + i + k * Vector::kBytes));
    }
  }
  for (; i + Vector::kBytes <= bytes; i += Vector::kBytes) {
    all[0] = all[0].exclusive_or(Vector::load(from + i));
  }
  for (std::int64_t k = 1; k < kUnroll; ++k) {
    all[0] = all[0].exclusive_or(all[k]);
  }
  std::byte sum[Vector::kBytes];
  all[0].store(sum);
  return read_rest(sum, Vector::kBytes) ^ read_rest(from + i, bytes - i);
}

void copy_pass(std::byte* to, const std::byte* from,
               std::int64_t bytes) noexcept {
  std::int64_t i = bytes_to_aligned(to, bytes);
  std::memcpy(to, from, static_cast<std::size_t>(i));
  for (; i + kTurn <= bytes; i += kTurn) {
    Vector x[kUnroll];
    for (std::int64_t k = 0; k < kUnroll; ++k) {
      x[k] = Vector::load(from + i + k * Vector::kBytes);
    }
    for (std::int64_t k = 0; k < kUnroll; ++k) {
      x[k].store(to + i + k * Vector::kBytes);
    }
  }
  for (; i + Vector::kBytes <= bytes; i += Vector::kBytes) {
    Vector::load(from + i).store(to + i);
  }
  std::memcpy(to + i, from + i, static_cast<std::size_t>(bytes - i));
}

void copy_streaming_pass(std::byte* to, const std::byte* from,
                         std::int64_t bytes) noexcept {
  std::int64_t i = bytes_to_aligned(to, bytes);
  std::memcpy(to, from, static_cast<std::size_t>(i));
  for (; i + kTurn <= bytes; i += kTurn) {
    // A prefetch past the buffer's end faults nowhere.
    for (std::int64_t line = 0; line < kTurn; line += kLine) {
      __builtin_prefetch(from + i + kAhead + line, 0, 2);
    }
    Vector x[kUnroll];
    for (std::int64_t k = 0; k < kUnroll; ++k) {
      x[k] = Vector::load(from + i + k * Vector::kBytes);
    }
    for (std::int64_t k = 0; k < kUnroll; ++k) {
      x[k].stream(to + i + k * Vector::kBytes);
    }
  }
  for (; i + Vector::kBytes <= bytes; i += Vector::kBytes) {
    Vector::load(from + i).stream(to + i);
  }
  std::memcpy(to + i, from + i, static_cast<std::size_t>(bytes - i));
  Vector::fence();
}

void update_pass(std::byte* at, std::int64_t bytes) noexcept {
  const Vector mask = Vector::filled(kUpdateMask);
  std::int64_t i = bytes_to_aligned(at, bytes);
  update_rest(at, i);
  for (; i + kTurn <= bytes; i += kTurn) {
    for (std::int64_t k = 0; k < kUnroll; ++k) {
      std::byte* const here = at + i + k * Vector::kBytes;
      Vector::load(here).exclusive_or(mask).store(here);
    }
  }
  for (; i + Vector::kBytes <= bytes; i += Vector::kBytes) {
    Vector::load(at + i).exclusive_or(mask).store(at + i);
  }
  update_rest(at + i, bytes - i);
}

// Independent chains of sums of 1/4, exact until they stay at 2^22: no
// subnormal, no overflow, however long.
float fma_pass(std::int64_t turns) noexcept {
  const Floats half = Floats::filled(0.5F);
  Floats x[Floats::kChains];
  for (std::int64_t k = 0; k < Floats::kChains; ++k) {
    x[k] = Floats::filled(static_cast<float>(k));
  }
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    for (Floats& chain : x) chain.add_product(half, half);
  }
  float sum = 0.0F;
  for (const Floats& chain : x) sum += chain.first();
  return sum;
}

constexpr Passes kPasses{
    .read = &read_pass,
    .copy = &copy_pass,
    .copy_streaming = &copy_streaming_pass,
    .update = &update_pass,
    .fma = &fma_pass,
    .operations_a_turn = std::int64_t{2} * Floats::kChains * Floats::kLanes};

}  // namespace
}  // namespace xllm_kernel::ceilings
