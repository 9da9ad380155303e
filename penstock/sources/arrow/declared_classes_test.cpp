// Classes that a file declares, for a user of Hugging Face and of pandas.
#include <arrow/api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "penstock/sources/arrow/test_writing.h"
#include "penstock/sources/files/test_folder.h"
#include "penstock/sources/test_reading.h"

namespace penstock::arrow_files {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using As = Written::As;

class DeclaredClassesTest : public testing::TestWithParam<As> {
 protected:
  Json section(const std::string& path) {
    return files::section_of(GetParam() == As::parquet ? "parquet" : "arrow",
                             path);
  }
  std::string write(const std::string& name,
                    const std::shared_ptr<arrow::Table>& table) {
    return folder_.write(
        name + (GetParam() == As::parquet ? ".parquet" : ".arrow"),
        written(table, {GetParam(), 2}));
  }
  std::string write_labels(const std::string& name, const std::string& names) {
    auto labels = table_of({arrow::field("label", arrow::int64())},
                           array_from(arrow::int64(), "[0, 1, -1]"));
    return write(
        name,
        labels->ReplaceSchemaMetadata(arrow::key_value_metadata(
            {{"huggingface", R"({"info": {"features": {"label": {"names": )" +
                                 names + R"(, "_type": "ClassLabel"}}}})"}})));
  }
  std::shared_ptr<arrow::Table> categories(const std::string& indices,
                                           const std::string& dictionary,
                                           bool ordered = true) {
    auto type = arrow::dictionary(arrow::int8(), arrow::utf8(), ordered);
    auto array = arrow::DictionaryArray::FromArrays(
                     type, array_from(arrow::int8(), indices),
                     array_from(arrow::utf8(), dictionary))
                     .ValueOrDie();
    return table_of({arrow::field("c", type)}, array);
  }
  std::vector<std::string> classes(const Json& source) {
    return read_schema(parse_source_spec(source, "source")).columns[0].values;
  }

  files::TestFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Formats, DeclaredClassesTest,
                         testing::Values(As::parquet, As::file, As::stream),
                         [](const auto& of) {
                           return of.param == As::parquet ? "parquet"
                                  : of.param == As::file  ? "file"
                                                          : "stream";
                         });

TEST_P(DeclaredClassesTest, NamesWhatALabelOfHuggingFaceNumbers) {
  const std::string path = write_labels("a", R"(["zeta", "alpha"])");
  EXPECT_THAT(classes(section(path)), ElementsAre("zeta", "alpha"));
  EXPECT_THAT(files::shown_rows(section(path)),
              ElementsAre("0.0", "1.0", "-1.0"));
  EXPECT_THAT(classes(section(write_labels("b", R"(["twice", "twice"])"))),
              IsEmpty());
  EXPECT_THAT(classes(section(write_labels("c", "null"))), IsEmpty());
}

TEST_P(DeclaredClassesTest, RefusesFilesWhoseNumbersStandForOtherNames) {
  write_labels("a", R"(["zeta", "alpha"])");
  write_labels("b", R"(["alpha", "zeta"])");
  Json both = section(folder_.path(""));
  EXPECT_THAT(files::shown_rows(both),
              ElementsAre(AllOf(HasSubstr("/b."), HasSubstr("column 'label'"),
                                HasSubstr("other class names"))));
  both["columns"]["label"] = "int64";
  EXPECT_THAT(files::shown_rows(both),
              ElementsAre("0.0", "1.0", "-1.0", "0.0", "1.0", "-1.0"));
  EXPECT_THAT(classes(both), IsEmpty());
}

TEST_P(DeclaredClassesTest, KeepsTheOrderOfCategories) {
  const std::string path = write(
      "a", categories("[2, 0, null, 0, 1]", R"(["lo", "mid", "hi", "none"])"));
  EXPECT_THAT(classes(section(path)), ElementsAre("lo", "mid", "hi", "none"));
  EXPECT_THAT(files::shown_rows(section(path)),
              ElementsAre("hi", "lo", "null", "lo", "mid"));
}

TEST_P(DeclaredClassesTest, KeepsThatOfPandasWhereNothingIsOrdered) {
  auto table = categories("[1, 0]", R"(["lo", "hi"])", false);
  EXPECT_THAT(classes(section(write("a", table))), IsEmpty());
  table = table->ReplaceSchemaMetadata(arrow::key_value_metadata(
      {{"pandas",
        R"({"columns": [{"field_name": "c", "pandas_type": "categorical"}]})"}}));
  EXPECT_THAT(classes(section(write("b", table))), ElementsAre("lo", "hi"));
}

TEST_P(DeclaredClassesTest, TellsTheIndexOfADataFrame) {
  auto table = table_of({arrow::field("pid", arrow::int64())},
                        array_from(arrow::int64(), "[7, 3]"));
  auto index = [&](const std::string& name, const std::string& pandas) {
    table = table->ReplaceSchemaMetadata(
        arrow::key_value_metadata({{"pandas", pandas}}));
    const std::string path = write(name, table);
    return read_schema(parse_source_spec(section(path), "source"))
        .columns[0]
        .index;
  };
  EXPECT_EQ(index("a", R"({"index_columns": ["pid"]})"),
            "the index that pandas wrote");
  EXPECT_EQ(index("b", R"({"index_columns": [{"kind": "range"}]})"), "");
  EXPECT_EQ(index("c", "no JSON"), "");
}

TEST_P(DeclaredClassesTest, StopsWhileTheyAreLookedFor) {
  std::string indices = "[0";
  for (int row = 1; row < 6000; ++row) indices += ", 1";
  const std::string path =
      write("a", categories(indices + "]", R"(["lo", "hi"])"));
  auto open_until = [&](StopFlag stop) {
    open_source(parse_source_spec(section(path), "source"), {{.column = "c"}},
                {.stop = stop});
  };
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  open_until({});
  const auto whole = Clock::now() - start;
  std::atomic<bool> stopped = false;
  std::jthread soon([&] {
    std::this_thread::sleep_for(whole / 4);
    stopped = true;
  });
  EXPECT_TRUE(is_stop(error_of([&] { open_until(&stopped); })));
}

TEST_P(DeclaredClassesTest, LeavesTheOrderToTheTextsWhereFilesDiffer) {
  write("a", categories("[1, 0]", R"(["lo", "hi"])"));
  write("b", categories("[1, 0]", R"(["hi", "lo"])"));
  EXPECT_THAT(classes(section(folder_.path(""))), IsEmpty());
  EXPECT_THAT(files::shown_rows(section(folder_.path(""))),
              ElementsAre("hi", "lo", "lo", "hi"));
}

}  // namespace
}  // namespace penstock::arrow_files
