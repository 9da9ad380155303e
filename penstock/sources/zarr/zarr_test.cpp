// Stores as zarr 3 and xarray write them (tests/data/zarr/make.py), good and
// bad.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <span>

#include "penstock/base/crc32c.h"
#include "penstock/sources/files/test_arrays.h"
#include "penstock/sources/files/test_damage.h"

namespace penstock::zarr {
namespace {

using files::rows_of;
using files::wanted;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string data(const std::string& name) {
  return std::string(PENSTOCK_TEST_DATA) + "/zarr/" + name;
}

Json section(const std::string& path) {
  return files::section_of("zarr", path);
}

/// A store that a test may change.
struct Copy {
  explicit Copy(const std::string& name) : path(folder.path(name)) {
    std::filesystem::copy(data(name), path,
                          std::filesystem::copy_options::recursive);
  }
  files::TestFolder folder;
  const std::string path;
};

const std::vector<std::string> kX = {"0 1 2", "10 11 12", "20 21 22",
                                     "30 31 32", "40 41 42"};

TEST(Zarr, RowsAreThoseThatWereWrittenWhateverPacksThem) {
  for (const char* name : {"/plain", "/gzip", "/zlib", "/zstd", "/lz4",
                           "/blosc", "/fortran", "/shuffled"})
    EXPECT_EQ(rows_of(section(data("two.zarr")), {wanted(name)}), kX) << name;
  for (const char* name : {"/plain", "/gzip", "/zstd", "/blosc", "/crc",
                           "/sharded", "/big", "/turned"})
    EXPECT_EQ(rows_of(section(data("three.zarr")), {wanted(name)}), kX) << name;
}

TEST(Zarr, ArraysOfAStoreAreColumns) {
  EXPECT_THAT(
      rows_of(section(data("three.zarr")), {wanted("/y"), wanted("/sharded")}),
      ElementsAre("0 | 0 1 2", "1 | 10 11 12", "2 | 20 21 22", "3 | 30 31 32",
                  "4 | 40 41 42"));
  EXPECT_THAT(rows_of(section(data("two.zarr")), {wanted("/flags")}),
              ElementsAre("0", "0", "0", "1", "1"));
  EXPECT_THAT(
      rows_of(section(data("two.zarr")), {wanted("/y"), wanted("/group/long")}),
      ElementsAre(HasSubstr("arrays.lengths")));
  EXPECT_EQ(rows_of(section(data("two.zarr/zstd")), {wanted("/")}), kX);
}

TEST(Zarr, TextsOfAnyLengthAndOfOneAreTexts) {
  for (const char* store : {"texts2.zarr", "texts3.zarr"}) {
    SCOPED_TRACE(store);
    for (const char* name : {"/plain", "/packed", "/gzip", "/letters"})
      EXPECT_THAT(rows_of(section(data(store)), {wanted(name)}),
                  ElementsAre("hum", "", "chirp", "Knall", "größe"))
          << name;
    EXPECT_THAT(rows_of(section(data(store)), {wanted("/hole")}),
                ElementsAre("none", "none", "none", "none", "none"));
    EXPECT_THAT(rows_of(section(data(store)), {wanted("/plain", 2, 1)}),
                ElementsAre(HasSubstr("windows are made of numbers")));
  }
}

TEST(Zarr, TextsThatAreCutOffAreNamed) {
  Copy store("texts3.zarr");
  const std::string good = files::TestFolder::read(store.path + "/plain/c/0");
  for (std::size_t size : {std::size_t{3}, std::size_t{5}, good.size() - 1}) {
    store.folder.write("texts3.zarr/plain/c/0", good.substr(0, size));
    EXPECT_THAT(rows_of(section(store.path), {wanted("/plain")})[0],
                testing::AllOf(testing::StartsWith("null"),
                               HasSubstr("a chunk of texts is cut off")))
        << size;
  }
}

constexpr std::int64_t kManyTexts = 1'000'000;

/// A store of so many empty texts in one chunk, of which no frame says how much
/// it holds: bytes of RFC 8878, among them blocks of one byte many times.
void write_many_texts(files::TestFolder& folder) {
  auto little = [](std::uint64_t number, int bytes) {
    std::string text;
    for (; bytes > 0; --bytes, number >>= 8)
      text += static_cast<char>(number & 255);
    return text;
  };
  auto block = [&](bool last, unsigned kind, std::uint64_t size) {
    return little((last ? 1U : 0U) | kind << 1 | size << 3, 3);
  };
  const std::string shape = std::to_string(kManyTexts);
  std::string chunk = little(0xFD2FB528, 4) + little(0, 1) + little(0x40, 1) +
                      block(false, 0, 4) + little(kManyTexts, 4);
  constexpr std::uint64_t kBlock = 100'000;
  for (std::uint64_t left = 4 * kManyTexts; left > 0; left -= kBlock)
    chunk += block(left == kBlock, 1, kBlock) + little(0, 1);
  folder.write("a.zarr/.zgroup", R"({"zarr_format": 2})");
  folder.write("a.zarr/t/.zarray", R"({"zarr_format": 2, "shape": [)" + shape +
                                       R"(], "chunks": [)" + shape +
                                       R"(], "dtype": "|O", "order": "C",
                   "compressor": {"id": "zstd", "level": 1},
                   "filters": [{"id": "vlen-utf8"}], "fill_value": ""})");
  folder.write("a.zarr/t/0", chunk);
  folder.write("a.zarr/x/.zarray",
               R"({"zarr_format": 2, "shape": [)" + shape +
                   R"(], "chunks": [1024], "dtype": "|u1", "order": "C",
                   "compressor": null, "filters": null, "fill_value": 3})");
}

