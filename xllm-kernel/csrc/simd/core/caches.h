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

// How to store `bytes` in all. Streaming saves reading what they replace; it
// loses as long as they, and what is read beside them, would have stayed for
// the next operator.
[[nodiscard]] inline Stores stores_for(std::int64_t bytes) noexcept {
  return bytes > last_cache_bytes() / 2 ? Stores::kStreamed : Stores::kCached;
}

}  // namespace xllm_kernel::simd
