#include "penstock/transforms/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/base/error.h"
#include "penstock/transforms/transforms.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::vector<Field> parse(const std::string& section) {
  return parse_fields(Json::parse(section, "test"), "fields");
}

std::string error_of(const std::string& section) {
  try {
    parse(section);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    return error.what();
  }
  return "no error";
}

// A json_set field `x` with these members added.
std::string set_error(const std::string& members) {
  return error_of(R"({"x": {"json_set": {"column": "c")" + members + "}}}");
}

TEST(Fields, AreReadInTheirOrderWithDefaults) {
  std::vector<Field> fields = parse(R"({
      "receivers": {"json_set": {"column": "r", "keys": ["lat", "snr"],
                    "max": 7}, "standardize": true},
      "target": {"columns": ["x", "y"]}})");
  ASSERT_EQ(fields.size(), 2u);
  EXPECT_EQ(fields[0].name, "receivers");
  const FieldFacts& set = fields[0].kind->facts();
  EXPECT_EQ(set.columns[0].column, "r");
  EXPECT_EQ(set.set->keys, (std::vector<std::string>{"lat", "snr"}));
  EXPECT_EQ(set.set->least, 1);
  EXPECT_EQ(set.outputs[0].row_shape, (Shape{7, 2}));
  EXPECT_EQ(*set.recipe.find("json_set")->find("overflow"), Json("first"));
  EXPECT_EQ(*set.recipe.find("standardize"), Json(true));
  EXPECT_FALSE(set.numbers);
  const FieldFacts& numbers = fields[1].kind->facts();
  EXPECT_EQ(numbers.numbers->dtype, Dtype::float32);
  EXPECT_EQ(*numbers.recipe.find("standardize"), Json(false));
}

TEST(Fields, EveryOverflowAndDtypeHasItsName) {
  auto overflow = [](const std::string& rest) {
    auto fields = parse(R"({"x": {"json_set": {"column": "c", "keys": ["a"],
                            "max": 2, )" +
                        rest + "}}}");
    return *fields[0].kind->facts().recipe.find("json_set")->find("overflow");
  };
  EXPECT_EQ(overflow(R"("overflow": "first")"), Json("first"));
  EXPECT_EQ(overflow(R"("overflow": "error")"), Json("error"));
  EXPECT_EQ(overflow(R"("overflow": "strongest", "sort_by": "z")"),
            Json("strongest"));
  auto dtype = [](const std::string& name) {
    auto fields =
        parse(R"({"x": {"columns": ["a"], "dtype": ")" + name + "\"}}");
    return fields[0].kind->facts().numbers->dtype;
  };
  EXPECT_EQ(dtype("float32"), Dtype::float32);
  EXPECT_EQ(dtype("float64"), Dtype::float64);
  EXPECT_EQ(dtype("int64"), Dtype::int64);
}

TEST(Fields, OfAJobAreOfTheDtypesThatColumnsHold) {
  for (std::size_t i = 0; i < kDtypes; ++i) {
    const auto dtype = static_cast<Dtype>(i);
    std::string name(name_of(dtype));
    const std::string section =
        R"({"x": {"columns": ["a"], "dtype": ")" + name + "\"}}";
    if (dtype != Dtype::bfloat16)
      EXPECT_EQ(parse(section)[0].kind->facts().stored.tensors[0].dtype, dtype);
    else
      EXPECT_THAT(error_of(section),
                  AllOf(HasSubstr("fields.x.dtype"), HasSubstr(name),
                        HasSubstr("float32"), HasSubstr("uint8")));
  }
}

TEST(Fields, AMaxOfZeroIsRefused) {
  EXPECT_THAT(set_error(R"(, "keys": ["a"], "max": 0)"),
              AllOf(HasSubstr("fields.x.json_set.max"),
                    HasSubstr("found 0, expected 1 to 65536")));
  EXPECT_THAT(set_error(R"(, "keys": ["a"], "max": 65537)"),
              HasSubstr("found 65537"));
  EXPECT_THAT(set_error(R"(, "keys": ["a"])"),
              AllOf(HasSubstr("json_set.max"), HasSubstr("missing")));
}

