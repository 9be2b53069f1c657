// Core counts of the chips that a simulated device can be called. Judges no
// name: callers decide which chips they run on.
#pragma once

#include <cstdint>
#include <string_view>

namespace ascend_sim::abi {

struct SocFacts {
  std::string_view name;
  std::int64_t cube_cores = 0;
  std::int64_t vector_cores = 0;
};

// A name that is not listed gets the first row's counts.
inline constexpr SocFacts kSocs[] = {
    {"Ascend910B3", 20, 40},    {"Ascend910B1", 24, 48},
    {"Ascend910B2", 24, 48},    {"Ascend910B2C", 24, 48},
    {"Ascend910B4", 20, 40},    {"Ascend910B4-1", 20, 40},
    {"Ascend910_9391", 24, 48}, {"Ascend910_9362", 20, 40},
};

inline constexpr std::int64_t kL2Bytes = std::int64_t{192} << 20U;
inline constexpr std::int64_t kUnifiedBufferBytes = std::int64_t{192} << 10U;

[[nodiscard]] constexpr SocFacts facts_of(std::string_view soc) {
  for (const SocFacts& facts : kSocs) {
    if (facts.name == soc) return facts;
  }
  return kSocs[0];
}

}  // namespace ascend_sim::abi
