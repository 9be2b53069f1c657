// How argument blocks of `norm` are read, refused, and turned into memory.
// Computes no norm.
#include "launchers/kernels/norm_block.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "test/launchers/block_builder.h"

namespace ascend_sim {
namespace {

using testing::BlockBuilder;

TEST(DecodeNorm, EveryField_IsReadFromItsOffset) {
  BlockBuilder bytes;
  bytes.put<std::uint64_t>(0x00, 0x1122334455667788)
      .put<std::uint64_t>(0x08, 0x2122334455667788)
      .put<std::uint64_t>(0x10, 0x3122334455667788)
      .put<std::uint64_t>(0x18, 0x4122334455667788)
      .put<std::uint64_t>(0x20, 0x5122334455667788)
      .put<std::uint32_t>(0x28, 0xa0000001)
      .put<std::uint32_t>(0x2c, 0xa0000002)
      .put<float>(0x30, 0.125F)
      .put<std::int32_t>(0x34, -7)
      .put<std::uint32_t>(0x38, 0xa0000003)
      .put<std::uint32_t>(0x3c, 0xa0000004)
      .put<std::uint32_t>(0x40, 0xa0000005)
      .put<std::uint32_t>(0x44, 0xa0000006)
      .put<std::uint32_t>(0x48, 0xa0000007)
      .put<std::uint8_t>(0x4c, 0x81)
      .put<std::uint64_t>(0x50, 0x6122334455667788)
      .put<std::uint32_t>(0x58, 0xa0000008)
      .put<std::uint8_t>(0x5c, 0x82);
  const NormBlock block = decode_norm(bytes.bytes());
  EXPECT_EQ(block.input, 0x1122334455667788U);
  EXPECT_EQ(block.add_in_out, 0x2122334455667788U);
  EXPECT_EQ(block.weight, 0x3122334455667788U);
  EXPECT_EQ(block.bias, 0x4122334455667788U);
  EXPECT_EQ(block.out, 0x5122334455667788U);
  EXPECT_EQ(block.token_num, 0xa0000001U);
  EXPECT_EQ(block.norm_dim, 0xa0000002U);
  EXPECT_EQ(block.eps, 0.125F);
  EXPECT_EQ(block.kind, -7);
  EXPECT_EQ(block.cnt_per_token, 0xa0000003U);
  EXPECT_EQ(block.in_step, 0xa0000004U);
  EXPECT_EQ(block.out_step, 0xa0000005U);
  EXPECT_EQ(block.in_start, 0xa0000006U);
  EXPECT_EQ(block.out_start, 0xa0000007U);
  EXPECT_EQ(block.use_norm, 0x81U);
  EXPECT_EQ(block.variance, 0x6122334455667788U);
  EXPECT_EQ(block.tp_size, 0xa0000008U);
  EXPECT_EQ(block.out_fp32, 0x82U);
}

TEST(DecodeNorm, BytesBetweenFields_DoNotMatter) {
  for (const std::uint8_t garbage : {0x00, 0x01, 0xff}) {
    const NormBlock block = decode_norm(BlockBuilder(garbage).bytes());
    EXPECT_EQ(check_norm(block), std::nullopt) << int{garbage};
    EXPECT_EQ(block.use_norm, 1);
    EXPECT_EQ(block.out_fp32, 0);
  }
}

struct Refusal {
  const char* name;
  std::function<void(BlockBuilder&)> change;
  const char* field;
  const char* text;
};

std::ostream& operator<<(std::ostream& out, const Refusal& what) {
  return out << what.name;
}

class RefusedBlock : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedBlock, NamesTheField) {
  BlockBuilder bytes;
  ASSERT_EQ(check_norm(decode_norm(bytes.bytes())), std::nullopt);
  GetParam().change(bytes);
  const auto error = check_norm(decode_norm(bytes.bytes()));
  ASSERT_TRUE(error.has_value());
  const auto [field, text] = error.value_or(BlockError{});
  EXPECT_EQ(field, GetParam().field);
  EXPECT_NE(text.find(GetParam().text), std::string::npos) << text;
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

INSTANTIATE_TEST_SUITE_P(
    All, RefusedBlock,
    ::testing::Values(
        Refusal{"KindTooLarge",
                [](BlockBuilder& b) { b.put<std::int32_t>(0x34, 3); }, "kind",
                "got 3"},
        Refusal{"KindNegative",
                [](BlockBuilder& b) { b.put<std::int32_t>(0x34, -1); }, "kind",
                "got -1"},
        Refusal{"UseNormNoBoolean",
                [](BlockBuilder& b) { b.put<std::uint8_t>(0x4c, 2); },
                "useNorm", "0 or 1, got 2"},
        Refusal{"OutFp32NoBoolean",
                [](BlockBuilder& b) { b.put<std::uint8_t>(0x5c, 0x37); },
                "out_fp32", "0 or 1, got 55"},
        Refusal{"EpsNan", [](BlockBuilder& b) { b.put<float>(0x30, kNan); },
                "eps", "finite"},
        Refusal{"EpsInfinite",
                [](BlockBuilder& b) { b.put<float>(0x30, HUGE_VALF); }, "eps",
                "finite"},
        Refusal{"EpsNegative",
                [](BlockBuilder& b) { b.put<float>(0x30, -1e-5F); }, "eps",
                "not negative"},
        Refusal{"WidthZero",
                [](BlockBuilder& b) { b.put<std::uint32_t>(0x2c, 0); },
                "norm_dim", "multiple of 64, got 0"},
        Refusal{"WidthNoMultiple",
                [](BlockBuilder& b) { b.put<std::uint32_t>(0x2c, 96); },
                "norm_dim", "multiple of 64, got 96"},
        Refusal{"WidthBeyondBuffer",
                [](BlockBuilder& b) { b.put<std::uint32_t>(0x2c, 8256); },
                "norm_dim", "at most 8192"},
        Refusal{"NormsBeyondBuffer",
                [](BlockBuilder& b) { b.put<std::uint32_t>(0x38, 65); },
                "norm_dim", "got 8320"},
        Refusal{"NormsZero",
                [](BlockBuilder& b) { b.put<std::uint32_t>(0x38, 0); },
                "cnt_per_token", "positive"},
        // 28 bytes a lane.
        Refusal{"Fp32OutputBeyondBuffer",
                [](BlockBuilder& b) {
                  b.put<std::uint32_t>(0x2c, 7040).put<std::uint8_t>(0x5c, 1);
                },
                "norm_dim", "at most 7021"},
        // 32 bytes a lane.
        Refusal{"VarianceBeyondBuffer",
                [](BlockBuilder& b) {
                  b.put<std::uint32_t>(0x2c, 6208)
                      .put<std::uint64_t>(0x50, 0x40000);
                },
                "norm_dim", "at most 6144"},
        Refusal{"VarianceOfManyNorms",
                [](BlockBuilder& b) {
                  b.put<std::uint32_t>(0x38, 2).put<std::uint64_t>(0x50,
                                                                   0x40000);
                },
                "cnt_per_token", "be 1"},
        Refusal{"VarianceWithoutDivisor",
                [](BlockBuilder& b) {
                  b.put<std::uint32_t>(0x58, 0).put<std::uint64_t>(0x50,
                                                                   0x40000);
                },
                "tpSize", "positive"},
        Refusal{"VarianceAloneWithWeight",
                [](BlockBuilder& b) { b.put<std::uint8_t>(0x4c, 0); }, "weight",
                "null where useNorm is 0, got 0x20000"},
        Refusal{"VarianceAloneWithBias",
                [](BlockBuilder& b) {
                  b.put<std::uint8_t>(0x4c, 0)
                      .put<std::uint64_t>(0x10, 0)
                      .put<std::uint64_t>(0x18, 0x40000);
                },
                "bias", "null where useNorm is 0"},
        Refusal{"VarianceAloneWithSum",
                [](BlockBuilder& b) {
                  b.put<std::uint8_t>(0x4c, 0).put<std::uint64_t>(0x08,
                                                                  0x40000);
                },
                "addInOut", "null where useNorm is 0"},
        Refusal{"InputNull",
                [](BlockBuilder& b) { b.put<std::uint64_t>(0x00, 0); }, "input",
                "not be null"},
        Refusal{"OutputNull",
                [](BlockBuilder& b) { b.put<std::uint64_t>(0x20, 0); }, "out",
                "not be null"},
        Refusal{"WeightOdd",
                [](BlockBuilder& b) { b.put<std::uint64_t>(0x10, 0x20001); },
                "weight", "multiple of 2, got 0x20001"},
        Refusal{
            "Fp32OutputUnaligned",
            [](BlockBuilder& b) {
              b.put<std::uint64_t>(0x20, 0x30002).put<std::uint8_t>(0x5c, 1);
            },
            "out", "multiple of 4"},
        Refusal{"VarianceUnaligned",
                [](BlockBuilder& b) { b.put<std::uint64_t>(0x50, 0x40002); },
                "variance", "multiple of 4"},
        Refusal{"OutputRowsOverlap",
                [](BlockBuilder& b) { b.put<std::uint32_t>(0x40, 127); },
                "out_step", "at least 128"},
        Refusal{"SumRowsOverlap",
                [](BlockBuilder& b) {
                  b.put<std::uint32_t>(0x3c, 64).put<std::uint64_t>(0x08,
                                                                    0x40000);
                },
                "in_step", "at least 128"},
        Refusal{
            "InputOffsetWraps",
            [](BlockBuilder& b) { b.put<std::uint32_t>(0x3c, 0x80000000U); },
            "in_step", "got 4294967296"},
        Refusal{
            "OutputOffsetWraps",
            [](BlockBuilder& b) { b.put<std::uint32_t>(0x48, 0xffffffffU); },
            "out_step", "fit 32 bits"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(CheckNorm, LargestWidths_AreAccepted) {
  const auto accepted = [](std::uint32_t width, std::uint8_t out_fp32,
                           std::uint64_t variance) {
    BlockBuilder bytes;
    bytes.put(0x2c, width).put(0x3c, width).put(0x40, width);
    bytes.put(0x5c, out_fp32).put(0x50, variance);
    return !check_norm(decode_norm(bytes.bytes())).has_value();
  };
  EXPECT_TRUE(accepted(8192, 0, 0));
  EXPECT_TRUE(accepted(6976, 1, 0));
  EXPECT_TRUE(accepted(6144, 0, 0x40000));
}

TEST(CheckNorm, NoRows_NeedNoPointers) {
  BlockBuilder bytes;
  bytes.put<std::uint32_t>(0x28, 0)
      .put<std::uint64_t>(0x00, 0)
      .put<std::uint64_t>(0x20, 0)
      .put<std::uint32_t>(0x40, 0);
  const NormBlock block = decode_norm(bytes.bytes());
  EXPECT_EQ(check_norm(block), std::nullopt);
  EXPECT_TRUE(operands_of(block).empty());
}

TEST(CheckNorm, RepeatedInputRow_IsAccepted) {
  BlockBuilder bytes;
  bytes.put<std::uint32_t>(0x3c, 0);
  const NormBlock block = decode_norm(bytes.bytes());
  EXPECT_EQ(check_norm(block), std::nullopt);
  const std::vector<Access> input = operands_of(block).front().accesses;
  ASSERT_EQ(input.size(), 1U);
  EXPECT_EQ(input[0].bytes, 256U);
}

std::string text_of(const std::vector<Operand>& operands) {
  std::string text;
  for (const Operand& operand : operands) {
    for (const Access& access : operand.accesses) {
      text += std::string(operand.field) +
              (access.kind == AccessKind::kRead ? " reads " : " writes ") +
              std::to_string(access.bytes) + " at " +
              std::to_string(access.address) + "; ";
    }
  }
  return text;
}

TEST(OperandsOf, PlainNorm_AreWholeTensors) {
  const NormBlock block = decode_norm(BlockBuilder().bytes());
  EXPECT_EQ(text_of(operands_of(block)),
            "input reads 768 at 65536; weight reads 256 at 131072; "
            "out writes 768 at 196608; ");
}

TEST(OperandsOf, EverythingGiven_AreStridedRows) {
  BlockBuilder bytes;
  bytes.put<std::uint64_t>(0x08, 1000000)
      .put<std::uint64_t>(0x18, 2000000)
      .put<std::uint64_t>(0x50, 3000000)
      .put<std::uint32_t>(0x28, 2)
      .put<std::uint32_t>(0x3c, 200)
      .put<std::uint32_t>(0x40, 300)
      .put<std::uint32_t>(0x44, 10)
      .put<std::uint32_t>(0x48, 20)
      .put<std::uint8_t>(0x5c, 1);
  const NormBlock block = decode_norm(bytes.bytes());
  ASSERT_EQ(check_norm(block), std::nullopt);
  EXPECT_EQ(text_of(operands_of(block)),
            "input reads 256 at 65556; input reads 256 at 65956; "
            "addInOut reads 256 at 1000020; addInOut reads 256 at 1000420; "
            "addInOut writes 256 at 1000020; addInOut writes 256 at 1000420; "
            "weight reads 256 at 131072; bias reads 256 at 2000000; "
            "variance reads 8 at 3000000; "
            "out writes 512 at 196688; out writes 512 at 197888; ");
}

TEST(OperandsOf, VarianceAlone_WritesOneFloatARow) {
  BlockBuilder bytes;
  bytes.put<std::uint8_t>(0x4c, 0)
      .put<std::uint64_t>(0x10, 0)
      .put<std::uint32_t>(0x40, 1);
  const NormBlock block = decode_norm(bytes.bytes());
  ASSERT_EQ(check_norm(block), std::nullopt);
  EXPECT_EQ(text_of(operands_of(block)),
            "input reads 768 at 65536; out writes 12 at 196608; ");
}

TEST(OperandsOf, VeryManyStridedRows_AreTheirReach) {
  BlockBuilder bytes;
  bytes.put<std::uint32_t>(0x28, 5000).put<std::uint32_t>(0x3c, 200);
  const std::vector<Access> input =
      operands_of(decode_norm(bytes.bytes())).front().accesses;
  ASSERT_EQ(input.size(), 1U);
  EXPECT_EQ(input[0].bytes, 4999U * 400U + 256U);
}

}  // namespace
}  // namespace ascend_sim
