#include "penstock/sources/postgres/arrays.h"

#include <gmock/gmock.h>

#include <vector>

#include "penstock/base/random.h"
#include "penstock/sources/postgres/big_endian.h"
#include "penstock/sources/postgres/test_server.h"
#include "penstock/sources/postgres/types.h"

namespace penstock::postgres {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Field field_of(const std::string& bytes) {
  return {bytes.data(), bytes.size()};
}

Column lists_of(Dtype dtype) {
  Column lists{.type = ColumnType::list};
  lists.children.emplace_back().type = ColumnType::number(dtype);
  return lists;
}

template <class Number>
std::vector<Number> row_of(const Column& lists, std::int64_t row) {
  std::vector<Number> numbers;
  for (std::int64_t at = lists.offset(row); at < lists.offset(row + 1); ++at)
    numbers.push_back(lists.children[0].number<Number>(at));
  return numbers;
}

/// pgvector's vector_send.
std::string vector_of(const std::vector<float>& numbers) {
  std::string bytes;
  append_big(bytes, static_cast<std::int16_t>(numbers.size()));
  append_big(bytes, std::int16_t{0});
  for (float number : numbers) append_big(bytes, number);
  return bytes;
}

TEST(PostgresVector, BecomesAListOfFloats) {
  Column lists = lists_of(Dtype::float32);
  for (const std::vector<float>& numbers :
       {std::vector<float>{1.5f, -2.25f}, std::vector<float>{},
        std::vector<float>(16000, 0.5f)}) {
    const std::string bytes = vector_of(numbers);
    ASSERT_TRUE(well_formed(Kind::vector, field_of(bytes)));
    ASSERT_TRUE(append_list(Kind::vector, field_of(bytes), lists));
    EXPECT_EQ(row_of<float>(lists, lists.length - 1), numbers);
  }
}

TEST(PostgresVector, OfBytesThatItDoesNotHaveIsNotWellFormed) {
  const std::string whole = vector_of({1, 2});
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(well_formed(Kind::vector, {whole.data(), size})) << size;
  EXPECT_FALSE(well_formed(Kind::vector, field_of(whole + "x")));
  std::string negative = whole;
  negative[0] = '\xff';
  EXPECT_FALSE(well_formed(Kind::vector, field_of(negative)));
}

/// An array of int4 in binary.
std::string array_of(const std::vector<std::int32_t>& sizes,
                     const std::vector<std::int32_t>& numbers) {
  std::string bytes;
  append_big(bytes, static_cast<std::int32_t>(sizes.size()));
  append_big(bytes, std::int32_t{0});
  append_big(bytes, std::uint32_t{23});
  for (std::int32_t size : sizes) {
    append_big(bytes, size);
    append_big(bytes, std::int32_t{1});
  }
  for (std::int32_t number : numbers) {
    append_big(bytes, std::int32_t{4});
    append_big(bytes, number);
  }
  return bytes;
}

TEST(PostgresArray, OfBytesThatItDoesNotHaveIsNotWellFormed) {
  auto good = [](const std::string& bytes) {
    return well_formed(Kind::int4_array, field_of(bytes));
  };
  const std::string whole = array_of({2}, {7, 8});
  EXPECT_TRUE(good(whole));
  EXPECT_TRUE(good(array_of({}, {})));
  EXPECT_TRUE(good(array_of({2, 2}, {1, 2, 3, 4})));
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(good(whole.substr(0, size))) << size;
  EXPECT_FALSE(good(array_of({3}, {7, 8})));
  EXPECT_FALSE(good(array_of({1}, {7, 8})));
  EXPECT_FALSE(good(array_of({-1}, {})));
  EXPECT_FALSE(good(array_of({0x7fffffff, 0x7fffffff, 0x7fffffff}, {7})));
  EXPECT_FALSE(good(array_of({1, 1, 1, 1, 1, 1, 1}, {7})));
  std::string wide = whole;
  wide[whole.size() - 5] = 3;  // the length of the last element
  EXPECT_FALSE(good(wide));
}

TEST(PostgresArray, OfDamagedBytesIsRefusedOrRead) {
  const std::string wholes[] = {array_of({3}, {7, 8, 9}),
                                array_of({2, 2}, {1, 2, 3, 4}),
                                array_of({}, {}), vector_of({1, 2, 3})};
  Random random(7, 0, 0, 0);
  int read = 0, refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = wholes[i % 4];
    const Kind kind = i % 4 == 3 ? Kind::vector : Kind::int4_array;
    for (std::uint64_t change = 1 + random.below(3); change > 0; --change)
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    bytes.resize(bytes.size() - random.below(3));
    // Where it ends, so does the memory.
    const std::vector<char> exact(bytes.begin(), bytes.end());
    const Field field{exact.data(), exact.size()};
    if (!well_formed(kind, field)) {
      ++refused;
      continue;
    }
    Column lists =
        lists_of(kind == Kind::vector ? Dtype::float32 : Dtype::int32);
    if (!append_list(kind, field, lists)) {
      EXPECT_THAT(shown_list(kind, field), HasSubstr("an array"));
      continue;
    }
    ++read;
    EXPECT_LE(lists.bytes(), exact.size() + 16);
  }
  EXPECT_GT(read, 1000);
  EXPECT_GT(refused, 1000);
}

