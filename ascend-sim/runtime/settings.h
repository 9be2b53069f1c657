// What the environment decides about a simulated machine, read once.
// Decides nothing itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ascend_sim {

struct Settings {
  // Reads ASCEND_SIM_*; ends the process with a sentence on standard error for
  // a value that makes no sense.
  static Settings from_environment();

  std::uint64_t seed = 1;                     // ASCEND_SIM_SEED
  std::int32_t devices = 2;                   // ASCEND_SIM_DEVICES
  std::string soc = "Ascend910B3";            // ASCEND_SIM_SOC
  std::size_t memory_bytes = 4096ULL << 20U;  // ASCEND_SIM_MEMORY, in MiB
  std::string faults;                         // ASCEND_SIM_FAULT
  std::string trace_path;                     // ASCEND_SIM_TRACE
};

}  // namespace ascend_sim
