// The conformance suite of sources, for all fakes and for the sources that are
// made of them.
#include <algorithm>

#include "penstock/sources/fake/fake_source.h"
#include "penstock/sources/fake/fake_store.h"
#include "penstock/sources/memory/table_fixture.h"
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

/// The suite's rows in two sources, which differ in size.
template <class Part>
class ConcatenatedFixture : public SourceFixture {
 public:
  void fill(ColumnType key, const std::vector<SuiteRow>& rows) override {
    auto middle = rows.begin() + std::ssize(rows) / 3;
    first_.fill(key, {rows.begin(), middle});
    last_.fill(key, {middle, rows.end()});
  }
  std::unique_ptr<Source> open(
      const std::vector<ColumnRequest>& requests) override {
    std::vector<std::unique_ptr<Source>> sources;
    sources.push_back(first_.open(requests));
    sources.push_back(last_.open(requests));
    return concatenated(std::move(sources));
  }
  void add(const SuiteRow& row) override { last_.add(row); }
  bool grows() const override { return last_.grows(); }
  bool has_problems() const override { return last_.has_problems(); }

 private:
  Part first_, last_;
};

std::unique_ptr<SourceFixture> make_concatenated() {
  return std::make_unique<ConcatenatedFixture<SuiteSource>>();
}
std::unique_ptr<SourceFixture> make_concatenated_stores() {
  return std::make_unique<ConcatenatedFixture<SuiteStore>>();
}

INSTANTIATE_TEST_SUITE_P(
    Concatenated, SourceSuite,
    testing::Values(SourceCase{"int64", ColumnType::int64, make_concatenated},
                    SourceCase{"text", ColumnType::text, make_concatenated},
                    SourceCase{"positions", ColumnType::int64,
                               make_concatenated_stores, true}),
    testing::PrintToStringParamName());

/// The suite's columns in two sources: `doc` and `whole` in the right one.
template <class Part>
class JoinedFixture : public SourceFixture {
 public:
  void fill(ColumnType key, const std::vector<SuiteRow>& rows) override {
    left_.fill(key, rows);
    // In another order, where keys tell rows apart.
    std::vector<SuiteRow> others = rows;
    if (left_.grows()) std::reverse(others.begin(), others.end());
    right_.fill(key, others);
  }
  std::unique_ptr<Source> open(
      const std::vector<ColumnRequest>& requests) override {
    std::vector<ColumnRequest> of_left, of_right;
    std::vector<JoinedColumn> columns;
    for (const ColumnRequest& request : requests) {
      bool right = request.column == "doc" || request.column == "whole";
      std::vector<ColumnRequest>& own = right ? of_right : of_left;
      columns.push_back({right, own.size()});
      own.push_back(request);
    }
    return joined(left_.open(of_left), right_.open(of_right), columns);
  }
  void add(const SuiteRow& row) override {
    right_.add(row);
    left_.add(row);
  }
  bool grows() const override { return left_.grows(); }
  bool has_problems() const override { return left_.has_problems(); }

 private:
  Part left_, right_;
};

std::unique_ptr<SourceFixture> make_joined() {
  return std::make_unique<JoinedFixture<SuiteSource>>();
}
std::unique_ptr<SourceFixture> make_joined_stores() {
  return std::make_unique<JoinedFixture<SuiteStore>>();
}

INSTANTIATE_TEST_SUITE_P(
    Joined, SourceSuite,
    testing::Values(SourceCase{"int64", ColumnType::int64, make_joined},
                    SourceCase{"text", ColumnType::text, make_joined},
                    SourceCase{"uuid", ColumnType::uuid, make_joined},
                    SourceCase{"positions", ColumnType::int64,
                               make_joined_stores, true}),
    testing::PrintToStringParamName());

INSTANTIATE_TEST_SUITE_P(
    Table, SourceSuite,
    testing::Values(SourceCase{
        .name = "table",
        .make = [] { return std::make_unique<TableFixture>(); },
        .by_position = true}),
    testing::PrintToStringParamName());

}  // namespace
}  // namespace penstock
