#pragma once

#include <algorithm>

#include "penstock/sources/memory/fake_stream.h"
#include "penstock/sources/memory/table_source.h"
#include "tests/conformance/source_abilities_suite.h"

namespace penstock {

/// The columns of the suite of sources in record batches of 23 rows, each with
/// a value before its first row, which the offset leaves out.
class TableFixture : public SourceFixture {
 public:
  void fill(ColumnType, const std::vector<SuiteRow>& rows) override {
    std::vector<std::vector<FakeArray>> batches;
    for (std::size_t at = 0; at == 0 || at < rows.size(); at += kRows)
      batches.push_back(batch_of(
          std::span(rows).subspan(at, std::min(kRows, rows.size() - at))));
    made_ = std::make_unique<FakeStream>(std::move(batches));
    ArrowArrayStream stream = made_->stream();
    table_ = ArrowTable::read(stream);
  }
  std::unique_ptr<Source> open(
      const std::vector<ColumnRequest>& requests) override {
    return open_arrow_table(table_, {.shown = "Table", .digest = "d"},
                            requests);
  }
  bool grows() const override { return false; }
  bool has_problems() const override { return false; }

 private:
  static constexpr std::size_t kRows = 23;

  static std::vector<FakeArray> batch_of(std::span<const SuiteRow> rows) {
    std::vector<double> number{-1};
    std::vector<std::int64_t> whole{-1}, ends{0, 1};
    std::string docs = "?";
    Validity has_number, has_whole, has_doc;
    for (const SuiteRow& row : rows) {
      number.push_back(row.number.value_or(0));
      whole.push_back(row.whole.value_or(0));
      docs += row.doc.value_or("");
      ends.push_back(static_cast<std::int64_t>(docs.size()));
      has_number.add(row.number.has_value());
      has_whole.add(row.whole.has_value());
      has_doc.add(row.doc.has_value());
    }
    auto column = [&](const char* format, const char* name,
                      const Validity& validity) {
      return FakeArray{.format = format,
                       .name = name,
                       .length = std::ssize(rows),
                       .offset = 1,
                       .nulls = validity.nulls,
                       .buffers = {validity.bits}};
    };
    std::vector<FakeArray> columns = {column("g", "number", has_number),
                                      column("l", "whole", has_whole),
                                      column("U", "doc", has_doc)};
    columns[0].buffers.push_back(FakeArray::of(number));
    columns[1].buffers.push_back(FakeArray::of(whole));
    columns[2].buffers.push_back(FakeArray::of(ends));
    columns[2].buffers.push_back(FakeArray::of(docs));
    return columns;
  }

  struct Validity {
    void add(bool valid) {
      const std::size_t bit = ++count % 8;
      if (count / 8 == bits.size()) bits.emplace_back();
      if (valid) bits.back() |= std::byte{1} << bit;
      nulls += !valid;
    }
    std::size_t count = 0;
    std::int64_t nulls = 0;
    std::vector<std::byte> bits{1};  // of the value before the first row
  };

  std::unique_ptr<FakeStream> made_;
  std::shared_ptr<const ArrowTable> table_;
};

}  // namespace penstock
