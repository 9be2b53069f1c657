// Builds device ELFs for tests, sound ones and damaged ones.
// Holds no code that any device could run.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace ascend_sim::testing {

struct TinyKernel {
  std::string function;  // <name>_<key>, and _mix_aiv or the like
  std::uint32_t argument_bytes = 0;
};

// Sections: none, .text, sizes, symbols, strings (also of section names).
class TinyElf final {
 public:
  static constexpr std::size_t kSizesSection = 2;
  static constexpr std::size_t kSymbolsSection = 3;

  TinyElf& kernel(const TinyKernel& kernel) {
    function(kernel.function, STB_GLOBAL);
    symbol(kernel.function + "__", ELF64_ST_INFO(STB_WEAK, STT_OBJECT),
           kSizesSection, sizes_.size() * sizeof(std::uint32_t));
    sizes_.push_back(kernel.argument_bytes);
    return *this;
  }

  // A function without an argument size.
  TinyElf& function(const std::string& name, unsigned char binding) {
    symbol(name, ELF64_ST_INFO(binding, STT_FUNC), 1, 0);
    return *this;
  }

  [[nodiscard]] std::vector<std::byte> build() const {
    std::string strings = strings_;
    const auto name = [&strings](const char* text) {
      const std::size_t at = strings.size();
      strings += text;
      strings += '\0';
      return static_cast<Elf64_Word>(at);
    };
    std::vector<Elf64_Shdr> sections(5);
    sections[1].sh_name = name(".text");
    sections[1].sh_type = SHT_PROGBITS;
    sections[2].sh_name = name("__CCE_KernelArgSize");
    sections[2].sh_type = SHT_PROGBITS;
    sections[3].sh_name = name(".symtab");
    sections[3].sh_type = SHT_SYMTAB;
    sections[3].sh_link = 4;
    sections[3].sh_entsize = sizeof(Elf64_Sym);
    sections[4].sh_name = name(".strtab");
    sections[4].sh_type = SHT_STRTAB;

    std::vector<std::byte> image(sizeof(Elf64_Ehdr));
    const auto put = [&](Elf64_Shdr& section, const void* data,
                         std::size_t bytes) {
      section.sh_offset = image.size();
      section.sh_size = bytes;
      const auto* first = static_cast<const std::byte*>(data);
      image.insert(image.end(), first, first + bytes);
    };
    put(sections[2], sizes_.data(), sizes_.size() * sizeof(std::uint32_t));
    put(sections[3], symbols_.data(), symbols_.size() * sizeof(Elf64_Sym));
    put(sections[4], strings.data(), strings.size());

    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_machine = 0x1029;
    header.e_shoff = image.size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<Elf64_Half>(sections.size());
    header.e_shstrndx = 4;
    std::memcpy(image.data(), &header, sizeof(header));
    Elf64_Shdr table{};
    put(table, sections.data(), sections.size() * sizeof(Elf64_Shdr));
    return image;
  }

 private:
  void symbol(const std::string& name, unsigned char info, std::size_t section,
              std::size_t value) {
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<Elf64_Word>(strings_.size());
    symbol.st_info = info;
    symbol.st_shndx = static_cast<Elf64_Section>(section);
    symbol.st_value = value;
    symbols_.push_back(symbol);
    strings_ += name;
    strings_ += '\0';
  }

  std::string strings_ = std::string(1, '\0');
  std::vector<Elf64_Sym> symbols_ = std::vector<Elf64_Sym>(1);
  std::vector<std::uint32_t> sizes_;
};

}  // namespace ascend_sim::testing
