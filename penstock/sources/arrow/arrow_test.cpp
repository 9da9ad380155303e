// What Parquet, Arrow and Hugging Face files look like to a user, good and bad.
#include <arrow/api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "penstock/base/random.h"
#include "penstock/sources/arrow/test_writing.h"
#include "penstock/sources/files/test_folder.h"

namespace penstock::arrow_files {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using As = Written::As;

std::string kind_of(As as) { return as == As::parquet ? "parquet" : "arrow"; }

class ArrowTest : public testing::TestWithParam<As> {
 protected:
  Json section(const std::string& path) {
    return files::section_of(kind_of(GetParam()), path);
  }
  std::string write(const std::string& name,
                    const std::shared_ptr<arrow::Table>& table,
                    std::int64_t chunk = 2) {
    return folder_.write(
        name + (GetParam() == As::parquet ? ".parquet" : ".arrow"),
        written(table, {GetParam(), chunk}));
  }
  /// The rows of one column.
  std::vector<std::string> rows(const std::shared_ptr<arrow::DataType>& type,
                                const std::string& json,
                                ReadAs as = ReadAs::value) {
    auto table = table_of({arrow::field("c", type)}, array_from(type, json));
    return files::shown_rows(section(write("one", table)), {}, as);
  }

  files::TestFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Formats, ArrowTest,
                         testing::Values(As::parquet, As::file, As::stream),
                         [](const auto& of) {
                           return of.param == As::parquet ? "parquet"
                                  : of.param == As::file  ? "file"
                                                          : "stream";
                         });

TEST_P(ArrowTest, ReadsNumbersOfAllWidths) {
  using namespace arrow;
  for (const auto& type : {int8(), int16(), int32(), int64(), uint8(), uint16(),
                           uint32(), uint64()})
    EXPECT_THAT(rows(type, "[1, null, 100]"),
                ElementsAre("1.0", "null", "100.0"))
        << type->ToString();
  for (const auto& type : {float16(), float32(), float64()})
    EXPECT_THAT(rows(type, "[1.5, null, -2]"),
                ElementsAre("1.5", "null", "-2.0"))
        << type->ToString();
  EXPECT_THAT(rows(boolean(), "[true, null, false]"),
              ElementsAre("1.0", "null", "0.0"));
  EXPECT_THAT(rows(decimal128(10, 2), "[\"1.50\", null, \"-0.25\"]"),
              ElementsAre("1.5", "null", "-0.25"));
  EXPECT_THAT(rows(decimal128(18, 3),
                   "[\"-1019.523\", \"1234567890.123\", "
                   "\"123456789012345.678\"]"),
              ElementsAre("-1019.523", "1234567890.123", "123456789012345.67"))
      << "what the same digits are in a file of text";
  EXPECT_THAT(rows(decimal256(60, 3), "[\"9007199254740.993\", \"-0.001\"]"),
              ElementsAre("9007199254740.992", "-0.001"));
  EXPECT_THAT(rows(uint64(), "[18446744073709551615]"),
              ElementsAre("18446744073709551616.0"));
}

TEST_P(ArrowTest, ReadsTimesAsSeconds) {
  using namespace arrow;
  EXPECT_THAT(rows(timestamp(TimeUnit::MILLI), "[1500, null]"),
              ElementsAre("1.5", "null"));
  EXPECT_THAT(rows(timestamp(TimeUnit::NANO, "UTC"), "[2000000000]"),
              ElementsAre("2.0"));
  EXPECT_THAT(rows(date32(), "[1, null]"), ElementsAre("86400.0", "null"));
  EXPECT_THAT(rows(time64(TimeUnit::MICRO), "[2500000]"), ElementsAre("2.5"));
}

TEST_P(ArrowTest, ReadsTextsAndBytes) {
  using namespace arrow;
  for (const auto& type : {utf8(), large_utf8(), binary(), large_binary()})
    EXPECT_THAT(rows(type, R"(["a", null, "", "longer text"])"),
                ElementsAre("a", "null", "", "longer text"))
        << type->ToString();
  EXPECT_THAT(rows(fixed_size_binary(2), R"(["ab", null])"),
              ElementsAre("ab", "null"));
  EXPECT_THAT(rows(null(), "[null, null]"), ElementsAre("null", "null"));
  EXPECT_THAT(rows(null(), "[null]", ReadAs::number), ElementsAre("null"));
}

TEST_P(ArrowTest, ReadsDictionariesAsTheirValues) {
  auto type = arrow::dictionary(arrow::int8(), arrow::utf8());
  arrow::StringDictionaryBuilder builder;
  for (const char* text : {"b", "a", "b", "c", "b"})
    ASSERT_TRUE(builder.Append(text).ok());
  ASSERT_TRUE(builder.AppendNull().ok());
  auto array = builder.Finish().ValueOrDie();
  auto table = table_of({arrow::field("c", array->type())}, array);
  EXPECT_THAT(files::shown_rows(section(write("d", table))),
              ElementsAre("b", "a", "b", "c", "b", "null"));
}

TEST_P(ArrowTest, ReadsListsAndWhatIsNested) {
  using namespace arrow;
  EXPECT_THAT(rows(list(float32()), "[[1, 2], null, [], [3]]"),
              ElementsAre("list of 2", "null", "list of 0", "list of 1"));
  EXPECT_THAT(rows(list(float32()), "[[1, 2.5], null, [], [3]]", ReadAs::json),
              ElementsAre("[1,2.5]", "null", "[]", "[3]"));
  EXPECT_THAT(rows(fixed_size_list(float32(), 2), "[[1, 2], null, [3, 4]]"),
              ElementsAre("tensor[2]", "null", "tensor[2]"));
  EXPECT_THAT(rows(fixed_size_list(float32(), 2), "[[1, null]]"),
              ElementsAre(HasSubstr("a value is missing")));
  auto object = struct_({field("a", int32()), field("b", utf8())});
  EXPECT_THAT(rows(list(object), R"([[{"a": 1, "b": "x\"y"}, null], []])",
                   ReadAs::json),
              ElementsAre(R"([{"a":1,"b":"x\"y"},null])", "[]"));
}