double seconds_of(const std::function<void()>& work) {
  const std::clock_t begin = std::clock();
  work();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(Zarr, TextsAtTheEndOfAChunkAreReadAsSoonAsThoseAtItsBeginning) {
  files::TestFolder folder;
  write_many_texts(folder);
  auto source = files::open_files(section(folder.path("a.zarr")),
                                  {wanted("/x"), wanted("/t")});
  auto reader = open_checked_reader(*source);
  auto read_at = [&](std::int64_t row) {
    return seconds_of([&] {
      for (int i = 0; i < 200; ++i) {
        Block block;
        reader->read(std::vector<std::int64_t>{row}, block);
        ASSERT_TRUE(block.problems.empty());
        ASSERT_EQ(block.columns[1].text(0), "");
      }
    });
  };
  read_at(0);
  const double first = read_at(0), last = read_at(kManyTexts - 1);
  EXPECT_LT(last, 5 * first + 0.05) << first;
}

#ifndef PENSTOCK_SANITIZED  // they keep what is freed
TEST(Zarr, AChunkThatDoesNotSayHowLargeItIsTakesWhatItHolds) {
  files::TestFolder folder;
  write_many_texts(folder);
  auto most_kib = [] {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return used.ru_maxrss;
  };
  const long before = most_kib();
  auto source =
      files::open_files(section(folder.path("a.zarr")), {wanted("/t")});
  auto reader = open_checked_reader(*source);
  Block block;
  reader->read(std::vector<std::int64_t>{7}, block);
  EXPECT_EQ(block.columns[0].text(0), "");
  EXPECT_LT(most_kib() - before, 150 << 10);
}
#endif

TEST(Zarr, AChunkOfTextsThatIsCutOffInItsFrameIsNamed) {
  files::TestFolder folder;
  write_many_texts(folder);
  const std::string good = files::TestFolder::read(folder.path("a.zarr/t/0"));
  folder.write("a.zarr/t/0", good.substr(0, good.size() / 2));
  auto source =
      files::open_files(section(folder.path("a.zarr")), {wanted("/t")});
  Block block;
  open_checked_reader(*source)->read(
      std::vector<std::int64_t>{0, kManyTexts - 1}, block);
  ASSERT_EQ(block.problems.size(), 2U);
  for (const auto& problem : block.problems)
    EXPECT_THAT(problem.why, HasSubstr("cut off"));
}

TEST(Zarr, WhatCannotBeReadBesideTheOthersIsLeftOutWithTheReason) {
  auto left_out = [](const std::string& name) {
    std::vector<std::string> all;
    for (const LeftOutColumn& one :
         read_schema(parse_source_spec(section(data(name)), "source")).left_out)
      all.push_back(one.name + ": " + one.why);
    return all;
  };
  EXPECT_THAT(
      left_out("texts3.zarr"),
      ElementsAre("/complex: the array holds values of the type 'complex128'"));
  EXPECT_THAT(
      left_out("two.zarr"),
      testing::IsSupersetOf(
          {"/flags: the column has 5 rows, but '/group/long' has 23: to read "
           "it, name it in 'fields' with '/blosc', '/fortran', "
           "'/gzip', '/hole' and 6 more",
           "/lzma: the chunks are compressed with 'lzma', expected blosc, "
           "zstd, gzip, zlib, lz4, shuffle or crc32c"}));
}

TEST(Zarr, WhatIsMissingHasTheFillValue) {
  EXPECT_THAT(rows_of(section(data("two.zarr")), {wanted("/hole")}),
              ElementsAre("1", "7", "7", "7", "7"));
}

TEST(Zarr, WindowsCrossChunks) {
  EXPECT_THAT(rows_of(section(data("two.zarr")), {wanted("/group/long", 8, 7)}),
              ElementsAre("0 1 2 3 4 5 6 7", "7 8 9 10 11 12 13 14",
                          "14 15 16 17 18 19 20 21"));
  EXPECT_THAT(
      rows_of(section(data("three.zarr")), {wanted("/sharded", 3, 2)}),
      ElementsAre("0 1 2 10 11 12 20 21 22", "20 21 22 30 31 32 40 41 42"));
}

TEST(Zarr, NumbersOf16BitsStayWhatTheyAre) {
  files::TestFolder folder;
  folder.write("a.zarr/.zarray",
               R"({"zarr_format": 2, "shape": [5], "chunks": [2],
                   "dtype": "<f2", "compressor": null, "filters": null,
                   "fill_value": 7.0, "order": "C"})");
  folder.write("a.zarr/0", std::string("\x00\x3C\x00\x40", 4));
  const Json of = section(folder.path("a.zarr"));
  auto source = files::open_files(of, {wanted("/")});
  EXPECT_EQ(source->types()[0], ColumnType::tensor(Dtype::float16));
  EXPECT_THAT(rows_of(of, {wanted("/")}), ElementsAre("1", "2", "7", "7", "7"));
  EXPECT_THAT(rows_of(of, {wanted("/", 2, 1)}),
              ElementsAre("1 2", "2 7", "7 7", "7 7"));
  folder.write("a.zarr/.zattrs", R"({"scale_factor": 2, "add_offset": 1})");
  EXPECT_THAT(rows_of(of, {wanted("/")}),
              ElementsAre("3", "5", "15", "15", "15"));
}

