// Launches of kernels by handle and key: what is refused at once, what becomes
// a failing task, what runs. Calls no launcher library.
#include "launchers/launch.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "test/launchers/block_builder.h"
#include "test/launchers/tiny_elf.h"
#include "test/narrow_reference.h"

namespace ascend_sim {
namespace {

using testing::Bfloat16;
using testing::BlockBuilder;
using testing::TinyElf;
using testing::value_of;

constexpr std::uint32_t kRows = 4;
constexpr std::uint32_t kWidth = 64;
constexpr std::size_t kBytes = sizeof(std::uint16_t) * kRows * kWidth;

Settings small_machine() {
  Settings settings;
  settings.memory_bytes = 8U << 20U;
  return settings;
}

class LaunchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    binary_ =
        registry_.add(read_kernels(TinyElf()
                                       .kernel({"norm_bfloat16_t_16", 0x68})
                                       .kernel({"muls_bfloat16_t_15", 0x30})
                                       .kernel({"norm_float16_t_3", 0x60})
                                       .build()));
    input_ = allocate(kBytes);
    weight_ = allocate(kBytes);
    out_ = allocate(kBytes);
    // Rows of 1, 2, 3 and 4, which all normalise to ones; weight 2.
    std::vector<std::uint16_t> values(std::size_t{kRows} * kWidth);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t row = i / kWidth;
      values[i] = Bfloat16::narrow(static_cast<float>(row + 1));
    }
    put(input_, values);
    put(weight_, std::vector<std::uint16_t>(kWidth, Bfloat16::narrow(2)));
    block_.put(0x00, input_)
        .put(0x10, weight_)
        .put(0x20, out_)
        .shape(kRows, kWidth);
  }

  Address allocate(std::size_t bytes) {
    Address address = 0;
    EXPECT_EQ(runtime_.allocate(bytes, &address), Status::kOk);
    return address;
  }

  void put(Address to, const std::vector<std::uint16_t>& values) {
    ASSERT_EQ(runtime_.copy(reinterpret_cast<void*>(to), values.data(),
                            values.size() * sizeof(std::uint16_t)),
              Status::kOk);
  }

  LaunchRequest request() {
    LaunchRequest made;
    made.binary = binary_;
    made.key = 16;
    made.cores = 3;
    made.block = block_.bytes();
    return made;
  }

  Status launch_now(const LaunchRequest& what) {
    return launch(runtime_, registry_, what);
  }

  void expect_output() {
    std::vector<std::uint16_t> out(std::size_t{kRows} * kWidth);
    ASSERT_EQ(runtime_.copy(out.data(), reinterpret_cast<void*>(out_), kBytes),
              Status::kOk);
    for (const std::uint16_t bits : out) {
      // Without eps exactly 2; 1e-5 takes less than half a place.
      ASSERT_EQ(value_of(Bfloat16{bits}), 2.0);
    }
  }

  // The launch is accepted, reported with these words, and fails when it runs.
  void expect_senseless(const std::string& words) {
    EXPECT_EQ(launch_now(request()), Status::kOk);
    const std::vector<Report> reports = runtime_.take_reports();
    ASSERT_EQ(reports.size(), 1U);
    EXPECT_EQ(reports[0].kind, "argument-block");
    EXPECT_NE(
        reports[0].text.find("launch of kernel norm_bfloat16_t: " + words),
        std::string::npos)
        << reports[0].text;
    EXPECT_EQ(runtime_.synchronize_device(std::nullopt),
              Status::kVectorCoreException);
  }

  Runtime runtime_{small_machine()};
  Registry registry_;
  void* binary_ = nullptr;
  Address input_ = 0;
  Address weight_ = 0;
  Address out_ = 0;
  BlockBuilder block_;
};

TEST_F(LaunchTest, NullStream_IsTheDefaultStream) {
  ASSERT_EQ(launch_now(request()), Status::kOk);
  ASSERT_EQ(runtime_.synchronize(runtime_.default_stream(), std::nullopt),
            Status::kOk);
  expect_output();
  EXPECT_TRUE(runtime_.take_reports().empty());
}

TEST_F(LaunchTest, OwnStream_RunsThereUnderTheKernelsName) {
  Stream* stream = nullptr;
  ASSERT_EQ(runtime_.create_stream(&stream), Status::kOk);
  LaunchRequest what = request();
  what.stream = stream;
  ASSERT_EQ(launch_now(what), Status::kOk);
  ASSERT_EQ(runtime_.synchronize(stream, std::nullopt), Status::kOk);
  expect_output();
  const std::vector<std::string> ran = runtime_.schedule();
  ASSERT_FALSE(ran.empty());
  EXPECT_EQ(ran.back(),
            "norm_bfloat16_t@" + std::to_string(runtime_.id_of(stream)));
}

TEST_F(LaunchTest, BlockOverwrittenAfterTheCall_DoesNotMatter) {
  auto bytes = block_.bytes();
  LaunchRequest what = request();
  what.block = bytes;
  ASSERT_EQ(launch_now(what), Status::kOk);
  bytes.fill(std::byte{0xff});
  ASSERT_EQ(runtime_.synchronize_device(std::nullopt), Status::kOk);
  expect_output();
}

TEST_F(LaunchTest, Accesses_AreSeenByTheRaceDetector) {
  Stream* stream = nullptr;
  ASSERT_EQ(runtime_.create_stream(&stream), Status::kOk);
  LaunchRequest what = request();
  ASSERT_EQ(launch_now(what), Status::kOk);
  what.stream = stream;
  ASSERT_EQ(launch_now(what), Status::kOk);
  ASSERT_EQ(runtime_.synchronize_device(std::nullopt), Status::kOk);
  const std::vector<Report> reports = runtime_.take_reports();
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].kind, "race");
  EXPECT_NE(reports[0].text.find("norm_bfloat16_t"), std::string::npos);
}

