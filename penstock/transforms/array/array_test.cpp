#include "penstock/transforms/array/array.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "penstock/base/error.h"
#include "penstock/transforms/array/json_numbers.h"
#include "penstock/transforms/fake/field_run.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

template <class Number>
Column lists_of(Dtype dtype,
                const std::vector<std::optional<std::vector<Number>>>& rows) {
  Column lists{.type = ColumnType::list};
  lists.children.push_back({.type = ColumnType::number(dtype)});
  for (const auto& row : rows) {
    if (!row) {
      lists.append_null();
      continue;
    }
    for (Number number : *row) lists.children[0].append_number(number);
    lists.append_list();
  }
  return lists;
}

Column blobs(const std::vector<std::string>& rows) {
  Column column{.type = ColumnType::binary};
  for (const std::string& row : rows) column.append_text(row);
  return column;
}

std::string section(const std::string& more) {
  return R"({"array": {"column": "c")" + more + "}}";
}

std::string why(const std::string& more, Column column) {
  FieldRun run(section(more), std::move(column));
  return run.faults().empty() ? "no fault" : run.faults()[0].why;
}

std::string refusal(const std::string& more, Column column) {
  try {
    FieldRun run(section(more), std::move(column), {.declared = "word"});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    return error.what();
  }
  return "accepted";
}

TEST(Array, ListsBecomeATensorOfTheirShape) {
  FieldRun run(section(R"(, "shape": [2, 2])"),
               lists_of<double>(Dtype::float64,
                                {{{1, 2, 3, 4}}, {{-0.0, 0.5, 1e-3, -7}}}));
  run.fit();
  EXPECT_EQ(run.tensors()[0].dtype, Dtype::float32);
  EXPECT_THAT(run.tensors()[0].row_shape, ElementsAre(2, 2));
  EXPECT_THAT(run.tensor<float>(), ElementsAre(1, 2, 3, 4, 0, 0.5f, 1e-3f, -7));
  EXPECT_THAT(run.faults(), IsEmpty());
}

TEST(Array, TensorsOfASourceAndBytesDoTheSame) {
  Column fixed{.type = ColumnType::tensor(Dtype::int16), .item = {3}};
  for (std::int16_t i = 0; i < 6; ++i) fixed.values.append_value(i);
  fixed.length = 2;
  FieldRun tensors(section(R"(, "shape": [3], "dtype": "int64")"),
                   std::move(fixed));
  tensors.fit();
  EXPECT_THAT(tensors.tensor<std::int64_t>(), ElementsAre(0, 1, 2, 3, 4, 5));
  FieldRun bytes(section(R"(, "shape": [2], "of": "uint8", "dtype": "uint8")"),
                 blobs({"ab", "\xff!"}));
  bytes.fit();
  EXPECT_THAT(bytes.tensor<std::uint8_t>(), ElementsAre('a', 'b', 255, '!'));
}

TEST(Array, HashesAreTheSameFromEveryWidth) {
  const std::string of = R"(, "shape": [2])";
  FieldRun wide(section(of), lists_of<double>(Dtype::float64, {{{1, 2}}}));
  FieldRun narrow(section(of),
                  lists_of<std::int16_t>(Dtype::int16, {{{1, 2}}}));
  EXPECT_EQ(wide.canonical(), narrow.canonical());
}

TEST(Array, IntegersKeepTheirBitsAndAreNeverRounded) {
  const std::int64_t large = (std::int64_t{1} << 62) + 1;
  FieldRun run(section(R"(, "shape": [1], "dtype": "int64")"),
               lists_of<std::int64_t>(Dtype::int64, {{{large}}}));
  run.fit();
  EXPECT_THAT(run.tensor<std::int64_t>(), ElementsAre(large));
  EXPECT_THAT(why(R"(, "shape": [1], "dtype": "int64")",
                  lists_of<double>(Dtype::float64, {{{0x1p63}}})),
              HasSubstr("fits int64"));
  EXPECT_EQ(why(R"(, "shape": [1], "dtype": "int64")",
                lists_of<double>(Dtype::float64, {{{-0x1p63}}})),
            "no fault");
}