TEST_P(ArrowTest, ReadsMembersOfStructs) {
  using namespace arrow;
  auto inner = struct_({field("z", float64())});
  auto type = struct_({field("x", int32()), field("y", inner)});
  auto array = array_from(
      type, R"([{"x": 1, "y": {"z": 2.5}}, null, {"x": null, "y": null}])");
  auto table = table_of({field("s", type), field("t", int8())}, array,
                        array_from(int8(), "[7, 8, 9]"));
  std::string path = write("s", table);
  EXPECT_THAT(
      files::shown_rows(section(path)),
      ElementsAre("1.0 | 2.5 | 7.0", "null | null | 8.0", "null | null | 9.0"));
  EXPECT_THAT(files::shown_rows(section(path), {"s.y.z", "t"}),
              ElementsAre("2.5 | 7.0", "null | 8.0", "null | 9.0"));
}

TEST_P(ArrowTest, TakesTheTypesThatAreChosen) {
  Json chosen = section(
      write("c", table_of({arrow::field("c", arrow::int64())},
                          array_from(arrow::int64(), "[1, 300, null]"))));
  chosen["columns"]["c"] = "int8";
  EXPECT_THAT(
      files::shown_rows(chosen),
      ElementsAre("1.0", AllOf(HasSubstr("300"), HasSubstr("int8")), "null"));
  chosen["columns"]["c"] = "text";
  EXPECT_THAT(files::shown_rows(chosen), ElementsAre("1", "300", "null"));
  chosen["columns"]["d"] = "text";
  EXPECT_THAT(files::shown_rows(chosen),
              ElementsAre(HasSubstr("did you mean 'c'")));
}

