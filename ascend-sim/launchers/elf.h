// Reads from a device ELF which kernels it holds and how long their argument
// blocks are. Loads and runs nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace ascend_sim {

// A kernel of a device ELF. The compiler calls the function <name>_<key>, with
// _mix_aic or _mix_aiv behind it where two kinds of core share the kernel; a
// host stub names it by the key alone.
struct ElfKernel {
  std::string name;
  std::uint64_t key = 0;
  std::uint32_t argument_bytes = 0;
};

class ElfError final : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Every kernel, each key once, in the order of the symbol table. Throws an
// ElfError for an image that is no device ELF or that is damaged.
[[nodiscard]] std::vector<ElfKernel> read_kernels(
    std::span<const std::byte> image);

}  // namespace ascend_sim
