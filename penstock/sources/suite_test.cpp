// The conformance suite of sources, for all fakes.
#include "penstock/sources/fake/fake_source.h"
#include "penstock/sources/fake/fake_store.h"
#include "tests/conformance/source_abilities_suite.h"

namespace penstock {
namespace {

/// The rows of the suite as a fake table.
class SuiteSource : public SourceFixture {
 public:
  void fill(ColumnType key, const std::vector<SuiteRow>& rows) override {
    table_.key = key;
    table_.schema.columns = {
        {.name = "id", .primary_key = true}, {"number"}, {"whole"}, {"doc"}};
    for (const SuiteRow& row : rows) table_.rows.push_back(cells(row));
  }
  std::unique_ptr<Source> open(
      const std::vector<ColumnRequest>& requests) override {
    auto source = std::make_unique<FakeSource>(table_, requests);
    source_ = source.get();
    return source;
  }
  void add(const SuiteRow& row) override { source_->add_row(cells(row)); }

 private:
  template <class T>
  static FakeCell cell(const std::optional<T>& value) {
    return value ? FakeCell(*value) : FakeCell(nullptr);
  }
  std::vector<FakeCell> cells(const SuiteRow& row) const {
    FakeCell key = row.id;
    if (table_.key != ColumnType::int64) key = row.key;
    return {key, cell(row.number), cell(row.whole), cell(row.doc)};
  }

  FakeTable table_;
  FakeSource* source_ = nullptr;
};

std::unique_ptr<SourceFixture> make_fake() {
  return std::make_unique<SuiteSource>();
}

INSTANTIATE_TEST_SUITE_P(
    Fake, SourceSuite,
    testing::Values(SourceCase{"int64", ColumnType::int64, make_fake},
                    SourceCase{"text", ColumnType::text, make_fake},
                    SourceCase{"uuid", ColumnType::uuid, make_fake}),
    testing::PrintToStringParamName());

/// The rows of the suite as a store of number, whole and doc.
std::unique_ptr<Source> suite_store(const std::vector<SuiteRow>& rows,
                                    const std::vector<ColumnRequest>& requests,
                                    FakeStoreTrouble trouble = {}) {
  Block block;
  block.rows = std::ssize(rows);
  Column number{.type = ColumnType::float64};
  Column whole{.type = ColumnType::int64};
  Column doc{.type = ColumnType::json};
  for (const SuiteRow& row : rows) {
    row.number ? number.append_float64(*row.number) : number.append_null();
    row.whole ? whole.append_int64(*row.whole) : whole.append_null();
    row.doc ? doc.append_text(*row.doc) : doc.append_null();
  }
  block.columns.push_back(std::move(number));
  block.columns.push_back(std::move(whole));
  block.columns.push_back(std::move(doc));
  return std::make_unique<FakeStore>(
      std::vector<std::string>{"number", "whole", "doc"}, std::move(block),
      requests, std::move(trouble));
}

class SuiteStore : public SourceFixture {
 public:
  explicit SuiteStore(FakeStoreTrouble trouble = {}) : trouble_(trouble) {}

  void fill(ColumnType, const std::vector<SuiteRow>& rows) override {
    rows_ = rows;
  }
  std::unique_ptr<Source> open(
      const std::vector<ColumnRequest>& requests) override {
    return suite_store(rows_, requests, trouble_);
  }
  bool grows() const override { return false; }
  bool has_problems() const override { return false; }

 private:
  const FakeStoreTrouble trouble_;
  std::vector<SuiteRow> rows_;
};

SourceCase store_case(const char* name, FakeStoreTrouble trouble) {
  return {.name = name,
          .make = [trouble] { return std::make_unique<SuiteStore>(trouble); },
          .by_position = true};
}

INSTANTIATE_TEST_SUITE_P(
    Store, SourceSuite,
    testing::Values(store_case("chunks", {}),
                    store_case("lock", {.global_lock = true}),
                    store_case("rows",
                               {.chunk_rows = 0, .tells_lengths = false})),
    testing::PrintToStringParamName());

}  // namespace
}  // namespace penstock
