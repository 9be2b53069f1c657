// Replays: a graph's nodes become jobs along its edges.
// Captures nothing.
#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/machine.h"

namespace ascend_sim {

void Runtime::Machine::replay(Graph& graph, Stream& stream) {
  engine.tick();
  stream.clock.join(host);
  // CANN's models, like CUDA's graphs, do not run twice at once.
  Clock before = stream.clock;
  before.join(graph.clock);
  const Ticks begin = std::max(stream.end, graph.end);
  Ticks last = begin;
  std::vector<Ticks> ends(graph.nodes.size());
  std::vector<Clock> clocks(graph.nodes.size(), before);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    Lane& lane = graph.lanes[node.lane];
    Ticks after = begin;
    for (const std::uint32_t predecessor : node.predecessors) {
      after = std::max(after, ends[predecessor]);
      clocks[i].join(clocks[predecessor]);
    }
    Job job;
    job.task = node.task;
    job.body = node.body;
    job.device = stream.device;
    job.stream = node.lane == 0 ? stream.id : lane.stream;
    job.owner = stream.id;
    job.sequence = i + 1;
    job.graph = graph.id;
    job.serials = node.serials;
    ends[i] = schedule(std::move(job), lane.component, clocks[i], after);
    last = std::max(last, ends[i]);
    stream.clock.join(clocks[i]);
  }
  stream.end = graph.end = last;
  stream.clock.join(before);
  graph.clock = stream.clock;
}

void Runtime::Machine::drop_graph(Graph& graph) {
  for (const Lane& lane : graph.lanes) {
    components.give_back(lane.component);
  }
  graphs.erase(&graph);
}

}  // namespace ascend_sim
