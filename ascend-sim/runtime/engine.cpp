// The order of tasks and the thread that runs them.
// Decides nothing about what a task may touch.
#include "runtime/engine.h"

#include <algorithm>
#include <utility>

namespace ascend_sim {
namespace {

// splitmix64's last step: enough to make neighbouring seeds unlike.
std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31U);
}

}  // namespace

void Engine::stop() {
  {
    const Lock lock(mutex_);
    stopped_ = true;
    wake_.notify_all();
    ran_.notify_all();
  }
  if (worker_.joinable()) {
    worker_.join();
  }
}

Ticks Engine::tick() {
  advance(now_ + 1);
  return now_;
}

void Engine::advance(Ticks to) {
  now_ = std::max(now_, to);
  if (!running_ && due(now_)) {
    wake_.notify_one();
  }
}

Engine::Span Engine::draw(Ticks ready, const Component& component) const {
  if (ready == kNever) {
    return {kNever, kNever};
  }
  const std::uint64_t place = std::uint64_t{component.index} + 1;
  const std::uint64_t drawn = mix(
      mix(mix(seed_ + 1) + place * 0x9e3779b97f4a7c15ULL) + component.count);
  // One in eight is long, so that streams overtake each other.
  const bool is_long = (drawn & 7U) == 0;
  const Ticks start = ready + ((drawn >> 4U) & 3U);
  return {start, start + 1 + (drawn >> 8U) % (is_long ? 64 : 4)};
}

void Engine::push(Job job) {
  job.number = ++submissions_;
  if (job.start == kNever || stopped_) {
    return;  // behind a task that hangs, or after the end
  }
  jobs_.insert(std::move(job));
  if (!worker_.joinable()) {
    worker_ = std::thread([this] { work(); });
  }
  if (!running_ && due(now_)) {
    wake_.notify_one();
  }
}

bool Engine::due(Ticks by) const {
  return !jobs_.empty() && jobs_.begin()->start <= by;
}

bool Engine::drain(Lock& lock, Timeout timeout) {
  const Ticks by = now_;
  const auto done = [this, by] {
    return stopped_ || (!due(by) && (!running_ || *running_ > by));
  };
  if (timeout) {
    return ran_.wait_for(lock, *timeout, done);
  }
  ran_.wait(lock, done);
  return true;
}

void Engine::wait_in_vain(Lock& lock, std::chrono::milliseconds time) {
  if (!jobs_.empty()) {
    advance(jobs_.rbegin()->start);
  }
  drain(lock, std::nullopt);
  ran_.wait_for(lock, time, [this] { return stopped_; });
}

void Engine::drop(std::int32_t owner) {
  std::erase_if(jobs_, [owner](const Job& job) { return job.owner == owner; });
}

void Engine::work() {
  Lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopped_ || due(now_); });
    if (stopped_) {
      return;
    }
    run_first(lock);
  }
}

void Engine::run_first(Lock& lock) {
  Job job = std::move(jobs_.extract(jobs_.begin()).value());
  running_ = job.start;
  Status status = Status::kOk;
  if (client_.start(job)) {
    lock.unlock();
    if (job.body) {
      status = (*job.body)();
    }
    job.body.reset();  // it may own much, or be slow to destroy
    lock.lock();
    client_.finish(job, status);
  }
  running_.reset();
  ran_.notify_all();
}

}  // namespace ascend_sim
