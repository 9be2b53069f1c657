// Exports of libascendcl beyond CANN's names; see ascend_sim.h. Changes nothing
// of the simulation.
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "abi/ascend_sim.h"
#include "abi/export.h"
#include "runtime/runtime.h"

namespace {

using ascend_sim::Report;
using ascend_sim::Runtime;

[[nodiscard]] std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", c);
      out += escape;
    } else {
      out += c;
    }
  }
  return out + '"';
}

// Copies the text with its zero if it fits; says how much it needs.
std::size_t hand_over(std::string_view text, char* buffer, std::size_t bytes) {
  if (buffer != nullptr && bytes > text.size()) {
    std::memcpy(buffer, text.data(), text.size());
    buffer[text.size()] = '\0';
  }
  return text.size() + 1;
}

// Reports that were taken from the runtime and did not fit yet.
struct Pending {
  std::mutex mutex;
  std::vector<Report> reports;
};

Pending& pending() {
  static Pending& all = *new Pending;  // lives to the very end
  return all;
}

}  // namespace

ASCEND_SIM_EXPORT const char* ascend_sim_version() { return "1"; }

ASCEND_SIM_EXPORT std::size_t ascend_sim_take_reports(char* buffer,
                                                      std::size_t bytes) {
  Pending& all = pending();
  const std::scoped_lock lock(all.mutex);
  for (Report& report : Runtime::get().take_reports()) {
    all.reports.push_back(std::move(report));
  }
  std::string text = "[";
  for (const Report& report : all.reports) {
    if (text.size() > 1) text += ",";
    text += "{\"kind\":" + quoted(report.kind) +
            ",\"text\":" + quoted(report.text) + "}";
  }
  text += "]";
  const std::size_t needed = hand_over(text, buffer, bytes);
  if (buffer != nullptr && bytes >= needed) all.reports.clear();
  return needed;
}

ASCEND_SIM_EXPORT std::size_t ascend_sim_trace(char* buffer,
                                               std::size_t bytes) {
  return hand_over(Runtime::get().trace(), buffer, bytes);
}

ASCEND_SIM_EXPORT std::size_t ascend_sim_schedule(char* buffer,
                                                  std::size_t bytes) {
  std::string text = "[";
  for (const std::string& name : Runtime::get().schedule()) {
    if (text.size() > 1) text += ",";
    text += quoted(name);
  }
  return hand_over(text + "]", buffer, bytes);
}
