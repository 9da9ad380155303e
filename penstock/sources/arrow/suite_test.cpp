// The conformance suite of sources over Parquet and Arrow files.
#include "penstock/sources/arrow/test_writing.h"
#include "penstock/sources/files/test_folder.h"
#include "tests/conformance/source_abilities_suite.h"

namespace penstock::arrow_files {
namespace {

std::shared_ptr<arrow::Table> table_from(const std::vector<SuiteRow>& rows,
                                         std::size_t from, std::size_t to) {
  arrow::DoubleBuilder number;
  arrow::Int64Builder whole;
  arrow::StringBuilder doc;
  for (std::size_t at = from; at < to; ++at) {
    const SuiteRow& row = rows[at];
    (void)(row.number ? number.Append(*row.number) : number.AppendNull());
    (void)(row.whole ? whole.Append(*row.whole) : whole.AppendNull());
    (void)(row.doc ? doc.Append(*row.doc) : doc.AppendNull());
  }
  return table_of({arrow::field("doc", arrow::utf8()),
                   arrow::field("whole", arrow::int64()),
                   arrow::field("number", arrow::float64())},
                  doc.Finish().ValueOrDie(), whole.Finish().ValueOrDie(),
                  number.Finish().ValueOrDie());
}

/// The rows of the suite in some files of a folder.
class ArrowFixture : public SourceFixture {
 public:
  ArrowFixture(Written how, std::size_t files) : how_(how), files_(files) {}

  void fill(ColumnType, const std::vector<SuiteRow>& rows) override {
    for (std::size_t f = 0; f < files_; ++f)
      folder_.write("part" + std::to_string(f) + end(),
                    written(table_from(rows, rows.size() * f / files_,
                                       rows.size() * (f + 1) / files_),
                            how_));
  }
  std::unique_ptr<Source> open(
      const std::vector<ColumnRequest>& requests) override {
    return files::open_files(
        files::section_of(parquet() ? "parquet" : "arrow", folder_.path("")),
        requests);
  }
  bool grows() const override { return false; }
  bool has_problems() const override { return false; }

 private:
  bool parquet() const { return how_.as == Written::As::parquet; }
  std::string end() const { return parquet() ? ".parquet" : ".arrow"; }

  const Written how_;
  const std::size_t files_;
  files::TestFolder folder_;
};

SourceCase arrow_case(const char* name, Written how, std::size_t files = 1) {
  return {.name = name,
          .make = [=] { return std::make_unique<ArrowFixture>(how, files); },
          .by_position = true};
}

using As = Written::As;

INSTANTIATE_TEST_SUITE_P(
    Arrow, SourceSuite,
    testing::Values(arrow_case("parquet", {As::parquet, 64}),
                    arrow_case("parquets", {As::parquet, 1000, true}, 3),
                    arrow_case("file", {As::file, 64}),
                    arrow_case("stream", {As::stream, 50, true}),
                    arrow_case("streams", {As::stream, 1000}, 3)),
    testing::PrintToStringParamName());

}  // namespace
}  // namespace penstock::arrow_files
