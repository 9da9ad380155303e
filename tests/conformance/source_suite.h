#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/sync.h"
#include "penstock/sources/sources.h"

/// What every source must do, whatever holds its rows. A new one implements
/// SourceFixture and joins with
///
///     INSTANTIATE_TEST_SUITE_P(
///         MySource, SourceSuite,
///         testing::Values(SourceCase{"int64", ColumnType::int64, make_mine},
///                         SourceCase{"text", ColumnType::text, make_mine}),
///         testing::PrintToStringParamName());
///
/// What a source cannot do by its abilities, or a fixture does not offer, is
/// skipped.
namespace penstock {

/// A row of the suite's table (id, number, whole, doc): key, float64, int64
/// and JSON. The key is a number, a text, or the 16 bytes of a uuid. A source
/// by position has no id: row i of the suite is its row i.
struct SuiteRow {
  std::int64_t id = 0;
  std::string key;  ///< for text and uuid keys
  std::optional<double> number = std::nullopt;
  std::optional<std::int64_t> whole = std::nullopt;
  std::optional<std::string> doc = std::nullopt;
};

/// One table of the source under test; removed with the fixture.
class SourceFixture {
 public:
  virtual ~SourceFixture() = default;
  virtual void fill(ColumnType key, const std::vector<SuiteRow>& rows) = 0;
  virtual std::unique_ptr<Source> open(
      const std::vector<ColumnRequest>& requests) = 0;
  /// Adds a row as another program would, while readers are at work.
  virtual void add(const SuiteRow&) {}
  /// Whether add() adds.
  virtual bool grows() const { return true; }
  /// Whether a value can be of another kind than its column.
  virtual bool has_problems() const { return true; }
  /// Whether its columns are known where it has no rows.
  virtual bool knows_columns() const { return true; }
  /// Whether a value can be missing.
  virtual bool has_nulls() const { return true; }
  /// What the source calls a column of the suite.
  virtual std::string name_of(const std::string& column) const {
    return column;
  }
};

struct SourceCase {
  std::string name;
  ColumnType key = ColumnType::int64;
  std::function<std::unique_ptr<SourceFixture>()> make;
  bool by_position = false;

  friend void PrintTo(const SourceCase& c, std::ostream* out) {
    *out << c.name;
  }
};

class SourceSuite : public testing::TestWithParam<SourceCase> {
 protected:
  /// Row i; keys do not follow the order in which the rows are written.
  SuiteRow row(std::int64_t i) const {
    std::int64_t id = (i * 7919) % 100003 - 50000;
    if (GetParam().by_position) id = i;
    SuiteRow row{.id = id,
                 .number = static_cast<double>(i) + 0.25,
                 .whole = (std::int64_t{1} << 53) + i,
                 .doc = R"({"i": )" + std::to_string(i) + "}"};
    std::string digits = std::to_string(id + 20000000);
    if (GetParam().key == ColumnType::text)
      row.key = (i % 3 == 0 ? "\xc3\xa4" : i % 3 == 1 ? "z" : "A") + digits;
    if (GetParam().key == ColumnType::uuid)
      row.key = "\x01\x7f\x80\xffuuid" + digits;
    return row;
  }

  void fill(std::int64_t rows) {
    rows_.clear();
    for (std::int64_t i = 0; i < rows; ++i) rows_.push_back(row(i));
    fixture_->fill(GetParam().key, rows_);
  }
  void fill(const std::vector<SuiteRow>& rows) {
    fixture_->fill(GetParam().key, rows_ = rows);
  }

  std::unique_ptr<Source> open(const std::vector<ColumnRequest>& requests) {
    return fixture_->open(requests);
  }
  std::unique_ptr<Source> open() {
    return open({{"number", ReadAs::number},
                 {"whole", ReadAs::integer},
                 {"doc", ReadAs::json}});
  }

