// Computes `norm` row by row.
// Checks nothing: norm_block.cpp has done that.
//
// Numerics: everything in fp32. The squares of a row are scaled by 1/n (not for
// L2) and summed as a tree of neighbours, as the device's vector unit sums.
// Then square root, division, weight, bias, and one rounding to the output's
// dtype. A sum with addInOut is normalised unrounded and stored rounded.
#include "launchers/kernels/norm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <vector>

#include "operators/dtype.h"

namespace ascend_sim {
namespace {

// The 16-bit format of a kernel's tensors.
struct Format {
  float (*widen)(std::uint16_t);
  std::uint16_t (*narrow)(float);
};
constexpr Format kBfloat16{from_bfloat16, bfloat16_from};
constexpr Format kFloat16{from_float16, float16_from};
constexpr std::size_t kNarrowBytes = sizeof(std::uint16_t);

std::vector<float> load(const Format& format, const std::byte* from,
                        std::size_t elements) {
  std::vector<float> values(elements);
  for (std::size_t i = 0; i < elements; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, from + i * kNarrowBytes, kNarrowBytes);
    values[i] = format.widen(bits);
  }
  return values;
}

void store(const Format& format, std::span<const float> values, std::byte* to) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t bits = format.narrow(values[i]);
    std::memcpy(to + i * kNarrowBytes, &bits, kNarrowBytes);
  }
}

float sum(std::vector<float> values) {
  while (values.size() > 1) {
    const std::size_t pairs = values.size() / 2;
    for (std::size_t i = 0; i < pairs; ++i) {
      values[i] = values[2 * i] + values[2 * i + 1];
    }
    if (values.size() % 2 == 1) {
      values[pairs] = values.back();
    }
    values.resize((values.size() + 1) / 2);
  }
  return values.front();
}

void subtract_mean(std::span<float> values) {
  const float scale = 1.0F / static_cast<float>(values.size());
  std::vector<float> shares(values.begin(), values.end());
  for (float& share : shares) {
    share *= scale;
  }
  const float mean = sum(std::move(shares));
  for (float& value : values) {
    value -= mean;
  }
}

float mean_square(std::span<const float> values, NormKind kind) {
  const float scale = 1.0F / static_cast<float>(values.size());
  std::vector<float> squares(values.begin(), values.end());
  for (float& square : squares) {
    square *= square;
    if (kind != NormKind::kL2) {
      square *= scale;
    }
  }
  return sum(std::move(squares));
}

// What a core holds in its unified buffer while it walks over its rows.
struct Parameters {
  std::vector<float> weight;  // empty: none
  std::vector<float> bias;
};

void normalise(std::span<float> values, float variance, float eps,
               const Parameters& parameters) {
  const float root = std::sqrt(variance + eps);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] /= root;
    if (!parameters.weight.empty()) {
      values[i] *= parameters.weight[i];
    }
    if (!parameters.bias.empty()) {
      values[i] += parameters.bias[i];
    }
  }
}

class Norm final {
 public:
  Norm(const NormBlock& block, const Format& format, const Resolve& resolve)
      : block_(block),
        format_(format),
        kind_(static_cast<NormKind>(block.kind)),
        width_(std::size_t{block.norm_dim} * block.cnt_per_token),
        input_(resolve(block.input)),
        add_in_out_(given(block.add_in_out, resolve)),
        weight_(given(block.weight, resolve)),
        bias_(given(block.bias, resolve)),
        variance_(given(block.variance, resolve)),
        out_(resolve(block.out)) {}

  // The cores share the rows like cards: the first takes row 0, the next
  // row 1, and so on.
  void run(std::uint32_t cores) const {
    for (std::uint32_t core = 0; core < cores; ++core) {
      const Parameters parameters{load_parameters(weight_),
                                  load_parameters(bias_)};
      for (std::uint64_t row = core; row < block_.token_num; row += cores) {
        run_row(row, parameters);
      }
    }
  }

 private:
  static std::byte* given(Address address, const Resolve& resolve) {
    return address == 0 ? nullptr : resolve(address);
  }

  [[nodiscard]] std::vector<float> load_parameters(
      const std::byte* from) const {
    return from == nullptr ? std::vector<float>{}
                           : load(format_, from, block_.norm_dim);
  }

  [[nodiscard]] std::vector<float> load_row(std::uint64_t row) const {
    const std::size_t offset =
        (block_.in_start + row * block_.in_step) * kNarrowBytes;
    std::vector<float> values = load(format_, input_ + offset, width_);
    if (add_in_out_ != nullptr) {
      const std::vector<float> other =
          load(format_, add_in_out_ + offset, width_);
      std::ranges::transform(values, other, values.begin(), std::plus<>());
      store(format_, values, add_in_out_ + offset);
    }
    return values;
  }

  [[nodiscard]] float variance_of(std::uint64_t row,
                                  std::span<const float> values) const {
    if (variance_ == nullptr) {
      return mean_square(values, kind_);
    }
    float total = 0;
    std::memcpy(&total, variance_ + row * sizeof(float), sizeof(float));
    return total * (1.0F / static_cast<float>(block_.tp_size));
  }

  void store_row(std::uint64_t row, std::span<const float> values) const {
    const std::uint64_t offset = block_.out_start + row * block_.out_step;
    if (block_.use_norm == 0 || block_.out_fp32 != 0) {
      std::memcpy(out_ + offset * sizeof(float), values.data(),
                  values.size_bytes());
    } else {
      store(format_, values, out_ + offset * kNarrowBytes);
    }
  }

  void run_row(std::uint64_t row, const Parameters& parameters) const {
    std::vector<float> values = load_row(row);
    for (std::uint32_t i = 0; i < block_.cnt_per_token; ++i) {
      const std::span<float> norm(
          values.data() + std::size_t{i} * block_.norm_dim, block_.norm_dim);
      if (kind_ == NormKind::kLayer) {
        subtract_mean(norm);
      }
      const float variance = variance_of(row, norm);
      if (block_.use_norm == 0) {
        store_row(row, {&variance, 1});
        return;
      }
      normalise(norm, variance, block_.eps, parameters);
    }
    store_row(row, values);
  }

  const NormBlock block_;
  const Format format_;
  const NormKind kind_;
  const std::size_t width_;  // elements of a row
  const std::byte* const input_;
  std::byte* const add_in_out_;
  const std::byte* const weight_;
  const std::byte* const bias_;
  const std::byte* const variance_;
  std::byte* const out_;
};

std::variant<Plan, BlockError> plan_norm(const Format& format,
                                         std::span<const std::byte> bytes,
                                         std::uint32_t cores) {
  const NormBlock block = decode_norm(bytes);
  if (std::optional<BlockError> error = check_norm(block)) {
    return *std::move(error);
  }
  Plan plan;
  plan.operands = operands_of(block);
  plan.notes = notes_of(block);
  plan.run = [block, format, cores](const Resolve& resolve) {
    if (block.token_num > 0) {
      Norm(block, format, resolve).run(std::min(cores, block.token_num));
    }
  };
  return plan;
}

}  // namespace

std::variant<Plan, BlockError> plan_norm_bfloat16(
    std::span<const std::byte> block, std::uint32_t cores) {
  return plan_norm(kBfloat16, block, cores);
}

std::variant<Plan, BlockError> plan_norm_float16(
    std::span<const std::byte> block, std::uint32_t cores) {
  return plan_norm(kFloat16, block, cores);
}

}  // namespace ascend_sim
