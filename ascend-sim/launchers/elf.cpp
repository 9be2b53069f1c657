// The part of the ELF format that names kernels: sections, symbols, strings.
// Trusts no offset of the image.
#include "launchers/elf.h"

#include <elf.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>

namespace ascend_sim {
namespace {

// What the compiler writes for the vector and cube cores of 910B and 910_93.
constexpr Elf64_Half kMachine = 0x1029;
// Holds a 32-bit size for each kernel; the symbol <function>__ says where.
constexpr std::string_view kSizes = "__CCE_KernelArgSize";

class Image final {
 public:
  explicit Image(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename Value>
  [[nodiscard]] Value read(std::uint64_t offset, const char* what) const {
    const std::span<const std::byte> raw = part(offset, sizeof(Value), what);
    Value value;
    std::memcpy(&value, raw.data(), sizeof(Value));
    return value;
  }

  [[nodiscard]] std::string_view text(const Elf64_Shdr& strings,
                                      std::uint64_t offset) const {
    const std::span<const std::byte> all =
        part(strings.sh_offset, strings.sh_size, "a table of strings");
    const std::string_view view(reinterpret_cast<const char*>(all.data()),
                                all.size());
    const std::size_t end =
        offset < view.size() ? view.find('\0', offset) : view.npos;
    if (end == view.npos) {
      throw ElfError("a name lies outside its table of strings");
    }
    return view.substr(offset, end - offset);
  }

 private:
  [[nodiscard]] std::span<const std::byte> part(std::uint64_t offset,
                                                std::uint64_t bytes,
                                                const char* what) const {
    if (offset > bytes_.size() || bytes > bytes_.size() - offset) {
      throw ElfError(std::string(what) + " lies outside the image of " +
                     std::to_string(bytes_.size()) + " bytes");
    }
    return bytes_.subspan(offset, bytes);
  }

  std::span<const std::byte> bytes_;
};

Elf64_Ehdr read_header(const Image& image) {
  const auto header = image.read<Elf64_Ehdr>(0, "the ELF header");
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    throw ElfError("the image does not begin like an ELF file");
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_shentsize != sizeof(Elf64_Shdr)) {
    throw ElfError("the ELF file must be 64-bit and little-endian");
  }
  if (header.e_machine != kMachine) {
    throw ElfError("the ELF file must be for machine " +
                   std::to_string(kMachine) + ", the device's cores, not " +
                   std::to_string(header.e_machine));
  }
  return header;
}

std::vector<Elf64_Shdr> read_sections(const Image& image,
                                      const Elf64_Ehdr& header) {
  std::vector<Elf64_Shdr> sections;
  sections.reserve(header.e_shnum);
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    sections.push_back(image.read<Elf64_Shdr>(
        header.e_shoff + i * sizeof(Elf64_Shdr), "a section header"));
  }
  return sections;
}

const Elf64_Shdr& section_at(const std::vector<Elf64_Shdr>& sections,
                             std::size_t index) {
  if (index >= sections.size()) {
    throw ElfError("section " + std::to_string(index) + " does not exist; " +
                   std::to_string(sections.size()) + " do");
  }
  return sections[index];
}

struct Symbol {
  std::string name;
  Elf64_Sym raw;
};

std::vector<Symbol> read_symbols(const Image& image,
                                 const std::vector<Elf64_Shdr>& sections) {
  const auto table =
      std::ranges::find(sections, Elf64_Word{SHT_SYMTAB}, &Elf64_Shdr::sh_type);
  if (table == sections.end()) {
    throw ElfError("the ELF file has no symbol table");
  }
  const Elf64_Shdr& strings = section_at(sections, table->sh_link);
  std::vector<Symbol> symbols;
  for (std::uint64_t i = 0; i < table->sh_size / sizeof(Elf64_Sym); ++i) {
    const auto raw = image.read<Elf64_Sym>(
        table->sh_offset + i * sizeof(Elf64_Sym), "a symbol");
    symbols.push_back({std::string(image.text(strings, raw.st_name)), raw});
  }
  return symbols;
}

// From the symbols <function>__ to the 32-bit numbers that they point to.
std::map<std::string, std::uint32_t> read_sizes(
    const Image& image, const Elf64_Ehdr& header,
    const std::vector<Elf64_Shdr>& sections,
    const std::vector<Symbol>& symbols) {
  const Elf64_Shdr& names = section_at(sections, header.e_shstrndx);
  std::map<std::string, std::uint32_t> sizes;
  for (const Symbol& symbol : symbols) {
    if (ELF64_ST_TYPE(symbol.raw.st_info) != STT_OBJECT ||
        !symbol.name.ends_with("__")) {
      continue;
    }
    const Elf64_Shdr& section = section_at(sections, symbol.raw.st_shndx);
    if (image.text(names, section.sh_name) == kSizes) {
      const std::string function =
          symbol.name.substr(0, symbol.name.size() - 2);
      sizes[function] = image.read<std::uint32_t>(
          section.sh_offset + symbol.raw.st_value, "a kernel's argument size");
    }
  }
  return sizes;
}

// Splits <name>_<key>; nothing for the name of another function.
std::optional<ElfKernel> split(std::string_view function) {
  for (const std::string_view core : {"_mix_aic", "_mix_aiv"}) {
    if (function.ends_with(core)) {
      function.remove_suffix(core.size());
    }
  }
  const std::size_t bar = function.rfind('_');
  if (bar == function.npos) {
    return std::nullopt;
  }
  ElfKernel kernel{std::string(function.substr(0, bar))};
  const char* const end = function.data() + function.size();
  const auto parsed =
      std::from_chars(function.data() + bar + 1, end, kernel.key);
  if (parsed.ec != std::errc() || parsed.ptr != end) {
    return std::nullopt;
  }
  return kernel;
}

}  // namespace

std::vector<ElfKernel> read_kernels(std::span<const std::byte> image_bytes) {
  const Image image(image_bytes);
  const Elf64_Ehdr header = read_header(image);
  const std::vector<Elf64_Shdr> sections = read_sections(image, header);
  const std::vector<Symbol> symbols = read_symbols(image, sections);
  const auto sizes = read_sizes(image, header, sections, symbols);

  std::vector<ElfKernel> kernels;
  for (const Symbol& symbol : symbols) {
    // Weak functions are parts of kernels that the compiler did not inline.
    if (symbol.raw.st_info != ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)) {
      continue;
    }
    std::optional<ElfKernel> kernel = split(symbol.name);
    if (!kernel) {
      continue;
    }
    const auto size = sizes.find(symbol.name);
    if (size == sizes.end()) {
      throw ElfError("kernel " + symbol.name + " has no size in " +
                     std::string(kSizes));
    }
    kernel->argument_bytes = size->second;
    const auto twin = std::ranges::find(kernels, kernel->key, &ElfKernel::key);
    if (twin == kernels.end()) {
      kernels.push_back(*std::move(kernel));
    } else if (twin->name != kernel->name ||
               twin->argument_bytes != kernel->argument_bytes) {
      throw ElfError("kernels " + twin->name + " and " + kernel->name +
                     " share the key " + std::to_string(kernel->key) +
                     " and differ");
    }
  }
  return kernels;
}

}  // namespace ascend_sim
