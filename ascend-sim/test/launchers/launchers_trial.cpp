// Calls the xlite wheel's launcher libraries, unmodified, over the simulated
// runtime. Each group of tests needs a process of its own, because what the
// environment says is read once; CMakeLists.txt runs them so.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "abi/ascend_sim.h"
#include "acl/acl.h"
#include "test/narrow_reference.h"

namespace ascend_sim {
namespace {

using testing::Bfloat16;
using testing::Float16;
using testing::kHalfUlp;
using testing::value_of;

using LaunchNorm = std::uint32_t (*)(
    std::uint32_t block_dim, aclrtStream stream, void* input, void* add_in_out,
    void* weight, void* bias, void* out, std::uint32_t token_num,
    std::uint32_t norm_dim, float eps, int kind, std::uint32_t cnt_per_token,
    std::uint32_t in_step, std::uint32_t out_step, std::uint32_t in_start,
    std::uint32_t out_start, bool use_norm, void* variance,
    std::uint32_t tp_size, bool out_fp32);

template <typename Function>
Function find(const std::string& library, const std::string& symbol) {
  const std::string path = std::string(ASCEND_SIM_XLITE_LIBRARIES) +
                           "/libxlite_kernels_" + library + "_npu.so";
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) {
    ADD_FAILURE() << dlerror();
    return nullptr;
  }
  return reinterpret_cast<Function>(dlsym(handle, symbol.c_str()));
}

template <typename Narrow>
LaunchNorm norm_of();
template <>
LaunchNorm norm_of<Bfloat16>() {
  return find<LaunchNorm>("bf16", "aclrtlaunch_norm_bfloat16_t");
}
template <>
LaunchNorm norm_of<Float16>() {
  return find<LaunchNorm>("f16", "aclrtlaunch_norm_float16_t");
}

// Device memory, copied by calls that wait.
template <typename Value>
class OnDevice final {
 public:
  explicit OnDevice(std::size_t elements) : elements_(elements) {
    EXPECT_EQ(aclrtMalloc(&data_, bytes(), ACL_MEM_MALLOC_HUGE_FIRST),
              ACL_SUCCESS);
  }
  explicit OnDevice(const std::vector<Value>& values)
      : OnDevice(values.size()) {
    EXPECT_EQ(aclrtMemcpy(data_, bytes(), values.data(), bytes(),
                          ACL_MEMCPY_HOST_TO_DEVICE),
              ACL_SUCCESS);
  }
  ~OnDevice() { EXPECT_EQ(aclrtFree(data_), ACL_SUCCESS); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] std::vector<Value> read() const {
    std::vector<Value> values(elements_);
    EXPECT_EQ(aclrtMemcpy(values.data(), bytes(), data_, bytes(),
                          ACL_MEMCPY_DEVICE_TO_HOST),
              ACL_SUCCESS);
    return values;
  }

 private:
  [[nodiscard]] std::size_t bytes() const { return elements_ * sizeof(Value); }

  std::size_t elements_;
  void* data_ = nullptr;
};

std::string text_of(std::size_t (*function)(char*, std::size_t)) {
  std::vector<char> text(function(nullptr, 0));
  function(text.data(), text.size());
  return text.data();
}

template <typename Narrow>
std::vector<Narrow> random(std::size_t elements) {
  static std::mt19937 engine(5309);
  std::normal_distribution<float> normal(0.25F, 2);
  std::vector<Narrow> values(elements);
  for (Narrow& value : values) {
    value.bits = Narrow::narrow(normal(engine));
  }
  return values;
}

constexpr float kEps = 1e-5F;

// RMS norm of dense rows through the launcher.
template <typename Narrow>
class Trial final {
 public:
  Trial(std::uint32_t rows, std::uint32_t width)
      : rows_(rows),
        width_(width),
        input_(random<Narrow>(std::size_t{rows} * width)),
        weight_(random<Narrow>(width)),
        device_input_(input_),
        device_weight_(weight_),
        device_out_(input_.size()) {}

  std::uint32_t launch(std::uint32_t cores, aclrtStream stream) {
    return norm_of<Narrow>()(cores, stream, device_input_.data(), nullptr,
                             device_weight_.data(), nullptr, device_out_.data(),
                             rows_, width_, kEps, 0, 1, width_, width_, 0, 0,
                             true, nullptr, 1, false);
  }

  [[nodiscard]] std::vector<Narrow> out() const { return device_out_.read(); }

