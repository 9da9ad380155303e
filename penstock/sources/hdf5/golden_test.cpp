// Files that h5py wrote, and what it reads from them
// (tests/data/hdf5/make_files.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <random>

#include "penstock/sources/files/test_arrays.h"

namespace penstock::hdf5 {
namespace {

std::string data_path(const std::string& name) {
  return std::string(PENSTOCK_TEST_DATA) + "/hdf5/" + name;
}

Json expected_of_all() {
  return Json::parse(files::TestFolder::read(data_path("expected.json")),
                     "expected.json");
}

struct Case {
  std::string file, name;
  Json expected;
};
void PrintTo(const Case& of, std::ostream* out) { *out << of.name; }

std::vector<Case> cases() {
  std::vector<Case> all;
  const Json expected = expected_of_all();
  for (const auto& [file, list] : expected.object())
    for (const Json& one : list.array())
      all.push_back(
          {file,
           file.substr(0, file.find('.')) + "_" + std::to_string(all.size()),
           one});
  return all;
}

Json section_of(const Case& of) {
  Json section = files::section_of("hdf5", data_path(of.file));
  for (const auto& [key, value] : of.expected.find("settings")->object())
    section[key] = key == "labels" ? Json(data_path(value.string())) : value;
  return section;
}

/// A row as expected.json has it.
Json shown(const Column& column, std::int64_t row) {
  if (!column.valid(row)) return Json();
  if (column.type.is_text() || column.type.kind == ColumnKind::binary)
    return Json(column.text(row));
  const auto found = listed_numbers(column, row);
  if (!found) return Json(column.as_float64(row));
  Json list(Json::Array{});
  for (double number : files::numbers_of(*found)) list.push_back(Json(number));
  return list;
}

/// Numbers alike, whole or not.
Json as_numbers(const Json& row) {
  if (row.is_number()) return Json(row.number());
  if (!row.is_array()) return row;
  Json list(Json::Array{});
  for (const Json& one : row.array()) list.push_back(Json(one.number()));
  return list;
}

class Golden : public testing::TestWithParam<Case> {};

TEST_P(Golden, IsReadAsH5pyReadsIt) {
  const Case& of = GetParam();
  const Json section = section_of(of);
  if (const Json* error = of.expected.find("error")) {
    const std::string name = of.expected.find("column")->string();
    try {
      files::open_files(section, {{.column = name, .as = ReadAs::value}});
      FAIL() << "it was opened";
    } catch (const Error& found) {
      EXPECT_THAT(found.what(), testing::HasSubstr(error->string()));
      EXPECT_FALSE(found.parts().next.empty());
    }
    return;
  }
  const Json& columns = *of.expected.find("columns");
  std::vector<ColumnRequest> requests;
  for (const auto& [name, rows] : columns.object())
    requests.push_back({.column = name, .as = ReadAs::value});
  auto source = files::open_files(section, requests);
  const std::int64_t rows = *source->count().rows;
  std::vector<std::int64_t> some(static_cast<std::size_t>(rows));
  std::iota(some.begin(), some.end(), 0);
  std::shuffle(some.begin(), some.end(), std::mt19937(1));
  Block read;
  auto reader = open_checked_reader(*source);
  reader->read(some, read);
  std::int64_t scanned = 0;
  for (const Partition& part : source->partitions(3))
    reader->scan(part, {.rows = 7}, [&](KeyList& keys, Block& block) {
      for (std::size_t c = 0; c < requests.size(); ++c) {
        const Json* expected = columns.find(requests[c].column);
        if (expected->is_string()) expected = columns.find(expected->string());
        EXPECT_EQ(std::ssize(expected->array()), rows);
        for (std::int64_t row = 0; row < block.rows; ++row) {
          const auto at = static_cast<std::size_t>(keys.integer(row));
          EXPECT_EQ(shown(block.columns[c], row).dump(),
                    as_numbers(expected->array()[at]).dump())
              << requests[c].column << ", row " << at;
          const auto place =
              std::ranges::find(some, keys.integer(row)) - some.begin();
          EXPECT_EQ(shown(read.columns[c], place).dump(),
                    shown(block.columns[c], row).dump())
              << requests[c].column << ", read row " << at;
        }
      }
      EXPECT_TRUE(block.problems.empty());
      scanned += block.rows;
      return true;
    });
  EXPECT_EQ(scanned, rows);
}

INSTANTIATE_TEST_SUITE_P(Files, Golden, testing::ValuesIn(cases()),
                         [](const auto& of) { return of.param.name; });

TEST(Golden, SaysWhatIsLeftOutAndWhy) {
  auto left_out = [](const std::string& name) {
    std::map<std::string, LeftOutColumn> all;
    const Json section = files::section_of("hdf5", data_path(name));
    for (const LeftOutColumn& one :
         read_schema(parse_source_spec(section, "source")).left_out)
      all[one.name] = one;
    return all;
  };
  auto refused = left_out("refused.h5");
  EXPECT_EQ(refused.size(), 6U);
  for (const auto& [name, why] :
       {std::pair("/short", "has 19 rows"), std::pair("/refs", "references"),
        std::pair("/several", "several values"),
        std::pair("/away", "leads to another file"),
        std::pair("/nowhere", "leads to nothing"),
        std::pair("/long", "128 bits")}) {
    EXPECT_THAT(refused[name].why, testing::HasSubstr(why));
    EXPECT_FALSE(refused[name].next.empty());
  }
  EXPECT_THAT(left_out("filters.h5")["/bzip2"].why,
              testing::HasSubstr("filter 307"));
  EXPECT_THAT(left_out("newer.h5")["/grows"].why,
              testing::HasSubstr("newer HDF5"));
}

TEST(Golden, KeepsTheWidthOfNumbers) {
  const std::pair<const char*, ColumnType> columns[] = {
      {"/y", ColumnType::number(Dtype::int16)},
      {"/bytes", ColumnType::number(Dtype::uint8)},
      {"/wide", ColumnType::number(Dtype::uint64)},
      {"/big", ColumnType::float64},
      {"/x", ColumnType::tensor(Dtype::float32)},
      {"/bigs", ColumnType::tensor(Dtype::int32)},
      {"/half", ColumnType::tensor(Dtype::float16)},
      {"/tiny", ColumnType::number(Dtype::float32)},
      {"/flag", ColumnType::boolean},
      {"/fixed", ColumnType::text}};
  for (const auto& [name, type] : columns) {
    auto source =
        files::open_files(files::section_of("hdf5", data_path("plain.h5")),
                          {{.column = name, .as = ReadAs::value}});
    EXPECT_EQ(source->types()[0], type) << name;
  }
}

TEST(Golden, TakesSeveralFilesAsOneByTheirNamesInAnyCase) {
  files::TestFolder folder;
  const std::string bytes = files::TestFolder::read(data_path("labels.h5"));
  folder.write("a.H5", bytes);
  folder.write("b/c.HDF5", bytes);
  auto source =
      files::open_files(Json("hdf5:" + folder.path("")), {{.column = "/y"}});
  EXPECT_EQ(source->count().rows, 40);
  const std::vector<std::int64_t> some = {39, 1, 20};
  Block block;
  open_checked_reader(*source)->read(some, block);
  EXPECT_EQ(block.columns[0].as_float64(0), 57);
  EXPECT_EQ(block.columns[0].as_float64(1), 3);
  EXPECT_EQ(block.columns[0].as_float64(2), 0);
}

TEST(Golden, SelectsRowsByAConditionOverColumns) {
  Json section = files::section_of("hdf5", data_path("plain.h5"));
  section["where"] = "\"/y\" >= 30 AND \"/flag\"";
  auto source = files::open_files(section, {{.column = "/y"}});
  EXPECT_EQ(source->count().rows, 2);  // 31 + 5 and 34 + 5 are not, 36, 39 are
}

}  // namespace
}  // namespace penstock::hdf5