TEST_P(ArrowTest, SelectsRowsOverFilesAndFolders) {
  for (int day : {1, 2})
    write("day=" + std::to_string(day) + "/x",
          table_of({arrow::field("c", arrow::int32())},
                   array_from(arrow::int32(), "[1, 2, null, 4, 5]")));
  Json all = section(folder_.path(""));
  all["where"] = "c >= 4 AND day = 2 OR c IS NULL";
  EXPECT_THAT(
      files::shown_rows(all, {"c", "day"}),
      ElementsAre("null | 1.0", "null | 2.0", "4.0 | 2.0", "5.0 | 2.0"));
  EXPECT_THAT(files::shown_rows(all, {"day"}),
              ElementsAre("1.0", "2.0", "2.0", "2.0"));
  auto source = files::open_files(all, {{.column = "c"}});
  EXPECT_EQ(source->count().rows, 4);
  Block block;
  std::vector<std::int64_t> positions = {3, 1, 3, 0};
  open_checked_reader(*source)->read(positions, block);
  EXPECT_EQ(block.columns[0].as_int64(0), 5);
  EXPECT_FALSE(block.columns[0].valid(1));
  EXPECT_EQ(block.columns[0].as_int64(2), 5);
}

TEST_P(ArrowTest, RefusesFilesThatDiffer) {
  using namespace arrow;
  write("a", table_of({field("c", int32())}, array_from(int32(), "[1]")));
  write("b", table_of({field("c", utf8())}, array_from(utf8(), R"(["x"])")));
  EXPECT_THAT(files::shown_rows(section(folder_.path(""))),
              ElementsAre(AllOf(HasSubstr("/b."), HasSubstr("column 'c'"),
                                HasSubstr("string"), HasSubstr("int32"))));
  write("b", table_of({field("d", int32())}, array_from(int32(), "[2]")));
  EXPECT_THAT(files::shown_rows(section(folder_.path(""))),
              ElementsAre(AllOf(HasSubstr("'d'"), HasSubstr("union"))));
  Json united = section(folder_.path(""));
  united["schema"] = "union";
  EXPECT_THAT(files::shown_rows(united),
              ElementsAre("1.0 | null", "null | 2.0"));
}

TEST_P(ArrowTest, NamesTextThatIsNotUtf8) {
  arrow::StringBuilder builder;
  ASSERT_TRUE(builder.Append("good").ok());
  ASSERT_TRUE(builder.Append("\xff\xfe").ok());
  auto table = table_of({arrow::field("c", arrow::utf8())},
                        builder.Finish().ValueOrDie());
  const char* where =
      GetParam() == As::parquet ? "row group 0 (rows 0..2)" : "record batch 0";
  EXPECT_THAT(
      files::shown_rows(section(write("t", table))),
      ElementsAre("good", AllOf(HasSubstr("not UTF-8"), HasSubstr(where))));
}

TEST_P(ArrowTest, RefusesTheNameOfAColumnThatIsNotUtf8) {
  auto table = table_of({arrow::field("\xff", arrow::int8())},
                        array_from(arrow::int8(), "[1]"));
  EXPECT_THAT(files::shown_rows(section(write("n", table))),
              ElementsAre(HasSubstr("the name of the column is text x'ff'")));
}

TEST_P(ArrowTest, NamesAFileThatIsCutOff) {
  std::string path =
      write("c", table_of({arrow::field("c", arrow::int64())},
                          array_from(arrow::int64(), "[1, 2, 3, 4, 5]")));
  std::string bytes = files::TestFolder::read(path);
  for (std::size_t left :
       {std::size_t{0}, std::size_t{3}, bytes.size() / 2, bytes.size() - 1}) {
    std::ofstream(path, std::ios::binary) << bytes.substr(0, left);
    std::vector<std::string> rows = files::shown_rows(section(path));
    ASSERT_FALSE(rows.empty()) << left;
    // The end of a stream may be missing.
    if (GetParam() == As::stream && left == bytes.size() - 1) continue;
    EXPECT_THAT(rows.back(), AllOf(HasSubstr("error: "), HasSubstr(path)))
        << left;
  }
}

