// Chooses the SIMD level once from the machine and XLLM_KERNEL_SIMD_LEVEL. Does
// not look at any operator.
#include "simd/core/levels.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "simd/core/caches.h"

namespace xllm_kernel {

namespace simd {

namespace {

constexpr const char* kVariable = "XLLM_KERNEL_SIMD_LEVEL";

#if defined(__x86_64__)
bool has_avx2(const CpuFeatures& features) noexcept {
  return features.avx2 && features.fma && features.f16c;
}

bool has_avx512(const CpuFeatures& features) noexcept {
  return has_avx2(features) && features.avx512;
}
#endif

constexpr std::array kLevels = {
#if defined(__x86_64__)
    LevelInfo{Level::kAvx512Bf16, "avx512bf16",
              [](const CpuFeatures& features) noexcept {
                return has_avx512(features) && features.avx512bf16;
              }},
    LevelInfo{Level::kAvx512, "avx512", has_avx512},
    LevelInfo{Level::kAvx2, "avx2", has_avx2},
#elif defined(__aarch64__)
    LevelInfo{Level::kNeon, "neon",
              [](const CpuFeatures&) noexcept { return true; }},
#endif
    LevelInfo{Level::kScalar, "scalar",
              [](const CpuFeatures&) noexcept { return true; }},
};

// Appends what fits; a longer text is cut, never overrun.
class Writer final {
 public:
  explicit Writer(std::span<char> buffer) : rest_(buffer) {}

  void add(std::string_view text) noexcept {
    if (rest_.empty()) return;
    const std::size_t count = std::min(text.size(), rest_.size() - 1);
    text.copy(rest_.data(), count);
    rest_ = rest_.subspan(count);
    rest_[0] = '\0';
  }

 private:
  std::span<char> rest_;
};

void refuse(Status status, std::string_view forced, const CpuFeatures& features,
            LevelChoice* choice) noexcept {
  Writer writer(choice->text);
  writer.add(kVariable);
  writer.add(" must name a SIMD level that this machine has (");
  const char* separator = "";
  for (const LevelInfo& info : kLevels) {
    if (!info.available(features)) continue;
    writer.add(separator);
    writer.add(info.name);
    separator = ", ";
  }
  writer.add("), got '");
  writer.add(forced.substr(0, 64));
  writer.add(status == Status::kUnknownLevel
                 ? "', which is none; "
                 : "', which processor or operating system lacks; ");
  writer.add("unset it for the best level");
  choice->result = {.status = status, .message = choice->text.data()};
}

}  // namespace

std::span<const LevelInfo> levels() noexcept { return kLevels; }

void choose_level(std::optional<std::string_view> forced,
                  const CpuFeatures& features, LevelChoice* choice) noexcept {
  for (const LevelInfo& info : kLevels) {
    if (forced.has_value() && *forced != info.name) continue;
    if (info.available(features)) {
      choice->level = info.level;
      choice->result = {.status = Status::kOk, .name = info.name};
      return;
    }
    if (forced.has_value()) {
      refuse(Status::kUnavailableLevel, *forced, features, choice);
      return;
    }
  }
  refuse(Status::kUnknownLevel, forced.value_or(""), features, choice);
}

const LevelChoice& selected_level() noexcept {
  // Only a choice that succeeded is kept: a caller may correct the environment
  // and try again. Local, so that no code runs when the library is loaded.
  static std::atomic<const LevelChoice*> kept{nullptr};
  const LevelChoice* choice = kept.load(std::memory_order_acquire);
  if (choice != nullptr) return *choice;
  static thread_local LevelChoice made;
  const char* value = std::getenv(kVariable);
  choose_level(
      value == nullptr ? std::nullopt : std::optional<std::string_view>(value),
      features_from(read_cpuid()), &made);
  if (made.result.status != Status::kOk) return made;
  // The first thread's choice stays; all that succeed are of one machine.
  static LevelChoice first;
  static const bool decided = [] {
    // Asked here, so that no kernel call has to.
    static_cast<void>(last_cache_bytes());
    first.level = made.level;
    first.result = made.result;
    kept.store(&first, std::memory_order_release);
    return true;
  }();
  static_cast<void>(decided);
  return *kept.load(std::memory_order_acquire);
}

}  // namespace simd

const SimdLevel& simd_level() noexcept { return simd::selected_level().result; }

}  // namespace xllm_kernel
