// The process's machine, devices, errors, and what people read.
// Each other subject has its own calls_*.cpp.
#include "runtime/runtime.h"

#include <utility>

#include "runtime/machine.h"

namespace ascend_sim {

Runtime& Runtime::get() {
  static Runtime* const process = new Runtime(Settings::from_environment());
  return *process;
}

Runtime::Runtime(Settings settings)
    : machine_(std::make_unique<Machine>(std::move(settings))) {}

Runtime::~Runtime() = default;

const Settings& Runtime::settings() const { return machine_->settings; }

Status Runtime::set_device(std::int32_t device) {
  if (device < 0 || device >= machine_->settings.devices) {
    return machine_->fail(Status::kInvalidDevice,
                          "device must be below " +
                              std::to_string(machine_->settings.devices) +
                              ", got " + std::to_string(device));
  }
  machine_->thread().device = device;
  return Status::kOk;
}

std::int32_t Runtime::device() const { return machine_->thread().device; }

Status Runtime::last_async_error() const {
  const Call call(*machine_);
  return call ? machine_->async_error : Status::kInternal;
}

std::string Runtime::recent_message() const {
  return machine_->thread().message.data();
}

Status Runtime::fail(Status status, std::string message) {
  return machine_->fail(status, message);
}

bool Runtime::fault(std::string_view /*point*/) { return false; }

void Runtime::report(std::string /*kind*/, std::string /*text*/) {}

std::vector<Report> Runtime::take_reports() { return {}; }

void Runtime::note(std::string /*name*/, std::string /*category*/,
                   std::vector<std::pair<std::string, std::string>> /*notes*/) {
}

std::string Runtime::trace() const { return "[]"; }

std::vector<std::string> Runtime::schedule() const {
  const Call call(*machine_);
  return call ? machine_->executed : std::vector<std::string>{};
}

}  // namespace ascend_sim