TEST(Fields, MinLiesBetweenZeroAndMax) {
  EXPECT_THAT(set_error(R"(, "keys": ["a"], "max": 3, "min": 4)"),
              HasSubstr("found 4, expected 0 to 3"));
  EXPECT_THAT(set_error(R"(, "keys": ["a"], "max": 3, "min": -1)"),
              HasSubstr("found -1"));
  EXPECT_EQ(set_error(R"(, "keys": ["a"], "max": 3, "min": 0)"), "no error");
}

TEST(Fields, KeysAreThereAndUnique) {
  EXPECT_THAT(set_error(R"(, "keys": [], "max": 3)"),
              AllOf(HasSubstr("json_set.keys"), HasSubstr("empty")));
  EXPECT_THAT(set_error(R"(, "keys": ["a", "b", "a"], "max": 3)"),
              HasSubstr("'a' is listed twice"));
  EXPECT_THAT(error_of(R"({"x": {"columns": []}})"), HasSubstr("empty"));
  EXPECT_THAT(error_of(R"({"x": {"columns": ["a", "a"]}})"),
              HasSubstr("'a' is listed twice"));
}

TEST(Fields, SortByBelongsToStrongest) {
  EXPECT_THAT(
      set_error(R"(, "keys": ["a"], "max": 3, "overflow": "strongest")"),
      AllOf(HasSubstr("json_set.sort_by"), HasSubstr("strongest")));
  EXPECT_THAT(set_error(R"(, "keys": ["a"], "max": 3, "sort_by": "a")"),
              AllOf(HasSubstr("json_set.sort_by"),
                    HasSubstr("\"overflow\" is \"first\"")));
}

TEST(Fields, UnknownNamesAreRefused) {
  EXPECT_THAT(set_error(R"(, "keys": ["a"], "max": 3, "overflow": "strogest")"),
              HasSubstr("first, strongest, error"));
  EXPECT_THAT(set_error(R"(, "keys": ["a"], "max": 3, "requried": ["a"])"),
              HasSubstr("did you mean 'required'?"));
  EXPECT_THAT(error_of(R"({"x": {"columns": ["a"], "dtype": "bfloat16"}})"),
              HasSubstr("float32, float64, int64"));
  EXPECT_THAT(error_of(R"({"x": {"columns": ["a"], "standardise": true}})"),
              HasSubstr("did you mean 'standardize'?"));
}

TEST(Fields, IntegersAreNotStandardised) {
  EXPECT_THAT(error_of(R"({"x": {"columns": ["a"], "dtype": "int64",
                            "standardize": true}})"),
              AllOf(HasSubstr("fields.x.standardize"), HasSubstr("int64")));
}

TEST(Fields, AFieldIsASetOrColumns) {
  EXPECT_THAT(error_of(R"({"x": {"columns": ["a"], "json_set": {}}})"),
              HasSubstr("both"));
  EXPECT_THAT(error_of(R"({"x": {}})"),
              HasSubstr("the kind of the field is missing"));
  EXPECT_THAT(error_of(R"({"x": 3})"), HasSubstr("expected an object"));
  EXPECT_THAT(error_of("{}"), HasSubstr("no field"));
  EXPECT_THAT(error_of("[]"), HasSubstr("expected an object"));
}

TEST(Fields, AnUnknownKindIsNamedWithTheNearestOne) {
  EXPECT_THAT(error_of(R"({"x": {"colums": ["a"]}})"),
              AllOf(HasSubstr("fields.x: 'colums' is not a kind of field"),
                    HasSubstr("did you mean 'columns'?")));
  EXPECT_THAT(error_of(R"({"x": {"numbers": ["a"]}})"),
              HasSubstr("did you mean 'columns'?"));
  EXPECT_THAT(
      error_of(R"({"x": {"dtype": "int64", "label": "a"}})"),
      AllOf(HasSubstr("'label'"), HasSubstr("did you mean 'category'?")));
  EXPECT_THAT(error_of(R"({"x": {"zzzzzz": 1}})"),
              AllOf(HasSubstr("'zzzzzz'"), HasSubstr("kinds: json_set"),
                    Not(HasSubstr("did you mean"))));
}

