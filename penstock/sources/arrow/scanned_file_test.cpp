// Files that another library decodes, as a source: a scanner that is made by
// hand. python/tests/arrow_files_test.py has the real one.
#include "penstock/sources/arrow/scanned_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "penstock/sources/files/test_folder.h"
#include "penstock/sources/memory/fake_stream.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Batch = std::vector<FakeArray>;

FakeArray numbers(std::vector<std::int32_t> values) {
  return {.format = "i",
          .name = "n",
          .length = std::ssize(values),
          .buffers = {{}, FakeArray::of(values)}};
}

FakeArray bytes(const std::string& format, std::vector<std::string> values) {
  std::vector<std::int32_t> offsets = {0};
  std::string all;
  for (const std::string& value : values) {
    all += value;
    offsets.push_back(static_cast<std::int32_t>(all.size()));
  }
  return {.format = format,
          .name = "t",
          .length = std::ssize(values),
          .buffers = {{}, FakeArray::of(offsets), FakeArray::of(all)}};
}

/// What a path holds: chunks of batches, and what goes wrong.
struct Contents {
  std::vector<std::vector<Batch>> chunks;
  std::vector<std::string> meaning = {};
  std::vector<std::vector<std::string>> classes = {};
  std::vector<std::int64_t> ends = {};
  ScanFailure when_opened = {};
  ScanFailure when_read = {};
};

std::shared_ptr<const ArrowTable> table_of(Batch batch) {
  auto made = std::make_shared<FakeStream>(std::vector<Batch>{batch});
  ArrowArrayStream stream = made->stream();
  auto table = ArrowTable::read(stream);
  const ArrowTable* at = table.get();  // borrows from `made`
  return {at, [made, table](const ArrowTable*) mutable { table.reset(); }};
}

class FakeScan final : public ChunkScan {
 public:
  explicit FakeScan(const Contents& of) : of_(of) {}
  void begin(std::int64_t chunk) override {
    chunk_ = static_cast<std::size_t>(chunk);
    at_ = 0;
  }
  std::shared_ptr<const ArrowTable> next() override {
    if (!of_.when_read.says.empty()) throw of_.when_read;
    const auto& batches = of_.chunks[chunk_];
    return at_ == batches.size() ? nullptr : table_of(batches[at_++]);
  }

 private:
  const Contents& of_;
  std::size_t chunk_ = 0, at_ = 0;
};

class FakeFile final : public ScannedFile {
 public:
  explicit FakeFile(const Contents& of) : of_(of) {
    if (!of.when_opened.says.empty()) throw of.when_opened;
    empty = table_of(of.chunks[0][0]);
    declared.assign(empty->columns().size(), "as the library says");
    meaning = of.meaning;
    meaning.resize(declared.size());
    classes = of.classes;
    classes.resize(declared.size());
    chunk_ends = of.ends;
    std::int64_t rows = 0;
    if (chunk_ends.empty())
      for (const auto& batches : of.chunks) {
        for (const Batch& batch : batches) rows += batch[0].length;
        chunk_ends.push_back(rows);
      }
  }
  std::unique_ptr<ChunkScan> scan(
      const std::vector<std::size_t>&) const override {
    return std::make_unique<FakeScan>(of_);
  }

 private:
  const Contents& of_;
};

class FakeScanner final : public ArrowScanner {
 public:
  std::shared_ptr<const ScannedFile> open(const std::string&,
                                          const std::string& path) override {
    return std::make_shared<FakeFile>(files.at(path));
  }
  std::map<std::string, Contents> files;
};

/// The scanner of this program: the first one is kept.
FakeScanner& scanner() {
  static const auto made = std::make_shared<FakeScanner>();
  static const bool chosen = [] {
    use_plugin("arrow", arrow_files::scanning_plugin(made));
    return true;
  }();
  (void)chosen;
  return *made;
}

class ScannedFileTest : public testing::Test {
 protected:
  std::vector<std::string> rows(Contents contents, const Json& more = Json(),
                                const std::string& name = "t.parquet") {
    const std::string path = folder_.write(name, "PAR1");
    scanner().files[path] = std::move(contents);
    Json section = files::section_of(
        name.ends_with(".parquet") ? "parquet" : "arrow", path);
    if (more.is_string()) section["where"] = more;
    return files::shown_rows(section);
  }
  files::TestFolder folder_;
};

TEST_F(ScannedFileTest, ChunksComeInPiecesAndConditionsSelect) {
  const Contents contents{
      .chunks = {{{numbers({1, 2}), bytes("u", {"a", "b"})},
                  {numbers({3}), bytes("u", {"c"})}},
                 {{numbers({4, 5}), bytes("u", {"d", "e"})}}}};
  EXPECT_THAT(rows(contents), ElementsAre("1.0 | a", "2.0 | b", "3.0 | c",
                                          "4.0 | d", "5.0 | e"));
  EXPECT_THAT(rows(contents, Json("n % 2 = 0")),
              ElementsAre(HasSubstr("cannot")));
  EXPECT_THAT(rows(contents, Json("n IN (2, 5)")),
              ElementsAre("2.0 | b", "5.0 | e"));
}

