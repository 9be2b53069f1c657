// How much the last level of cache holds. Measures nothing.
#pragma once

#include <cstdint>

namespace xllm_kernel::simd {

// Bytes of the largest cache that the processor tells of; 32 MiB where it tells
// none. Asked once: the answer may cost tens of microseconds under a
// hypervisor.
[[nodiscard]] std::int64_t last_cache_bytes() noexcept;

// What stores do to the caches.
enum class Stores : std::uint8_t { kCached, kStreamed };

// How to store `bytes` in all. Streaming saves reading what they replace and
// leaves the input where it is; but the next operator then reads them from
// memory, where otherwise the last of them would be in a cache. A quarter of
// the cache is where, with the input as large, half of it would be taken.
[[nodiscard]] inline Stores stores_for(std::int64_t bytes) noexcept {
  return bytes > last_cache_bytes() / 4 ? Stores::kStreamed : Stores::kCached;
}

}  // namespace xllm_kernel::simd