/// Numbers that are missing by _FillValue, which xarray writes in version 3 as
/// the base64 of a double.
TEST(Zarr, TheFillValueOfXarrayIsMissingAsBase64Too) {
  files::TestFolder folder;
  auto row_of = [&](const std::string& type, const std::string& fill) {
    folder.write("a.zarr/zarr.json", R"({"zarr_format": 3,
        "node_type": "array", "shape": [4], "data_type": ")" +
                                         type + R"(",
        "chunk_grid": {"name": "regular", "configuration":
                       {"chunk_shape": [4]}},
        "chunk_key_encoding": {"name": "default"}, "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": {"_FillValue": ")" +
                                         fill + R"("}})");
    auto source =
        files::open_files(section(folder.path("a.zarr")), {wanted("/", 4, 4)});
    Block block;
    open_checked_reader(*source)->read(std::vector<std::int64_t>{0}, block);
    return files::numbers_of(*listed_numbers(block.columns[0], 0));
  };
  const float values[] = {1, -9999, 0, 2};
  folder.write("a.zarr/c/0",
               std::string(reinterpret_cast<const char*>(values), 16));
  const auto nan = testing::IsNan();
  EXPECT_THAT(row_of("float32", "AAAAAICHw8A="), ElementsAre(1, nan, 0, 2));
  EXPECT_THAT(row_of("float32", "AAAAAAAA+H8="), ElementsAre(1, -9999, 0, 2))
      << "NaN, which is what is there";
  testing::internal::CaptureStderr();
  EXPECT_THAT(row_of("float32", "missing"), ElementsAre(1, -9999, 0, 2));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::AllOf(HasSubstr("_FillValue"), HasSubstr("missing")));
}

