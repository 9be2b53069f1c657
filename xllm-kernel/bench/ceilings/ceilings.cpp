// Checks what the C interface is given, spreads passes over threads and times
// them. The passes themselves are a level's own file.
#include "ceilings/ceilings.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <exception>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "ceilings/passes.h"
#include "ceilings/places.h"
#include "xllm_kernel/core.h"

namespace xllm_kernel::ceilings {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kRefused = -1.0;
constexpr std::int32_t kMostThreads = 256;  // as the refusal says
constexpr std::int64_t kLine = 64;

thread_local std::array<char, 512> last_error{};
thread_local double last_waited_s = 0;

// What must hold, and what was seen.
double refuse(const char* rule, std::int64_t got) noexcept {
  std::snprintf(last_error.data(), last_error.size(),
                "ceilings: %s, got %" PRId64, rule, got);
  return kRefused;
}

double refuse_dot(const char* level) noexcept {
  std::snprintf(last_error.data(), last_error.size(),
                "ceilings: the level must have bf16 dot products, as "
                "avx512bf16 has, got %s; measure multiply-adds instead",
                level);
  return kRefused;
}

// A thread's part of a measurement, and how long the thread ran meanwhile.
struct Span {
  Clock::time_point begin;
  Clock::time_point end;
  Clock::duration run;
};

// How long the calling thread has run so far.
Clock::duration run_so_far() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) +
         std::chrono::nanoseconds(time.tv_nsec);
}

// The threads of one measurement meet here before they start.
class Start final {
 public:
  explicit Start(std::int32_t threads) noexcept : missing_(threads) {}

  void arrive_and_wait() noexcept {
    missing_.fetch_sub(1, std::memory_order_acq_rel);
    // A sleeping thread would wake up late, inside the measured time. Yielding
    // lets the others arrive where processors are short.
    while (missing_.load(std::memory_order_acquire) > 0) {
      std::this_thread::yield();
    }
  }
  // Lets go of those that wait, for the rest will never come.
  void give_up() noexcept { missing_.store(0, std::memory_order_release); }

 private:
  std::atomic<std::int32_t> missing_;
};

// Runs `pass(thread)` `repetitions` times on each thread, this one being the
// first, and returns the seconds of one repetition.
template <class Pass>
double timed(std::int32_t threads, std::int64_t repetitions,
             const Pass& pass) noexcept try {
  Start start(threads);
  Places places;
  std::vector<Span> spans(static_cast<std::size_t>(threads));
  const auto work = [&](std::int32_t thread) noexcept {
    if (thread > 0) places.take();
    start.arrive_and_wait();
    const Clock::duration before = run_so_far();
    const Clock::time_point begin = Clock::now();
    for (std::int64_t i = 0; i < repetitions; ++i) pass(thread);
    const Clock::time_point end = Clock::now();
    spans[static_cast<std::size_t>(thread)] = {begin, end,
                                               run_so_far() - before};
  };
  {
    std::vector<std::jthread> others;
    if (threads > 1) places.take();
    others.reserve(static_cast<std::size_t>(threads - 1));
    try {
      while (std::ssize(others) < threads - 1) {
        others.emplace_back(work, static_cast<std::int32_t>(others.size()) + 1);
      }
    } catch (const std::system_error&) {
      start.give_up();
      throw;
    }
    work(0);
  }
  const Clock::time_point first =
      std::ranges::min_element(spans, {}, &Span::begin)->begin;
  const Clock::time_point last =
      std::ranges::max_element(spans, {}, &Span::end)->end;
  // A thread that was taken off its processor just before its part is late for
  // the others' too.
  Clock::duration waited{};
  for (const Span& span : spans) {
    waited = std::max(waited, span.end - first - span.run);
  }
  last_waited_s = std::chrono::duration<double>(waited).count();
  return std::chrono::duration<double>(last - first).count() /
         static_cast<double>(repetitions);
} catch (const std::exception&) {
  return refuse("threads must be no more than the system starts", threads);
}

// The bytes of one thread; parts end at whole cache lines of the buffer.
struct Part {
  std::int64_t begin;
  std::int64_t bytes;
};

Part part_of(std::int64_t bytes, std::int32_t threads, std::int32_t thread) {
  const std::int64_t lines = (bytes + kLine - 1) / kLine;
  const std::int64_t share = (lines + threads - 1) / threads * kLine;
  const std::int64_t begin = std::min(bytes, share * thread);
  return {begin, std::min(bytes - begin, share)};
}

// What all functions share of their checks.
bool accepts(std::int32_t threads, std::int64_t repetitions) noexcept {
  last_error[0] = '\0';
  const SimdLevel& level = simd_level();
  if (level.status != Status::kOk) {
    std::snprintf(last_error.data(), last_error.size(), "%s", level.message);
  } else if (threads < 1 || threads > kMostThreads) {
    refuse("threads must be 1 to 256", threads);
  } else if (repetitions < 1) {
    refuse("repetitions must be at least 1", repetitions);
  } else {
    return true;
  }
  return false;
}

// Where results go that nobody needs, so that they are computed.
std::atomic<std::uint64_t> sink;

// Times `pass(passes, part)` over the parts of `bytes` bytes.
template <class Pass>
double timed_bytes(std::int64_t bytes, std::int32_t threads,
                   std::int64_t repetitions, const Pass& pass) noexcept {
  const Passes passes = passes_of(simd_level().name);
  return timed(threads, repetitions, [&](std::int32_t thread) noexcept {
    pass(passes, part_of(bytes, threads, thread));
  });
}

