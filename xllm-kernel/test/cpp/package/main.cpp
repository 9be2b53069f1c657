// Compares the versions of headers and shared library with what was installed.
// Computes nothing: the example does.
#include <xllm_kernel/version.h>

#include <cstdio>
#include <string>

int main() {
  const std::string numbers = std::to_string(XLLM_KERNEL_VERSION_MAJOR) + "." +
                              std::to_string(XLLM_KERNEL_VERSION_MINOR) + "." +
                              std::to_string(XLLM_KERNEL_VERSION_PATCH);
  std::printf("installed %s, headers %s and %s, library %s\n",
              INSTALLED_VERSION, numbers.c_str(), XLLM_KERNEL_VERSION,
              xllm_kernel::version());
  const std::string installed = INSTALLED_VERSION;
  return installed == numbers && installed == XLLM_KERNEL_VERSION &&
                 installed == xllm_kernel::version()
             ? 0
             : 1;
}