/// A store of one array of four numbers, of version 2.
std::vector<double> unpacked_row(files::TestFolder& folder,
                                 const std::string& type,
                                 const std::string& bytes,
                                 const std::string& fill,
                                 const std::string& attributes) {
  folder.write("a.zarr/.zarray",
               R"({"zarr_format": 2, "shape": [4], "chunks": [4],
                   "compressor": null, "filters": null, "order": "C",
                   "dtype": ")" +
                   type + R"(", "fill_value": )" + fill + "}");
  folder.write("a.zarr/.zattrs", attributes);
  folder.write("a.zarr/0", bytes);
  auto source =
      files::open_files(section(folder.path("a.zarr")), {wanted("/", 4, 4)});
  Block block;
  open_checked_reader(*source)->read(std::vector<std::int64_t>{0}, block);
  return files::numbers_of(*listed_numbers(block.columns[0], 0));
}

// What xarray.open_zarr of 2026.9 gives.
TEST(Zarr, AttributesOfTheCfConventionsUnpackNumbers) {
  files::TestFolder folder;
  const std::string numbers("\x01\xFF\x00\x03", 4);  // int8: 1 -1 0 3
  auto row = [&](const std::string& type, const std::string& fill,
                 const std::string& attributes) {
    return unpacked_row(folder, type, numbers, fill, attributes);
  };
  const auto nan = testing::IsNan();
  EXPECT_THAT(row("|i1", "null", R"({"missing_value": -1})"),
              ElementsAre(1, nan, 0, 3));
  EXPECT_THAT(row("|i1", "null", R"({"missing_value": [3, 1]})"),
              ElementsAre(nan, -1, 0, nan));
  EXPECT_THAT(
      row("|i1", "null", R"({"scale_factor": [0.5], "add_offset": [1.0]})"),
      ElementsAre(1.5, 0.5, 1, 2.5));
  EXPECT_THAT(row("|i1", "null", R"({"_Unsigned": "true"})"),
              ElementsAre(1, 255, 0, 3));
  EXPECT_THAT(row("|u1", "null", R"({"_Unsigned": "false"})"),
              ElementsAre(1, -1, 0, 3));
  EXPECT_THAT(row("|i1", "-1",
                  R"({"_Unsigned": "true", "_ARRAY_DIMENSIONS": ["t"],
                      "scale_factor": 2.0})"),
              ElementsAre(2, nan, 0, 6));
  EXPECT_THAT(row("|i1", "null", R"({"valid_min": 0, "valid_range": [0, 2]})"),
              ElementsAre(1, -1, 0, 3));
}

TEST(Zarr, AFillValueThatIsMissingIsOneOfTheArraysOwnType) {
  files::TestFolder folder;
  const float values[] = {1, 1e20F, 0, 2};
  EXPECT_THAT(
      unpacked_row(folder, "<f4",
                   std::string(reinterpret_cast<const char*>(values), 16),
                   "1e20", R"({"_ARRAY_DIMENSIONS": ["t"]})"),
      ElementsAre(1, testing::IsNan(), 0, 2));
}

TEST(Zarr, RowsOfWhichHardlyAnyWereWrittenAreRefused) {
  files::TestFolder folder;
  auto store = [&](const std::string& shape, const std::string& chunks) {
    folder.write("a.zarr/.zarray",
                 R"({"zarr_format": 2, "shape": )" + shape + R"(, "chunks": )" +
                     chunks +
                     R"(, "compressor": null, "filters": null, "order": "C",
                     "dtype": "<f4", "fill_value": 0})");
    return rows_of(section(folder.path("a.zarr")), {wanted("/")});
  };
  EXPECT_THAT(store("[1000000000000]", "[1000]"),
              ElementsAre(HasSubstr("only 0 of its 1000000000 chunks")));
  EXPECT_THAT(store("[1000000000000, 0]", "[1000, 1]"),
              ElementsAre(HasSubstr("rows hold no values")));
  EXPECT_THAT(store("[3]", "[1000]"), ElementsAre("0", "0", "0"));
}

