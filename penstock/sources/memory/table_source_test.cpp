#include "penstock/sources/memory/table_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "penstock/base/error.h"
#include "penstock/sources/checked_reader.h"
#include "penstock/sources/memory/fake_stream.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Three values of `numbers` after one that the offset leaves out; the second
/// of the three is NULL.
template <class Number>
FakeArray numbers(const std::string& format, std::vector<Number> numbers) {
  return {.format = format,
          .name = "c",
          .length = 3,
          .offset = 1,
          .nulls = 1,
          .buffers = {{std::byte{0b1011}}, FakeArray::of(numbers)}};
}
FakeArray texts(const std::string& format = "u") {
  auto offsets = std::vector<std::int32_t>{0, 1, 3, 3, 6};
  auto wide = std::vector<std::int64_t>{0, 1, 3, 3, 6};
  return {
      .format = format,
      .name = "c",
      .length = 3,
      .offset = 1,
      .nulls = 1,
      .buffers = {{std::byte{0b1011}},
                  format == "u" ? FakeArray::of(offsets) : FakeArray::of(wide),
                  FakeArray::of("-abcde")}};
}

class TableTest : public testing::Test {
 protected:
  /// The values of column c, by a scan and by position, as JSON in texts.
  std::vector<std::string> values(FakeArray column, ReadAs as = ReadAs::value) {
    std::vector<std::vector<FakeArray>> batches(1);
    batches[0].push_back(std::move(column));
    return values_of(std::move(batches), "c", as);
  }
  std::vector<std::string> values_of(
      std::vector<std::vector<FakeArray>> batches, const std::string& name,
      ReadAs as = ReadAs::value, const std::string& where = "") {
    FakeStream made(std::move(batches));
    std::vector<std::string> found, again;
    {
      ArrowArrayStream stream = made.stream();
      auto table = ArrowTable::read(stream);
      EXPECT_EQ(stream.release, nullptr);
      auto source = open_arrow_table(
          table, {.shown = "Table", .digest = "d", .where = where},
          {{.column = name, .as = as, .setting = "fields.x"}});
      auto reader = open_checked_reader(*source);
      for (const Partition& part : source->partitions(2))
        reader->scan(part, {.rows = 2}, [&](KeyList&, Block& block) {
          add(block, found);
          return true;
        });
      std::vector<std::int64_t> all(found.size());
      for (std::size_t i = 0; i < all.size(); ++i)
        all[i] = static_cast<std::int64_t>(i);
      Block block;
      reader->read(ReadRequest(all), block);
      add(block, again);
    }
    EXPECT_EQ(found, again);
    EXPECT_EQ(made.open(), 0) << "all that was taken is released, once";
    return found;
  }
  static void add(const Block& block, std::vector<std::string>& found) {
    const Column& column = block.columns[0];
    for (std::int64_t row = 0; row < block.rows; ++row)
      found.push_back(text_of(column, row));
    for (const RowProblem& problem : block.problems)
      found[found.size() - static_cast<std::size_t>(block.rows) +
            static_cast<std::size_t>(problem.row)] = problem.why;
  }
  static std::string text_of(const Column& column, std::int64_t row) {
    if (!column.valid(row)) return "NULL";
    if (column.type.kind == ColumnKind::utf8 ||
        column.type.kind == ColumnKind::binary)
      return std::string(column.text(row));
    if (column.type.kind == ColumnKind::list) {
      std::string all;
      for (auto at = column.offset(row); at < column.offset(row + 1); ++at)
        all += text_of(column.children[0], at) + " ";
      return all;
    }
    if (column.type.kind == ColumnKind::fixed) {
      std::string all;
      const std::int64_t each = elements_of(column.item);
      const auto* from = reinterpret_cast<const float*>(column.values.data());
      for (std::int64_t i = 0; i < each; ++i)
        all += Json(double{from[(column.first + row) * each + i]}).dump() + " ";
      return all;
    }
    return Json(column.as_float64(row)).dump();
  }
};

