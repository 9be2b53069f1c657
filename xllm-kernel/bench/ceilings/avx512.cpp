// The vectors of level avx512 and their passes; called only where processor and
// operating system have them.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ceilings/passes.h"
#include "simd/core/target.h"

XLLM_KERNEL_TARGET_AVX512_BEGIN

namespace xllm_kernel::ceilings {
namespace {

struct Vector {
  static constexpr std::int64_t kBytes = 64;
  __m512i bits;

  static Vector load(const std::byte* from) noexcept {
    return {_mm512_loadu_si512(from)};
  }
  static Vector filled(std::byte value) noexcept {
    return {_mm512_set1_epi8(static_cast<char>(value))};
  }
  [[nodiscard]] Vector exclusive_or(Vector other) const noexcept {
    return {_mm512_xor_si512(bits, other.bits)};
  }
  void store(std::byte* to) const noexcept { _mm512_storeu_si512(to, bits); }
  void stream(std::byte* to) const noexcept {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), bits);
  }
  static void fence() noexcept { _mm_sfence(); }
};

struct Floats {
  static constexpr int kLanes = 16;
  // Two instructions a cycle with a latency of 4 or 5 need at least 10.
  static constexpr int kChains = 16;
  __m512 value;

  static Floats filled(float x) noexcept { return {_mm512_set1_ps(x)}; }
  void add_product(Floats a, Floats b) noexcept {
    value = _mm512_fmadd_ps(a.value, b.value, value);
  }
  [[nodiscard]] float first() const noexcept { return _mm512_cvtss_f32(value); }
};

}  // namespace
}  // namespace xllm_kernel::ceilings

#include "ceilings/loops.h"

namespace xllm_kernel::ceilings::avx512 {

const Passes& passes() noexcept { return kPasses; }

}  // namespace xllm_kernel::ceilings::avx512

XLLM_KERNEL_TARGET_END
