// Rounding mode, flushing of subnormals and traps of a thread's vector
// arithmetic, carried to another thread for a while. Changes no sticky flag of
// its own accord.
#pragma once

#include <cstdint>

namespace xllm_kernel::simd {

// This thread's controls while the object lives; `taken` from another one's
// before. Costs a few ns where both are alike.
class FloatControls final {
 public:
  using Bits = std::uint64_t;

  [[nodiscard]] static Bits take() noexcept { return read() & kControls; }

  explicit FloatControls(Bits taken) noexcept : before_(read()) {
    differ_ = (before_ & kControls) != taken;
    if (differ_) write((before_ & ~kControls) | taken);
  }
  ~FloatControls() {
    if (differ_) write(before_);
  }
  FloatControls(const FloatControls&) = delete;
  FloatControls& operator=(const FloatControls&) = delete;

 private:
#if defined(__x86_64__)
  // MXCSR without the flags that operations leave behind.
  static constexpr Bits kControls = 0xffc0;
  static Bits read() noexcept { return __builtin_ia32_stmxcsr(); }
  static void write(Bits bits) noexcept {
    __builtin_ia32_ldmxcsr(static_cast<unsigned>(bits));
  }
#elif defined(__aarch64__)
  // FPCR; the flags have a register of their own.
  static constexpr Bits kControls = ~Bits{0};
  static Bits read() noexcept {
    Bits bits = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(bits));
    return bits;
  }
  static void write(Bits bits) noexcept {
    __asm__ volatile("msr fpcr, %0" : : "r"(bits));
  }
#else
  static constexpr Bits kControls = 0;
  static Bits read() noexcept { return 0; }
  static void write(Bits /*bits*/) noexcept {}
#endif

  Bits before_;
  bool differ_;
};

}  // namespace xllm_kernel::simd
