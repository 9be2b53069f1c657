// Reads the sizes of caches from CPUID: the C library's sysconf() answers ten
// times too much on some AMD processors.
#include "simd/core/caches.h"

#include <algorithm>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace xllm_kernel::simd {

namespace {

#if defined(__x86_64__)
// The largest cache of Intel's leaf 4 or AMD's leaf 0x8000001d, which have one
// form: a subleaf a cache, its type 0 after the last.
std::int64_t largest_cache(unsigned leaf) noexcept {
  std::int64_t largest = 0;
  for (unsigned subleaf = 0; subleaf < 16; ++subleaf) {
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    if (__get_cpuid_count(leaf, subleaf, &eax, &ebx, &ecx, &edx) == 0) break;
    if ((eax & 0x1fU) == 0) break;
    const std::int64_t ways = (ebx >> 22) + 1;
    const std::int64_t partitions = ((ebx >> 12) & 0x3ffU) + 1;
    const std::int64_t line = (ebx & 0xfffU) + 1;
    const std::int64_t sets = std::int64_t{ecx} + 1;
    largest = std::max(largest, ways * partitions * line * sets);
  }
  return largest;
}
#endif

}  // namespace

std::int64_t last_cache_bytes() noexcept {
  static const std::int64_t bytes = [] {
    constexpr std::int64_t kUsual = std::int64_t{32} << 20;
#if defined(__x86_64__)
    const std::int64_t known =
        std::max(largest_cache(4), largest_cache(0x8000001dU));
    return known > 0 ? known : kUsual;
#else
    return kUsual;
#endif
  }();
  return bytes;
}

}  // namespace xllm_kernel::simd
