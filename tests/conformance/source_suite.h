#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>
#include <memory>
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
namespace penstock {

/// A row of the suite's table (id, number, whole, doc): key, float64, int64
/// and JSON. The key is a number, a text, or the 16 bytes of a uuid.
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
      const std::vector<ColumnRequest>& wanted) = 0;
  /// Adds a row as another program would, while readers are at work.
  virtual void add(const SuiteRow& row) = 0;
};

struct SourceCase {
  std::string name;
  ColumnType key = ColumnType::int64;
  std::function<std::unique_ptr<SourceFixture>()> make;

  friend void PrintTo(const SourceCase& c, std::ostream* out) {
    *out << c.name;
  }
};

class SourceSuite : public testing::TestWithParam<SourceCase> {
 protected:
  /// Row i; keys do not follow the order in which the rows are written.
  SuiteRow row(std::int64_t i) const {
    std::int64_t id = (i * 7919) % 100003 - 50000;
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

  std::unique_ptr<Source> open(const std::vector<ColumnRequest>& wanted) {
    return fixture_->open(wanted);
  }
  std::unique_ptr<Source> open() {
    return open({{"number", ReadAs::number},
                 {"whole", ReadAs::integer},
                 {"doc", ReadAs::json}});
  }

  KeyList keys_of(const std::vector<std::size_t>& rows) const {
    Column column;
    column.type = GetParam().key;
    KeyList keys(column.type);
    for (std::size_t at : rows) append_key(rows_[at], column, keys);
    return keys;
  }
  static void append_key(const SuiteRow& row, Column& column, KeyList& keys) {
    if (column.type == ColumnType::int64)
      column.append_int64(row.id);
    else if (column.type == ColumnType::text)
      column.append_text(row.key);
    else
      column.append_uuid(reinterpret_cast<const std::byte*>(row.key.data()));
    keys.append(column, column.length - 1);
  }

  /// Key and values of a row of a block, for comparing.
  static std::string shown(const Block& block, std::int64_t row) {
    KeyList key(block.columns[0].type);
    key.append(block.columns[0], row);
    std::string text = key.shown(0);
    for (std::size_t c = 1; c < block.columns.size(); ++c) {
      const Column& column = block.columns[c];
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
  /// The same, as it should be.
  std::string shown(std::size_t at) const {
    const SuiteRow& row = rows_[at];
    std::string text = keys_of({at}).shown(0);
    text += " | " + (row.number ? std::to_string(*row.number) : "null");
    text += " | " + (row.whole ? std::to_string(*row.whole) : "null");
    return text + " | " + row.doc.value_or("null");
  }
  std::vector<std::string> all_shown() const {
    std::vector<std::string> all;
    for (std::size_t at = 0; at < rows_.size(); ++at) all.push_back(shown(at));
    return all;
  }

  static std::vector<std::string> scanned(Reader& reader, const Partition& part,
                                          std::int64_t block_rows = 100) {
    std::vector<std::string> rows;
    reader.scan(part, block_rows, [&](Block& block) {
      for (std::int64_t at = 0; at < block.rows; ++at)
        rows.push_back(shown(block, at));
      return true;
    });
    return rows;
  }
  static std::vector<std::string> scanned(Source& source,
                                          const std::vector<Partition>& parts) {
    std::vector<std::string> rows;
    auto reader = source.open_reader();
    for (const Partition& part : parts)
      for (std::string& row : scanned(*reader, part))
        rows.push_back(std::move(row));
    return rows;
  }
  static std::vector<std::string> scanned(Source& source, int wish = 1) {
    return scanned(source, source.partitions(wish));
  }

  std::unique_ptr<SourceFixture> fixture_ = GetParam().make();
  std::vector<SuiteRow> rows_;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SourceSuite);

TEST_P(SourceSuite, GivesEveryRowOnceForAnyNumberOfPartitions) {
  fill(997);
  auto source = open();
  for (int wish : {1, 2, 8}) {
    auto parts = source->partitions(wish);
    EXPECT_THAT(parts.size(), testing::AllOf(testing::Ge(1u),
                                             testing::Le(std::size_t(wish))));
    EXPECT_THAT(scanned(*source, parts),
                testing::UnorderedElementsAreArray(all_shown()))
        << wish;
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
      threads.emplace_back(
          [&, at] { found[at] = scanned(*source->open_reader(), parts[at]); });
  }
  std::vector<std::string> all;
  for (auto& part : found) all.insert(all.end(), part.begin(), part.end());
  EXPECT_THAT(all, testing::UnorderedElementsAreArray(all_shown()));
}

TEST_P(SourceSuite, GivesNoBlockOfATableWithoutRows) {
  fill(0);
  EXPECT_THAT(scanned(*open()), testing::IsEmpty());
}

TEST_P(SourceSuite, FillsBlocksUpToTheirLimit) {
  fill(250);
  auto source = open();
  std::vector<std::int64_t> sizes;
  source->open_reader()->scan(source->partitions(1)[0], 100, [&](Block& block) {
    for (const Column& column : block.columns)
      EXPECT_EQ(column.length, block.rows);
    sizes.push_back(block.rows);
    return true;
  });
  EXPECT_THAT(sizes, testing::ElementsAre(100, 100, 50));
}

TEST_P(SourceSuite, LetsTheSinkKeepBlocks) {
  fill(250);
  auto source = open();
  std::vector<Block> kept;
  source->open_reader()->scan(source->partitions(1)[0], 40, [&](Block& block) {
    if (block.rows != 40 || kept.size() % 3 != 1) {
      kept.push_back(std::move(block));
    } else {
      kept.emplace_back();  // leaves this one to be filled again
      for (std::int64_t at = 0; at < block.rows; ++at)
        EXPECT_FALSE(shown(block, at).empty());
    }
    return true;
  });
  std::vector<std::string> rows;
  for (const Block& block : kept)
    for (std::int64_t at = 0; at < block.rows; ++at)
      rows.push_back(shown(block, at));
  EXPECT_THAT(rows, testing::IsSubsetOf(all_shown()));
  EXPECT_EQ(rows.size(), 250u - 2u * 40u);
}

TEST_P(SourceSuite, EndsAScanWhenTheSinkHasEnough) {
  fill(500);
  auto source = open();
  auto reader = source->open_reader();
  auto parts = source->partitions(1);
  int blocks = 0;
  reader->scan(parts[0], 100, [&](Block&) { return ++blocks < 2; });
  EXPECT_EQ(blocks, 2);
  EXPECT_THAT(scanned(*reader, parts[0]),
              testing::UnorderedElementsAreArray(all_shown()));
}

TEST_P(SourceSuite, PassesOnWhatTheSinkThrows) {
  fill(10);
  auto source = open();
  auto reader = source->open_reader();
  auto parts = source->partitions(1);
  EXPECT_THROW(reader->scan(parts[0], 5,
                            [](Block&) -> bool {
                              throw std::runtime_error("the sink is full");
                            }),
               std::runtime_error);
  EXPECT_EQ(scanned(*reader, parts[0]).size(), 10u);
}

TEST_P(SourceSuite, SaysItsTypesBeforeARowIsRead) {
  fill(5);
  auto source = open();
  EXPECT_THAT(source->types(),
              testing::ElementsAre(ColumnType::float64, ColumnType::int64,
                                   ColumnType::json));
  source->open_reader()->scan(source->partitions(1)[0], 5, [&](Block& block) {
    EXPECT_EQ(block.columns[0].type, GetParam().key);
    for (std::size_t c = 1; c < block.columns.size(); ++c)
      EXPECT_EQ(block.columns[c].type, source->types()[c - 1]);
    return true;
  });
}

TEST_P(SourceSuite, KnowsItsColumnsAndKey) {
  fill(1);
  auto source = open();
  std::vector<std::string> names;
  for (const ColumnInfo& column : source->schema().columns)
    names.push_back(column.name);
  EXPECT_THAT(names, testing::ElementsAre("id", "number", "whole", "doc"));
  EXPECT_TRUE(source->schema().find("id")->primary_key);
  EXPECT_FALSE(source->schema().find("doc")->primary_key);
  EXPECT_EQ(source->schema().find("absent"), nullptr);
  EXPECT_FALSE(source->shown().empty());
}

TEST_P(SourceSuite, ReadsRowsInTheOrderAskedForWithRepetitions) {
  fill(300);
  auto source = open();
  auto reader = source->open_reader();
  std::vector<std::size_t> asked = {299, 0, 17, 17, 200, 0, 1, 299, 150};
  Block block;
  reader->read(keys_of(asked), block);
  ASSERT_EQ(block.rows, static_cast<std::int64_t>(asked.size()));
  for (std::size_t at = 0; at < asked.size(); ++at)
    EXPECT_EQ(shown(block, static_cast<std::int64_t>(at)), shown(asked[at]));
}

TEST_P(SourceSuite, FillsTheSameBlockAgain) {
  fill(300);
  auto source = open();
  auto reader = source->open_reader();
  Block block;
  for (std::size_t count : {200u, 3u, 64u, 1u}) {
    std::vector<std::size_t> asked;
    for (std::size_t at = 0; at < count; ++at) asked.push_back(299 - at);
    reader->read(keys_of(asked), block);
    ASSERT_EQ(block.rows, static_cast<std::int64_t>(count));
    EXPECT_EQ(shown(block, block.rows - 1), shown(300 - count));
  }
}

TEST_P(SourceSuite, ReadsNoRowsForNoKeys) {
  fill(3);
  Block block;
  open()->open_reader()->read(KeyList(GetParam().key), block);
  EXPECT_EQ(block.rows, 0);
}

TEST_P(SourceSuite, NamesAKeyThatIsGone) {
  fill(20);
  rows_.push_back(row(21));  // not in the table
  auto source = open();
  KeyList keys = keys_of({3, 20, 4});
  Block block;
  try {
    source->open_reader()->read(keys, block);
    FAIL() << "the missing row was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::source);
    EXPECT_EQ(error.parts().code, "source.row_gone");
    EXPECT_THAT(error.what(), testing::HasSubstr(keys.shown(1)));
  }
}

TEST_P(SourceSuite, ReadsOnAfterAKeyWasGone) {
  fill(20);
  rows_.push_back(row(21));
  auto source = open();
  auto reader = source->open_reader();
  Block block;
  EXPECT_THROW(reader->read(keys_of({20}), block), Error);
  reader->read(keys_of({7}), block);
  ASSERT_EQ(block.rows, 1);
  EXPECT_EQ(shown(block, 0), shown(7));
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
          auto reader = source->open_reader();
          Block block;
          for (std::size_t round = 0; round < 20; ++round) {
            std::vector<std::size_t> asked;
            for (std::size_t at = 0; at < 50; ++at)
              asked.push_back((at * 37 + r * 11 + round * 101) % 500);
            reader->read(keys_of(asked), block);
            for (std::size_t at = 0; at < asked.size(); ++at)
              if (shown(block, static_cast<std::int64_t>(at)) !=
                  shown(asked[at]))
                ++wrong[r];
          }
        });
    }
    EXPECT_THAT(wrong, testing::Each(0)) << readers;
  }
}

