// Floating-point environments that a host may be in, and their controls. For
// tests only; knows no operator.
#pragma once

#include <cfenv>
#include <cstdint>
#include <string>
#include <vector>

namespace xllm_kernel::test {

// How vector arithmetic rounds, and whether it treats subnormals as zeros.
struct FloatMode {
  std::string name;
  int rounding = FE_TONEAREST;
  bool flush_results = false;
  bool flush_operands = false;
};

// Rounding, flushing and traps of vector arithmetic on this thread, without
// the flags that operations leave behind.
inline std::uint64_t float_controls() {
#if defined(__x86_64__)
  return __builtin_ia32_stmxcsr() & ~0x3fU;
#else
  std::uint64_t bits = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(bits));
  return bits;
#endif
}

// This thread in a mode while the object lives.
class InMode final {
 public:
  explicit InMode(const FloatMode& mode) {
    std::fegetenv(&before_);
    std::fesetround(mode.rounding);
#if defined(__x86_64__)
    constexpr unsigned kResults = 0x8000;
    constexpr unsigned kOperands = 0x0040;
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() |
                           (mode.flush_results ? kResults : 0) |
                           (mode.flush_operands ? kOperands : 0));
#else
    constexpr std::uint64_t kBoth = 1U << 24;
    const std::uint64_t bits =
        float_controls() | (mode.flush_results ? kBoth : 0);
    __asm__ volatile("msr fpcr, %0" : : "r"(bits));
#endif
  }
  ~InMode() { std::fesetenv(&before_); }
  InMode(const InMode&) = delete;
  InMode& operator=(const InMode&) = delete;

 private:
  fenv_t before_;
};

// Where one control flushes both, only the pairs that are alike.
inline std::vector<FloatMode> every_float_mode() {
  constexpr std::pair<const char*, int> kRoundings[] = {
      {"nearest", FE_TONEAREST},
      {"downward", FE_DOWNWARD},
      {"upward", FE_UPWARD},
      {"toward zero", FE_TOWARDZERO}};
  std::vector<FloatMode> modes;
  for (const auto& [name, rounding] : kRoundings) {
    for (const bool results : {false, true}) {
      for (const bool operands : {false, true}) {
#if !defined(__x86_64__)
        if (results != operands) continue;
#endif
        modes.push_back({std::string(name) + (results ? ", results" : "") +
                             (operands ? ", operands" : "") +
                             (results || operands ? " flushed" : ""),
                         rounding, results, operands});
      }
    }
  }
  return modes;
}

inline FloatMode flushing() { return {"flushing", FE_TONEAREST, true, true}; }

}  // namespace xllm_kernel::test