TEST_F(TableTest, NumbersOfEveryWidthAreBorrowedWhereTheyLie) {
  const std::vector<std::string> expected = {"1.0", "NULL", "3.0"};
  EXPECT_EQ(values(numbers<std::int8_t>("c", {9, 1, 2, 3})), expected);
  EXPECT_EQ(values(numbers<std::uint8_t>("C", {9, 1, 2, 3})), expected);
  EXPECT_EQ(values(numbers<std::int16_t>("s", {9, 1, 2, 3})), expected);
  EXPECT_EQ(values(numbers<std::uint16_t>("S", {9, 1, 2, 3})), expected);
  EXPECT_EQ(values(numbers<std::int32_t>("i", {9, 1, 2, 3})), expected);
  EXPECT_EQ(values(numbers<std::uint32_t>("I", {9, 1, 2, 3})), expected);
  EXPECT_EQ(values(numbers<std::int64_t>("l", {9, 1, 2, 3})), expected);
  EXPECT_EQ(values(numbers<std::uint64_t>("L", {9, 1, 2, 3})), expected);
  EXPECT_EQ(values(numbers<float>("f", {9, 1, 2, 3})), expected);
  EXPECT_EQ(values(numbers<double>("g", {9, 1, 2, 3})), expected);
  EXPECT_EQ(values(numbers<std::uint16_t>("e", {0, 0x3c00, 0, 0x4200})),
            expected)
      << "float16";
}

TEST_F(TableTest, NumbersOfEveryWidthAreIntegersWhereTheseAreWanted) {
  const std::vector<std::string> expected = {"1.0", "NULL", "3.0"};
  const ReadAs as = ReadAs::integer;
  EXPECT_EQ(values(numbers<std::int8_t>("c", {9, 1, 2, 3}), as), expected);
  EXPECT_EQ(values(numbers<std::uint32_t>("I", {9, 1, 2, 3}), as), expected);
  EXPECT_EQ(values(numbers<std::uint64_t>("L", {9, 1, 2, 3}), as), expected);
  EXPECT_EQ(values(numbers<float>("f", {9, 1, 2, 3}), as), expected);
  EXPECT_THAT(values(numbers<double>("g", {9, 1, 2, 2.5}), as),
              ElementsAre("1.0", "NULL", HasSubstr("holds 2.5")));
  EXPECT_THAT(values(numbers<std::uint64_t>("L", {9, 1, 2, UINT64_MAX}), as),
              ElementsAre("1.0", "NULL", HasSubstr("holds 18446744073709551")));
}

TEST_F(TableTest, TextsOfEveryLayout) {
  const std::vector<std::string> expected = {"ab", "NULL", "cde"};
  EXPECT_EQ(values(texts("u")), expected);
  EXPECT_EQ(values(texts("U")), expected);
  std::string views(64, '\0');
  auto view = [&](std::size_t at, const std::string& text, std::int32_t from) {
    auto length = static_cast<std::int32_t>(text.size());
    std::memcpy(&views[16 * at], &length, 4);
    if (length <= 12) {
      std::memcpy(&views[16 * at + 4], text.data(), text.size());
    } else {
      std::memcpy(&views[16 * at + 4], text.data(), 4);
      std::memcpy(&views[16 * at + 12], &from, 4);
    }
  };
  const std::string longer = "a text of more than twelve bytes";
  view(1, "twelve bytes", 0);
  view(3, longer, 2);
  FakeArray array{.format = "vu",
                  .name = "c",
                  .length = 3,
                  .offset = 1,
                  .nulls = 1,
                  .buffers = {{std::byte{0b1011}},
                              FakeArray::of(views),
                              FakeArray::of("--" + longer),
                              FakeArray::of(std::vector<std::int64_t>{34})}};
  EXPECT_THAT(values(array), ElementsAre("twelve bytes", "NULL", longer));
}