  void check() const {
    const std::vector<Narrow> got = out();
    for (std::size_t row = 0; row < rows_; ++row) {
      const Narrow* const x = &input_[row * width_];
      double square = 0;
      for (std::size_t i = 0; i < width_; ++i) {
        square += value_of(x[i]) * value_of(x[i]) / width_;
      }
      const double root = std::sqrt(square + kEps);
      for (std::size_t i = 0; i < width_; ++i) {
        const double want = value_of(x[i]) / root * value_of(weight_[i]);
        // One rounding, 2^-20 for fp32 before it, the smallest spacing.
        ASSERT_NEAR(value_of(got[row * width_ + i]), want,
                    (kHalfUlp<Narrow> + std::ldexp(1, -20)) * std::abs(want) +
                        std::ldexp(1, -25))
            << "row " << row << " element " << i << " of width " << width_;
      }
    }
  }

 private:
  std::uint32_t rows_;
  std::uint32_t width_;
  std::vector<Narrow> input_;
  std::vector<Narrow> weight_;
  OnDevice<Narrow> device_input_;
  OnDevice<Narrow> device_weight_;
  OnDevice<Narrow> device_out_;
};

class Stream final {
 public:
  Stream() { EXPECT_EQ(aclrtCreateStream(&stream_), ACL_SUCCESS); }
  ~Stream() { EXPECT_EQ(aclrtDestroyStream(stream_), ACL_SUCCESS); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  [[nodiscard]] aclrtStream get() const { return stream_; }

 private:
  aclrtStream stream_ = nullptr;
};

template <typename Narrow>
class Works : public ::testing::Test {};
using NarrowTypes = ::testing::Types<Bfloat16, Float16>;
TYPED_TEST_SUITE(Works, NarrowTypes);

TYPED_TEST(Works, EveryShapeStreamAndCoreCount_IsRight) {
  const Stream side;
  for (int pass = 0; pass < 2; ++pass) {
    for (const std::uint32_t rows : {1U, 2U, 7U, 40U, 41U, 100U}) {
      for (const std::uint32_t width : {64U, 192U, 1024U, 6144U, 8192U}) {
        Trial<TypeParam> trial(rows, width);
        const aclrtStream stream =
            (rows + width / 64) % 2 == 0 ? nullptr : side.get();
        ASSERT_EQ(trial.launch(std::min(rows, 40U), stream), 0U);
        ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
        ASSERT_NO_FATAL_FAILURE(trial.check());
      }
    }
  }
  EXPECT_EQ(text_of(ascend_sim_take_reports), "[]");
}

TYPED_TEST(Works, EveryCoreCount_IsRight) {
  for (std::uint32_t cores = 1; cores <= 40; ++cores) {
    Trial<TypeParam> trial(17, 128);
    ASSERT_EQ(trial.launch(cores, nullptr), 0U);
    ASSERT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
    ASSERT_NO_FATAL_FAILURE(trial.check());
  }
}

TYPED_TEST(Works, LaunchesOnOneStream_FollowEachOther) {
  const Stream side;
  Trial<TypeParam> first(33, 512);
  Trial<TypeParam> second(5, 64);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(first.launch(33, side.get()), 0U);
    ASSERT_EQ(second.launch(5, side.get()), 0U);
  }
  ASSERT_EQ(aclrtSynchronizeStream(side.get()), ACL_SUCCESS);
  first.check();
  second.check();
}

// The stub passes every one of its twenty arguments to the kernel.
TYPED_TEST(Works, StridedSumWithBiasToFp32_IsRight) {
  constexpr std::uint32_t kRows = 3;
  constexpr std::uint32_t kWidth = 128;
  constexpr std::uint32_t kInStep = 200;
  constexpr std::uint32_t kOutStep = 150;
  const auto input = random<TypeParam>(7 + kRows * kInStep);
  const auto sum = random<TypeParam>(input.size());
  const auto weight = random<TypeParam>(kWidth);
  const auto bias = random<TypeParam>(kWidth);
  const std::vector<float> variance = {4, 8, 12};
  const OnDevice<TypeParam> device_input(input);
  const OnDevice<TypeParam> device_sum(sum);
  const OnDevice<TypeParam> device_weight(weight);
  const OnDevice<TypeParam> device_bias(bias);
  const OnDevice<float> device_variance(variance);
  const OnDevice<float> device_out(11 + kRows * kOutStep);
  ASSERT_EQ(norm_of<TypeParam>()(2, nullptr, device_input.data(),
                                 device_sum.data(), device_weight.data(),
                                 device_bias.data(), device_out.data(), kRows,
                                 kWidth, 0.5F, 0, 1, kInStep, kOutStep, 7, 11,
                                 true, device_variance.data(), 4, true),
            0U);
  ASSERT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  const std::vector<float> out = device_out.read();
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t i = 0; i < kWidth; ++i) {
      const std::size_t at = 7 + row * kInStep + i;
      const double x = value_of(input[at]) + value_of(sum[at]);
      const double want =
          x / std::sqrt(variance[row] / 4 + 0.5) * value_of(weight[i]) +
          value_of(bias[i]);
      EXPECT_NEAR(out[11 + row * kOutStep + i], want, 1e-5 * (1 + std::abs(x)))
          << "row " << row << " element " << i;
    }
  }
  EXPECT_EQ(text_of(ascend_sim_take_reports), "[]");
}

