// The conformance suite of sources, over arrays.
#include <cmath>
#include <limits>

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
    folder_.write("number.npy", npy_of("<f8", rows.size(), numbers));
    folder_.write("whole.npy", npy_of("<i8", rows.size(), wholes));
    folder_.write("doc.npy",
                  npy_of("|S" + std::to_string(longest), rows.size(), docs));
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