TEST_F(TableTest, TimesAreSecondsAndDecimalsNumbers) {
  auto one = [&](const std::string& format, auto ticks) {
    return values(numbers(format, std::vector{ticks, ticks, ticks, ticks}),
                  ReadAs::number)[0];
  };
  EXPECT_EQ(one("tss:UTC", std::int64_t{5}), "5.0");
  EXPECT_EQ(one("tsm:", std::int64_t{1500}), "1.5");
  EXPECT_EQ(one("tsu:", std::int64_t{-2'500'000}), "-2.5");
  EXPECT_EQ(one("tsn:Europe/Berlin", std::int64_t{500'000'000}), "0.5");
  EXPECT_EQ(one("tdD", std::int32_t{2}), "172800.0");
  EXPECT_EQ(one("tdm", std::int64_t{2500}), "2.5");
  EXPECT_EQ(one("ttm", std::int32_t{2500}), "2.5");
  EXPECT_EQ(one("tDs", std::int64_t{7}), "7.0");
  FakeArray decimals =
      numbers<std::int64_t>("d:10,2", {0, 0, 1234, 0, 0, 0, -50, -1});
  EXPECT_THAT(values(decimals), ElementsAre("12.34", "NULL", "-0.5"));
}

TEST_F(TableTest, DecimalsAreWhatTheirDigitsAreInAFileOfText) {
  // 2^53 + 1 units and more are rounded once, too.
  FakeArray wide = numbers<std::int64_t>(
      "d:38,3", {0, 0, 9007199254740993, 0, 0, 0, -9007199254740995, -1});
  EXPECT_THAT(values(wide),
              ElementsAre("9007199254740.992", "NULL", "-9007199254740.994"));
  FakeArray wider =
      numbers<std::int64_t>("d:60,25,256", {0, 0, 0, 0, 1, 0, 0, 0,  //
                                            0, 0, 0, 0, -1, -1, -1, -1});
  EXPECT_THAT(values(wider), ElementsAre("1e-25", "NULL", "-1e-25"));
  EXPECT_THAT(values(numbers<std::int32_t>("d:5,1,32", {0, 15, 0, -15})),
              ElementsAre("1.5", "NULL", "-1.5"));
  EXPECT_THAT(values(numbers<std::int64_t>("d:5,1,64", {0, 15, 0, -15})),
              ElementsAre("1.5", "NULL", "-1.5"));
}

TEST_F(TableTest, TextThatIsNotUtf8IsNamedByRow) {
  FakeArray array = texts();
  for (std::byte& byte : array.buffers[2]) byte = std::byte{0xff};
  EXPECT_THAT(values(array)[0], HasSubstr("which is not UTF-8"));
  FakeArray named = texts();
  named.name = "\xff";
  EXPECT_THROW(values(named), Error);
}

TEST_F(TableTest, ADictionaryIsItsValues) {
  FakeArray indices = numbers<std::int8_t>("c", {0, 2, 0, 1});
  FakeArray values_of_it = texts();
  values_of_it.name = "";
  indices.dictionary.push_back(values_of_it);
  EXPECT_THAT(values(indices), ElementsAre("cde", "NULL", "NULL"));
}

TEST_F(TableTest, WhoAsksForCodesOfDeclaredClassesGetsThem) {
  FakeArray indices = numbers<std::int8_t>("c", {0, 2, 0, 1});
  FakeArray words = texts();
  words.name = "";
  words.nulls = 0;
  words.buffers[0].clear();
  indices.dictionary.push_back(words);
  auto open = [&](const ArrowTable::Classes& classes, bool coded,
                  const std::string& where = "") {
    FakeStream made({{indices}});
    ArrowArrayStream stream = made.stream();
    auto source = open_arrow_table(
        ArrowTable::read(stream, classes),
        {.shown = "Table", .digest = "d", .where = where},
        {{.column = "c", .as = ReadAs::value, .coded = coded}});
    Block block;
    const std::vector<std::int64_t> rows{0, source->count().rows.value() - 1};
    open_checked_reader(*source)->read(ReadRequest(rows), block);
    EXPECT_EQ(source->schema().columns[0].values.empty(),
              classes.empty() || classes.begin()->second.size() != 3);
    return text_of(block.columns[0], 0) + " " + text_of(block.columns[0], 1);
  };
  const ArrowTable::Classes declared{{"c", {"ab", "", "cde"}}};
  EXPECT_EQ(open(declared, true), "2.0 1.0");
  EXPECT_EQ(open(declared, false), "cde ");
  EXPECT_EQ(open({}, true), "cde ") << "nobody has declared them";
  EXPECT_EQ(open({{"c", {"ab", "x"}}}, true), "cde ") << "it holds others";
  EXPECT_EQ(open(declared, true, "c <> 'ab'"), "cde ")
      << "a condition compares texts";
}

