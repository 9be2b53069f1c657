// Reads the environment.
// Gives no value a meaning.
#include "runtime/settings.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace ascend_sim {
namespace {

std::string text(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

std::uint64_t number(const char* name, std::uint64_t otherwise,
                     std::uint64_t least, std::uint64_t most) {
  const char* const value = std::getenv(name);
  if (value == nullptr) {
    return otherwise;
  }
  std::uint64_t read = 0;
  const char* const end = value + std::strlen(value);
  const auto [stop, error] = std::from_chars(value, end, read);
  if (error != std::errc{} || stop != end || read < least || read > most) {
    std::fprintf(stderr,
                 "ascend-sim: %s must be a whole number from %llu to %llu, "
                 "got \"%s\"\n",
                 name, static_cast<unsigned long long>(least),
                 static_cast<unsigned long long>(most), value);
    std::exit(2);
  }
  return read;
}

}  // namespace

Settings Settings::from_environment() {
  constexpr std::uint64_t kMiB = 1U << 20U;
  Settings read;
  read.seed = number("ASCEND_SIM_SEED", read.seed, 0,
                     std::numeric_limits<std::uint64_t>::max());
  read.devices = static_cast<std::int32_t>(number(
      "ASCEND_SIM_DEVICES", static_cast<std::uint64_t>(read.devices), 1, 16));
  read.memory_bytes =
      number("ASCEND_SIM_MEMORY", read.memory_bytes / kMiB, 1, 1U << 20U) *
      kMiB;
  read.soc = text("ASCEND_SIM_SOC", read.soc);
  read.faults = text("ASCEND_SIM_FAULT", "");
  read.trace_path = text("ASCEND_SIM_TRACE", "");
  return read;
}

}  // namespace ascend_sim
