// Lays out argument blocks of `norm` byte by byte, as the launchers' machine
// code does. Shares nothing with the decoder under test.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ascend_sim::testing {

// Offsets were read from aclrtlaunch_norm_bfloat16_t.
class BlockBuilder final {
 public:
  // Bytes that no field covers hold this.
  explicit BlockBuilder(std::uint8_t garbage = 0xa5) {
    bytes_.fill(std::byte{garbage});
    put<std::uint64_t>(0x00, 0x10000)
        .put<std::uint64_t>(0x08, 0)
        .put<std::uint64_t>(0x10, 0x20000)
        .put<std::uint64_t>(0x18, 0)
        .put<std::uint64_t>(0x20, 0x30000)
        .put<std::uint32_t>(0x28, 3)
        .put<std::uint32_t>(0x2c, 128)
        .put<float>(0x30, 1e-5F)
        .put<std::int32_t>(0x34, 0)
        .put<std::uint32_t>(0x38, 1)
        .put<std::uint32_t>(0x3c, 128)
        .put<std::uint32_t>(0x40, 128)
        .put<std::uint32_t>(0x44, 0)
        .put<std::uint32_t>(0x48, 0)
        .put<std::uint8_t>(0x4c, 1)
        .put<std::uint64_t>(0x50, 0)
        .put<std::uint32_t>(0x58, 1)
        .put<std::uint8_t>(0x5c, 0);
  }

  template <typename Value>
  BlockBuilder& put(std::size_t offset, Value value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof(value));
    return *this;
  }
  // Dense rows on both sides.
  BlockBuilder& shape(std::uint32_t rows, std::uint32_t width) {
    return put(0x28, rows).put(0x2c, width).put(0x3c, width).put(0x40, width);
  }
  BlockBuilder& pointer(std::size_t offset, const void* value) {
    return put(offset, reinterpret_cast<std::uintptr_t>(value));
  }

  [[nodiscard]] const std::array<std::byte, 0x68>& bytes() const {
    return bytes_;
  }

 private:
  std::array<std::byte, 0x68> bytes_;
};

}  // namespace ascend_sim::testing
