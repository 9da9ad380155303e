// The conformance suite of sources, over TFRecord files.
#include "penstock/sources/files/test_folder.h"
#include "penstock/sources/tfrecord/test_records.h"
#include "tests/conformance/source_abilities_suite.h"

namespace penstock::tfrecord {
namespace {

class RecordFixture : public SourceFixture {
 public:
  explicit RecordFixture(std::size_t files) : files_(files) {}

  void fill(ColumnType, const std::vector<SuiteRow>& rows) override {
    for (std::size_t f = 0; f < files_; ++f) {
      std::string bytes;
      for (std::size_t at = rows.size() * f / files_;
           at < rows.size() * (f + 1) / files_; ++at) {
        const SuiteRow& row = rows[at];
        std::string entries;
        if (row.number)
          entries += entry("number",
                           floats_feature({static_cast<float>(*row.number)}));
        if (row.whole)
          entries += entry("whole", integers_feature({*row.whole}));
        if (row.doc) entries += entry("doc", bytes_feature({*row.doc}));
        bytes += record(example(entries));
      }
      folder_.write("part" + std::to_string(f) + ".tfrecord", bytes);
    }
  }
  std::unique_ptr<Source> open(
      const std::vector<ColumnRequest>& requests) override {
    Json section = files::section_of("tfrecord", folder_.path(""));
    section["columns"]["number"] = "float64";
    section["schema"] = "union";
    return files::open_files(section, requests);
  }
  bool grows() const override { return false; }
  bool has_problems() const override { return false; }
  bool knows_columns() const override { return false; }

 private:
  const std::size_t files_;
  files::TestFolder folder_;
};

SourceCase record_case(const char* name, std::size_t files) {
  return {.name = name,
          .make = [=] { return std::make_unique<RecordFixture>(files); },
          .by_position = true};
}

INSTANTIATE_TEST_SUITE_P(TfRecord, SourceSuite,
                         testing::Values(record_case("tfrecord", 1),
                                         record_case("tfrecords", 3)),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace penstock::tfrecord