TEST_P(SourceSuite, DoesNotSeeRowsThatCameAfterAPassBegan) {
  fill(300);
  auto source = open();
  std::vector<std::string> before = all_shown();
  auto parts = source->partitions(2);
  fixture_->add(row(301));
  auto reader = source->open_reader();
  std::vector<std::string> rows;
  for (const Partition& part : parts)
    reader->scan(part, 50, [&](Block& block) {
      fixture_->add(row(302 + static_cast<std::int64_t>(rows.size())));
      for (std::int64_t at = 0; at < block.rows; ++at)
        rows.push_back(shown(block, at));
      return true;
    });
  EXPECT_THAT(rows, testing::UnorderedElementsAreArray(before));
}

TEST_P(SourceSuite, SeesNewRowsInTheNextPass) {
  fill(30);
  auto source = open();
  EXPECT_EQ(scanned(*source).size(), 30u);
  fixture_->add(row(31));
  EXPECT_EQ(scanned(*source).size(), 31u);
}

TEST_P(SourceSuite, LeavesNullsNull) {
  std::vector<SuiteRow> rows = {row(0), row(1), row(2), row(3)};
  rows[1].number = std::nullopt;
  rows[2].whole = std::nullopt;
  rows[3].doc = std::nullopt;
  fill(rows);
  auto source = open();
  EXPECT_THAT(scanned(*source),
              testing::UnorderedElementsAreArray(all_shown()));
  Block block;
  source->open_reader()->read(keys_of({3, 2, 1, 0}), block);
  EXPECT_TRUE(block.problems.empty());
  for (std::int64_t at = 0; at < 4; ++at)
    EXPECT_EQ(shown(block, at), shown(static_cast<std::size_t>(3 - at)));
}

