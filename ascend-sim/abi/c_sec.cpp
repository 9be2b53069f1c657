// The one function of libc_sec that the launcher libraries link.
// Offers none of the library's other functions.
#include <cerrno>
#include <cstring>

#include "abi/export.h"

namespace {

// libc_sec adds this where it also emptied the destination.
constexpr int kAndReset = 128;

}  // namespace

// Copies with the terminating zero, or empties `to` where it is too small.
ASCEND_SIM_EXPORT int strcpy_s(char* to, std::size_t size, const char* from) {
  if (to == nullptr || size == 0) {
    return to == nullptr ? EINVAL : ERANGE;
  }
  if (from == nullptr) {
    *to = '\0';
    return EINVAL | kAndReset;
  }
  const std::size_t bytes = std::strlen(from) + 1;
  if (bytes > size) {
    *to = '\0';
    return ERANGE | kAndReset;
  }
  std::memcpy(to, from, bytes);
  return 0;
}
