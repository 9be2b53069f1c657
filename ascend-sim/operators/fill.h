// Operators whose values come from numbers alone. Reads no tensor but the
// counters of random numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "operators/tensor.h"

namespace ascend_sim {

// start, start + step, ...: computed in int64 where all are integers, else in
// float64, and rounded once.
[[nodiscard]] Task arange(const std::string& name, const Scalar& start,
                          const Scalar& step, const Tensor& out);

// Where a stream of random numbers begins. Inside a graph the counters are in
// device memory, so that each replay draws new numbers.
struct RandomSource {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
  std::optional<Tensor> seed_tensor;    // in place of seed
  std::optional<Tensor> offset_tensor;  // added to offset
};

// In [low, high). Not the vendor's numbers: the same source gives the same
// numbers here, which is all that is promised.
[[nodiscard]] Task uniform(const std::string& name, double low, double high,
                           const RandomSource& source, const Tensor& out);
[[nodiscard]] Task normal(const std::string& name, double mean,
                          double deviation, const RandomSource& source,
                          const Tensor& out);
// Integers in [low, high).
[[nodiscard]] Task random_integers(const std::string& name, std::int64_t low,
                                   std::int64_t high,
                                   const RandomSource& source,
                                   const Tensor& out);

}  // namespace ascend_sim
