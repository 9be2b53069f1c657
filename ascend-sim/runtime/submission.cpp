// A task's way: submission, its place in time, its run; and waits for it.
// Knows graphs only as jobs.
#include <algorithm>
#include <utility>

#include "runtime/machine.h"

namespace ascend_sim {
namespace {

constexpr std::chrono::milliseconds kHangWait{1000};

std::string name_of(const Job& job) {
  return job.task->name + " (stream " + std::to_string(job.stream) + ", task " +
         std::to_string(job.sequence) +
         (job.graph == 0 ? ")"
                         : " of graph " + std::to_string(job.graph) + ")");
}

// By these, the same mistake in a loop is one report.
std::string key_of(const Job& job) {
  return job.task->name + "@" + std::to_string(job.stream);
}

}  // namespace

Status Runtime::Machine::submit(Stream& stream, Task task) {
  if (stream.capture.id != 0) {
    return capture_task(stream, std::move(task));
  }
  engine.tick();
  stream.clock.join(host);
  Job job;
  job.body = task.body ? std::make_shared<const std::function<Status()>>(
                             std::exchange(task.body, nullptr))
                       : nullptr;
  job.task = std::make_shared<const Task>(std::move(task));
  job.device = stream.device;
  job.stream = stream.id;
  job.owner = stream.id;
  job.sequence = ++stream.sequence;
  for (const Access& access : job.task->accesses) {
    job.serials.push_back(serial_of(access));
  }
  stream.end =
      schedule(std::move(job), stream.component, stream.clock, stream.end);
  return Status::kOk;
}

Ticks Runtime::Machine::schedule(Job job, Component& component, Clock& clock,
                                 Ticks after) {
  clock.set(component.index, ++component.count);
  if (faults.any()) {
    const bool fails = faults.hit("launch:" + job.task->name);
    const bool hangs = faults.hit("hang:" + job.task->name);
    job.fate = hangs ? Fate::kHangs : fails ? Fate::kFails : Fate::kRuns;
  }
  const auto [start, end] =
      engine.draw(std::max(engine.now(), after), component);
  job.start = start;
  job.end = job.fate == Fate::kHangs ? kNever : end;
  for (std::size_t i = 0; i < job.task->accesses.size(); ++i) {
    const Access& access = job.task->accesses[i];
    if (access.bytes == 0) {
      continue;
    }
    if (serial_of(access) == 0) {
      report_outside(name_of(job), key_of(job), access);
      continue;
    }
    const Races::Site site{component.index, component.count, job.stream,
                           job.sequence,    job.task,        access};
    const auto racing = races.add(site, clock);
    if (!racing.empty()) {
      report_races(racing, name_of(job), key_of(job), access);
    }
  }
  races.prune(host);
  const Ticks done = job.end;
  engine.push(std::move(job));
  return done;
}

bool Runtime::Machine::start(const Job& job) {
  if (async_error != Status::kOk || job.fate == Fate::kHangs) {
    return false;
  }
  if (job.fate == Fate::kFails) {
    async_error = Status::kVectorCoreException;
    trace.ran(job, async_error);
    return false;
  }
  for (std::size_t i = 0; i < job.task->accesses.size(); ++i) {
    const Access& access = job.task->accesses[i];
    const std::uint64_t now =
        access.bytes == 0 ? job.serials[i] : serial_of(access);
    if (now == 0 && access.bytes != 0) {
      report_outside(name_of(job), key_of(job), access);
      async_error = Status::kVectorCoreException;
    } else if (now != job.serials[i]) {
      // Another block lies there now: a device would not notice.
      reports.add("use-after-free", key_of(job),
                  name_of(job) + " " + describe(access) +
                      ", in a block that was given out after the task was "
                      "submitted or captured");
    }
  }
  if (async_error != Status::kOk) {
    trace.ran(job, async_error);
    return false;
  }
  materialize(*job.task);
  return true;
}

void Runtime::Machine::finish(const Job& job, Status status) {
  trace.ran(job, status);
  if (status != Status::kOk && async_error == Status::kOk) {
    async_error = status;
  }
}

Status Runtime::Machine::wait_until(Engine::Lock& lock, Ticks time,
                                    Timeout timeout) {
  if (time == kNever) {
    engine.wait_in_vain(lock, timeout.value_or(kHangWait));
    if (!timeout) {
      reports.add("hang", "",
                  "the host waits, without a timeout, for a stream "
                  "on which a task hangs");
    }
    return fail(Status::kSyncTimeout, "the work waited for hangs");
  }
  engine.advance(time);
  if (!engine.drain(lock, timeout)) {
    return fail(Status::kSyncTimeout, "the wait for pending work timed out");
  }
  if (async_error != Status::kOk) {
    return fail(async_error, "an asynchronous operation failed earlier");
  }
  return Status::kOk;
}

Status Runtime::Machine::wait_for(Engine::Lock& lock, Ticks time,
                                  const Clock& clock, Timeout timeout) {
  const Status status = wait_until(lock, time, timeout);
  if (status != Status::kSyncTimeout) {
    host.join(clock);  // after an error, too, nothing of it runs any more
  }
  return status;
}

Status Runtime::Machine::synchronize(Engine::Lock& lock, Stream& stream,
                                     Timeout timeout) {
  if (stream.capture.id != 0) {
    return fail(Status::kStreamCaptured,
                "stream " + std::to_string(stream.id) +
                    " captures a graph and cannot be waited for");
  }
  const Clock clock = stream.clock;
  return wait_for(lock, stream.end, clock, timeout);
}

Status Runtime::Machine::run_on_host(Engine::Lock& lock, const Task& task) {
  engine.tick();
  engine.drain(lock, std::nullopt);
  const std::string who = "the host's " + task.name;
  for (const Access& access : task.accesses) {
    if (serial_of(access) == 0) {
      report_outside(who, task.name, access);
      return fail(Status::kInvalidParam,
                  who + " " + describe(access) + ", which no live block holds");
    }
    report_races(races.find(access, host), who, task.name, access);
  }
  materialize(task);
  note(task.name, "copy");
  return task.body();
}

}  // namespace ascend_sim