TEST(Array, NanAndInfinitiesStayWhereTheyMay) {
  const std::string any = R"(, "shape": [3], "finite": false)";
  auto row = [](std::vector<double> numbers) {
    return lists_of<double>(Dtype::float64, {{std::move(numbers)}});
  };
  FieldRun run(section(any), row({std::nan(""), HUGE_VAL, -HUGE_VAL}));
  run.fit();
  EXPECT_THAT(run.tensor<float>(),
              ElementsAre(testing::IsNan(), HUGE_VAL, -HUGE_VAL));
  EXPECT_EQ(why(any + R"(, "dtype": "float16")", row({HUGE_VAL, 1, 2})),
            "no fault");
  EXPECT_THAT(why(any, row({1, 1e300, 2})), HasSubstr("number 1 is 1e+300"));
  EXPECT_THAT(why(any + R"(, "dtype": "float16")", row({1, 2, 1e6})),
              HasSubstr("fits float16"));
  EXPECT_THAT(why(any + R"(, "dtype": "int64")", row({1, 2, HUGE_VAL})),
              HasSubstr("number 2 is an infinity"));
}

TEST(Array, ARowThatIsNoneIsBadAndSaysWhy) {
  const std::string two = R"(, "shape": [2])";
  auto doubles = [](std::optional<std::vector<double>> row) {
    return lists_of<double>(Dtype::float64, {std::move(row)});
  };
  EXPECT_EQ(why(two, doubles({})),
            "is NULL, expected 2 numbers; \"missing\" sets a replacement, "
            "as in {\"array\": {\"column\": \"c\", \"missing\": \"zero\"}}");
  EXPECT_THAT(why("", lists_of<double>(Dtype::float64, {{{1, 2}}})),
              HasSubstr("holds 2 numbers, expected 1 number; use \"lengths\": "
                        "\"padded\" for rows of any length"));
  EXPECT_EQ(why(two, doubles({{1, 2, 3}})),
            "holds 3 numbers, expected 2 numbers");
  EXPECT_THAT(why(two, doubles({{1, std::nan("")}})),
              HasSubstr("number 1 is NaN"));
  EXPECT_THAT(why(two, doubles({{HUGE_VAL, 1}})),
              HasSubstr("number 0 is an infinity"));
  EXPECT_THAT(why(two, doubles({{1, 1e300}})), HasSubstr("fits float32"));
  const std::string bytes = R"(, "shape": [2], "dtype": "uint8")";
  for (double number : {-1.0, 256.0, 0.5})
    EXPECT_THAT(why(bytes, doubles({{1, number}})), HasSubstr("fits uint8"))
        << number;
  EXPECT_THAT(why(R"(, "shape": [1], "of": "float32")", blobs({"12345"})),
              HasSubstr("holds 5 bytes, expected a multiple of 4"));
  EXPECT_THAT(
      why(R"(, "lengths": "packed", "shape": [2])", doubles({{1, 2, 3}})),
      HasSubstr("expected a multiple of 2 numbers"));
  Column holed = doubles({{1, 2}});
  holed.children[0].append_null();
  holed.append_list();
  FieldRun run(section(R"(, "lengths": "padded")"), std::move(holed));
  ASSERT_THAT(run.faults(), SizeIs(1));
  EXPECT_EQ(run.faults()[0].row, 1);
  EXPECT_EQ(run.faults()[0].why, "number 0 is NULL");
}

Column texts(const std::vector<std::string>& rows) {
  Column column{.type = ColumnType::text};
  for (const std::string& row : rows) column.append_text(row);
  return column;
}

