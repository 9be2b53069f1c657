// From handle, key and argument block to a task on a stream.
// Executes nothing itself.
#include "launchers/launch.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "launchers/kernel.h"

namespace ascend_sim {
namespace {

// The field for it in the hardware's descriptor of a launch has 16 bits.
constexpr std::uint32_t kMaxCores = 65535;

std::string names_of_simulated() {
  std::string names;
  for (const Kernel& kernel : simulated_kernels()) {
    names += (names.empty() ? "" : ", ") + std::string(kernel.name);
  }
  return names;
}

// Either a kernel that can be launched so, or what launch() returns.
std::variant<const Kernel*, Status> choose(Runtime& runtime,
                                           const Registry& registry,
                                           const LaunchRequest& request) {
  const auto kernels = registry.find(request.binary);
  if (kernels == nullptr) {
    return runtime.fail(Status::kInvalidHandle,
                        "kernel launch: no binary is registered under the "
                        "handle that was given");
  }
  const auto entry = kernels->find(request.key);
  if (entry == kernels->end()) {
    return runtime.fail(Status::kInvalidParam,
                        "kernel launch: the binary has no kernel of key " +
                            std::to_string(request.key));
  }
  const ElfKernel& asked = entry->second;
  const std::string who = "launch of kernel " + asked.name + ": ";
  if (request.block.size() != asked.argument_bytes) {
    return runtime.fail(Status::kInvalidParam,
                        who + "its argument block must have " +
                            std::to_string(asked.argument_bytes) +
                            " bytes as the binary says, got " +
                            std::to_string(request.block.size()));
  }
  if (request.cores == 0 || request.cores > kMaxCores) {
    return runtime.fail(Status::kInvalidParam,
                        who + "blockDim must be from 1 to " +
                            std::to_string(kMaxCores) + ", got " +
                            std::to_string(request.cores));
  }
  const auto all = simulated_kernels();
  const auto known = std::ranges::find(all, asked.name, &Kernel::name);
  if (known == all.end()) {
    return runtime.fail(
        Status::kUnsupported,
        who + "it is not simulated; simulated are " + names_of_simulated());
  }
  if (known->argument_bytes != asked.argument_bytes) {
    return runtime.fail(
        Status::kUnsupported,
        who + "the simulated revision has an argument block of " +
            std::to_string(known->argument_bytes) + " bytes, the binary's " +
            std::to_string(asked.argument_bytes));
  }
  return &*known;
}

// From the first to the last byte of an operand: a tensor, however it is
// strided, lies in one allocation.
std::pair<Address, std::size_t> reach_of(const Operand& operand) {
  Address begin = operand.accesses.front().address;
  Address end = begin;
  for (const Access& access : operand.accesses) {
    begin = std::min(begin, access.address);
    end = std::max(end, access.address + access.bytes);
  }
  return {begin, end - begin};
}

// The first operand that the stream's device cannot reach.
std::optional<BlockError> check_memory(const Runtime& runtime,
                                       const Stream* stream, const Plan& plan) {
  const std::int32_t device = runtime.device_of(stream);
  for (const Operand& operand : plan.operands) {
    const auto [begin, bytes] = reach_of(operand);
    const auto owner = runtime.device_of(reinterpret_cast<const void*>(begin));
    if (!owner || !runtime.live(begin, bytes)) {
      return BlockError{
          std::string(operand.field),
          "must lie in one live allocation of device memory, but of its " +
              std::to_string(bytes) + " bytes from " + std::to_string(begin) +
              " on some do not"};
    }
    if (*owner != device) {
      return BlockError{std::string(operand.field),
                        "must lie on device " + std::to_string(device) +
                            ", whose stream the kernel was launched on, not "
                            "on device " +
                            std::to_string(*owner)};
    }
  }
  return std::nullopt;
}

Task failing_task(Runtime& runtime, const Kernel& kernel,
                  const BlockError& error) {
  runtime.report("argument-block", "launch of kernel " +
                                       std::string(kernel.name) + ": " +
                                       error.field + " " + error.text);
  Task task;
  task.name = kernel.name;
  task.body = [] { return Status::kVectorCoreException; };
  task.notes = {{"wrong", error.field}};
  return task;
}

Task working_task(Runtime& runtime, const Kernel& kernel, Plan plan,
                  std::uint32_t cores) {
  Task task;
  task.name = kernel.name;
  for (const Operand& operand : plan.operands) {
    task.accesses.insert(task.accesses.end(), operand.accesses.begin(),
                         operand.accesses.end());
  }
  task.notes = std::move(plan.notes);
  task.notes.emplace_back("blockDim", std::to_string(cores));
  task.body = [&runtime, run = std::move(plan.run)] {
    run([&runtime](Address address) { return runtime.shadow(address); });
    return Status::kOk;
  };
  return task;
}

Task make_task(Runtime& runtime, const Stream* stream, const Kernel& kernel,
               const LaunchRequest& request) {
  std::variant<Plan, BlockError> made =
      kernel.make_plan(request.block, request.cores);
  if (const auto* error = std::get_if<BlockError>(&made)) {
    return failing_task(runtime, kernel, *error);
  }
  Plan& plan = std::get<Plan>(made);
  if (const auto error = check_memory(runtime, stream, plan)) {
    return failing_task(runtime, kernel, *error);
  }
  return working_task(runtime, kernel, std::move(plan), request.cores);
}

}  // namespace

Status launch(Runtime& runtime, const Registry& registry,
              const LaunchRequest& request) {
  const auto chosen = choose(runtime, registry, request);
  if (const auto* refusal = std::get_if<Status>(&chosen)) {
    return *refusal;
  }
  const Kernel& kernel = *std::get<const Kernel*>(chosen);
  Stream* const stream = runtime.find_stream(request.stream);
  if (stream == nullptr) {
    return runtime.fail(Status::kInvalidHandle,
                        "launch of kernel " + std::string(kernel.name) +
                            ": the stream is unknown or was destroyed");
  }
  return runtime.submit(stream, make_task(runtime, stream, kernel, request));
}

}  // namespace ascend_sim
