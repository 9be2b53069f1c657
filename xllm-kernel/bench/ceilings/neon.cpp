// The vectors of level neon and their passes, on 64-bit Arm, all of which has
// them. Tested under emulation, which says nothing about speed.
#include <arm_neon.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ceilings/passes.h"

namespace xllm_kernel::ceilings {
namespace {

// A pair of registers: the non-temporal store takes two.
struct Vector {
  static constexpr std::int64_t kBytes = 32;
  uint8x16_t low;
  uint8x16_t high;

  static Vector load(const std::byte* from) noexcept {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(from);
    return {vld1q_u8(bytes), vld1q_u8(bytes + 16)};
  }
  static Vector filled(std::byte value) noexcept {
    const uint8x16_t all = vdupq_n_u8(static_cast<std::uint8_t>(value));
    return {all, all};
  }
  [[nodiscard]] Vector exclusive_or(Vector other) const noexcept {
    return {veorq_u8(low, other.low), veorq_u8(high, other.high)};
  }
  void store(std::byte* to) const noexcept {
    auto* bytes = reinterpret_cast<std::uint8_t*>(to);
    vst1q_u8(bytes, low);
    vst1q_u8(bytes + 16, high);
  }
  // There is no intrinsic for it.
  void stream(std::byte* to) const noexcept {
    asm volatile("stnp %q0, %q1, [%2]"
                 :
                 : "w"(low), "w"(high), "r"(to)
                 : "memory");
  }
  // Such stores keep the order of ordinary ones towards their own thread, and a
  // join orders them for others.
  static void fence() noexcept {}
};

struct Floats {
  static constexpr int kLanes = 4;
  // Four instructions a cycle with a latency of 4.
  static constexpr int kChains = 16;
  float32x4_t value;

  static Floats filled(float x) noexcept { return {vdupq_n_f32(x)}; }
  void add_product(Floats a, Floats b) noexcept {
    value = vfmaq_f32(value, a.value, b.value);
  }
  [[nodiscard]] float first() const noexcept {
    return vgetq_lane_f32(value, 0);
  }
};

}  // namespace
}  // namespace xllm_kernel::ceilings

#include "ceilings/loops.h"

namespace xllm_kernel::ceilings::neon {

const Passes& passes() noexcept { return kPasses; }

}  // namespace xllm_kernel::ceilings::neon
