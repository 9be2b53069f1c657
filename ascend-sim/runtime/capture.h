// Captures in progress, and the graphs that they leave.
// Data only; capture.cpp and graph.cpp do the work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/clock.h"
#include "runtime/components.h"
#include "runtime/engine.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace ascend_sim {

// A task in a graph. Nodes stand in the order of their capture, so that
// predecessors come first.
struct Node {
  std::shared_ptr<const Task> task;
  Body body;
  std::vector<std::uint32_t> predecessors;
  std::uint32_t lane = 0;
  std::vector<std::uint64_t> serials;  // of the blocks, when captured
};

// The nodes of one captured stream: they follow each other. The first lane is
// the stream's on which the capture began; it runs as whatever stream the
// graph is replayed on.
struct Lane {
  Component component;
  std::int32_t stream = 0;
};

struct Graph {
  std::uint32_t id = 0;
  std::int32_t device = 0;
  std::vector<Node> nodes;
  std::vector<Lane> lanes;
  // Of the latest replay: a graph never runs twice at once.
  Ticks end = 0;
  Clock clock;
};

struct Capture {
  std::uint64_t id = 0;
  Graph* graph = nullptr;
  Stream* origin = nullptr;
  CaptureMode mode = CaptureMode::kGlobal;
  std::thread::id thread;
  bool is_valid = true;
  std::vector<Stream*> streams;  // in the order in which they joined
};

// A stream's part in a capture.
struct StreamCapture {
  std::uint64_t id = 0;  // 0: it does not capture
  std::uint32_t lane = 0;
  std::vector<std::uint32_t> frontier;  // what the next node depends on
  std::uint64_t steps = 0;              // tasks, waits and records so far
  // Whether another stream waits for the record that was its latest step.
  bool is_joined_back = false;
};

// A record of an event within a capture; of no meaning once that has ended.
struct EventCapture {
  std::uint64_t id = 0;
  Stream* stream = nullptr;
  std::uint64_t step = 0;  // of the stream
  std::vector<std::uint32_t> nodes;
};

}  // namespace ascend_sim