TEST_F(LaunchTest, CapturedLaunch_RunsWithEveryReplay) {
  Stream* stream = nullptr;
  ASSERT_EQ(runtime_.create_stream(&stream), Status::kOk);
  ASSERT_EQ(runtime_.begin_capture(stream, CaptureMode::kGlobal), Status::kOk);
  LaunchRequest what = request();
  what.stream = stream;
  ASSERT_EQ(launch_now(what), Status::kOk);
  Graph* graph = nullptr;
  ASSERT_EQ(runtime_.end_capture(stream, &graph), Status::kOk);
  block_ = BlockBuilder(0xff);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(runtime_.fill(reinterpret_cast<void*>(out_), 0xff, kBytes),
              Status::kOk);
    ASSERT_EQ(runtime_.replay(graph, stream), Status::kOk);
    ASSERT_EQ(runtime_.synchronize(stream, std::nullopt), Status::kOk);
    expect_output();
  }
}

struct Refusal {
  const char* name;
  std::function<void(LaunchRequest&)> change;
  Status status;
  const char* text;
};

std::ostream& operator<<(std::ostream& out, const Refusal& what) {
  return out << what.name;
}

class RefusedLaunch : public LaunchTest,
                      public ::testing::WithParamInterface<Refusal> {};

TEST_P(RefusedLaunch, SubmitsNothingAndSaysWhy) {
  LaunchRequest what = request();
  GetParam().change(what);
  EXPECT_EQ(launch_now(what), GetParam().status);
  EXPECT_NE(runtime_.recent_message().find(GetParam().text), std::string::npos)
      << runtime_.recent_message();
  EXPECT_EQ(runtime_.synchronize_device(std::nullopt), Status::kOk);
  EXPECT_TRUE(runtime_.take_reports().empty());
}

int not_a_stream = 0;

INSTANTIATE_TEST_SUITE_P(
    All, RefusedLaunch,
    ::testing::Values(
        Refusal{"Handle", [](LaunchRequest& r) { r.binary = &not_a_stream; },
                Status::kInvalidHandle, "no binary is registered"},
        Refusal{"NullHandle", [](LaunchRequest& r) { r.binary = nullptr; },
                Status::kInvalidHandle, "no binary is registered"},
        Refusal{"Key", [](LaunchRequest& r) { r.key = 99; },
                Status::kInvalidParam, "no kernel of key 99"},
        Refusal{"ShortBlock",
                [](LaunchRequest& r) { r.block = r.block.first(0x60); },
                Status::kInvalidParam,
                "must have 104 bytes as the binary says, got 96"},
        Refusal{"NoCores", [](LaunchRequest& r) { r.cores = 0; },
                Status::kInvalidParam,
                "blockDim must be from 1 to 65535, got 0"},
        Refusal{"TooManyCores", [](LaunchRequest& r) { r.cores = 65536; },
                Status::kInvalidParam, "got 65536"},
        Refusal{"Stream", [](LaunchRequest& r) { r.stream = &not_a_stream; },
                Status::kInvalidHandle, "the stream is unknown"},
        Refusal{"OtherKernel",
                [](LaunchRequest& r) {
                  r.key = 15;
                  r.block = r.block.first(0x30);
                },
                Status::kUnsupported,
                "muls_bfloat16_t: it is not simulated; simulated are "
                "norm_bfloat16_t, norm_float16_t"},
        Refusal{"OtherRevision",
                [](LaunchRequest& r) {
                  r.key = 3;
                  r.block = r.block.first(0x60);
                },
                Status::kUnsupported,
                "norm_float16_t: the simulated revision has an argument block "
                "of 104 bytes, the binary's 96"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST_F(LaunchTest, SenselessField_IsReportedAndFails) {
  block_.put<std::uint32_t>(0x2c, 63);
  expect_senseless("norm_dim must be a positive multiple of 64, got 63");
}

TEST_F(LaunchTest, PointerIntoNoAllocation_NamesItsField) {
  block_.put<std::uint64_t>(0x18, 0x1000);
  expect_senseless("bias must lie in one live allocation");
}

TEST_F(LaunchTest, PointerIntoHostMemory_NamesItsField) {
  alignas(8) std::array<std::byte, 128> host{};
  block_.pointer(0x10, host.data());
  expect_senseless("weight must lie in one live allocation");
}

TEST_F(LaunchTest, FreedPointer_NamesItsField) {
  ASSERT_EQ(runtime_.free(weight_), Status::kOk);
  expect_senseless("weight must lie in one live allocation");
}

TEST_F(LaunchTest, RowsBeyondTheAllocation_NameTheirField) {
  block_.put<std::uint32_t>(0x3c, kWidth * 2);
  expect_senseless("input must lie in one live allocation");
}

TEST_F(LaunchTest, PointerToOtherDevice_NamesItsField) {
  ASSERT_EQ(runtime_.set_device(1), Status::kOk);
  const Address there = allocate(kBytes);
  ASSERT_EQ(runtime_.set_device(0), Status::kOk);
  block_.put(0x20, there);
  expect_senseless(
      "out must lie on device 0, whose stream the kernel was launched on, not "
      "on device 1");
}

TEST_F(LaunchTest, NoRows_RunsAndTouchesNothing) {
  block_.put<std::uint32_t>(0x28, 0)
      .put<std::uint64_t>(0x00, 0)
      .put<std::uint64_t>(0x20, 0);
  EXPECT_EQ(launch_now(request()), Status::kOk);
  EXPECT_EQ(runtime_.synchronize_device(std::nullopt), Status::kOk);
  EXPECT_TRUE(runtime_.take_reports().empty());
}

}  // namespace
}  // namespace ascend_sim
