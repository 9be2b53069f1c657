// The tensors of one call in guarded memory: made as drawn, filled, and
// compared afterwards with what must be there, byte for byte.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "fuzz/rules.h"
#include "support/guarded.h"
#include "support/tensor.h"

namespace xllm_kernel::fuzz {

using Image = std::vector<std::vector<std::byte>>;

// Every tensor lies flush against a guard page, unless it shares its memory
// with one that reaches further.
class Scene final {
 public:
  // Larger ones are only described: no call may touch them.
  static constexpr Wide kMostBytes = Wide{1} << 20;

  Scene(std::vector<Shape> shapes, test::Flush flush)
      : shapes_(std::move(shapes)), groups_(shapes_.size()) {
    for (std::size_t n = 0; n < groups_.size(); ++n) place(n, flush);
  }

  // Whether a call that is taken may be made: all that it touches is there.
  [[nodiscard]] bool exists() const {
    return std::ranges::all_of(groups_, [](const Group& group) {
      return !group.used || group.memory != nullptr;
    });
  }

  // Makes the view of shape `n`; false where core.h refuses it.
  template <class View>
  [[nodiscard]] bool make(std::size_t n, View* view) const {
    const Shape& shape = shapes_[n];
    std::byte* const base = base_of(n);
    const bool expected =
        can_exist(shape, reinterpret_cast<std::uintptr_t>(base));
    const Status status =
        View::make(base, shape.extents, shape.strides, shape.dtype, view);
    require((status == Status::kOk) == expected, shape.role.c_str(), status);
    if (!expected) return false;
    const Reach reach = reach_of(shape);
    require(view->begin_byte() - base == reach.low &&
                view->end_byte() - base == reach.high,
            "the bytes of a view", status);
    return true;
  }

  // Every bit; finite values; zeros and subnormals; zeros.
  void fill(Draw& draw) {
    constexpr std::uint16_t kMasks[] = {0xffff, 0xbfff, 0xbfff,
                                        0x83ff, 0x807f, 0x0000};
    const std::uint16_t mask = draw.of(kMasks);
    std::mt19937 bits(static_cast<std::uint32_t>(draw.between(0, 1 << 30)));
    for (const Group& group : groups_) {
      if (group.memory == nullptr) continue;
      std::byte* const data = group.memory->data();
      for (std::size_t at = 0; at + 1 < group.memory->bytes(); at += 2) {
        const auto word = static_cast<std::uint16_t>(bits() & mask);
        std::memcpy(data + at, &word, sizeof(word));
      }
    }
  }

  // The rows of a shape, dense, as the memory has them now.
  [[nodiscard]] test::Tensor dense(std::size_t n) const {
    test::Tensor tensor = blank(n);
    const std::size_t row = row_bytes(n);
    std::byte* to = tensor.memory().data();
    for (const std::int64_t offset : row_offsets(shapes_[n])) {
      std::memcpy(to, base_of(n) + offset, row);
      to += row;
    }
    return tensor;
  }

  // Room for its rows.
  [[nodiscard]] test::Tensor blank(std::size_t n) const {
    const Shape& shape = shapes_[n];
    return {test::format_of(shape.dtype), shape.extents};
  }

  [[nodiscard]] Image image() const {
    Image image(groups_.size());
    for (std::size_t n = 0; n < groups_.size(); ++n) {
      if (groups_[n].memory == nullptr) continue;
      const test::Guarded& memory = *groups_[n].memory;
      image[n] = {memory.data(), memory.data() + memory.bytes()};
    }
    return image;
  }

  // Writes dense rows into an image as shape `n` has them.
  void paint(std::size_t n, const test::Tensor& rows, Image* image) const {
    const Shape& shape = shapes_[n];
    const Group& group = groups_[shape.memory];
    std::byte* const base =
        (*image)[shape.memory].data() + (shape.shift - group.low);
    const std::size_t row = row_bytes(n);
    const std::byte* from = rows.memory().data();
    for (const std::int64_t offset : row_offsets(shape)) {
      std::memcpy(base + offset, from, row);
      from += row;
    }
  }

  // Makes a call and sees that it follows the verdict: taken, the memory is
  // what `paint` makes of its image; refused, nothing was written. All around
  // is as it was either way.
  template <class Paint, class Call>
  void judge(Verdict verdict, const Paint& paint, const Call& call) const {
    const Image before = image();
    Image after = before;
    if (verdict != Verdict::kRefused) paint(&after);
    const Status status = call();
    const bool taken = status == Status::kOk;
    require(
        verdict == Verdict::kEither || taken == (verdict == Verdict::kTaken),
        "verdict", status);
    require(image() == (taken ? after : before),
            taken ? "bits after a call" : "a refused call wrote", status);
    for (const Group& group : groups_) {
      require(group.memory == nullptr || group.memory->intact(),
              "memory around a tensor", status);
    }
  }

  // Ends the process with all that was drawn.
  void require(bool holds, const char* what, Status status) const {
    if (holds) return;
    std::fprintf(stderr, "wrong: %s; status %d\n", what,
                 static_cast<int>(status));
    for (const Shape& shape : shapes_) {
      std::fprintf(stderr, "%s: dtype %d, memory %zu at %lld, extents",
                   shape.role.c_str(), static_cast<int>(shape.dtype),
                   shape.memory, static_cast<long long>(shape.shift));
      for (const auto n : shape.extents) {
        std::fprintf(stderr, " %lld", static_cast<long long>(n));
      }
      std::fprintf(stderr, ", strides");
      for (const auto n : shape.strides) {
        std::fprintf(stderr, " %lld", static_cast<long long>(n));
      }
      std::fprintf(stderr, "\n");
    }
    std::abort();
  }

 private:
  // One memory, whose first byte is `low` bytes from its origin.
  struct Group {
    bool used = false;
    std::int64_t low = 0;
    std::unique_ptr<test::Guarded> memory;
  };

  void place(std::size_t number, test::Flush flush) {
    Group& group = groups_[number];
    Wide low = 0;
    Wide high = 0;
    for (const Shape& shape : shapes_) {
      if (shape.memory != number) continue;
      // No memory for what is no shape.
      if (shape.extents.size() != shape.strides.size()) return;
      const Reach reach = reach_of(shape);
      low = group.used ? std::min(low, shape.shift + reach.low)
                       : shape.shift + reach.low;
      high = group.used ? std::max(high, shape.shift + reach.high)
                        : shape.shift + reach.high;
      group.used = true;
    }
    if (!group.used || high - low > kMostBytes || high < low) return;
    group.low = static_cast<std::int64_t>(low);
    group.memory = std::make_unique<test::Guarded>(
        static_cast<std::size_t>(high - low), flush);
  }

  // Where nothing is, an address that nobody may touch.
  [[nodiscard]] std::byte* base_of(std::size_t n) const {
    const Shape& shape = shapes_[n];
    const Group& group = groups_[shape.memory];
    if (group.memory == nullptr) {
      return reinterpret_cast<std::byte*>(std::uintptr_t{1} << 62) +
             shape.shift;
    }
    return group.memory->data() + (shape.shift - group.low);
  }

  [[nodiscard]] std::size_t row_bytes(std::size_t n) const {
    return static_cast<std::size_t>(shapes_[n].extents.back() *
                                    dtype_size(shapes_[n].dtype));
  }

  std::vector<Shape> shapes_;
  std::vector<Group> groups_;
};

}  // namespace xllm_kernel::fuzz
