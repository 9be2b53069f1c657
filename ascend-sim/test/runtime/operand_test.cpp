// Operands outside of live blocks: reported, and a device error when they run.
// Races on live blocks are in race_test.cpp.
#include <gtest/gtest.h>

#include "test/runtime/support.h"

namespace ascend_sim {
namespace {

struct OperandTest : testing::Test {
  Runtime runtime{small_settings()};
  Stream* stream = make_stream(runtime);
  Floats a{runtime, 64};
};

TEST_F(OperandTest, operand_beyond_its_block_fails_when_it_runs) {
  Task task = set_task(a, 1);
  task.accesses[0].bytes += 4;
  bool ran = false;
  task.body = [&ran] {
    ran = true;
    return Status::kOk;
  };
  expect_ok(runtime.submit(stream, std::move(task)));
  const std::vector<Report> reports = runtime.take_reports();
  ASSERT_EQ(kinds(reports), Names{"out-of-bounds"});
  EXPECT_NE(reports[0].text.find("set (stream 2, task 1) writes 260 bytes"),
            std::string::npos)
      << reports[0].text;
  EXPECT_EQ(runtime.synchronize(stream, std::nullopt),
            Status::kVectorCoreException);
  EXPECT_FALSE(ran);
}

TEST_F(OperandTest, error_stays_and_later_work_is_dropped) {
  Task task = set_task(a, 1);
  task.accesses[0].address = 8;
  expect_ok(runtime.submit(stream, std::move(task)));
  EXPECT_EQ(runtime.synchronize(stream, std::nullopt),
            Status::kVectorCoreException);
  EXPECT_EQ(runtime.last_async_error(), Status::kVectorCoreException);
  Stream* const healthy = make_stream(runtime);
  expect_ok(runtime.submit(healthy, set_task(a, 2)));
  EXPECT_EQ(runtime.synchronize(healthy, std::nullopt),
            Status::kVectorCoreException);
  EXPECT_EQ(runtime.synchronize_device(std::nullopt),
            Status::kVectorCoreException);
  EXPECT_NE(a.first(), 2.0F);
  static_cast<void>(runtime.take_reports());
}

TEST_F(OperandTest, nothing_is_pending_after_an_error) {
  Task task = set_task(a, 1);
  task.accesses[0].bytes += 4;
  expect_ok(runtime.submit(stream, std::move(task)));
  expect_ok(runtime.submit(stream, set_task(a, 2)));
  EXPECT_EQ(runtime.synchronize(stream, std::nullopt),
            Status::kVectorCoreException);
  static_cast<void>(runtime.take_reports());
  expect_ok(runtime.free(a.address));
  EXPECT_EQ(runtime.take_reports().size(), 0U);
}

TEST_F(OperandTest, no_error_before_one_happens) {
  EXPECT_EQ(runtime.last_async_error(), Status::kOk);
  expect_ok(runtime.submit(stream, set_task(a, 1)));
  sync(runtime, stream);
  EXPECT_EQ(runtime.last_async_error(), Status::kOk);
  EXPECT_EQ(runtime.recent_message(), "");
}

TEST_F(OperandTest, status_of_a_body_becomes_the_error) {
  Task task = empty_task("fails");
  task.body = [] { return Status::kInternal; };
  expect_ok(runtime.submit(stream, std::move(task)));
  EXPECT_EQ(runtime.synchronize(stream, std::nullopt), Status::kInternal);
}

TEST_F(OperandTest, free_while_a_task_is_pending_is_reported) {
  expect_ok(runtime.submit(stream, empty_task("delay")));
  expect_ok(runtime.submit(stream, set_task(a, 1)));
  expect_ok(runtime.free(a.address));
  const std::vector<Report> reports = runtime.take_reports();
  ASSERT_EQ(kinds(reports), Names{"use-after-free"});
  EXPECT_NE(reports[0].text.find("set (stream 2, task 2)"), std::string::npos)
      << reports[0].text;
  EXPECT_NE(reports[0].text.find("has not waited"), std::string::npos);
}

TEST_F(OperandTest, free_after_any_kind_of_wait_is_silent) {
  const auto use = [this] {
    const Floats block(runtime, 64);
    expect_ok(runtime.submit(stream, set_task(block, 1)));
    return block.address;
  };
  const Address first = use();
  sync(runtime, stream);
  expect_ok(runtime.free(first));

  const Address second = use();
  expect_ok(runtime.synchronize_device(std::nullopt));
  expect_ok(runtime.free(second));

  const Address third = use();
  Event* const event = make_event(runtime);
  expect_ok(runtime.record(event, stream));
  expect_ok(runtime.synchronize(event, std::nullopt));
  expect_ok(runtime.free(third));

  const Address fourth = use();
  expect_ok(runtime.record(event, stream));
  for (bool done = false; !done;) {
    expect_ok(runtime.query(event, &done));
  }
  expect_ok(runtime.free(fourth));

  const Address fifth = use();
  for (bool done = false; !done;) {
    expect_ok(runtime.query(stream, &done));
  }
  expect_ok(runtime.free(fifth));
  EXPECT_EQ(runtime.take_reports().size(), 0U);
}

TEST_F(OperandTest, submission_after_free_is_reported_as_such) {
  expect_ok(runtime.free(a.address));
  expect_ok(runtime.submit(stream, set_task(a, 1)));
  EXPECT_EQ(kinds(runtime.take_reports()), Names{"use-after-free"});
}

TEST_F(OperandTest, task_that_finds_another_block_is_reported_and_runs) {
  expect_ok(runtime.submit(stream, empty_task("delay")));
  expect_ok(runtime.submit(stream, set_task(a, 1)));
  expect_ok(runtime.free(a.address));
  const Floats again(runtime, 64);
  ASSERT_EQ(again.address, a.address);
  static_cast<void>(runtime.take_reports());
  sync(runtime, stream);
  EXPECT_EQ(kinds(runtime.take_reports()), Names{"use-after-free"});
  EXPECT_EQ(again.first(), 1.0F);
}

TEST_F(OperandTest, pinned_block_freed_under_a_copy_is_reported) {
  void* host = nullptr;
  expect_ok(runtime.allocate_host(256, &host));
  expect_ok(runtime.submit(stream, empty_task("delay")));
  expect_ok(runtime.copy_async(host, pointer(a.address), 256, stream));
  expect_ok(runtime.free_host(host));
  EXPECT_EQ(kinds(runtime.take_reports()), Names{"use-after-free"});
  EXPECT_EQ(runtime.synchronize(stream, std::nullopt),
            Status::kVectorCoreException)
      << "and the freed memory is left alone";
  static_cast<void>(runtime.take_reports());
}

TEST_F(OperandTest, empty_operand_needs_no_block) {
  Task task = empty_task("empty");
  task.accesses = {{0, 0, AccessKind::kWrite}};
  expect_ok(runtime.submit(stream, std::move(task)));
  sync(runtime, stream);
  EXPECT_EQ(runtime.take_reports().size(), 0U);
}

TEST_F(OperandTest, one_mistake_in_a_loop_is_one_report) {
  for (int i = 0; i < 10; ++i) {
    Task task = set_task(a, 1);
    task.accesses[0].bytes += 4;
    expect_ok(runtime.submit(stream, std::move(task)));
  }
  EXPECT_EQ(runtime.take_reports().size(), 1U);
}

}  // namespace
}  // namespace ascend_sim
