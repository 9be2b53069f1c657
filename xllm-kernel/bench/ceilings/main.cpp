// Prints the ceilings of this machine over sizes inside and outside its caches.
// Measures through the C interface alone.
//
// Usage: ceilings [THREADS ...]      (default: 1 2)
#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "ceilings/ceilings.h"

namespace {

constexpr std::int64_t kPage = 4096;
// Traffic of one sample, so that the clock's own cost disappears.
constexpr std::int64_t kSampleBytes = std::int64_t{4} << 20;
constexpr int kSamples = 21;
// 0.1 to 1 ms at 10 to 1000 GFLOP/s a thread.
constexpr std::int64_t kOperations = std::int64_t{XLLM_CEILING_GRAIN} << 13;

struct Size {
  std::string where;
  // Of both buffers of a copy together: they share the cache.
  std::int64_t bytes;
};

// The size that Linux gives for one of the first processor's caches, in bytes.
// (sysconf() adds up, on some virtual machines, the caches of the whole host.)
std::int64_t cache_bytes(int level, std::int64_t otherwise) {
  for (int index = 0; index < 8; ++index) {
    std::string folder = "/sys/devices/system/cpu/cpu0/cache/index";
    folder += std::to_string(index);
    int found = 0;
    std::string type;
    std::int64_t kibibytes = 0;  // written as "32768K"
    std::ifstream(folder + "/level") >> found;
    std::ifstream(folder + "/type") >> type;
    std::ifstream(folder + "/size") >> kibibytes;
    if (found == level && type != "Instruction" && kibibytes > 0) {
      return kibibytes << 10;
    }
  }
  return otherwise;
}

// Half of each cache for both buffers, and four times the last one.
std::vector<Size> sizes() {
  const std::int64_t l1 = cache_bytes(1, 32 << 10);
  const std::int64_t l2 = cache_bytes(2, 1 << 20);
  const std::int64_t l3 = cache_bytes(3, 32 << 20);
  return {{"L1", l1 / 2},
          {"L2", l2 / 2},
          {"L3", l3 / 2},
          {"memory", std::max(4 * l3, std::int64_t{128} << 20)}};
}

// Fresh pages that are touched, so that no measurement pays for page faults.
std::byte* touched(std::int64_t bytes) {
  void* at = mmap(nullptr, static_cast<std::size_t>(bytes),
                  PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) {
    std::perror("ceilings: mmap");
    std::exit(1);
  }
  std::memset(at, 1, static_cast<std::size_t>(bytes));
  return static_cast<std::byte*>(at);
}

// The least of several samples, in seconds; exits where one is refused.
template <class Sample>
double best(const Sample& sample) {
  double least = 0.0;
  for (int i = 0; i < kSamples; ++i) {
    const double seconds = sample();
    if (seconds < 0.0) {
      std::fprintf(stderr, "%s\n", xllm_ceiling_error());
      std::exit(2);
    }
    if (i == 0 || seconds < least) least = seconds;
  }
  return least;
}

struct Buffers {
  std::byte* first;
  std::byte* second;
};

void print_row(const Size& size, std::int32_t threads, const Buffers& of) {
  const std::int64_t half = size.bytes / 2;
  const std::int64_t passes = std::max<std::int64_t>(1, kSampleBytes / half);
  const auto rate = [](std::int64_t bytes, double seconds) {
    return static_cast<double>(bytes) / seconds * 1e-9;
  };
  const double read = best(
      [&] { return xllm_ceiling_read(of.first, size.bytes, threads, passes); });
  // Loads that share the low 12 bits of their address with a store in flight
  // wait for it on some processors: the better of two distances counts.
  double copy[2];
  double streaming[2];
  for (int way = 0; way < 2; ++way) {
    std::byte* const to = of.second + way * kPage / 2;
    copy[way] = best(
        [&] { return xllm_ceiling_copy(to, of.first, half, threads, passes); });
    streaming[way] = best([&] {
      return xllm_ceiling_copy_streaming(to, of.first, half, threads, passes);
    });
  }
  const double update = best([&] {
    return xllm_ceiling_update(of.first, size.bytes, threads, passes);
  });
  std::printf("%-8s %10.0f %7d %9.1f %9.1f %9.1f %9.1f\n", size.where.c_str(),
              static_cast<double>(size.bytes) / 1024, threads,
              rate(size.bytes, read),
              rate(2 * half, std::min(copy[0], copy[1])),
              rate(2 * half, std::min(streaming[0], streaming[1])),
              rate(2 * size.bytes, update));
}

std::vector<std::int32_t> thread_counts(int count, char** arguments) {
  std::vector<std::int32_t> counts;
  for (int i = 1; i < count; ++i) {
    const std::string_view text = arguments[i];
    std::int32_t value = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) {
      std::fprintf(stderr, "usage: ceilings [THREADS ...], got '%s'\n",
                   arguments[i]);
      std::exit(2);
    }
    counts.push_back(value);
  }
  if (counts.empty()) counts = {1, 2};
  return counts;
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::int32_t> threads = thread_counts(count, arguments);
  const std::vector<Size> all = sizes();
  const std::int64_t most = all.back().bytes;
  const Buffers buffers{touched(most), touched(most / 2 + kPage)};
  std::printf(
      "level %s; GB/s, each byte read or written counted once; best of "
      "%d samples\n%-8s %10s %7s %9s %9s %9s %9s\n",
      xllm_ceiling_level(), kSamples, "in", "KiB", "threads", "read", "copy",
      "streaming", "update");
  for (const Size& size : all) {
    for (const std::int32_t n : threads) print_row(size, n, buffers);
  }
  for (const std::int32_t n : threads) {
    const double seconds =
        best([&] { return xllm_ceiling_fma(kOperations * n, n, 1); });
    std::printf("fp32 FMA, %d threads: %.1f GFLOP/s\n", n,
                static_cast<double>(kOperations * n) / seconds * 1e-9);
  }
  if (xllm_ceiling_dot(XLLM_CEILING_GRAIN, 1, 1) < 0.0) {
    std::printf("bf16 dot products: none (%s)\n", xllm_ceiling_error());
    return 0;
  }
  for (const std::int32_t n : threads) {
    const double seconds =
        best([&] { return xllm_ceiling_dot(kOperations * n, n, 1); });
    std::printf("bf16 dot products, %d threads: %.1f GFLOP/s\n", n,
                static_cast<double>(kOperations * n) / seconds * 1e-9);
  }
  return 0;
}
