// The device's processor as launchers care for it: its name and its cores.
// Decides nothing about arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace xllm_kernel::xlite {

struct Processor {
  std::string soc;
  // By device; empty where the launchers have no kernels for the processor.
  std::vector<std::uint32_t> vector_cores;

  [[nodiscard]] bool supported() const noexcept {
    return !vector_cores.empty();
  }
};

// Asked of the runtime once, while the caller prepares; never by a call.
[[nodiscard]] const Processor& processor();

// Those that the launchers' libraries register their kernels on, in a list.
[[nodiscard]] std::string supported_socs();

}  // namespace xllm_kernel::xlite