TEST(Array, TextsMayHoldListsAsJson) {
  JsonNumbers numbers;
  for (const char* text : {"[1,2]", " [ 1 , 2 ] ", "[[1],[2]]", "[[1, 2]]"}) {
    EXPECT_EQ(numbers.read(text), "") << text;
    ASSERT_EQ(numbers.numbers().count, 2) << text;
    EXPECT_EQ(numbers.numbers().dtype, Dtype::int64) << text;
  }
  EXPECT_EQ(numbers.read("[1, -2.5e1]"), "");
  EXPECT_EQ(numbers.numbers().dtype, Dtype::float64);
  EXPECT_EQ(numbers.read("[9007199254740993]"), "");
  std::int64_t exact = 0;
  std::memcpy(&exact, numbers.numbers().bytes.data(), sizeof(exact));
  EXPECT_EQ(exact, 9007199254740993);
  EXPECT_EQ(numbers.read("[]"), "");
  EXPECT_EQ(numbers.numbers().count, 0);
  for (const char* text : {"", "1", "[1", "[1,]", "[,1]", "[1] 2", "[1]]",
                           "[[1][2]]", "[1 2]", "{}", "]", "[1,,2]"})
    EXPECT_THAT(numbers.read(text), HasSubstr("not a list of numbers")) << text;
  for (const char* text : {"[1, nan]", "[1, \"2\"]", "[1, null]", "[1, inf]",
                           "[1, .5]", "[1, 0x1]", "[1, -]"})
    EXPECT_THAT(numbers.read(text), HasSubstr("number 1 is '")) << text;
}

TEST(Array, OfTextsIsCheckedAsOfLists) {
  EXPECT_EQ(why(R"(, "shape": [2])", texts({"[1, 2.5]"})), "no fault");
  EXPECT_THAT(why(R"(, "shape": [2])", texts({"[1, 2, 3]"})),
              HasSubstr("holds 3 numbers, expected 2 numbers"));
  EXPECT_THAT(why(R"(, "shape": [2])", texts({"cat"})),
              HasSubstr("holds 'cat', not a list of numbers"));
  EXPECT_THAT(why(R"(, "dtype": "int8")", texts({"[300]"})),
              HasSubstr("number 0 is 300"));
}

TEST(Array, RowsThatDifferInLengthAreRuns) {
  Arrays array{.column = "c", .shape = {2}, .lengths = Lengths::packed};
  auto kind = make_array("x", array);
  EXPECT_EQ(kind->facts().stored.element_bytes, 8u);
  EXPECT_EQ(kind->facts().outputs[0].lengths, Lengths::packed);
  EXPECT_EQ(kind->facts().column_elements, 2);
  array.of = Dtype::float64;
  EXPECT_EQ(make_array("x", array)->facts().column_elements, 16) << "of bytes";
}

TEST(Array, ARowsShapeThatTheSourceKnowsIsPrintedWhereItIsAnother) {
  auto refused = [](const std::string& more, const Shape& item) {
    Column fixed{.type = ColumnType::tensor(Dtype::float32), .item = item};
    try {
      FieldRun run(section(more), std::move(fixed),
                   {.declared = "float32" + text_of(item), .item = item});
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::request);
      return error.parts().why + "; " + error.parts().next;
    }
    return std::string("accepted");
  };
  EXPECT_THAT(refused("", {16}),
              AllOf(HasSubstr("is [16]"), HasSubstr("need []"),
                    HasSubstr("write \"shape\": [16]")));
  EXPECT_THAT(refused(R"(, "shape": [4, 3])", {4, 4}),
              HasSubstr("write \"shape\": [4, 4]"));
  const std::string window = R"(, "window": {"length": 1000})";
  EXPECT_THAT(refused(window, {1000, 8}), HasSubstr("write \"shape\": [8]"));
  EXPECT_EQ(refused(window + R"(, "shape": [8])", {1000, 8}), "accepted");
  EXPECT_EQ(refused(R"(, "shape": [2, 8])", {16}), "accepted");
  EXPECT_EQ(refused(R"(, "ragged": "pad")", {16}), "accepted");
}

