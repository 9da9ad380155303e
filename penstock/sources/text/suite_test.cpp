// The conformance suite of sources over CSV and JSON lines.
#include "penstock/sources/files/test_folder.h"
#include "tests/conformance/source_abilities_suite.h"

namespace penstock::text {
namespace {

std::string quoted(const std::string& text) {
  std::string cell = "\"";
  for (char c : text)
    cell += c == '"' ? std::string("\"\"") : std::string(1, c);
  return cell + "\"";
}

std::string csv_of(const std::vector<SuiteRow>& rows, std::size_t from,
                   std::size_t to) {
  std::string text = "doc,number,whole\n";
  for (std::size_t at = from; at < to; ++at) {
    const SuiteRow& row = rows[at];
    text += row.doc ? quoted(*row.doc) : "";
    text += "," + (row.number ? std::to_string(*row.number) : "NA");
    text += "," + (row.whole ? std::to_string(*row.whole) : "") + "\r\n";
  }
  return text;
}

std::string jsonl_of(const std::vector<SuiteRow>& rows, std::size_t from,
                     std::size_t to) {
  std::string text;
  for (std::size_t at = from; at < to; ++at) {
    const SuiteRow& row = rows[at];
    Json line(Json::Object{});
    if (row.number) line["number"] = *row.number;
    line["whole"] = row.whole ? Json(*row.whole) : Json();
    if (row.doc) line["doc"] = *row.doc;
    text += line.dump() + "\n";
  }
  return text;
}

/// The rows of the suite in some files of a folder.
class TextFixture : public SourceFixture {
 public:
  TextFixture(std::string kind, std::size_t files)
      : kind_(std::move(kind)), files_(files) {}

  void fill(ColumnType, const std::vector<SuiteRow>& rows) override {
    for (std::size_t f = 0; f < files_; ++f) {
      std::size_t from = rows.size() * f / files_;
      std::size_t to = rows.size() * (f + 1) / files_;
      folder_.write(
          "part" + std::to_string(f) + "." + kind_,
          kind_ == "csv" ? csv_of(rows, from, to) : jsonl_of(rows, from, to));
    }
  }
  std::unique_ptr<Source> open(
      const std::vector<ColumnRequest>& requests) override {
    Json section = files::section_of(kind_, folder_.path(""));
    section["columns"]["number"] = "float64";
    section["columns"]["whole"] = "int64";
    section["columns"]["doc"] = "text";
    return files::open_files(section, requests);
  }
  bool grows() const override { return false; }
  bool has_problems() const override { return false; }

 private:
  const std::string kind_;
  const std::size_t files_;
  files::TestFolder folder_;
};

SourceCase text_case(const char* name, const char* kind, std::size_t files) {
  return {.name = name,
          .make = [=] { return std::make_unique<TextFixture>(kind, files); },
          .by_position = true};
}

INSTANTIATE_TEST_SUITE_P(Text, SourceSuite,
                         testing::Values(text_case("csv", "csv", 1),
                                         text_case("csvs", "csv", 3),
                                         text_case("jsonl", "jsonl", 1),
                                         text_case("jsonls", "jsonl", 3)),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace penstock::text