  KeyList keys_of(const std::vector<std::size_t>& rows) const {
    KeyList keys(GetParam().key);
    for (std::size_t at : rows) {
      if (keys.type() == ColumnType::int64)
        keys.append_integer(rows_[at].id);
      else
        keys.append_bytes(rows_[at].key);
    }
    return keys;
  }
  /// Reads rows by their keys or positions.
  void read(Reader& reader, const std::vector<std::size_t>& rows,
            Block& out) const {
    if (!GetParam().by_position) return reader.read(keys_of(rows), out);
    std::vector<std::int64_t> positions(rows.begin(), rows.end());
    reader.read(positions, out);
  }

  /// The values of a row of a block, for comparing.
  static std::string values(const Block& block, std::int64_t row) {
    std::string text;
    for (const Column& column : block.columns) {
      text += " | ";
      if (!column.valid(row))
        text += "null";
      else if (column.type == ColumnType::float64)
        text += std::to_string(column.float64(row));
      else if (column.type == ColumnType::int64)
        text += std::to_string(column.int64(row));
      else
        text += column.text(row);
    }
    return text;
  }
  static std::string shown(const KeyList& keys, const Block& block,
                           std::int64_t row) {
    return keys.shown(row) + values(block, row);
  }
  /// The same, as it should be.
  std::string values(std::size_t at) const {
    const SuiteRow& row = rows_[at];
    std::string text =
        " | " + (row.number ? std::to_string(*row.number) : "null");
    text += " | " + (row.whole ? std::to_string(*row.whole) : "null");
    return text + " | " + row.doc.value_or("null");
  }
  std::string shown(std::size_t at) const {
    return keys_of({at}).shown(0) + values(at);
  }
  std::vector<std::string> all_shown() const {
    std::vector<std::string> all;
    for (std::size_t at = 0; at < rows_.size(); ++at) all.push_back(shown(at));
    return all;
  }

  static std::vector<std::string> scanned(Reader& reader, const Partition& part,
                                          BlockLimit limit = {.rows = 100}) {
    std::vector<std::string> rows;
    reader.scan(part, limit, [&](KeyList& keys, Block& block) {
      for (std::int64_t at = 0; at < block.rows; ++at)
        rows.push_back(shown(keys, block, at));
      return true;
    });
    return rows;
  }
  static std::vector<std::string> scanned(Reader& reader,
                                          const std::vector<Partition>& parts) {
    std::vector<std::string> rows;
    for (const Partition& part : parts)
      for (std::string& row : scanned(reader, part))
        rows.push_back(std::move(row));
    return rows;
  }
  static std::vector<std::string> scanned(Source& source,
                                          const std::vector<Partition>& parts) {
    return scanned(*open_checked_reader(source), parts);
  }
  /// Hands the blocks of all parts to `sink`.
  static void scan(Source& source, BlockLimit limit, const BlockSink& sink) {
    auto reader = open_checked_reader(source);
    for (const Partition& part : source.partitions(1))
      reader->scan(part, limit, sink);
  }
  static std::vector<std::string> scanned(Source& source, int readers = 1) {
    return scanned(source, source.partitions(readers));
  }

  std::unique_ptr<SourceFixture> fixture_ = GetParam().make();
  std::vector<SuiteRow> rows_;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SourceSuite);

TEST_P(SourceSuite, GivesEveryRowOnceForAnyNumberOfPartitions) {
  fill(997);
  auto source = open();
  for (int readers : {1, 2, 8}) {
    auto parts = source->partitions(readers);
    EXPECT_GE(parts.size(), 1u);
    EXPECT_THAT(scanned(*source, parts),
                testing::UnorderedElementsAreArray(all_shown()))
        << readers;
  }
}

TEST_P(SourceSuite, GivesPartitionsToThreads) {
  fill(997);
  auto source = open();
  auto parts = source->partitions(8);
  std::vector<std::vector<std::string>> found(parts.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t at = 0; at < parts.size(); ++at)
      threads.emplace_back([&, at] {
        found[at] = scanned(*open_checked_reader(*source), parts[at]);
      });
  }
  std::vector<std::string> all;
  for (auto& part : found) all.insert(all.end(), part.begin(), part.end());
  EXPECT_THAT(all, testing::UnorderedElementsAreArray(all_shown()));
}

