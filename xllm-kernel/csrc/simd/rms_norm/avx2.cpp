// rms_norm with AVX2, FMA and F16C. Called only where processor and operating
// system have all three.
//
// Why this shape: the sum is bound by the latency of fused multiply-add (4
// cycles, two a cycle), which eight independent accumulators hide; eight
// registers of eight lanes are also exactly the 64 logical lanes. The second
// pass finds the row in L1 up to 8192 elements of 16 bits; it is bound by the
// arithmetic of rounding for bf16 and by the loads for the others.
#include "simd/core/vec_avx2.h"
#include "simd/rms_norm/variants.h"

XLLM_KERNEL_TARGET_AVX2_BEGIN

namespace xllm_kernel::simd::avx2 {

namespace {

constexpr int kAccumulators = static_cast<int>(kLanes / kVec);

// Pairwise from the far half, as scalar.cpp does.
float sum_lanes(const __m256 (&lanes)[kAccumulators]) noexcept {
  const __m256 a = _mm256_add_ps(lanes[0], lanes[4]);
  const __m256 b = _mm256_add_ps(lanes[1], lanes[5]);
  const __m256 c = _mm256_add_ps(lanes[2], lanes[6]);
  const __m256 d = _mm256_add_ps(lanes[3], lanes[7]);
  const __m256 eight = _mm256_add_ps(_mm256_add_ps(a, c), _mm256_add_ps(b, d));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight),
                                 _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

template <class Format>
float sum_of_squares(const std::byte* row, std::int64_t width) noexcept {
  __m256 lanes[kAccumulators];
#pragma GCC unroll 8
  for (auto& lane : lanes) lane = _mm256_setzero_ps();

  std::int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
#pragma GCC unroll 8
    for (int k = 0; k < kAccumulators; ++k) {
      const __m256 x = Format::load(row + (i + k * kVec) * Format::kSize);
      lanes[k] = _mm256_fmadd_ps(x, x, lanes[k]);
    }
  }
  // Unrolled too: an index that varies would put the accumulators in memory. A
  // missing element adds +0 to its lane, which changes no bit of it.
#pragma GCC unroll 8
  for (int k = 0; k < kAccumulators; ++k) {
    const std::int64_t left = width - i - k * kVec;
    if (left <= 0) break;
    const std::byte* from = row + (i + k * kVec) * Format::kSize;
    const __m256 x =
        left >= kVec ? Format::load(from) : Format::load_part(from, left);
    lanes[k] = _mm256_fmadd_ps(x, x, lanes[k]);
  }
  return sum_lanes(lanes);
}

template <class Format>
void scale_row(std::byte* y, const std::byte* x, const std::byte* weight,
               std::int64_t width, float scale) noexcept {
  const __m256 r = _mm256_set1_ps(scale);
  std::int64_t i = 0;
#pragma GCC unroll 4
  for (; i + kVec <= width; i += kVec) {
    const std::int64_t at = i * Format::kSize;
    const __m256 scaled = _mm256_mul_ps(Format::load(x + at), r);
    Format::store(y + at, _mm256_mul_ps(scaled, Format::load(weight + at)));
  }
  if (i < width) {
    const std::int64_t at = i * Format::kSize;
    const std::int64_t left = width - i;
    const __m256 scaled = _mm256_mul_ps(Format::load_part(x + at, left), r);
    Format::store_part(
        y + at, _mm256_mul_ps(scaled, Format::load_part(weight + at, left)),
        left);
  }
}

template <class Format>
void rms_norm(RmsNormTask& task) noexcept {
  for (std::int64_t row = 0; row < task.rows; ++row) {
    const std::byte* x = task.input.get();
    const float sum = sum_of_squares<Format>(x, task.width);
    scale_row<Format>(task.output.get(), x, task.weight, task.width,
                      row_scale(sum, task.width, task.eps));
    task.input.advance();
    task.output.advance();
  }
}

}  // namespace

void rms_norm_fp32(RmsNormTask task) noexcept { rms_norm<Fp32>(task); }
void rms_norm_fp16(RmsNormTask task) noexcept { rms_norm<Fp16>(task); }
void rms_norm_bf16(RmsNormTask task) noexcept { rms_norm<Bf16>(task); }

}  // namespace xllm_kernel::simd::avx2

XLLM_KERNEL_TARGET_END
