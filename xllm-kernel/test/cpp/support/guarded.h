// Memory flush against pages that nobody may touch, so that one byte read or
// written outside ends the test at once. For tests only; leaks nothing.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace xllm_kernel::test {

// Which end of the memory lies against a guard page; the other end is followed
// by filler that `intact()` checks.
enum class Flush : std::uint8_t { kFront, kBack };

class Guarded final {
 public:
  // Starts as filler: a quiet NaN in every dtype of the library.
  static constexpr unsigned char kFiller = 0xff;

  Guarded(std::size_t bytes, Flush flush) : bytes_(bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    // Room for 64 bytes of filler at the loose end.
    inner_bytes_ = (bytes + 64 + page - 1) / page * page;
    mapped_bytes_ = inner_bytes_ + 2 * page;
    void* mapped = mmap(nullptr, mapped_bytes_, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) std::abort();
    mapped_ = static_cast<std::byte*>(mapped);
    inner_ = mapped_ + page;
    if (mprotect(inner_, inner_bytes_, PROT_READ | PROT_WRITE) != 0) {
      std::abort();
    }
    std::memset(inner_, kFiller, inner_bytes_);
    data_ = flush == Flush::kFront ? inner_ : inner_ + inner_bytes_ - bytes;
  }
  ~Guarded() { munmap(mapped_, mapped_bytes_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  // Whether the filler around the data is untouched.
  [[nodiscard]] bool intact() const {
    for (const std::byte* at = inner_; at < inner_ + inner_bytes_; ++at) {
      const bool inside = at >= data_ && at < data_ + bytes_;
      if (!inside && *at != std::byte{kFiller}) return false;
    }
    return true;
  }

 private:
  std::size_t bytes_;
  std::size_t inner_bytes_ = 0;
  std::size_t mapped_bytes_ = 0;
  std::byte* mapped_ = nullptr;
  std::byte* inner_ = nullptr;
  std::byte* data_ = nullptr;
};

}  // namespace xllm_kernel::test