using LaunchAny = std::uint32_t (*)(std::uint32_t, aclrtStream, void*, void*,
                                    void*, void*);

TEST(Unsimulated, Kernel_FailsByName) {
  const std::array<std::array<const char*, 3>, 4> kernels = {
      {{"bf16", "aclrtlaunch_muls_bfloat16_t", "muls_bfloat16_t"},
       {"f16", "aclrtlaunch_qk_rms_norm_float16_t", "qk_rms_norm_float16_t"},
       // Of cube and vector cores, so that the stub asks for their meeting
       // place first.
       {"bf16", "aclrtlaunch_attention_bfloat16_t", "attention_bfloat16_t"},
       {"common", "aclrtlaunch_allgather_float", "allgather_float"}}};
  for (const auto& [library, stub, kernel] : kernels) {
    const auto launch = find<LaunchAny>(library, stub);
    ASSERT_NE(launch, nullptr) << stub;
    EXPECT_EQ(launch(1, nullptr, nullptr, nullptr, nullptr, nullptr), 207000U);
    EXPECT_NE(std::string(aclGetRecentErrMsg())
                  .find("launch of kernel " + std::string(kernel) +
                        ": it is not simulated"),
              std::string::npos);
  }
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
}

// As when a prototype lacks an argument: every later one slips by one place.
TEST(Senseless, BlockOffByOneField_IsReportedAndFails) {
  using LaunchShort = std::uint32_t (*)(
      std::uint32_t, aclrtStream, void*, void*, void*, void*, std::uint32_t,
      std::uint32_t, float, int, std::uint32_t, std::uint32_t, std::uint32_t,
      std::uint32_t, std::uint32_t, bool, void*, std::uint32_t, bool);
  const auto launch = find<LaunchShort>("bf16", "aclrtlaunch_norm_bfloat16_t");
  const OnDevice<Bfloat16> data(random<Bfloat16>(128));
  EXPECT_EQ(launch(1, nullptr, data.data(), data.data(), nullptr, data.data(),
                   2, 64, kEps, 0, 1, 64, 64, 0, 0, true, nullptr, 1, false),
            0U);
  const std::string reports = text_of(ascend_sim_take_reports);
  EXPECT_NE(reports.find("\"argument-block\""), std::string::npos) << reports;
  EXPECT_NE(reports.find("launch of kernel norm_bfloat16_t: "),
            std::string::npos)
      << reports;
  EXPECT_EQ(aclrtSynchronizeDevice(), 507035);
}

// The launchers say so on standard output, return success and write nothing.
TEST(Refused, Launch_ReturnsSuccessAndWritesNothing) {
  Trial<Bfloat16> bfloat16(2, 64);
  Trial<Float16> float16(2, 64);
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(bfloat16.launch(1, nullptr), 0U);
  EXPECT_EQ(float16.launch(1, nullptr), 0U);
  std::fflush(stdout);
  EXPECT_NE(::testing::internal::GetCapturedStdout().find("[ERROR]"),
            std::string::npos);
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
  for (std::size_t i = 0; i < 128; ++i) {
    ASSERT_EQ(bfloat16.out()[i].bits, 0xffff);
    ASSERT_EQ(float16.out()[i].bits, 0xffff);
  }
  EXPECT_EQ(text_of(ascend_sim_schedule).find("norm"), std::string::npos);
  EXPECT_EQ(text_of(ascend_sim_take_reports), "[]");
}

TEST(Pending, Process_EndsWithoutWaiting) {
  static auto* const trial = new Trial<Bfloat16>(100, 8192);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(trial->launch(40, nullptr), 0U);
  }
}

}  // namespace
}  // namespace ascend_sim
