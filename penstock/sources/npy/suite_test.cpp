// The conformance suite of sources, over arrays.
#include "penstock/sources/files/suite_arrays.h"
#include "penstock/sources/files/test_folder.h"
#include "tests/conformance/source_abilities_suite.h"

namespace penstock::npy {
namespace {

std::string npy_of(const std::string& descr, std::size_t rows,
                   const std::string& values) {
  std::string header = "{'descr': '" + descr +
                       "', 'fortran_order': False, 'shape': (" +
                       std::to_string(rows) + ",), }";
  header.resize((10 + header.size() + 64) / 64 * 64 - 10, ' ');
  header.back() = '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() % 256);
  bytes += static_cast<char>(header.size() / 256);
  return bytes + header + values;
}

/// The columns of the suite, each a file; an array has no missing values.
class NpyFixture : public SourceFixture {
 public:
  void fill(ColumnType, const std::vector<SuiteRow>& rows) override {
    const files::SuiteArrays of(rows);
    folder_.write("number.npy", npy_of("<f8", rows.size(), of.numbers));
    folder_.write("whole.npy", npy_of("<i8", rows.size(), of.wholes));
    folder_.write("doc.npy", npy_of("|S" + std::to_string(of.width),
                                    rows.size(), of.docs));
  }
  std::unique_ptr<Source> open(
      const std::vector<ColumnRequest>& requests) override {
    Json section = files::section_of("npy", folder_.path(""));
    for (const char* column : {"number", "whole", "doc"})
      section["arrays"][column] = std::string(column) + ".npy";
    return files::open_files(section, requests);
  }
  bool grows() const override { return false; }
  bool has_problems() const override { return false; }
  bool has_nulls() const override { return false; }

 private:
  files::TestFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Npy, SourceSuite,
                         testing::Values(SourceCase{
                             .name = "npy",
                             .make =
                                 [] { return std::make_unique<NpyFixture>(); },
                             .by_position = true}),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace penstock::npy
