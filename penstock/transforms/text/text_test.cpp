#include "penstock/transforms/text/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/base/error.h"
#include "penstock/transforms/transforms.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// The runs that a text field stores of a column.
struct TextRun {
  TextRun(const std::string& more, Column column) {
    fields = parse_fields(
        Json::parse(R"({"x": {"text": {"column": "c")" + more + "}}}", "test"),
        "fields");
    auto bound =
        fields[0].kind->bind({.info = {{.name = "c", .declared = "word"}},
                              .types = {column.type},
                              .at = {0}});
    Block block;
    block.rows = column.length;
    block.columns.push_back(std::move(column));
    Values values;
    bound->parser()->parse(block, values, faults);
    std::vector<ValueRow> rows;
    for (std::int64_t row = 0; row < block.rows; ++row)
      rows.push_back(values.row(row));
    Values runs;
    bound->encoder(*bound->unfitted(), "statistics.x")
        ->encode(rows, {.runs = &runs}, faults);
    for (std::int64_t row = 0; row < runs.rows(); ++row)
      texts.emplace_back(reinterpret_cast<const char*>(runs.row(row).data()),
                         runs.row(row).size());
  }
  std::vector<Field> fields;
  Faults faults;
  std::vector<std::string> texts;
};

Column texts_of(const std::vector<std::optional<std::string>>& texts) {
  Column column{.type = ColumnType::text};
  for (const auto& text : texts)
    text ? column.append_text(*text) : column.append_null();
  return column;
}

TEST(TextField, GivesTheBytesOfTheTextsPacked) {
  const TextRun run("", texts_of({{"gr\xc3\xbc\xc3\x9f"}, {""}, {"ab"}}));
  EXPECT_THAT(run.texts, ElementsAre("gr\xc3\xbc\xc3\x9f", "", "ab"));
  const Output output = run.fields[0].kind->facts().outputs[0];
  EXPECT_EQ(output.dtype, Dtype::uint8);
  EXPECT_EQ(output.lengths, Lengths::packed);
  EXPECT_EQ(run.fields[0].kind->facts().column_elements, 1);
  EXPECT_EQ(run.fields[0].kind->facts().recipe.dump(),
            R"({"text": {"column": "c", "missing": "bad"}})");
}

TEST(TextField, GivesBytesAsTheyAre) {
  Column column{.type = ColumnType::binary};
  column.append_text(std::string("\0\xff", 2));
  EXPECT_THAT(TextRun("", std::move(column)).texts,
              ElementsAre(std::string("\0\xff", 2)));
}

TEST(TextField, NullIsABadRowOrAnEmptyText) {
  const TextRun bad("", texts_of({{"a"}, {}}));
  ASSERT_EQ(bad.faults.rows.size(), 1u);
  EXPECT_EQ(bad.faults.rows[0].row, 1);
  EXPECT_THAT(bad.faults.rows[0].why, HasSubstr("is NULL"));
  const TextRun empty(R"(, "missing": "empty")", texts_of({{"a"}, {}}));
  EXPECT_THAT(empty.texts, ElementsAre("a", ""));
  EXPECT_TRUE(empty.faults.rows.empty());
}

TEST(TextField, NumbersAreNoText) {
  Column column{.type = ColumnType::float64};
  column.append_number(1.0);
  try {
    TextRun("", std::move(column));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_EQ(error.parts().code, "fields.not_text");
    EXPECT_THAT(error.what(), HasSubstr("fields.x.text.column"));
  }
}

}  // namespace
}  // namespace penstock