TEST_F(ScannedFileTest, ValuesBecomeWhatTheyMean) {
  const std::string uuid = "0123456789abcdef";
  EXPECT_THAT(
      rows({.chunks = {{{bytes("z", {uuid})}}}, .meaning = {"uuid"}}).size(),
      1);
  EXPECT_THAT(
      rows({.chunks = {{{bytes("z", {"short"})}}}, .meaning = {"uuid"}}),
      ElementsAre(HasSubstr("16 bytes, as UUIDs must")));
  EXPECT_THAT(rows({.chunks = {{{bytes("u", {"[1]"})}}}, .meaning = {"json"}}),
              ElementsAre("[1]"));
}

TEST_F(ScannedFileTest, ColumnsHaveTheClassesThatAreDeclared) {
  const std::string path = folder_.write("set/data.arrow", "ARROW1");
  folder_.write("set/state.json",
                R"({"_data_files": [{"filename": "data.arrow"}]})");
  scanner().files[path] = {.chunks = {{{numbers({1, 0, -1})}}},
                           .classes = {{"zeta", "alpha"}}};
  const Json section = files::section_of("hf", folder_.path("set"));
  EXPECT_THAT(
      read_schema(parse_source_spec(section, "source")).columns[0].values,
      ElementsAre("zeta", "alpha"));
  EXPECT_THAT(files::shown_rows(section), ElementsAre("1.0", "0.0", "-1.0"));
}

TEST_F(ScannedFileTest, BadTextIsAMatterOfItsRow) {
  EXPECT_THAT(rows({.chunks = {{{bytes("u", {"good", "a\xff", "more"})}}}}),
              ElementsAre("good",
                          AllOf(HasSubstr("null!"), HasSubstr("not UTF-8"),
                                HasSubstr("row group 0 (rows 0..3)")),
                          "more"));
}

TEST_F(ScannedFileTest, WhatIsDamagedIsNamed) {
  FakeArray descending = bytes("u", {"ab", "cd"});
  descending.buffers[1] = FakeArray::of(std::vector<std::int32_t>{0, 3, 2});
  EXPECT_THAT(rows({.chunks = {{{descending}}}}),
              ElementsAre(AllOf(HasSubstr("t.parquet, row group 0"),
                                HasSubstr("offsets do not ascend"))));
  FakeArray dictionary = numbers({0, 7});
  dictionary.dictionary.push_back(bytes("u", {"only"}));
  EXPECT_THAT(rows({.chunks = {{{dictionary}}}}),
              ElementsAre(HasSubstr("value 7 of a dictionary of 1")));
  EXPECT_THAT(
      rows({.chunks = {{{numbers({1})}, {bytes("u", {"x"})}}}}),
      ElementsAre("1.0", HasSubstr("the file no longer has the column 'n'")));
  FakeArray text = bytes("u", {"x"});
  text.name = "n";
  EXPECT_THAT(rows({.chunks = {{{numbers({1})}, {text}}}}),
              ElementsAre("1.0", HasSubstr("found type")));
  EXPECT_THAT(rows({.chunks = {{{numbers({1})}}}, .ends = {5}}),
              ElementsAre("1.0", HasSubstr("t.parquet")));
}

TEST_F(ScannedFileTest, WhatTheLibrarySaysIsTold) {
  const Contents good{.chunks = {{{numbers({1})}}}};
  Contents bad = good;
  bad.when_opened = {.says = "no magic bytes"};
  EXPECT_THAT(rows(bad),
              ElementsAre(AllOf(HasSubstr("t.parquet, its footer"),
                                HasSubstr("Arrow reports: no magic bytes"))));
  bad.when_opened = {.says = "it has 0 bytes", .next = "remove it"};
  EXPECT_THAT(
      rows(bad, {}, "t.arrow"),
      ElementsAre(AllOf(HasSubstr("it has 0 bytes"), HasSubstr("remove it"))));
  bad = good;
  bad.when_read = {.says = "a page is broken"};
  EXPECT_THAT(rows(bad, {}, "t.arrow"),
              ElementsAre(AllOf(HasSubstr("t.arrow, record batch 0"),
                                HasSubstr("Arrow reports: a page is broken"))));
  bad.when_read = {.says = "malloc of size 9 failed", .no_memory = true};
  EXPECT_THAT(rows(bad), ElementsAre(HasSubstr("give the job more memory")));
}

}  // namespace
}  // namespace penstock
