// The vectors of level avx2 and their passes; called only where processor and
// operating system have them.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ceilings/passes.h"
#include "simd/core/target.h"

XLLM_KERNEL_TARGET_AVX2_BEGIN

namespace xllm_kernel::ceilings {
namespace {

struct Vector {
  static constexpr std::int64_t kBytes = 32;
  __m256i bits;

  static Vector load(const std::byte* from) noexcept {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))};
  }
  static Vector filled(std::byte value) noexcept {
    return {_mm256_set1_epi8(static_cast<char>(value))};
  }
  [[nodiscard]] Vector exclusive_or(Vector other) const noexcept {
    return {_mm256_xor_si256(bits, other.bits)};
  }
  void store(std::byte* to) const noexcept {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bits);
  }
  void stream(std::byte* to) const noexcept {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), bits);
  }
  static void fence() noexcept { _mm_sfence(); }
};

struct Floats {
  static constexpr int kLanes = 8;
  // Two instructions a cycle with a latency of 4 or 5 need at least 10.
  static constexpr int kChains = 12;
  __m256 value;

  static Floats filled(float x) noexcept { return {_mm256_set1_ps(x)}; }
  void add_product(Floats a, Floats b) noexcept {
    value = _mm256_fmadd_ps(a.value, b.value, value);
  }
  [[nodiscard]] float first() const noexcept { return _mm256_cvtss_f32(value); }
};

}  // namespace
}  // namespace xllm_kernel::ceilings

#include "ceilings/loops.h"

namespace xllm_kernel::ceilings::avx2 {

const Passes& passes() noexcept { return kPasses; }

}  // namespace xllm_kernel::ceilings::avx2

XLLM_KERNEL_TARGET_END
