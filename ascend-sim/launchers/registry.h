// Which device binaries the launcher libraries registered: from handles to
// kernels. Launches nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "launchers/elf.h"
#include "runtime/runtime.h"
#include "runtime/status.h"

namespace ascend_sim {

// As the launcher libraries lay it out (CANN's rtDevBinary_t).
struct DeviceBinary {
  std::uint32_t magic = 0;
  std::uint32_t version = 0;
  const void* data = nullptr;
  std::uint64_t length = 0;
};

class Registry final {
 public:
  using Kernels = std::map<std::uint64_t, ElfKernel>;  // by key

  // The process's; never destroyed, because the libraries unregister while
  // the process exits.
  static Registry& get();

  // A handle that is never null and never given twice.
  [[nodiscard]] void* add(const std::vector<ElfKernel>& kernels);
  // Whether the handle was known.
  [[nodiscard]] bool remove(void* handle);
  // Null for an unknown handle.
  [[nodiscard]] std::shared_ptr<const Kernels> find(void* handle) const;

 private:
  mutable std::mutex mutex_;
  std::uintptr_t last_ = 0;
  std::map<void*, std::shared_ptr<const Kernels>> binaries_;
};

// What rtRegisterAllKernel does: reads the binary and gives a handle for it.
// The fault point "register" makes it fail.
[[nodiscard]] Status register_binary(Runtime& runtime, Registry& registry,
                                     const DeviceBinary& binary, void** handle);

}  // namespace ascend_sim