TEST(Array, NullIsWhatMissingSays) {
  auto made = [](const std::string& more) {
    FieldRun run(section(R"(, "shape": [2], "missing": )" + more),
                 lists_of<double>(Dtype::float64, {{{1, 2}}, {}, {{3, 4}}}));
    run.fit();
    return run;
  };
  EXPECT_THAT(made("\"zero\"").tensor<float>(), ElementsAre(1, 2, 0, 0, 3, 4));
  EXPECT_THAT(made("-1.5").tensor<float>(),
              ElementsAre(1, 2, -1.5, -1.5, 3, 4));
  EXPECT_THAT(made("\"nan\"").tensor<float>(),
              ElementsAre(1, 2, testing::IsNan(), testing::IsNan(), 3, 4));
  FieldRun masked = made(R"("mask", "dtype": "uint8")");
  EXPECT_THAT(masked.tensor<std::uint8_t>(), ElementsAre(1, 2, 0, 0, 3, 4));
  EXPECT_EQ(masked.tensors()[1].name, "x_mask");
  EXPECT_THAT(masked.tensor<float>(1), ElementsAre(1, 0, 1));
  for (const char* bad : {"\"mean\"", "\"empty\"", R"("nan", "dtype": "int8")",
                          R"(300, "dtype": "int8")", R"(0.5, "dtype": "int8")",
                          R"("zero", "ragged": "pad")"})
    EXPECT_THROW(made(bad), Error) << bad;
}

TEST(Array, RaggedNamesWhatStandsBesideTheRows) {
  auto kind_of = [](const std::string& more) {
    return parse_fields(Json::parse(R"({"x": )" + section(more) + "}", "test"),
                        "fields")[0]
        .kind;
  };
  const auto padded = kind_of(R"(, "shape": [2], "ragged": "pad")");
  ASSERT_THAT(padded->facts().outputs, SizeIs(2));
  EXPECT_EQ(padded->facts().outputs[0].lengths, Lengths::padded);
  EXPECT_EQ(padded->facts().outputs[1].name, "x_mask");
  EXPECT_EQ(padded->facts().outputs[1].dtype, Dtype::boolean);
  EXPECT_TRUE(padded->facts().outputs[1].shares);
  const auto packed = kind_of(R"(, "ragged": "offsets")");
  ASSERT_THAT(packed->facts().outputs, SizeIs(1));
  EXPECT_EQ(packed->facts().outputs[0].lengths, Lengths::packed);
  EXPECT_EQ(packed->facts().outputs[0].beside, "x_offsets");
  EXPECT_THAT(refusal(R"(, "ragged": "pad", "lengths": "packed")",
                      lists_of<double>(Dtype::float64, {{{1}}})),
              HasSubstr("\"lengths\" has a different meaning"));

  // The finisher of padded rows writes the mask.
  const std::vector<float> run = {1, 2, 3, 4};
  StoredRow row;
  row.run = std::as_bytes(std::span(run));
  row.range = {.begin = 0, .end = 2};
  std::vector<float> x(6, 0);
  std::vector<std::uint8_t> mask(3, 0);
  const std::vector<std::int64_t> starts = {0};
  const std::vector<std::int32_t> lengths = {2};
  const std::vector<TensorPlace> to = {
      {.data = reinterpret_cast<std::byte*>(x.data()),
       .bytes = 2 * sizeof(float),
       .starts = starts,
       .lengths = lengths},
      {.data = reinterpret_cast<std::byte*>(mask.data()),
       .bytes = 1,
       .starts = starts,
       .lengths = lengths}};
  padded->finisher(true)->finish(std::span(&row, 1), {}, to);
  EXPECT_THAT(x, ElementsAre(1, 2, 3, 4, 0, 0));
  EXPECT_THAT(mask, ElementsAre(1, 1, 0));
}

TEST(Array, SettingsThatMeanNothingAreRefused) {
  auto doubles = [] { return lists_of<double>(Dtype::float64, {{{1}}}); };
  for (const char* shape :
       {"3", "[0]", "[-1]", "[1.5]", R"(["a"])", "[65536, 65536]"})
    EXPECT_THAT(refusal(R"(, "shape": )" + std::string(shape), doubles()),
                HasSubstr("write its dimensions"))
        << shape;
  EXPECT_THAT(refusal(R"(, "of": "float32")", doubles()),
              HasSubstr("leave \"of\" out"));
  EXPECT_THAT(
      refusal("", blobs({"1234"})),
      AllOf(HasSubstr("(word) holds bytes"), HasSubstr("\"of\": \"float32\"")));
  EXPECT_THAT(refusal("", column_of<double>(ColumnType::float64, {{1}})),
              HasSubstr("not lists of numbers"));
}

}  // namespace
}  // namespace penstock
