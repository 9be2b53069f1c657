// Strings of JSON.
// Checks no encoding: bytes from 0x80 up pass as they are.
#include "runtime/json.h"

#include <array>
#include <cstdio>

namespace ascend_sim {

std::string json_string(std::string_view text) {
  constexpr unsigned char kFirstPlain = 0x20;
  std::string quoted = "\"";
  for (const char each : text) {
    if (each == '"' || each == '\\') {
      quoted += '\\';
      quoted += each;
    } else if (static_cast<unsigned char>(each) < kFirstPlain) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x",
                    static_cast<unsigned int>(each));
      quoted += escape.data();
    } else {
      quoted += each;
    }
  }
  return quoted + '"';
}

}  // namespace ascend_sim
