// Handles of device binaries.
// Keeps the names, keys and sizes of kernels, not the binaries.
#include "launchers/registry.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

namespace ascend_sim {
namespace {

// "CUBE" for kernels of both kinds of core, "AARF" for vector cores, "AICC"
// for cube cores.
constexpr std::array<std::uint32_t, 3> kMagics = {0x43554245, 0x41415246,
                                                  0x41494343};

}  // namespace

Registry& Registry::get() {
  static auto* const registry = new Registry();
  return *registry;
}

void* Registry::add(const std::vector<ElfKernel>& kernels) {
  auto by_key = std::make_shared<Kernels>();
  for (const ElfKernel& kernel : kernels) {
    by_key->emplace(kernel.key, kernel);
  }
  const std::scoped_lock lock(mutex_);
  // A number rather than the address of something: no later binary gets it.
  void* const handle = reinterpret_cast<void*>(++last_);
  binaries_.emplace(handle, std::move(by_key));
  return handle;
}

bool Registry::remove(void* handle) {
  const std::scoped_lock lock(mutex_);
  return binaries_.erase(handle) == 1;
}

std::shared_ptr<const Registry::Kernels> Registry::find(void* handle) const {
  const std::scoped_lock lock(mutex_);
  const auto found = binaries_.find(handle);
  return found == binaries_.end() ? nullptr : found->second;
}

Status register_binary(Runtime& runtime, Registry& registry,
                       const DeviceBinary& binary, void** handle) {
  if (runtime.fault("register")) {
    return runtime.fail(
        Status::kInternal,
        "rtRegisterAllKernel: ASCEND_SIM_FAULT made the registration fail");
  }
  if (std::ranges::find(kMagics, binary.magic) == kMagics.end()) {
    return runtime.fail(Status::kInvalidParam,
                        "rtRegisterAllKernel: unknown magic number " +
                            std::to_string(binary.magic));
  }
  if (binary.data == nullptr) {
    return runtime.fail(Status::kInvalidParam,
                        "rtRegisterAllKernel: the binary must not be null");
  }
  try {
    const std::span<const std::byte> image(
        static_cast<const std::byte*>(binary.data), binary.length);
    *handle = registry.add(read_kernels(image));
  } catch (const ElfError& error) {
    return runtime.fail(Status::kInvalidParam,
                        std::string("rtRegisterAllKernel: ") + error.what());
  }
  return Status::kOk;
}

}  // namespace ascend_sim
