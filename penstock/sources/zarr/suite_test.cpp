// The conformance suite of sources, over arrays of Zarr 2 in chunks.
#include <cmath>
#include <limits>

#include "penstock/sources/files/test_folder.h"
#include "tests/conformance/source_abilities_suite.h"

namespace penstock::zarr {
namespace {

constexpr std::size_t kChunk = 23;  // rows

/// The columns of the suite, each an array of a store; an array has no missing
/// values.
class ZarrFixture : public SourceFixture {
 public:
  void fill(ColumnType, const std::vector<SuiteRow>& rows) override {
    std::string numbers, wholes, docs;
    std::size_t longest = 1;
    for (const SuiteRow& row : rows)
      longest = std::max(longest, row.doc.value_or("").size());
    for (const SuiteRow& row : rows) {
      const double number =
          row.number.value_or(std::numeric_limits<double>::quiet_NaN());
      const std::int64_t whole = row.whole.value_or(0);
      numbers.append(reinterpret_cast<const char*>(&number), 8);
      wholes.append(reinterpret_cast<const char*>(&whole), 8);
      std::string doc = row.doc.value_or("");
      doc.resize(longest, '\0');
      docs += doc;
    }
    folder_.write("s.zarr/.zgroup", R"({"zarr_format": 2})");
    write("number", "<f8", 8, rows.size(), numbers);
    write("whole", "<i8", 8, rows.size(), wholes);
    write("doc", "|S" + std::to_string(longest), longest, rows.size(), docs);
  }
  std::unique_ptr<Source> open(
      const std::vector<ColumnRequest>& requests) override {
    std::vector<ColumnRequest> of_paths = requests;
    for (ColumnRequest& request : of_paths)
      if (!request.column.starts_with('/'))
        request.column = "/" + request.column;
    return files::open_files(files::section_of("zarr", folder_.path("s.zarr")),
                             of_paths);
  }
  bool grows() const override { return false; }
  bool has_problems() const override { return false; }
  bool has_nulls() const override { return false; }
  std::string name_of(const std::string& column) const override {
    return "/" + column;
  }

 private:
  void write(const std::string& name, const std::string& dtype,
             std::size_t width, std::size_t rows, std::string values) {
    const std::string folder = "s.zarr/" + name + "/";
    folder_.write(folder + ".zarray",
                  R"({"zarr_format": 2, "shape": [)" + std::to_string(rows) +
                      R"(], "chunks": [)" + std::to_string(kChunk) +
                      R"(], "dtype": ")" + dtype +
                      R"(", "compressor": null, "fill_value": null,)"
                      R"("order": "C", "filters": null})");
    const std::size_t chunks = (rows + kChunk - 1) / kChunk;
    values.resize(chunks * kChunk * width);
    for (std::size_t chunk = 0; chunk < chunks; ++chunk)
      folder_.write(folder + std::to_string(chunk),
                    values.substr(chunk * kChunk * width, kChunk * width));
  }

  files::TestFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Zarr, SourceSuite,
                         testing::Values(SourceCase{
                             .name = "zarr",
                             .make =
                                 [] { return std::make_unique<ZarrFixture>(); },
                             .by_position = true}),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace penstock::zarr
