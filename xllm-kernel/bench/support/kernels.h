// Registers the kernels of a variants table with Google Benchmark: every level
// of this machine, every dtype, every shape. Knows no operator.
#pragma once

#include <benchmark/benchmark.h>

#include <array>
#include <span>
#include <string>

#include "simd/core/levels.h"
#include "support/case.h"

namespace xllm_kernel::bench {

// From a call that costs little but itself to one that memory bounds.
inline constexpr std::array kShapes = {
    Shape{1, 512},    Shape{1, 6144},    Shape{16, 6144},
    Shape{128, 6144}, Shape{4096, 6144}, Shape{65536, 512},
};

// Of the largest tensor: 64 MiB of bf16.
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 25;

// A case is made of a dtype and a shape, runs one kernel of the table, and says
// how many bytes a call must read and write, each once. The kernel runs on this
// thread: what is measured is the kernel.
template <class Case, class Variant>
void register_kernels(const std::string& operation,
                      std::span<const Variant> variants) {
  const simd::CpuFeatures features = simd::features_from(simd::read_cpuid());
  for (const simd::LevelInfo& level : simd::levels()) {
    if (!level.available(features)) continue;
    for (const Variant& variant : variants) {
      if (variant.level != level.level) continue;
      for (const Shape& shape : kShapes) {
        const std::string name = operation + "/" + level.name + "/" +
                                 dtypes_name(variant.dtype, variant.weight) +
                                 "/" + shape.name();
        benchmark::RegisterBenchmark(
            name.c_str(), [variant, shape](benchmark::State& state) {
              Case of(variant.dtype, variant.weight, shape);
              of.run(variant);  // touches every page
              for (auto _ : state) of.run(variant);
              state.SetBytesProcessed(state.iterations() * of.bytes());
            });
      }
    }
  }
}

// The public function on bf16, on one thread and on two of the library's own,
// by growing numbers of rows: shows the cost model, and where stores change.
template <class Case>
void register_public(const std::string& operation) {
  for (const std::int64_t width : {512, 6144}) {
    for (std::int64_t rows = 1; rows * width <= kMostElements; rows *= 2) {
      for (const int count : {1, 2}) {
        const Shape shape{rows, width};
        const std::string name = operation + "/public/" + shape.name() +
                                 "/threads:" + std::to_string(count);
        benchmark::RegisterBenchmark(
            name.c_str(),
            [shape, count](benchmark::State& state) {
              const Case of(DType::kBFloat16, DType::kBFloat16, shape);
              const Threads threads = Threads::own(count);
              for (auto _ : state) {
                const Status status = of.run_public(threads);
                if (status != Status::kOk) {
                  state.SkipWithError(status_message(status));
                }
              }
              state.SetBytesProcessed(state.iterations() * of.bytes());
            })
            // Of one thread it would be the caller's time alone.
            ->UseRealTime();
      }
    }
  }
}

// What main() returns.
inline int run_benchmarks(int count, char** arguments) {
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 2;
  // No match is a mistake in the filter, not a success.
  return benchmark::RunSpecifiedBenchmarks() == 0 ? 2 : 0;
}

}  // namespace xllm_kernel::bench
