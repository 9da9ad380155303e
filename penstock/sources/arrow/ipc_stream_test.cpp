// A stream that pyarrow 26 wrote, with a column of each layout.
#include "penstock/sources/arrow/ipc_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "penstock/base/error.h"

namespace penstock {
namespace {

using testing::ElementsAre;

std::string pyarrow_stream() {
  std::ifstream file(PENSTOCK_TEST_DATA "/files/types.arrows",
                     std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Reads a stream out of memory; at its end there is nothing to read.
std::shared_ptr<const ArrowTable> read_all(std::string_view bytes) {
  return arrow_files::read_ipc_stream([&](void* to, std::size_t size) {
    if (size > bytes.size()) throw std::out_of_range("the stream ends");
    std::memcpy(to, bytes.data(), size);
    bytes.remove_prefix(size);
  });
}

std::vector<std::string> texts_of(const ArrowTable& table, std::size_t column) {
  const Column values = table.column(0, column);
  std::vector<std::string> texts;
  for (std::int64_t row = 0; row < values.length; ++row)
    texts.push_back(values.valid(row) ? std::string(values.text(row)) : "null");
  return texts;
}

std::vector<double> numbers_of(const ArrowTable& table, std::size_t column) {
  const Column values = table.column(0, column);
  std::vector<double> numbers;
  for (std::int64_t row = 0; row < values.length; ++row)
    numbers.push_back(values.valid(row) ? values.as_float64(row) : -1);
  return numbers;
}

TEST(IpcStream, GivesTheRowsThatWereWritten) {
  const auto table = read_all(pyarrow_stream());
  ASSERT_EQ(table->rows(), 3);
  std::vector<std::string> names;
  for (const ArrowColumn& column : table->columns()) {
    names.push_back(column.info.name);
    EXPECT_TRUE(column.readable()) << column.info.name;
  }
  EXPECT_THAT(names, ElementsAre("n", "text", "view", "kind", "flag", "v",
                                 "pair", "s.x", "when", "price"));
  const char* text = "long enough to be no short view";
  EXPECT_THAT(numbers_of(*table, 0), ElementsAre(1, -1, 3));
  EXPECT_THAT(texts_of(*table, 1), ElementsAre("a", "null", text));
  EXPECT_THAT(texts_of(*table, 2), ElementsAre("a", "null", text));
  EXPECT_THAT(texts_of(*table, 3), ElementsAre("x", "y", "x"));
  EXPECT_THAT(numbers_of(*table, 4), ElementsAre(1, 0, -1));
  EXPECT_THAT(numbers_of(*table, 7), ElementsAre(1, -1, 3));
  EXPECT_THAT(numbers_of(*table, 9), ElementsAre(1.25, 2.5, -1));
  EXPECT_NE(table->columns()[0].info.index, "") << "as pandas wrote it";
}

TEST(IpcStream, ThatEndsTooEarlyIsRefused) {
  const std::string whole = pyarrow_stream();
  for (std::size_t size = 0; size < whole.size(); size += 7)
    EXPECT_THROW(read_all(std::string_view(whole).substr(0, size)),
                 std::exception)
        << size;
}

TEST(IpcStream, WithAnyByteChangedIsReadOrRefused) {
  const std::string whole = pyarrow_stream();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
    try {
      read_all(changed);
    } catch (const std::exception&) {
    }
  }
}

}  // namespace
}  // namespace penstock
