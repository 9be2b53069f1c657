// Keeps entries and prints them as Chrome's trace JSON.
// Interprets none.
#include "runtime/trace.h"

#include <array>
#include <cstdio>
#include <set>

#include "runtime/json.h"

namespace ascend_sim {
namespace {

std::string field(const std::string& name, const std::string& value) {
  return json_string(name) + ":" + value;
}

std::string field(const std::string& name, std::uint64_t value) {
  return field(name, std::to_string(value));
}

std::string list_of(const std::vector<Access>& accesses) {
  std::string list;
  for (const Access& access : accesses) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%s 0x%zx+%zu",
                  access.kind == AccessKind::kRead ? "read" : "write",
                  static_cast<std::size_t>(access.address), access.bytes);
    list += (list.empty() ? "" : ",") + json_string(text.data());
  }
  return "[" + list + "]";
}

std::string fields_of(const Notes& notes) {
  std::string fields;
  for (const auto& [name, value] : notes) {
    fields += "," + field(name, json_string(value));
  }
  return fields;
}

std::string name_of(const char* kind, std::int32_t process, std::int32_t thread,
                    const std::string& name) {
  return R"({"ph":"M",)" + field("name", json_string(kind)) + "," +
         field("pid", std::to_string(process)) + "," +
         field("tid", std::to_string(thread)) + R"(,"args":{)" +
         field("name", json_string(name)) + "}}";
}

}  // namespace

bool Trace::has_room() {
  if (ran_.size() + noted_.size() < most_) {
    return true;
  }
  ++dropped_;
  return false;
}

void Trace::ran(const Job& job, Status status) {
  if (has_room()) {
    ran_.push_back({job.start, job.end, job.task, job.device, job.stream,
                    job.sequence, job.graph, job.thread, status});
  }
}

void Trace::noted(Ticks when, std::uint32_t thread, std::string name,
                  std::string category, Notes notes) {
  if (has_room()) {
    noted_.push_back(
        {when, thread, std::move(name), std::move(category), std::move(notes)});
  }
}

std::string Trace::json_of(const Ran& ran) {
  std::string args = field("thread", ran.thread) + "," +
                     field("sequence", ran.sequence) + "," +
                     field("accesses", list_of(ran.task->accesses));
  if (ran.graph != 0) {
    args += "," + field("graph", ran.graph);
  }
  if (ran.status != Status::kOk) {
    args += "," + field("status",
                        std::to_string(static_cast<std::int32_t>(ran.status)));
  }
  return R"({"ph":"X","cat":"task",)" +
         field("name", json_string(ran.task->name)) + "," +
         field("pid", std::to_string(ran.device)) + "," +
         field("tid", std::to_string(ran.stream)) + "," +
         field("ts", ran.start) + "," +
         field("dur", ran.end == kNever ? 0 : ran.end - ran.start) +
         R"(,"args":{)" + args + fields_of(ran.task->notes) + "}}";
}

std::string Trace::json_of(const Noted& noted, std::int32_t devices) {
  const std::string fields = fields_of(noted.notes);
  return R"({"ph":"i","s":"t",)" + field("name", json_string(noted.name)) +
         "," + field("cat", json_string(noted.category)) + "," +
         field("pid", std::to_string(devices)) + "," +
         field("tid", noted.thread) + "," + field("ts", noted.when) +
         R"(,"args":{)" + (fields.empty() ? fields : fields.substr(1)) + "}}";
}

std::string Trace::json(std::int32_t devices) const {
  std::string events = name_of("process_name", devices, 0, "host");
  for (std::int32_t device = 0; device < devices; ++device) {
    events += ",\n" + name_of("process_name", device, 0,
                              "device " + std::to_string(device));
  }
  std::set<std::pair<std::int32_t, std::int32_t>> streams;
  for (const Ran& each : ran_) {
    streams.emplace(each.device, each.stream);
    events += ",\n" + json_of(each);
  }
  for (const auto& [device, stream] : streams) {
    events += ",\n" + name_of("thread_name", device, stream,
                              "stream " + std::to_string(stream));
  }
  for (const Noted& each : noted_) {
    events += ",\n" + json_of(each, devices);
  }
  return "{\"traceEvents\":[\n" + events + "\n],\"otherData\":{" +
         field("dropped", dropped_) + "}}\n";
}

std::vector<std::string> Trace::schedule() const {
  std::vector<std::string> names;
  names.reserve(ran_.size());
  for (const Ran& each : ran_) {
    names.push_back(each.task->name + "@" + std::to_string(each.stream));
  }
  return names;
}

}  // namespace ascend_sim
