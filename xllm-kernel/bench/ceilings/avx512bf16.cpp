// What level avx512bf16 adds: dot products of bf16 pairs. It moves memory and
// multiplies as level avx512 does. Called only where processor and operating
// system have it.
#include <immintrin.h>

#include <cstdint>

#include "ceilings/passes.h"
#include "simd/core/target.h"

XLLM_KERNEL_TARGET_AVX512BF16_BEGIN

namespace xllm_kernel::ceilings {
namespace {

// One or two instructions a cycle with a latency of 6 need 6 to 12.
constexpr std::int64_t kChains = 12;
constexpr std::int64_t kLanes = 16;

// Independent chains of sums of 2 * 1/4, exact until they stay: no subnormal,
// which the instruction would flush, and no overflow, however long.
float dot_turns(std::int64_t turns) noexcept {
  const auto halves = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3f00));
  __m512 x[kChains];
  for (std::int64_t k = 0; k < kChains; ++k) {
    x[k] = _mm512_set1_ps(static_cast<float>(k));
  }
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    for (__m512& chain : x) chain = _mm512_dpbf16_ps(chain, halves, halves);
  }
  float sum = 0.0F;
  for (const __m512& chain : x) sum += _mm512_cvtss_f32(chain);
  return sum;
}

}  // namespace

namespace avx512bf16 {

// Two products and two sums a lane.
DotPass dot_pass() noexcept { return {&dot_turns, 4 * kChains * kLanes}; }

}  // namespace avx512bf16
}  // namespace xllm_kernel::ceilings

XLLM_KERNEL_TARGET_END