TEST_P(SourceSuite, GivesNoBlockOfATableWithoutRows) {
  if (!fixture_->knows_columns()) return;  // rows say what columns there are
  fill(0);
  EXPECT_THAT(scanned(*open()), testing::IsEmpty());
}

TEST_P(SourceSuite, FillsBlocksUpToTheirLimit) {
  fill(250);
  auto source = open();
  std::vector<std::int64_t> sizes;
  scan(*source, {.rows = 100}, [&](KeyList&, Block& block) {
    for (const Column& column : block.columns)
      EXPECT_EQ(column.length, block.rows);
    sizes.push_back(block.rows);
    return true;
  });
  EXPECT_THAT(sizes, testing::Each(testing::Le(100)));
  EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}), 250);
  if (!GetParam().by_position) {  // else the first ones are small
    EXPECT_EQ(*std::ranges::max_element(sizes), 100);
  }
}

TEST_P(SourceSuite, LetsTheSinkKeepBlocks) {
  fill(250);
  auto source = open();
  std::vector<std::pair<KeyList, Block>> kept;
  std::vector<std::string> rows;
  scan(*source, {.rows = 40}, [&](KeyList& keys, Block& block) {
    if (kept.size() % 3 != 1)
      kept.emplace_back(std::move(keys), std::move(block));
    else  // leaves this one to be filled again
      for (std::int64_t at = 0; at < block.rows; ++at)
        rows.push_back(shown(keys, block, at));
    if (kept.size() % 3 == 1 && !rows.empty()) kept.emplace_back();
    return true;
  });
  for (const auto& [keys, block] : kept)
    for (std::int64_t at = 0; at < block.rows; ++at)
      rows.push_back(shown(keys, block, at));
  EXPECT_THAT(rows, testing::UnorderedElementsAreArray(all_shown()));
}

TEST_P(SourceSuite, EndsAScanWhenTheSinkHasEnough) {
  fill(500);
  auto source = open();
  auto reader = open_checked_reader(*source);
  auto parts = source->partitions(1);
  int blocks = 0;
  reader->scan(parts[0], {.rows = 50},
               [&](KeyList&, Block&) { return ++blocks < 2; });
  EXPECT_EQ(blocks, 2);
  EXPECT_THAT(scanned(*reader, parts),
              testing::UnorderedElementsAreArray(all_shown()));
}

TEST_P(SourceSuite, PassesOnWhatTheSinkThrows) {
  fill(10);
  auto source = open();
  auto reader = open_checked_reader(*source);
  auto parts = source->partitions(1);
  EXPECT_THROW(reader->scan(parts[0], {.rows = 5},
                            [](KeyList&, Block&) -> bool {
                              throw std::runtime_error("the sink is full");
                            }),
               std::runtime_error);
  EXPECT_EQ(scanned(*reader, parts).size(), 10u);
}

TEST_P(SourceSuite, SaysItsTypesBeforeARowIsRead) {
  fill(5);
  auto source = open();
  EXPECT_THAT(source->types(),
              testing::ElementsAre(ColumnType::float64, ColumnType::int64,
                                   ColumnType::json));
  EXPECT_EQ(source->facts().key, GetParam().key);
  scan(*source, {.rows = 5}, [&](KeyList& keys, Block& block) {
    EXPECT_EQ(keys.type(), GetParam().key);
    for (std::size_t c = 0; c < block.columns.size(); ++c)
      EXPECT_EQ(block.columns[c].type, source->types()[c]);
    return true;
  });
}

TEST_P(SourceSuite, KnowsItsColumnsAndKey) {
  fill(1);
  auto source = open();
  for (const char* column : {"number", "whole", "doc"}) {
    const std::string name = fixture_->name_of(column);
    ASSERT_NE(source->schema().find(name), nullptr) << name;
    EXPECT_FALSE(source->schema().find(name)->primary_key) << name;
  }
  if (!GetParam().by_position) {
    ASSERT_NE(source->schema().find("id"), nullptr);
    EXPECT_TRUE(source->schema().find("id")->primary_key);
  }
  EXPECT_EQ(source->schema().find("absent"), nullptr);
  EXPECT_FALSE(source->shown().empty());
}