TEST_P(ArrowTest, SaysWhatCannotBeWhatIsWanted) {
  EXPECT_THAT(rows(arrow::binary(), R"(["x"])", ReadAs::number),
              ElementsAre(AllOf(HasSubstr("binary"), HasSubstr("a number"))));
  EXPECT_THAT(rows(arrow::utf8(), R"(["1970-01-02", "x"])", ReadAs::number),
              ElementsAre("86400.0", HasSubstr("'x'")));
  EXPECT_THAT(rows(arrow::float64(), "[2, 2.5]", ReadAs::integer),
              ElementsAre("2.0", HasSubstr("2.5")));
}

TEST_P(ArrowTest, LeavesOutColumnsThatShareAName) {
  auto numbers = array_from(arrow::int64(), "[1, 2]");
  auto table = table_of(
      {arrow::field("a", arrow::int64()), arrow::field("k", arrow::int64()),
       arrow::field("a", arrow::int64())},
      numbers, array_from(arrow::int64(), "[7, 8]"), numbers);
  const Json source = section(write("same", table));
  const Schema schema = read_schema(parse_source_spec(source, "source"));
  ASSERT_EQ(schema.columns.size(), 1u);
  EXPECT_EQ(schema.columns[0].name, "k");
  ASSERT_EQ(schema.left_out.size(), 1u);
  EXPECT_EQ(schema.left_out[0].name, "a");
  EXPECT_EQ(schema.left_out[0].why, "columns 1 and 3 have this name");
  EXPECT_THAT(files::shown_rows(source, {"k"}), ElementsAre("7.0", "8.0"));
  EXPECT_THAT(files::shown_rows(source, {"a"}),
              ElementsAre(AllOf(HasSubstr("column 'a'"),
                                HasSubstr("columns 1 and 3"))));
}

TEST_P(ArrowTest, SaysWhichTypeIsNotSupported) {
  if (GetParam() == As::parquet) GTEST_SKIP() << "Parquet has no such type";
  auto type = arrow::sparse_union({arrow::field("x", arrow::int64())});
  auto table =
      table_of({arrow::field("u", type), arrow::field("k", arrow::int64())},
               array_from(type, "[[0, 1], [0, 2]]"),
               array_from(arrow::int64(), "[7, 8]"));
  const Json source = section(write("union", table));
  EXPECT_THAT(files::shown_rows(source, {"k"}), ElementsAre("7.0", "8.0"));
  EXPECT_THAT(
      files::shown_rows(source, {"u"}),
      ElementsAre(AllOf(HasSubstr("column 'u'"), HasSubstr("sparse_union"),
                        HasSubstr("unsupported"))));
}

TEST(ArrowFile, IsReadByItsFooter) {
  auto table = table_of({arrow::field("c", arrow::int64())},
                        array_from(arrow::int64(), "[1, 2, 3]"));
  const std::string whole = written(table, {As::file, 2});
  std::int32_t size = 0;
  std::memcpy(&size, whole.data() + whole.size() - 10, sizeof(size));
  const std::size_t footer = whole.size() - 10 - static_cast<std::size_t>(size);
  const std::size_t end = footer - 8;  // of the last batch
  files::TestFolder folder;
  for (const char* rest : {"", "these bytes belong to no message"}) {
    const std::string path = folder.write(
        "f.arrow", whole.substr(0, end) + rest + whole.substr(footer));
    EXPECT_THAT(files::shown_rows(files::section_of("arrow", path)),
                ElementsAre("1.0", "2.0", "3.0"))
        << rest;
  }
}

