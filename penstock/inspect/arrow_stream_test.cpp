#include "penstock/inspect/arrow_stream.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace penstock {
namespace {

// What pyarrow and `datasets` read of these files, the end-to-end tests of
// `prepare --export hf` compare. Here: what a mapped reader relies on.
class ArrowStreamTest : public testing::Test {
 protected:
  std::string written(std::int64_t rows, std::size_t each) {
    const std::string path = testing::TempDir() + "arrow_stream_test.arrow";
    ArrowListStream stream(path, "input_ids");
    for (std::int64_t row = 0; row < rows; ++row)
      stream.append(
          std::vector<std::int32_t>(each, static_cast<std::int32_t>(row)));
    const std::int64_t bytes = stream.commit();
    std::ifstream file(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(bytes, std::ssize(text));
    std::filesystem::remove(path);
    return text;
  }
  static std::uint32_t word(const std::string& text, std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, text.data() + at, sizeof(value));
    return value;
  }
};

TEST_F(ArrowStreamTest, BeginsAndEndsAsStreamsDo) {
  for (std::int64_t rows : {0, 1, 1000, 1001, 2500}) {
    const std::string text = written(rows, 3);
    EXPECT_EQ(word(text, 0), 0xFFFFFFFF);
    EXPECT_EQ(word(text, text.size() - 8), 0xFFFFFFFF);
    EXPECT_EQ(word(text, text.size() - 4), 0U);
    EXPECT_NE(text.find("input_ids"), text.npos);
  }
}

TEST_F(ArrowStreamTest, PutsBuffersAtMultiplesOf64Bytes) {
  const std::string text = written(5, 100);
  const std::size_t batch = 8 + word(text, 4);
  EXPECT_EQ(batch % 64, 0U);
  ASSERT_EQ(word(text, batch), 0xFFFFFFFF);
  const std::size_t body = batch + 8 + word(text, batch + 4);
  EXPECT_EQ(body % 64, 0U);
  EXPECT_EQ(word(text, body), 0U);
  EXPECT_EQ(word(text, body + 4), 100U);
  EXPECT_EQ(word(text, body + 64), 0U) << "the values of the first row";
  EXPECT_EQ(word(text, body + 64 + 4 * 100), 1U);
}

}  // namespace
}  // namespace penstock