TEST_P(SourceSuite, ReadsRowsInTheOrderAskedForWithRepetitions) {
  fill(300);
  auto source = open();
  auto reader = open_checked_reader(*source);
  std::vector<std::size_t> asked = {299, 0, 17, 17, 200, 0, 1, 299, 150};
  Block block;
  read(*reader, asked, block);
  ASSERT_EQ(block.rows, static_cast<std::int64_t>(asked.size()));
  for (std::size_t at = 0; at < asked.size(); ++at)
    EXPECT_EQ(values(block, static_cast<std::int64_t>(at)), values(asked[at]));
}

TEST_P(SourceSuite, FillsTheSameBlockAgain) {
  fill(300);
  auto source = open();
  auto reader = open_checked_reader(*source);
  Block block;
  for (std::size_t count : {200u, 3u, 64u, 1u}) {
    std::vector<std::size_t> asked;
    for (std::size_t at = 0; at < count; ++at) asked.push_back(299 - at);
    read(*reader, asked, block);
    ASSERT_EQ(block.rows, static_cast<std::int64_t>(count));
    EXPECT_EQ(values(block, block.rows - 1), values(300 - count));
  }
}

TEST_P(SourceSuite, ReadsNoRowsForNoKeys) {
  fill(3);
  Block block;
  read(*open_checked_reader(*open()), {}, block);
  EXPECT_EQ(block.rows, 0);
}

TEST_P(SourceSuite, NamesAKeyThatIsGone) {
  fill(20);
  rows_.push_back(row(21));  // not in the table
  auto source = open();
  std::string gone = GetParam().by_position ? "20" : keys_of({20}).shown(0);
  Block block;
  try {
    read(*open_checked_reader(*source), {3, 20, 4}, block);
    FAIL() << "the missing row was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::source);
    EXPECT_EQ(error.parts().code, "source.row_gone");
    EXPECT_THAT(error.what(), testing::HasSubstr(gone));
  }
}

TEST_P(SourceSuite, ReadsOnAfterAKeyWasGone) {
  fill(20);
  rows_.push_back(row(21));
  auto source = open();
  auto reader = open_checked_reader(*source);
  Block block;
  EXPECT_THROW(read(*reader, {20}, block), Error);
  read(*reader, {7}, block);
  ASSERT_EQ(block.rows, 1);
  EXPECT_EQ(values(block, 0), values(std::size_t{7}));
}

TEST_P(SourceSuite, ServesManyReadersAtOnce) {
  fill(500);
  auto source = open();
  for (std::size_t readers : {1u, 2u, 8u}) {
    std::vector<int> wrong(readers, 0);
    {
      std::vector<std::jthread> threads;
      for (std::size_t r = 0; r < readers; ++r)
        threads.emplace_back([&, r] {
          auto reader = open_checked_reader(*source);
          Block block;
          for (std::size_t round = 0; round < 20; ++round) {
            std::vector<std::size_t> asked;
            for (std::size_t at = 0; at < 50; ++at)
              asked.push_back((at * 37 + r * 11 + round * 101) % 500);
            read(*reader, asked, block);
            for (std::size_t at = 0; at < asked.size(); ++at)
              if (values(block, static_cast<std::int64_t>(at)) !=
                  values(asked[at]))
                ++wrong[r];
          }
        });
    }
    EXPECT_THAT(wrong, testing::Each(0)) << readers;
  }
}

TEST_P(SourceSuite, DoesNotSeeRowsThatCameAfterAPassBegan) {
  if (!fixture_->grows()) return;  // its rows do not change
  fill(300);
  auto source = open();
  std::vector<std::string> before = all_shown();
  auto parts = source->partitions(2);
  fixture_->add(row(301));
  auto reader = open_checked_reader(*source);
  std::vector<std::string> rows;
  for (const Partition& part : parts)
    reader->scan(part, {.rows = 50}, [&](KeyList& keys, Block& block) {
      fixture_->add(row(302 + static_cast<std::int64_t>(rows.size())));
      for (std::int64_t at = 0; at < block.rows; ++at)
        rows.push_back(shown(keys, block, at));
      return true;
    });
  EXPECT_THAT(rows, testing::UnorderedElementsAreArray(before));
}

