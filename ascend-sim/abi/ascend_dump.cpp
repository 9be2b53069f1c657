// Logging as the launcher libraries call it: what they log goes to standard
// error. Dumps nothing; the library has its name from CANN's.
#include <cstdarg>
#include <cstdio>
#include <string>

#include "abi/export.h"

// A class of CANN's by name and mangling; the launchers put its header in
// front of what they log.
class __attribute__((visibility("default"))) ErrorManager {
 public:
  static ErrorManager& GetInstance();
  const std::string& GetLogHeader();
};

ErrorManager& ErrorManager::GetInstance() {
  static auto* const manager = new ErrorManager();
  return *manager;
}

const std::string& ErrorManager::GetLogHeader() {
  static const std::string* const header = new std::string();
  return *header;
}

namespace {

constexpr int kErrorLevel = 3;

}  // namespace

// Whether a message of this level would be written.
ASCEND_SIM_EXPORT int AlogCheckDebugLevel(unsigned /*module*/, int level) {
  return level >= kErrorLevel ? 1 : 0;
}

ASCEND_SIM_EXPORT void AlogRecord(int /*module*/, int /*type*/, int level,
                                  const char* format, ...) {
  if (level < kErrorLevel) {
    return;
  }
  std::va_list arguments;
  va_start(arguments, format);
  std::fputs("ascend-sim: a launcher library logs: ", stderr);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
}
