// Tensors with more than 2^31 elements between or in their rows, in address
// space rather than memory. For tests only; knows no operator.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "support/tensor.h"

namespace xllm_kernel::test {

inline constexpr const char* kNoReserve =
    "no 4 GiB of address space can be reserved here";
inline constexpr const char* kTooSlow =
    "2^31 elements take minutes at this level, or under a sanitizer";

// Memory for what is touched only.
class Reserved final {
 public:
  explicit Reserved(std::size_t bytes) : bytes_(bytes) {
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped != MAP_FAILED) data_ = static_cast<std::byte*>(mapped);
  }
  ~Reserved() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;

  // Null where there is no such room.
  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  std::size_t bytes_;
  std::byte* data_ = nullptr;
};

// Two rows, `stride` elements apart, of either sign.
class FarRows final {
 public:
  FarRows(const Format& format, std::int64_t width, std::int64_t stride,
          const Tensor* values = nullptr)
      : format_(format),
        extents_{2, width},
        strides_{stride, 1},
        memory_(static_cast<std::size_t>((std::abs(stride) + width) *
                                         format.size)) {
    if (values == nullptr || !reserved()) return;
    for (std::int64_t row = 0; row < 2; ++row) {
      std::memcpy(at(row), values->memory().data() + row * row_bytes(),
                  static_cast<std::size_t>(row_bytes()));
    }
  }

  [[nodiscard]] bool reserved() const { return memory_.data() != nullptr; }

  template <class View>
  [[nodiscard]] View view() const {
    View view;
    EXPECT_EQ(View::make(at(0), extents_, strides_, format_.dtype, &view),
              Status::kOk);
    return view;
  }

  // Dense.
  [[nodiscard]] Tensor rows() const {
    Tensor tensor(format_, {2, extents_[1]});
    for (std::int64_t row = 0; row < 2; ++row) {
      std::memcpy(tensor.memory().data() + row * row_bytes(), at(row),
                  static_cast<std::size_t>(row_bytes()));
    }
    return tensor;
  }

 private:
  [[nodiscard]] std::int64_t row_bytes() const {
    return extents_[1] * format_.size;
  }
  [[nodiscard]] std::byte* at(std::int64_t row) const {
    const std::int64_t first = strides_[0] < 0 ? -strides_[0] : 0;
    return memory_.data() + (first + row * strides_[0]) * format_.size;
  }

  Format format_;
  std::array<std::int64_t, 2> extents_;
  std::array<std::int64_t, 2> strides_;
  Reserved memory_;
};

// One fp16 row of 2^31 + 64 elements. What is read is the kernel's page of
// zeros but for both ends; what is written goes to one and the same 32 MiB, but
// for the last 64 elements.
class WideRow final {
 public:
  enum class Use : std::uint8_t { kInput, kOutput };
  static constexpr std::int64_t kTail = 64;
  static constexpr std::int64_t kWidth = (1LL << 31) + kTail;

  explicit WideRow(Use use = Use::kInput)
      : memory_(kTailAt + kTail * sizeof(std::uint16_t)) {
    if (use == Use::kInput || !reserved()) return;
    constexpr std::size_t kShared = std::size_t{32} << 20;
    const int file = memfd_create("row", 0);
    shared_ = file >= 0 && ftruncate(file, kShared) == 0;
    for (std::size_t from = 0; shared_ && from < kTailAt; from += kShared) {
      shared_ = mmap(memory_.data() + from, kShared, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
    }
    if (file >= 0) close(file);
  }

  [[nodiscard]] bool reserved() const {
    return memory_.data() != nullptr && shared_;
  }

  // Row 0 becomes the first 64 elements, row 1 the last.
  void set_ends(const Tensor& ends) const {
    constexpr std::size_t kBytes = kTail * sizeof(std::uint16_t);
    std::memcpy(memory_.data(), ends.memory().data(), kBytes);
    std::memcpy(memory_.data() + kTailAt, ends.memory().data() + kBytes,
                kBytes);
  }

  [[nodiscard]] double tail(std::int64_t place) const {
    std::uint16_t bits = 0;
    std::memcpy(&bits,
                memory_.data() + kTailAt +
                    static_cast<std::size_t>(place) * sizeof(bits),
                sizeof(bits));
    return kFp16.decode(bits);
  }

  template <class View>
  [[nodiscard]] View view() const {
    static constexpr std::array<std::int64_t, 1> kExtents = {kWidth};
    static constexpr std::array<std::int64_t, 1> kStrides = {1};
    View view;
    EXPECT_EQ(
        View::make(memory_.data(), kExtents, kStrides, DType::kFloat16, &view),
        Status::kOk);
    return view;
  }

 private:
  static constexpr std::size_t kTailAt = std::size_t{1} << 32;

  Reserved memory_;
  bool shared_ = true;
};

// Whether 2^31 elements are a matter of seconds.
inline bool far_memory_pays(std::string_view level) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#else
  return level != "scalar" && level != "neon";
#endif
}

// The normalised tail, eps being 0. Some 130 terms are not zero, hence an error
// below 2^-20 before fp16's half of an ULP.
inline void expect_wide_tail(const WideRow& output, const Tensor& ends,
                             const Tensor& factors) {
  double squares = 0.0;
  for (std::int64_t i = 0; i < 2 * WideRow::kTail; ++i) {
    const double x = ends.get(i / WideRow::kTail, i % WideRow::kTail);
    squares += x * x;
  }
  const double rms = std::sqrt(squares / static_cast<double>(WideRow::kWidth));
  for (std::int64_t i = 0; i < WideRow::kTail; ++i) {
    const double exact = ends.get(1, i) / rms * factors.get(1, i);
    ASSERT_NEAR(output.tail(i), exact,
                std::ldexp(std::fabs(exact), -20) + kFp16.ulp(exact) / 2)
        << i;
  }
}

}  // namespace xllm_kernel::test