TEST(HuggingFace, ReadsWhatSaveToDiskWrote) {
  files::TestFolder folder;
  auto part = [](const std::string& json) {
    return written(table_of({arrow::field("x", arrow::int32())},
                            array_from(arrow::int32(), json)),
                   {As::stream, 2});
  };
  folder.write("set/train/data-00001-of-00002.arrow", part("[3]"));
  folder.write("set/train/data-00000-of-00002.arrow", part("[1, 2]"));
  folder.write("set/train/state.json",
               R"({"_data_files": [{"filename": "data-00000-of-00002.arrow"},
                  {"filename": "data-00001-of-00002.arrow"}],
                  "_indices_data_files": null})");
  folder.write("set/dataset_dict.json", R"({"splits": ["train", "test"]})");
  Json section = files::section_of("hf", folder.path("set"));
  EXPECT_THAT(files::shown_rows(section),
              ElementsAre(HasSubstr("train, test")));
  section["part"] = "train";
  EXPECT_THAT(files::shown_rows(section), ElementsAre("1.0", "2.0", "3.0"));
  EXPECT_THAT(files::shown_rows(Json("hf:" + folder.path("set/train"))),
              ElementsAre("1.0", "2.0", "3.0"));
  folder.write("cache/imdb-train-00000-of-00002.arrow", part("[1]"));
  folder.write("cache/imdb-train-00001-of-00002.arrow", part("[2]"));
  folder.write("cache/imdb-test.arrow", part("[9]"));
  section = files::section_of("hf", folder.path("cache"));
  EXPECT_THAT(files::shown_rows(section),
              ElementsAre(HasSubstr("test, train")));
  section["part"] = "train";
  EXPECT_THAT(files::shown_rows(section), ElementsAre("1.0", "2.0"));
}

/// A column of `rows` numbers that nothing shortens.
std::shared_ptr<arrow::Array> noise(std::int64_t rows) {
  arrow::DoubleBuilder builder;
  Random random(1, 0, 0, 0);
  for (std::int64_t row = 0; row < rows; ++row)
    if (!builder.Append(static_cast<double>(random.next())).ok()) return {};
  return builder.Finish().ValueOrDie();
}

TEST(ParquetMemory, OfARowGroupIsItsPagesAndABatchAndIsSaid) {
  constexpr std::int64_t kRows = 1'000'000;
  files::TestFolder folder;
  const auto column = noise(kRows);
  std::vector<std::shared_ptr<arrow::Field>> fields;
  std::vector<ColumnRequest> requests;
  for (const char* name : {"a", "b", "c", "d"}) {
    fields.push_back(arrow::field(name, column->type()));
    requests.push_back({.column = name});
  }
  const std::string path = folder.write(
      "one.parquet", written(table_of(fields, column, column, column, column),
                             {As::parquet, kRows}));
  auto source = files::open_files(files::section_of("parquet", path), requests);
  ASSERT_EQ(source->chunks()->ends.size(), 1u);
  const ReaderMemory memory = source->chunks()->reader;
  constexpr std::size_t kDecoded = 4 * kRows * sizeof(double);
  EXPECT_LT(memory.scanning, kDecoded / 2);
  EXPECT_GT(memory.scanning, std::size_t{1} << 20);
  EXPECT_GT(memory.by_position, kDecoded);
  const auto& numbers = static_cast<const arrow::DoubleArray&>(*column);
  auto reader = open_checked_reader(*source);
  std::int64_t row = 0;
  for (const Partition& part : source->partitions(1))
    reader->scan(part, {}, [&](KeyList&, Block& block) {
      for (std::int64_t at = 0; at < block.rows; ++at, ++row)
        for (const Column& of : block.columns)
          if (of.as_float64(at) != numbers.Value(row)) return false;
      return true;
    });
  EXPECT_EQ(row, kRows) << "the first row that differs";
}

}  // namespace
}  // namespace penstock::arrow_files
