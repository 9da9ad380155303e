// The conformance suite of sources over files of HDF5, which libhdf5 writes.
#include "penstock/sources/files/suite_arrays.h"
#include "penstock/sources/files/test_folder.h"
#include "penstock/sources/hdf5/test_writing.h"
#include "tests/conformance/source_abilities_suite.h"

namespace penstock::hdf5 {
namespace {

/// The rows of the suite in some files of a folder.
class Hdf5Fixture : public SourceFixture {
 public:
  Hdf5Fixture(Written how, std::size_t files) : how_(how), files_(files) {}

  void fill(ColumnType, const std::vector<SuiteRow>& rows) override {
    for (std::size_t f = 0; f < files_; ++f) {
      const std::size_t from = rows.size() * f / files_;
      const std::size_t to = rows.size() * (f + 1) / files_;
      std::vector<double> numbers;
      std::vector<std::int64_t> wholes;
      std::vector<std::string> docs;
      for (std::size_t at = from; at < to; ++at) {
        numbers.push_back(rows[at].number.value_or(0));
        wholes.push_back(rows[at].whole.value_or(0));
        docs.push_back(rows[at].doc.value_or(""));
      }
      TestFile file(folder_.path("part" + std::to_string(f) + ".h5"));
      file.write("doc", docs, how_);
      file.write("whole", wholes, how_);
      file.write("number", numbers, how_);
    }
  }
  std::unique_ptr<Source> open(
      const std::vector<ColumnRequest>& requests) override {
    return files::open_files(files::section_of("hdf5", folder_.path("")),
                             files::by_path(requests));
  }
  bool grows() const override { return false; }
  bool has_problems() const override { return false; }
  bool has_nulls() const override { return false; }
  std::string name_of(const std::string& column) const override {
    return "/" + column;
  }

 private:
  const Written how_;
  const std::size_t files_;
  files::TestFolder folder_;
};

SourceCase hdf5_case(const char* name, Written how, std::size_t files = 1) {
  return {.name = name,
          .make = [=] { return std::make_unique<Hdf5Fixture>(how, files); },
          .by_position = true};
}

INSTANTIATE_TEST_SUITE_P(
    Hdf5, SourceSuite,
    testing::Values(hdf5_case("contiguous", {}),
                    hdf5_case("chunks", {.chunk = 16}),
                    hdf5_case("deflate", {.chunk = 7, .deflate = 4}),
                    hdf5_case("files", {.chunk = 50, .deflate = 1}, 3)),
    testing::PrintToStringParamName());

}  // namespace
}  // namespace penstock::hdf5
