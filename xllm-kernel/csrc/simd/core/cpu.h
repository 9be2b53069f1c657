// What processor and operating system offer, from CPUID and XGETBV. Decides
// nothing: levels.h does.
#pragma once

#include <cstdint>

namespace xllm_kernel::simd {

// The raw registers that matter, so that tests can invent machines.
struct CpuidFacts {
  std::uint32_t leaf1_ecx = 0;
  std::uint32_t leaf7_ebx = 0;
  std::uint32_t leaf7_1_eax = 0;
  // XCR0: the register state that the operating system saves and restores.
  std::uint64_t xcr0 = 0;
};

struct CpuFeatures {
  bool avx2 = false;
  bool fma = false;
  bool f16c = false;
  // F, BW, DQ and VL together.
  bool avx512 = false;
  bool avx512bf16 = false;

  friend bool operator==(const CpuFeatures&, const CpuFeatures&) = default;
};

// A feature counts only if its registers survive a task switch.
[[nodiscard]] CpuFeatures features_from(const CpuidFacts& facts) noexcept;

// This machine's; all zero where the architecture has no CPUID.
[[nodiscard]] CpuidFacts read_cpuid() noexcept;

}  // namespace xllm_kernel::simd
