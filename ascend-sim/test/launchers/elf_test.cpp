// Which kernels the reader finds in device ELFs, and that damaged ones are
// refused. The launcher libraries themselves are read by launchers_trial.cpp.
#include "launchers/elf.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "test/launchers/tiny_elf.h"

namespace ascend_sim {
namespace {

using testing::TinyElf;

std::string error_of(std::span<const std::byte> image) {
  try {
    static_cast<void>(read_kernels(image));
  } catch (const ElfError& error) {
    return error.what();
  }
  return "";
}

TEST(ReadKernels, SoundImage_GivesNamesKeysAndSizes) {
  const auto image = TinyElf()
                         .kernel({"add_bfloat16_t_0", 0x28})
                         .function("_Z4helpv", STB_WEAK)
                         .function("part_of_kernel_77", STB_WEAK)
                         .kernel({"cast_bfloat16_t_float_14", 0x20})
                         .kernel({"norm_bfloat16_t_16", 0x68})
                         .build();
  const std::vector<ElfKernel> kernels = read_kernels(image);
  ASSERT_EQ(kernels.size(), 3U);
  EXPECT_EQ(kernels[0].name, "add_bfloat16_t");
  EXPECT_EQ(kernels[0].key, 0U);
  EXPECT_EQ(kernels[0].argument_bytes, 0x28U);
  EXPECT_EQ(kernels[1].name, "cast_bfloat16_t_float");
  EXPECT_EQ(kernels[1].key, 14U);
  EXPECT_EQ(kernels[2].name, "norm_bfloat16_t");
  EXPECT_EQ(kernels[2].key, 16U);
  EXPECT_EQ(kernels[2].argument_bytes, 0x68U);
}

TEST(ReadKernels, KernelOfBothCores_IsGivenOnce) {
  const auto image = TinyElf()
                         .kernel({"attention_float16_t_3_mix_aic", 0x78})
                         .kernel({"attention_float16_t_3_mix_aiv", 0x78})
                         .build();
  const std::vector<ElfKernel> kernels = read_kernels(image);
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(kernels[0].name, "attention_float16_t");
  EXPECT_EQ(kernels[0].key, 3U);
}

TEST(ReadKernels, FunctionWithoutKey_IsNoKernel) {
  for (const char* name : {"main", "_", "norm_", "norm_1x", "norm_-1",
                           "norm_99999999999999999999"}) {
    EXPECT_TRUE(
        read_kernels(TinyElf().function(name, STB_GLOBAL).build()).empty())
        << name;
  }
}

TEST(ReadKernels, KernelWithoutSize_IsRefused) {
  const auto image = TinyElf().function("norm_16", STB_GLOBAL).build();
  EXPECT_EQ(error_of(image),
            "kernel norm_16 has no size in __CCE_KernelArgSize");
}

TEST(ReadKernels, KeyOfTwoKernels_IsRefused) {
  EXPECT_NE(error_of(TinyElf().kernel({"a_1", 8}).kernel({"b_1", 8}).build())
                .find("share the key 1"),
            std::string::npos);
  EXPECT_NE(error_of(TinyElf()
                         .kernel({"a_1_mix_aic", 8})
                         .kernel({"a_1_mix_aiv", 16})
                         .build())
                .find("share the key 1"),
            std::string::npos);
}

TEST(ReadKernels, EveryTruncation_IsRefused) {
  const auto image = TinyElf().kernel({"norm_16", 0x68}).build();
  ASSERT_EQ(error_of(image), "");
  for (std::size_t bytes = 0; bytes < image.size(); ++bytes) {
    // A copy of its own, so that a sanitizer sees the first byte beyond it.
    const std::vector<std::byte> part(
        image.begin(), image.begin() + static_cast<std::ptrdiff_t>(bytes));
    EXPECT_NE(error_of(part), "") << bytes << " bytes";
  }
}

TEST(ReadKernels, AnyByteOverwritten_NeverReadsOutside) {
  const auto sound = TinyElf().kernel({"norm_16", 0x68}).build();
  for (std::size_t at = 0; at < sound.size(); ++at) {
    for (const unsigned char value : {0x00, 0x7f, 0xff}) {
      auto image = sound;
      image[at] = std::byte{value};
      static_cast<void>(error_of(image));
    }
  }
}

struct Damage {
  const char* name;
  std::function<void(Elf64_Ehdr&)> header;
  std::function<void(std::vector<Elf64_Shdr>&)> sections;
  const char* error;
};

std::ostream& operator<<(std::ostream& out, const Damage& what) {
  return out << what.name;
}

class DamagedImage : public ::testing::TestWithParam<Damage> {};

TEST_P(DamagedImage, IsRefusedWithItsReason) {
  auto image = TinyElf().kernel({"norm_16", 0x68}).build();
  Elf64_Ehdr header;
  std::memcpy(&header, image.data(), sizeof(header));
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  const std::size_t table = header.e_shoff;
  const std::size_t table_bytes = sections.size() * sizeof(Elf64_Shdr);
  std::memcpy(sections.data(), image.data() + table, table_bytes);
  if (GetParam().header) {
    GetParam().header(header);
  }
  if (GetParam().sections) {
    GetParam().sections(sections);
  }
  std::memcpy(image.data(), &header, sizeof(header));
  std::memcpy(image.data() + table, sections.data(), table_bytes);
  EXPECT_NE(error_of(image).find(GetParam().error), std::string::npos)
      << error_of(image);
}

INSTANTIATE_TEST_SUITE_P(
    All, DamagedImage,
    ::testing::Values(
        Damage{"Magic", [](Elf64_Ehdr& h) { h.e_ident[1] = 'e'; }, nullptr,
               "does not begin like an ELF file"},
        Damage{"Class", [](Elf64_Ehdr& h) { h.e_ident[EI_CLASS] = ELFCLASS32; },
               nullptr, "64-bit and little-endian"},
        Damage{"Order", [](Elf64_Ehdr& h) { h.e_ident[EI_DATA] = ELFDATA2MSB; },
               nullptr, "64-bit and little-endian"},
        Damage{"Machine", [](Elf64_Ehdr& h) { h.e_machine = EM_X86_64; },
               nullptr, "must be for machine 4137"},
        Damage{"NoSections", [](Elf64_Ehdr& h) { h.e_shnum = 0; }, nullptr,
               "no symbol table"},
        Damage{"SectionsOutside",
               [](Elf64_Ehdr& h) { h.e_shoff = ~std::uint64_t{0} - 7; },
               nullptr, "a section header lies outside"},
        Damage{"NoNames", [](Elf64_Ehdr& h) { h.e_shstrndx = 9; }, nullptr,
               "section 9 does not exist"},
        Damage{"NoStrings", nullptr,
               [](std::vector<Elf64_Shdr>& s) {
                 s[TinyElf::kSymbolsSection].sh_link = 77;
               },
               "section 77 does not exist"},
        Damage{"SymbolsOutside", nullptr,
               [](std::vector<Elf64_Shdr>& s) {
                 s[TinyElf::kSymbolsSection].sh_size = 1U << 20U;
               },
               "lies outside"},
        Damage{"StringsCutShort", nullptr,
               [](std::vector<Elf64_Shdr>& s) { s[4].sh_size = 5; },
               "a name lies outside its table of strings"},
        Damage{"SizesOutside", nullptr,
               [](std::vector<Elf64_Shdr>& s) {
                 s[TinyElf::kSizesSection].sh_offset = 1U << 20U;
               },
               "a kernel's argument size lies outside"}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace ascend_sim
