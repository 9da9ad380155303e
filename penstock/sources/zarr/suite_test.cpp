// The conformance suite of sources, over arrays of Zarr 2 in chunks.
#include "penstock/sources/files/suite_arrays.h"
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
    const files::SuiteArrays of(rows);
    folder_.write("s.zarr/.zgroup", R"({"zarr_format": 2})");
    write("number", "<f8", 8, rows.size(), of.numbers);
    write("whole", "<i8", 8, rows.size(), of.wholes);
    write("doc", "|S" + std::to_string(of.width), of.width, rows.size(),
          of.docs);
  }
  std::unique_ptr<Source> open(
      const std::vector<ColumnRequest>& requests) override {
    return files::open_files(files::section_of("zarr", folder_.path("s.zarr")),
                             files::by_path(requests));
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
