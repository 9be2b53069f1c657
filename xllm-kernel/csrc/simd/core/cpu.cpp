// Reads CPUID and XGETBV. Keeps no state and reads no environment.
#include "simd/core/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace xllm_kernel::simd {

namespace {

constexpr std::uint32_t kFma = 1U << 12;
constexpr std::uint32_t kOsxsave = 1U << 27;
constexpr std::uint32_t kAvx = 1U << 28;
constexpr std::uint32_t kF16c = 1U << 29;
constexpr std::uint32_t kAvx2 = 1U << 5;
// F, DQ, BW and VL.
constexpr std::uint32_t kAvx512 = 1U << 16 | 1U << 17 | 1U << 30 | 1U << 31;
// Of the first subleaf.
constexpr std::uint32_t kAvx512Bf16 = 1U << 5;
constexpr std::uint64_t kXmmAndYmmState = 0x6;
// Masks, the upper halves of the first 16 registers and all of the others.
constexpr std::uint64_t kAvx512State = 0xe0;

}  // namespace

CpuFeatures features_from(const CpuidFacts& facts) noexcept {
  const bool usable = (facts.leaf1_ecx & kOsxsave) != 0 &&
                      (facts.leaf1_ecx & kAvx) != 0 &&
                      (facts.xcr0 & kXmmAndYmmState) == kXmmAndYmmState;
  if (!usable) return {};
  const bool avx512 = (facts.leaf7_ebx & kAvx512) == kAvx512 &&
                      (facts.xcr0 & kAvx512State) == kAvx512State;
  return {.avx2 = (facts.leaf7_ebx & kAvx2) != 0,
          .fma = (facts.leaf1_ecx & kFma) != 0,
          .f16c = (facts.leaf1_ecx & kF16c) != 0,
          .avx512 = avx512,
          .avx512bf16 = avx512 && (facts.leaf7_1_eax & kAvx512Bf16) != 0};
}

CpuidFacts read_cpuid() noexcept {
  CpuidFacts facts;
#if defined(__x86_64__)
  std::uint32_t eax = 0;
  std::uint32_t ebx = 0;
  std::uint32_t ecx = 0;
  std::uint32_t edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return facts;
  facts.leaf1_ecx = ecx;
  // XGETBV faults unless OSXSAVE says that it exists.
  if ((ecx & kOsxsave) != 0) {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    facts.xcr0 = (static_cast<std::uint64_t>(high) << 32) | low;
  }
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) {
    facts.leaf7_ebx = ebx;
    // EAX told how many subleaves there are.
    if (eax >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0) {
      facts.leaf7_1_eax = eax;
    }
  }
#endif
  return facts;
}

}  // namespace xllm_kernel::simd