TEST_P(SourceSuite, SeesNewRowsInTheNextPass) {
  if (!fixture_->grows()) return;  // its rows do not change
  fill(30);
  auto source = open();
  EXPECT_EQ(scanned(*source).size(), 30u);
  fixture_->add(row(31));
  EXPECT_EQ(scanned(*source).size(), 31u);
}

TEST_P(SourceSuite, LeavesNullsNull) {
  if (!fixture_->has_nulls()) return;  // an array has a number in every place
  std::vector<SuiteRow> rows = {row(0), row(1), row(2), row(3)};
  rows[1].number = std::nullopt;
  rows[2].whole = std::nullopt;
  rows[3].doc = std::nullopt;
  fill(rows);
  auto source = open();
  EXPECT_THAT(scanned(*source),
              testing::UnorderedElementsAreArray(all_shown()));
  Block block;
  read(*open_checked_reader(*source), {3, 2, 1, 0}, block);
  EXPECT_TRUE(block.problems.empty());
  for (std::int64_t at = 0; at < 4; ++at)
    EXPECT_EQ(values(block, at), values(static_cast<std::size_t>(3 - at)));
}

TEST_P(SourceSuite, MarksAValueOfTheWrongKindAsAProblemOfItsRow) {
  if (!fixture_->has_problems()) return;  // its columns are typed
  std::vector<SuiteRow> rows = {row(0), row(1), row(2)};
  rows[0].number = 1.0;
  rows[1].number = 2.5;
  rows[2].number = -3.0;
  fill(rows);
  auto source = open({{"whole", ReadAs::number}, {"number", ReadAs::integer}});
  Block block;
  read(*open_checked_reader(*source), {2, 1, 0, 1}, block);
  ASSERT_EQ(block.problems.size(), 2u);
  EXPECT_EQ(block.problems[0].row, 1);
  EXPECT_EQ(block.problems[1].row, 3);
  for (const RowProblem& problem : block.problems) {
    EXPECT_EQ(problem.column, 1u);
    EXPECT_THAT(problem.why, testing::HasSubstr("2.5"));
    EXPECT_FALSE(block.columns[1].valid(problem.row));
    EXPECT_TRUE(block.columns[0].valid(problem.row));
  }
}

TEST_P(SourceSuite, MarksTheSameProblemsInAScan) {
  if (!fixture_->has_problems()) return;  // its columns are typed
  std::vector<SuiteRow> rows = {row(0), row(1), row(2)};
  rows[1].number = 2.5;
  rows[0].number = 1.0;
  rows[2].number = -3.0;
  fill(rows);
  auto source = open({{"number", ReadAs::integer}});
  int problems = 0;
  scan(*source, {.rows = 1}, [&](KeyList&, Block& block) {
    for (const RowProblem& problem : block.problems) {
      ++problems;
      EXPECT_EQ(problem.row, 0);
      EXPECT_EQ(problem.column, 0u);
      EXPECT_THAT(values(block, 0), testing::HasSubstr("null"));
      EXPECT_THAT(problem.why, testing::HasSubstr("2.5"));
    }
    return true;
  });
  EXPECT_EQ(problems, 1);
}

TEST_P(SourceSuite, KeepsTheBytesOfADocument) {
  std::vector<SuiteRow> rows = {row(0), row(1)};
  rows[0].doc = R"(["a\"b", "K)"
                "\xc3\xb6"
                R"(ln", 1e-7, {"deep": [null]}])";
  rows[1].doc = "[]";
  fill(rows);
  EXPECT_THAT(scanned(*open()),
              testing::UnorderedElementsAreArray(all_shown()));
}

}  // namespace penstock