class PostgresArrays : public testing::Test {
 protected:
  Block read(const std::string& declared, const std::string& values,
             ColumnRequest request = {"x", ReadAs::value}) {
    schema_.execute(
        "DROP TABLE IF EXISTS t; CREATE TABLE t(id int PRIMARY "
        "KEY, x " +
        declared + "); INSERT INTO t VALUES " + values);
    auto source = open_source(schema_.spec(), {request});
    Block scanned = scan_all(*source), again;
    const KeyList keys = integer_keys(1, scanned.rows + 1);
    source->open_reader()->read(keys, again);
    EXPECT_EQ(again.columns[0].length, scanned.columns[0].length);
    EXPECT_EQ(again.columns[0].children.size(),
              scanned.columns[0].children.size());
    return scanned;
  }
  TestSchema schema_;
};

TEST_F(PostgresArrays, AreListsOfNumbersOfTheirOwnWidth) {
  Block block = read("real[]",
                     "(1, '{1.5,-2}'), (2, '{}'), (3, NULL), (4, '{3}'), (5, "
                     "'[5:6]={7,8}')");
  const Column& lists = block.columns[0];
  EXPECT_EQ(lists.type, ColumnType::list);
  EXPECT_EQ(lists.children[0].type, ColumnType::number(Dtype::float32));
  EXPECT_THAT(row_of<float>(lists, 0), ElementsAre(1.5f, -2.0f));
  EXPECT_THAT(row_of<float>(lists, 1), IsEmpty());
  EXPECT_TRUE(lists.valid(1));
  EXPECT_FALSE(lists.valid(2));
  EXPECT_THAT(row_of<float>(lists, 3), ElementsAre(3.0f));
  EXPECT_THAT(row_of<float>(lists, 4), ElementsAre(7.0f, 8.0f));

  EXPECT_THAT(row_of<double>(
                  read("double precision[]", "(1, '{0.1,NaN}')").columns[0], 0),
              ElementsAre(0.1, testing::IsNan()));
  EXPECT_THAT(
      row_of<std::int16_t>(read("smallint[]", "(1, '{-7}')").columns[0], 0),
      ElementsAre(-7));
  EXPECT_THAT(
      row_of<std::int32_t>(read("int[3]", "(1, '{7,8,9}')").columns[0], 0),
      ElementsAre(7, 8, 9));
  EXPECT_THAT(row_of<std::int64_t>(
                  read("bigint[]", "(1, '{9007199254740993}')").columns[0], 0),
              ElementsAre(9007199254740993));
}

TEST_F(PostgresArrays, WithNullsMakeTheirRowBad) {
  Block block =
      read("int[]", "(1, '{1,NULL,3}'), (2, '{{1,2},{NULL,4}}'), (3, '{5}')");
  ASSERT_EQ(block.problems.size(), 2u);
  EXPECT_EQ(block.problems[0].row, 0);
  EXPECT_EQ(block.problems[0].why,
            "holds an array whose element 2 is NULL where a list of numbers "
            "is expected");
  EXPECT_THAT(block.problems[1].why, HasSubstr("whose element 3 is NULL"));
  EXPECT_FALSE(block.columns[0].valid(1));
  EXPECT_THAT(row_of<std::int32_t>(block.columns[0], 2), ElementsAre(5));
}