TEST(Fields, TwoTensorsOfOneNameAreRefused) {
  EXPECT_THAT(error_of(R"({"x": {"json_set": {"column": "c", "keys": ["a"],
                            "max": 2}}, "x_mask": {"columns": ["b"]}})"),
              HasSubstr("two fields would produce a tensor named 'x_mask'"));
  EXPECT_THAT(error_of(R"({"weight": {"columns": ["a"]}})"),
              AllOf(HasSubstr("fields.weight"), HasSubstr("padding")));
  EXPECT_THAT(error_of(R"({"": {"columns": ["a"]}})"),
              HasSubstr("fields.\"\": a field has an empty name"));
  EXPECT_THAT(
      error_of(R"({"__metadata__": {"columns": ["a"]}})"),
      AllOf(HasSubstr("fields.__metadata__"), HasSubstr("safetensors")));
  for (const char* fine : {"__metadata", "metadata", "a/b\\n", "\\u0000"})
    EXPECT_EQ(
        error_of("{\"" + std::string(fine) + "\": {\"columns\": [\"a\"]}}"),
        "no error");
  EXPECT_EQ(error_of(R"({"y": {"columns": ["a"]},
                         "y_mask": {"columns": ["a"]}})"),
            "no error");
}

TEST(Fields, AColumnIsReadAsJsonOrAsANumber) {
  EXPECT_THAT(error_of(R"({"x": {"json_set": {"column": "c", "keys": ["a"],
                            "max": 2}}, "y": {"columns": ["c"]}})"),
              HasSubstr("column 'c' is read as JSON"));
}

TEST(Fields, TensorsLieInFieldOrderAndAligned) {
  RowLayout layout = layout_of(parse(R"({
      "r": {"json_set": {"column": "c", "keys": ["a", "b", "d"], "max": 3}},
      "t": {"columns": ["u"], "dtype": "float64"},
      "n": {"columns": ["v"], "dtype": "int64"},
      "f": {"columns": ["w"]}})"));
  ASSERT_EQ(layout.tensors.size(), 5u);
  EXPECT_EQ(layout.tensors[0].row_shape, (Shape{3, 3}));
  EXPECT_EQ(layout.tensors[1].name, "r_mask");
  EXPECT_EQ(layout.tensors[1].row_shape, (Shape{3}));
  EXPECT_EQ(layout.tensors[1].offset, 36u);
  EXPECT_EQ(layout.tensors[2].offset, 48u);
  EXPECT_EQ(layout.tensors[3].dtype, Dtype::int64);
  EXPECT_EQ(layout.tensors[4].offset, 64u);
  EXPECT_EQ(layout.row_bytes, 72u);
}

TEST(Fields, EachColumnIsRequestedOnce) {
  std::vector<ColumnRequest> requests = requests_of(parse(R"({
      "a": {"columns": ["x", "y"]},
      "r": {"json_set": {"column": "c", "keys": ["k"], "max": 3}},
      "s": {"json_set": {"column": "c", "keys": ["l"], "max": 1}},
      "b": {"columns": ["y"], "dtype": "int64"}})"));
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[0].column, "x");
  EXPECT_EQ(requests[0].as, ReadAs::number);
  EXPECT_EQ(requests[1].column, "y");
  EXPECT_EQ(requests[1].as, ReadAs::integer);
  EXPECT_EQ(requests[2].column, "c");
  EXPECT_EQ(requests[2].as, ReadAs::json);
  EXPECT_EQ(requests[0].setting, "fields.a.columns");
  EXPECT_EQ(requests[1].setting, "fields.a.columns");
  EXPECT_EQ(requests[2].setting, "fields.r.json_set.column");
}

TEST(Fields, AColumnIsRoundedWhenAnyFieldMakesItFloat32) {
  std::vector<ColumnRequest> requests = requests_of(parse(R"({
      "a": {"columns": ["x", "y"], "dtype": "float64"},
      "b": {"columns": ["y", "z"]},
      "c": {"columns": ["s"], "standardize": true},
      "d": {"columns": ["i"], "dtype": "int64"}})"));
  for (const ColumnRequest& column : requests)
    EXPECT_EQ(column.rounded, column.column == "y" || column.column == "z")
        << column.column;
}

}  // namespace
}  // namespace penstock