TEST_P(SourceSuite, MarksAValueOfTheWrongKindAsAProblemOfItsRow) {
  std::vector<SuiteRow> rows = {row(0), row(1), row(2)};
  rows[1].number = std::numeric_limits<double>::infinity();
  fill(rows);
  auto source = open({{"whole", ReadAs::integer}, {"number", ReadAs::number}});
  Block block;
  source->open_reader()->read(keys_of({2, 1, 0, 1}), block);
  ASSERT_EQ(block.problems.size(), 2u);
  EXPECT_EQ(block.problems[0].row, 1);
  EXPECT_EQ(block.problems[1].row, 3);
  for (const RowProblem& problem : block.problems) {
    EXPECT_EQ(problem.column, 2u);
    EXPECT_THAT(problem.why, testing::HasSubstr("inf"));
    EXPECT_FALSE(block.columns[2].valid(problem.row));
    EXPECT_TRUE(block.columns[1].valid(problem.row));
  }
}

TEST_P(SourceSuite, MarksTheSameProblemsInAScan) {
  std::vector<SuiteRow> rows = {row(0), row(1), row(2)};
  rows[1].number = 2.5;
  rows[0].number = 1.0;
  rows[2].number = -3.0;
  fill(rows);
  auto source = open({{"number", ReadAs::integer}});
  int problems = 0;
  source->open_reader()->scan(source->partitions(1)[0], 1, [&](Block& block) {
    for (const RowProblem& problem : block.problems) {
      ++problems;
      EXPECT_EQ(problem.row, 0);
      EXPECT_EQ(problem.column, 1u);
      EXPECT_THAT(shown(block, 0), testing::HasSubstr("null"));
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
