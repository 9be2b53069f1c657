// The process's machine, devices, errors, and what people read.
// Each other subject has its own calls_*.cpp.
#include "runtime/runtime.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "runtime/machine.h"

namespace ascend_sim {

namespace {

// A wrong program must not look right because nobody asked for its reports.
constexpr int kUnreadReports = 66;

}  // namespace

Runtime& Runtime::get() {
  static Runtime* const process = [] {
    auto* const made = new Runtime(Settings::from_environment());
    std::atexit([] {
      if (get().machine_->finish_process()) {
        std::cout.flush();
        std::fflush(nullptr);
        _exit(kUnreadReports);
      }
    });
    return made;
  }();
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

// Waits for what is due, so that the same calls see the same error.
Status Runtime::last_async_error() const {
  Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  machine_->engine.drain(call.lock, std::nullopt);
  return machine_->async_error;
}

std::string Runtime::recent_message() const {
  return machine_->thread().message.data();
}

Status Runtime::fail(Status status, std::string_view message) {
  return machine_->fail(status, message);
}

bool Runtime::fault(std::string_view point) {
  const Call call(*machine_);
  return call && machine_->faults.hit(point);
}

void Runtime::report(std::string kind, const std::string& text) {
  const Call call(*machine_);
  if (call) {
    machine_->reports.add(std::move(kind), text, text);
  }
}

std::vector<Report> Runtime::take_reports() {
  const Call call(*machine_);
  return call ? machine_->reports.take() : std::vector<Report>{};
}

void Runtime::note(std::string name, std::string category, Notes notes) {
  const Call call(*machine_);
  if (call) {
    machine_->note(std::move(name), std::move(category), std::move(notes));
  }
}

std::string Runtime::trace() const {
  const Call call(*machine_);
  return call ? machine_->trace.json(machine_->settings.devices) : "";
}

std::vector<std::string> Runtime::schedule() const {
  const Call call(*machine_);
  return call ? machine_->trace.schedule() : std::vector<std::string>{};
}

}  // namespace ascend_sim
