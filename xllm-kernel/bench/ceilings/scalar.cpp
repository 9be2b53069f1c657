// The passes of level scalar: words of 8 bytes and single floats, as any
// processor has them.
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "ceilings/passes.h"

namespace xllm_kernel::ceilings {
namespace {

struct Vector {
  static constexpr std::int64_t kBytes = 8;
  std::uint64_t bits;

  static Vector load(const std::byte* from) noexcept {
    Vector word{};
    std::memcpy(&word.bits, from, kBytes);
    // Opaque to the compiler, which would make wide vectors or a call of memcpy
    // out of a loop of plain words.
    asm("" : "+r"(word.bits));
    return word;
  }
  static Vector filled(std::byte value) noexcept {
    return {0x0101010101010101U * static_cast<std::uint64_t>(value)};
  }
  [[nodiscard]] Vector exclusive_or(Vector other) const noexcept {
    return {bits ^ other.bits};
  }
  void store(std::byte* to) const noexcept { std::memcpy(to, &bits, kBytes); }
#if defined(__x86_64__)
  void stream(std::byte* to) const noexcept {
    _mm_stream_si64(
        reinterpret_cast<long long*>(to),  // NOLINT(google-runtime-int)
        static_cast<long long>(bits));     // NOLINT(google-runtime-int)
  }
  static void fence() noexcept { _mm_sfence(); }
#else
  void stream(std::byte* to) const noexcept { store(to); }
  static void fence() noexcept {}
#endif
};

struct Floats {
  static constexpr int kLanes = 1;
  // Two products and two sums a cycle, each with a latency of 3 or 4, in 16
  // registers with one to spare.
  static constexpr int kChains = 12;
  float value;

  static Floats filled(float x) noexcept { return {x}; }
  void add_product(Floats a, Floats b) noexcept {
    // Opaque, or the product would be computed once; and one float, not the
    // lanes of a vector.
#if defined(__x86_64__)
    asm volatile("" : "+x"(a.value));
#elif defined(__aarch64__)
    asm volatile("" : "+w"(a.value));
#endif
    value += a.value * b.value;
  }
  [[nodiscard]] float first() const noexcept { return value; }
};

}  // namespace
}  // namespace xllm_kernel::ceilings

#include "ceilings/loops.h"

namespace xllm_kernel::ceilings::scalar {

const Passes& passes() noexcept { return kPasses; }

}  // namespace xllm_kernel::ceilings::scalar