TEST(Zarr, AFillValueOf64BitsIsExact) {
  files::TestFolder folder;
  for (auto [type, value] : {std::pair("<i8", "4611686018427387905"),
                             std::pair("<i8", "-9223372036854775808"),
                             std::pair("<u8", "9223372036854775807")}) {
    folder.write("a.zarr/.zarray",
                 R"({"zarr_format": 2, "shape": [1], "chunks": [1],
                     "compressor": null, "filters": null, "order": "C",
                     "dtype": ")" +
                     std::string(type) + R"(", "fill_value": )" + value + "}");
    auto source =
        files::open_files(section(folder.path("a.zarr")), {wanted("/")});
    Block block;
    open_checked_reader(*source)->read(std::vector<std::int64_t>{0}, block);
    const Column& column = block.columns[0];
    EXPECT_EQ(type == std::string("<u8")
                  ? std::to_string(column.values.as<std::uint64_t>()[0])
                  : std::to_string(column.values.as<std::int64_t>()[0]),
              value);
  }
}

TEST(Zarr, ValuesOfXarrayAreDecoded) {
  for (const char* name : {"xarray2.zarr", "xarray3.zarr"}) {
    const auto schema =
        read_schema(parse_source_spec(section(data(name)), "source"));
    ASSERT_NE(schema.find("/t"), nullptr);
    auto source = files::open_files(section(data(name)), {wanted("/t")});
    auto reader = open_checked_reader(*source);
    Block block;
    reader->read(std::vector<std::int64_t>{1}, block);
    const auto values = block.columns[0].values.as<double>();
    ASSERT_EQ(values.size(), 3u);
    EXPECT_EQ(values[0], 5.0);
    EXPECT_EQ(values[1], 5.5);
    EXPECT_TRUE(std::isnan(values[2])) << name;
  }
}

TEST(Zarr, SeveralStoresFollowOneAnother) {
  Copy store("three.zarr");
  std::filesystem::copy(store.path, store.folder.path("more.zarr"),
                        std::filesystem::copy_options::recursive);
  EXPECT_EQ(rows_of(section(store.folder.path("")), {wanted("/gzip")}).size(),
            10u);
  EXPECT_EQ(
      rows_of(section(store.folder.path("*.zarr")), {wanted("/gzip")}).size(),
      10u);
}

TEST(Zarr, WhatIsNotReadIsNamed) {
  EXPECT_THAT(rows_of(section(data("two.zarr")), {wanted("/lzma")}),
              ElementsAre(HasSubstr("compressed with 'lzma'")));
  EXPECT_THAT(rows_of(section(data("none.zarr")), {wanted("/x")}),
              ElementsAre(HasSubstr("files.missing")));
  EXPECT_THAT(rows_of(section(data("")), {wanted("/plain")}),
              ElementsAre(HasSubstr("error")));
  EXPECT_THAT(rows_of(section(data("two.zarr/group/long/0")), {wanted("/x")}),
              ElementsAre(HasSubstr("error")));
}

TEST(Zarr, ChunksThatContradictTheMetadataAreNamed) {
  Copy store("two.zarr");
  auto bad = [&](const std::string& file, const std::string& bytes) {
    store.folder.write("two.zarr/" + file, bytes);
    return rows_of(section(store.path),
                   {wanted("/" + file.substr(0, file.find('/')))})[0];
  };
  EXPECT_THAT(bad("plain/0.0", "short"), HasSubstr("expected 16"));
  EXPECT_THAT(bad("zstd/0.0", "nothing"), HasSubstr("zstd"));
  EXPECT_THAT(bad("gzip/0.0", ""), HasSubstr("deflate"));
  EXPECT_THAT(bad("lz4/0.0", "\xff\xff\xff\xff"), HasSubstr("more bytes"));
  EXPECT_THAT(bad("blosc/0.0", "sixteen letters."), HasSubstr("blosc"));
  EXPECT_THAT(bad("y/.zarray", "{"), HasSubstr("files.damaged"));
}

