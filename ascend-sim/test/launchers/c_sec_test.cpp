// The copy that launcher libraries make into buffers of their own.
// Tests no other function of libc_sec, because there is none.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <string>

extern "C" int strcpy_s(char* to, std::size_t size, const char* from);

namespace {

TEST(StrcpyS, TextThatFits_IsCopiedWithItsEnd) {
  char to[4] = {'x', 'x', 'x', 'x'};
  EXPECT_EQ(strcpy_s(to, sizeof(to), "abc"), 0);
  EXPECT_EQ(std::string(to), "abc");
}

TEST(StrcpyS, TextThatDoesNotFit_EmptiesTheDestination) {
  char to[5] = {'x', 'x', 'x', 'x', 'x'};
  EXPECT_EQ(strcpy_s(to, 4, "abcd"), ERANGE | 128);
  EXPECT_EQ(to[0], '\0');
  EXPECT_EQ(to[4], 'x');
}

TEST(StrcpyS, MissingPointers_AreRefused) {
  char to[2] = {'x', 'x'};
  EXPECT_EQ(strcpy_s(nullptr, 2, "a"), EINVAL);
  EXPECT_EQ(strcpy_s(to, 0, "a"), ERANGE);
  EXPECT_EQ(to[0], 'x');
  EXPECT_EQ(strcpy_s(to, 2, nullptr), EINVAL | 128);
  EXPECT_EQ(to[0], '\0');
}

}  // namespace
