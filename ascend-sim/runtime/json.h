// Strings of JSON.
// Builds no other value.
#pragma once

#include <string>
#include <string_view>

namespace ascend_sim {

// The text in quotes, with what JSON forbids in a string escaped.
[[nodiscard]] std::string json_string(std::string_view text);

}  // namespace ascend_sim
