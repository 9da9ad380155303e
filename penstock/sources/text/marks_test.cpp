// Where rows and cells end, found 64 bytes at a time and one by one.
#include "penstock/sources/text/marks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace penstock::text {
namespace {

using testing::ElementsAre;

constexpr RowRules kCsv{.delimiter = ',', .quote = '"'};

using Table = std::vector<std::vector<std::string>>;

Table cut(const std::string& text, RowRules rules = kCsv,
          std::size_t cells = 2) {
  CellGrid grid(rules, cells);
  grid.cut(text);
  Table table;
  for (const CellGrid::Row& row : grid.rows()) {
    table.emplace_back();
    for (std::size_t c = 0; c < row.cells; ++c)
      table.back().emplace_back(grid.cell(row, c));
  }
  return table;
}

TEST(Marks, AreTheSameByteByByte) {
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    // From no quotation mark in several blocks to many of them.
    const std::string some = "\",\n" + std::string(random() % 300, 'x') + "\r";
    std::string text(random() % 1000, 'x');
    for (char& c : text) c = some[random() % some.size()];
    for (RowRules rules : {kCsv, RowRules{',', '\0'}, RowRules{'x', ','},
                           RowRules{'\r', '\n'}}) {
      Marks marks, by_bytes;
      marks.find(text, rules);
      by_bytes.find_by_bytes(text, rules);
      ASSERT_TRUE(std::ranges::equal(marks.cells.all(), by_bytes.cells.all()));
      ASSERT_TRUE(std::ranges::equal(marks.rows.all(), by_bytes.rows.all()));
      ASSERT_EQ(marks.unclosed, by_bytes.unclosed);
    }
  }
}

TEST(Marks, CutRowsWhereTheyEndForTheWalkOverThem) {
  std::mt19937 random(2);
  for (int i = 0; i < 3000; ++i) {
    const std::string some = "\",,\n\r" + std::string(random() % 20, 'x');
    std::string text(random() % 400, 'x');
    for (char& c : text) c = some[random() % some.size()];
    std::vector<std::string> walked, rows;
    const char* end = text.data() + text.size();
    for (const char* at = text.data(); at < end;) {
      const char* next = kCsv.end_of_row(at, end);
      if (next == nullptr) next = end;
      if (!content_of(at, next).empty())
        walked.emplace_back(content_of(at, next));
      at = next;
    }
    CellGrid grid(kCsv, 3);
    grid.cut(text);
    for (const CellGrid::Row& row : grid.rows())
      rows.emplace_back(grid.text(row));
    ASSERT_EQ(rows, walked) << text;
  }
}

TEST(Marks, OfOneByteAreCountedOn) {
  std::string text(200, 'x');
  std::vector<std::uint32_t> expected;
  for (std::uint32_t at : {0u, 1u, 63u, 64u, 127u, 128u, 190u, 199u}) {
    text[at] = '\n';
    expected.push_back(at + 1000);
  }
  Offsets found;
  find_byte(text, '\n', 1000, found);
  EXPECT_THAT(found.all(), testing::ElementsAreArray(expected));
}

TEST(CellGrid, CutsCells) {
  EXPECT_THAT(cut("a,b\n\nc,\r\n\r\n,d"),
              ElementsAre(ElementsAre("a", "b"), ElementsAre("c", ""),
                          ElementsAre("", "d")));
  EXPECT_THAT(cut("a\nb,c,d\n,\n"),
              ElementsAre(ElementsAre("a"), ElementsAre("b", "c", "d"),
                          ElementsAre("", "")));
  EXPECT_THAT(cut(""), ElementsAre());
}

TEST(CellGrid, LeavesQuotationMarksToItsReader) {
  EXPECT_THAT(cut("\"a,\"\"\n\",b\nx\"y,\"z\"w\n"),
              ElementsAre(ElementsAre("\"a,\"\"\n\"", "b"),
                          ElementsAre("x\"y", "\"z\"w")));
  EXPECT_THAT(cut("a,b\na,\"b\nc,d\n"),
              ElementsAre(ElementsAre("a", "b"), ElementsAre()))
      << "one that is not closed";
  EXPECT_THAT(cut("\"a,b\n", {',', '\0'}),
              ElementsAre(ElementsAre("\"a", "b")));
}

TEST(CellGrid, TakesNoEndOfALineForADelimiter) {
  EXPECT_THAT(cut("a\rb\r\nc\rd", {'\r', '"'}),
              ElementsAre(ElementsAre("a", "b"), ElementsAre("c", "d")));
}

}  // namespace
}  // namespace penstock::text