TEST_F(TableTest, NumbersMayStandForClassesAndStayNumbers) {
  FakeArray labels = numbers<std::int64_t>("l", {9, 1, 0, 0});
  FakeStream made({{labels}});
  ArrowArrayStream stream = made.stream();
  auto table = ArrowTable::read(stream, {{"c", {"cat", "dog"}}});
  EXPECT_THAT(table->columns()[0].info.values, ElementsAre("cat", "dog"));
  EXPECT_EQ(table->code_type(0), ColumnType::int64);
}

TEST_F(TableTest, BooleansListsAndTensors) {
  EXPECT_THAT(values(FakeArray{.format = "b",
                               .name = "c",
                               .length = 3,
                               .offset = 1,
                               .buffers = {{}, {std::byte{0b1010}}}}),
              ElementsAre("1.0", "0.0", "1.0"));
  FakeArray child = numbers<float>("f", {9, 1, 2, 3});
  child.nulls = 0;
  child.buffers[0].clear();
  FakeArray list{
      .format = "+l",
      .name = "c",
      .length = 2,
      .buffers = {{}, FakeArray::of(std::vector<std::int32_t>{0, 1, 3})},
      .children = {child}};
  EXPECT_THAT(values(list), ElementsAre("1.0 ", "2.0 3.0 "));
  FakeArray pairs{.format = "+w:1",
                  .name = "c",
                  .length = 2,
                  .offset = 1,
                  .buffers = {{}},
                  .children = {child}};
  EXPECT_THAT(values(pairs), ElementsAre("2.0 ", "3.0 "));
}

TEST_F(TableTest, WhatIsNestedInAnotherWayIsJson) {
  FakeArray words = texts();
  words.offset = 0;
  words.nulls = 0;
  words.buffers[0].clear();
  words.length = 4;
  FakeArray counts = numbers<std::int64_t>("l", {1, 2, 3, 4});
  counts.name = "n";
  counts.offset = 0;
  counts.length = 4;
  FakeArray prices =
      numbers<std::int64_t>("d:9,3", {5, 0, -1500, -1, 0, 0, 7, 0});
  prices.name = "p";
  prices.offset = 0;
  prices.length = 4;
  FakeArray object{.format = "+s",
                   .name = "item",
                   .length = 4,
                   .buffers = {{}},
                   .children = {words, counts, prices}};
  FakeArray list{
      .format = "+l",
      .name = "c",
      .length = 2,
      .offset = 1,
      .buffers = {{}, FakeArray::of(std::vector<std::int32_t>{0, 1, 3, 4})},
      .children = {object}};
  EXPECT_THAT(values(list), ElementsAre(R"([{"c":"ab","n":2,"p":-1.500},)"
                                        R"({"c":"","n":null,"p":null}])",
                                        R"([{"c":"cde","n":4,"p":0.007}])"));
}

TEST_F(TableTest, BytesOfOneWidthAndHalfFloatsKeepTheirs) {
  EXPECT_THAT(values({.format = "w:2",
                      .name = "c",
                      .length = 2,
                      .offset = 1,
                      .buffers = {{}, FakeArray::of("abcdef")}}),
              ElementsAre("cd", "ef"));
  FakeStream made({{numbers<std::uint16_t>("e", {0, 0, 0, 0})}});
  ArrowArrayStream stream = made.stream();
  EXPECT_EQ(ArrowTable::read(stream)->columns()[0].type,
            ColumnType::number(Dtype::float32));
}