TEST(Zarr, RowsOfADamagedChunkAreBadAndOthersAreRead) {
  Copy store("three.zarr");
  const auto rows = [&](const ColumnRequest& column) {
    return rows_of(section(store.path), {column, wanted("/y")});
  };
  store.folder.write("three.zarr/gzip/c/1/0", "nothing");
  store.folder.write("three.zarr/gzip/c/1/1", "nothing either");
  const auto found = rows_of(section(store.path), {wanted("/gzip")});
  const auto bad =
      testing::AllOf(testing::StartsWith("null ("), HasSubstr("gzip/c/1/0: "),
                     testing::Not(HasSubstr("c/1/1")));
  EXPECT_THAT(found, ElementsAre(kX[0], kX[1], bad, bad, kX[4]));
  EXPECT_THAT(rows_of(section(store.path), {wanted("/gzip", 2, 1)}),
              ElementsAre("0 1 2 10 11 12", bad, bad, bad))
      << "each window that has such a row";
  // A shard whose index is damaged has no rows; it is not one that is empty.
  store.folder.write("three.zarr/sharded/c/0/0", std::string(200, 'x'));
  EXPECT_THAT(rows(wanted("/sharded")),
              testing::Each(testing::AnyOf(testing::StartsWith("null | "),
                                           testing::StartsWith("40 41 42"))));
}

void replace_in(const std::string& path, const std::string& from,
                const std::string& to) {
  std::ifstream in(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  const std::size_t at = text.find(from);
  ASSERT_NE(at, text.npos) << path;
  std::ofstream(path, std::ios::binary) << text.replace(at, from.size(), to);
}

TEST(Zarr, SeveralTranspositionsFollowEachOther) {
  Copy store("three.zarr");
  // The second one does nothing: it is applied to what the first has made.
  replace_in(store.path + "/turned/zarr.json", "\"codecs\": [",
             R"("codecs": [{"name": "transpose", "configuration":)"
             R"( {"order": [0, 1]}},)");
  EXPECT_EQ(rows_of(section(store.path), {wanted("/turned")}), kX);
}

TEST(Zarr, TheIndexOfAShardHasAByteOrderOfItsOwn) {
  Copy store("three.zarr");
  const std::string meta = store.path + "/sharded/zarr.json";
  std::ifstream in(meta);
  std::string text(std::istreambuf_iterator<char>(in), {});
  const std::size_t at = text.find("little", text.find("index_codecs"));
  ASSERT_NE(at, text.npos);
  std::ofstream(meta) << text.replace(at, 6, "big");
  for (const auto& file : std::filesystem::recursive_directory_iterator(
           store.path + "/sharded/c")) {
    if (!file.is_regular_file()) continue;
    std::ifstream shard(file.path(), std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(shard), {});
    constexpr std::size_t kIndex = 4 * 2 * 8;  // four chunks, then a checksum
    const std::span index(bytes.data() + bytes.size() - kIndex - 4, kIndex);
    for (std::size_t number = 0; number < kIndex; number += 8)
      std::ranges::reverse(index.subspan(number, 8));
    const std::uint32_t sum = crc32c(std::as_bytes(index));
    std::memcpy(bytes.data() + bytes.size() - 4, &sum, 4);
    std::ofstream(file.path(), std::ios::binary) << bytes;
  }
  EXPECT_EQ(rows_of(section(store.path), {wanted("/sharded")}), kX);
}

TEST(Zarr, TheChecksumIsThatOfItsName) {
  const std::string text = "123456789";
  EXPECT_EQ(crc32c(std::as_bytes(std::span(text))), 0xE3069283U);
}

TEST(Zarr, GivesRowsOrAnErrorThatNamesTheStoreWhenDamaged) {
  for (const char* name : {"two.zarr", "three.zarr"}) {
    Copy store(name);
    const bool two = std::string(name) == "two.zarr";
    std::vector<std::string> files =
        two ? std::vector<std::string>{"blosc/0.0", "blosc/.zarray", "zstd/1.1",
                                       "lz4/0.0", "gzip/0.1"}
            : std::vector<std::string>{"sharded/c/0/0", "crc/c/0/0",
                                       "sharded/zarr.json", "blosc/c/1/0"};
    for (const std::string& file : files) {
      SCOPED_TRACE(file);
      files::read_damaged(section(store.path), store.path + "/" + file,
                          files::damages(150), 1,
                          {"/" + file.substr(0, file.find('/'))}, store.path);
      std::filesystem::copy_file(
          data(name) + "/" + file, store.path + "/" + file,
          std::filesystem::copy_options::overwrite_existing);
    }
  }
}

}  // namespace
}  // namespace penstock::zarr