TEST_F(PostgresArrays, OfSeveralDimensionsAreTheirElementsInCOrder) {
  Block block = read("real[][]",
                     "(1, '{{1,2,3},{4,5,6}}'), (2, '[0:0][2:3]={{7,8}}'), "
                     "(3, '{{{9},{10}},{{11},{12}}}'), (4, '{}'), (5, '{13}')");
  EXPECT_THAT(block.problems, IsEmpty());
  const Column& lists = block.columns[0];
  EXPECT_THAT(row_of<float>(lists, 0), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(row_of<float>(lists, 1), ElementsAre(7, 8));
  EXPECT_THAT(row_of<float>(lists, 2), ElementsAre(9, 10, 11, 12));
  EXPECT_THAT(row_of<float>(lists, 3), IsEmpty());
  EXPECT_THAT(row_of<float>(lists, 4), ElementsAre(13));
}

TEST_F(PostgresArrays, OfSeveralDimensionsInTheFirstRowsAreKnownAsSuch) {
  schema_.execute(
      "CREATE TABLE t(id int PRIMARY KEY, flat real[], \"two D\" real[], none "
      "int[], word text); INSERT INTO t VALUES (1, '{1,2}', NULL, NULL, 'a'), "
      "(2, '{3}', '{{1,2},{3,4}}', '{}', 'b')");
  auto nested = [](const SourceSpec& spec) {
    std::vector<std::string> names;
    for (const ColumnInfo& column : read_schema(spec).columns)
      if (column.nested) names.push_back(column.name + " " + column.declared);
    return names;
  };
  SourceSpec spec = schema_.spec();
  EXPECT_THAT(nested(spec), ElementsAre("two D real[][]"));
  spec.where = "id < 2 -- of a job";
  EXPECT_THAT(nested(spec), IsEmpty());
  EXPECT_THAT(nested(schema_.query("SELECT id, \"two D\" AS m FROM t")),
              ElementsAre("m real[][]"));
  spec.where = "no condition";  // which opening it says
  EXPECT_THAT(nested(spec), IsEmpty());
}

TEST_F(PostgresArrays, OfTextsAndDecimalsAreNoTexts) {
  schema_.execute(
      "CREATE DOMAIN words AS text[]; CREATE TABLE t(id int PRIMARY KEY, tags "
      "text[], prices numeric(10,2)[], flags boolean[], named words, word "
      "text, "
      "flat real[])");
  std::vector<std::string> names;
  for (const ColumnInfo& column : read_schema(schema_.spec()).columns)
    if (column.nested) names.push_back(column.name + " " + column.declared);
  EXPECT_THAT(names, ElementsAre("tags text[]", "prices numeric(10,2)[]",
                                 "flags boolean[]",
                                 "named " + schema_.name() + ".words"));
}

TEST_F(PostgresArrays, AreHashedAsTheirText) {
  Block block = read("int[]", "(1, '{1,2}')",
                     {.column = "x", .as = ReadAs::value, .hashed = true});
  EXPECT_EQ(block.columns[0].text(0), "{1,2}");
}

TEST_F(PostgresArrays, OfADomainAreThoseOfItsType) {
  schema_.execute(
      "CREATE DOMAIN embedding AS real[] CHECK (cardinality(value) "
      "= 2)");
  Block block = read("embedding", "(1, '{1,2}')");
  EXPECT_THAT(row_of<float>(block.columns[0], 0), ElementsAre(1.0f, 2.0f));
}

TEST_F(PostgresArrays, AreHandedOnInBlocksOfTheirSize) {
  schema_.execute(
      "CREATE TABLE t(id int PRIMARY KEY, x real[]); INSERT INTO t SELECT i, "
      "array_fill(i::real, ARRAY[1000]) FROM generate_series(1, 100) i");
  auto source = open_source(schema_.spec(), {{"x", ReadAs::value}});
  std::int64_t rows = 0, blocks = 0;
  source->open_reader()->scan(
      source->partitions(1)[0], {.rows = 1024, .bytes = 100'000},
      [&](KeyList& keys, Block& block) {
        for (std::int64_t row = 0; row < block.rows; ++row)
          EXPECT_EQ(
              row_of<float>(block.columns[0], row),
              std::vector<float>(1000, static_cast<float>(keys.integer(row))));
        EXPECT_LE(block.bytes(), 150'000u);
        rows += block.rows;
        ++blocks;
        if (blocks % 2 == 0) {  // some keep what they were handed
          Block taken = std::move(block);
          block = {};
        }
        return true;
      });
  EXPECT_EQ(rows, 100);
  EXPECT_GT(blocks, 3);
}

}  // namespace
}  // namespace penstock::postgres