TEST_F(TableTest, ATensorThatLacksAnElementIsNamedByRow) {
  FakeArray child = numbers<float>("f", {9, 1, 2, 3});
  child.offset = 0;
  child.length = 4;
  child.nulls = 1;
  child.buffers[0] = {std::byte{0b1011}};
  FakeArray pairs{.format = "+w:2",
                  .name = "c",
                  .length = 2,
                  .buffers = {{}},
                  .children = {child}};
  FakeStream made({{pairs}});
  ArrowArrayStream stream = made.stream();
  auto table = ArrowTable::read(stream);
  EXPECT_THAT(table->rows_with_gaps(0, 0, 0, 2), ElementsAre(1));
  EXPECT_THAT(table->rows_with_gaps(0, 0, 1, 1), ElementsAre(0));
}

TEST_F(TableTest, AValueThatItsDictionaryHasNotIsRefused) {
  FakeArray indices = numbers<std::int8_t>("c", {0, 2, 0, 3});
  indices.dictionary.push_back(texts());
  try {
    values(indices);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "source.stream");
    EXPECT_THAT(error.what(), HasSubstr("value 3 of a dictionary of 3"));
  }
}

TEST_F(TableTest, MembersOfStructsAreColumnsAndTakeTheirNulls) {
  FakeArray inner = numbers<std::int32_t>("i", {9, 1, 2, 3});
  inner.name = "b";
  inner.nulls = 0;
  inner.buffers[0].clear();
  FakeArray outer{.format = "+s",
                  .name = "a",
                  .length = 2,
                  .offset = 1,
                  .nulls = 1,
                  .buffers = {{std::byte{0b011}}},
                  .children = {inner}};
  EXPECT_THAT(values_of({{outer}}, "a.b"), ElementsAre("2.0", "NULL"));
}

TEST_F(TableTest, RecordBatchesFollowEachOtherAndAConditionSelects) {
  auto batch = [](double first) {
    FakeArray array = numbers<double>("g", {0, first, first + 1, first + 2});
    array.nulls = 0;
    array.buffers[0].clear();
    return std::vector<FakeArray>{array};
  };
  std::vector<FakeArray> none = batch(0);
  none[0].length = 0;
  EXPECT_THAT(values_of({batch(0), none, batch(3)}, "c"),
              ElementsAre("0.0", "1.0", "2.0", "3.0", "4.0", "5.0"));
  EXPECT_THAT(values_of({batch(0), batch(3)}, "c", ReadAs::value, "c > 1.5"),
              ElementsAre("2.0", "3.0", "4.0", "5.0"));
}

TEST_F(TableTest, WhatItCannotBeIsNamedByRowOrRefused) {
  EXPECT_THAT(values(numbers<double>("g", {0, 1, 0, 2.5}), ReadAs::integer)[2],
              HasSubstr("2.5"));
  auto refused = [&](FakeArray array, ReadAs as) {
    try {
      values(std::move(array), as);
    } catch (const Error& error) {
      EXPECT_EQ(error.parts().code, "source.column_type");
      return std::string(error.what());
    }
    return std::string("nothing was refused");
  };
  EXPECT_THAT(
      refused({.format = "+m", .name = "c", .length = 1, .buffers = {{}}},
              ReadAs::value),
      HasSubstr("map"));
  EXPECT_THAT(refused(texts(), ReadAs::integer), HasSubstr("integer"));
}

TEST(ArrowTable, AStreamThatFailsIsReleasedAndItsWordsAreTold) {
  std::vector<std::vector<FakeArray>> batches(1);
  batches[0].push_back(numbers<double>("g", {0, 1, 2, 3}));
  FakeStream made(std::move(batches), "the connection was lost");
  ArrowArrayStream stream = made.stream();
  try {
    ArrowTable::read(stream);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::source);
    EXPECT_EQ(error.parts().code, "source.stream");
    EXPECT_THAT(error.what(), HasSubstr("the connection was lost"));
  }
  EXPECT_EQ(made.open(), 0);
  EXPECT_THROW(ArrowTable::read(stream), Error) << "was released";
}

}  // namespace
}  // namespace penstock