bool accepts_buffer(const void* buffer, std::int64_t bytes) noexcept {
  if (bytes < 1) {
    refuse("bytes must be at least 1", bytes);
  } else if (buffer == nullptr) {
    refuse("a buffer must not be null", 0);
  } else {
    return true;
  }
  return false;
}

bool accepts_apart(const void* destination, const void* source,
                   std::int64_t bytes) noexcept {
  const auto distance =
      static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(destination) -
                                reinterpret_cast<std::uintptr_t>(source));
  if (distance >= bytes || distance <= -bytes) return true;
  refuse("destination must be `bytes` or more apart from source", distance);
  return false;
}

// Times `operations` of `turns_of`, whose turn has `operations_a_turn` of them.
double timed_operations(float (*turns_of)(std::int64_t turns) noexcept,
                        std::int64_t operations_a_turn, std::int64_t operations,
                        std::int32_t threads,
                        std::int64_t repetitions) noexcept {
  const std::int64_t grain = std::int64_t{XLLM_CEILING_GRAIN} * threads;
  if (operations < 1 || operations % grain != 0) {
    return refuse("operations must be a multiple of 1536 times the threads",
                  operations);
  }
  const std::int64_t turns = operations / threads / operations_a_turn;
  return timed(threads, repetitions, [=](std::int32_t) noexcept {
    sink.store(static_cast<std::uint64_t>(turns_of(turns)),
               std::memory_order_relaxed);
  });
}

// Either of the two copies.
double timed_copy(void (*Passes::*copy)(std::byte*, const std::byte*,
                                        std::int64_t) noexcept,
                  void* destination, const void* source, std::int64_t bytes,
                  std::int32_t threads, std::int64_t repetitions) noexcept {
  if (!accepts(threads, repetitions) || !accepts_buffer(destination, bytes) ||
      !accepts_buffer(source, bytes) ||
      !accepts_apart(destination, source, bytes)) {
    return kRefused;
  }
  auto* to = static_cast<std::byte*>(destination);
  const auto* from = static_cast<const std::byte*>(source);
  return timed_bytes(bytes, threads, repetitions,
                     [=](const Passes& passes, Part part) noexcept {
                       (passes.*copy)(to + part.begin, from + part.begin,
                                      part.bytes);
                     });
}

}  // namespace

const Passes& passes_of(std::string_view level) noexcept {
#if defined(__x86_64__)
  // Levels that only add arithmetic move memory like the one they extend.
  if (level.starts_with("avx512")) return avx512::passes();
  if (level == "avx2") return avx2::passes();
#elif defined(__aarch64__)
  if (level == "neon") return neon::passes();
#endif
  return scalar::passes();
}

DotPass dot_pass_of([[maybe_unused]] std::string_view level) noexcept {
#if defined(__x86_64__)
  if (level == "avx512bf16") return avx512bf16::dot_pass();
#endif
  return {};
}

}  // namespace xllm_kernel::ceilings

namespace xc = xllm_kernel::ceilings;

extern "C" {

double xllm_ceiling_read(const void* source, std::int64_t bytes,
                         std::int32_t threads, std::int64_t repetitions) {
  if (!xc::accepts(threads, repetitions) ||
      !xc::accepts_buffer(source, bytes)) {
    return xc::kRefused;
  }
  const auto* from = static_cast<const std::byte*>(source);
  return xc::timed_bytes(
      bytes, threads, repetitions,
      [from](const xc::Passes& passes, xc::Part part) noexcept {
        xc::sink.store(passes.read(from + part.begin, part.bytes),
                       std::memory_order_relaxed);
      });
}

double xllm_ceiling_copy(void* destination, const void* source,
                         std::int64_t bytes, std::int32_t threads,
                         std::int64_t repetitions) {
  return xc::timed_copy(&xc::Passes::copy, destination, source, bytes, threads,
                        repetitions);
}

double xllm_ceiling_copy_streaming(void* destination, const void* source,
                                   std::int64_t bytes, std::int32_t threads,
                                   std::int64_t repetitions) {
  return xc::timed_copy(&xc::Passes::copy_streaming, destination, source, bytes,
                        threads, repetitions);
}

double xllm_ceiling_update(void* buffer, std::int64_t bytes,
                           std::int32_t threads, std::int64_t repetitions) {
  if (!xc::accepts(threads, repetitions) ||
      !xc::accepts_buffer(buffer, bytes)) {
    return xc::kRefused;
  }
  auto* at = static_cast<std::byte*>(buffer);
  return xc::timed_bytes(
      bytes, threads, repetitions,
      [at](const xc::Passes& passes, xc::Part part) noexcept {
        passes.update(at + part.begin, part.bytes);
      });
}

double xllm_ceiling_fma(std::int64_t operations, std::int32_t threads,
                        std::int64_t repetitions) {
  if (!xc::accepts(threads, repetitions)) return xc::kRefused;
  const xc::Passes& passes = xc::passes_of(xllm_kernel::simd_level().name);
  return xc::timed_operations(passes.fma, passes.operations_a_turn, operations,
                              threads, repetitions);
}

double xllm_ceiling_dot(std::int64_t operations, std::int32_t threads,
                        std::int64_t repetitions) {
  if (!xc::accepts(threads, repetitions)) return xc::kRefused;
  const char* const level = xllm_kernel::simd_level().name;
  const xc::DotPass pass = xc::dot_pass_of(level);
  if (pass.dot == nullptr) return xc::refuse_dot(level);
  return xc::timed_operations(pass.dot, pass.operations_a_turn, operations,
                              threads, repetitions);
}

const char* xllm_ceiling_level(void) { return xllm_kernel::simd_level().name; }

double xllm_ceiling_waited(void) { return xc::last_waited_s; }

const char* xllm_ceiling_error(void) { return xc::last_error.data(); }

}  // extern "C"
