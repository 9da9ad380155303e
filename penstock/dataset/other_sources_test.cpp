// Data sets over sources by position, and over sources made of sources.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/dataset/fake/fake_dataset.h"
#include "penstock/sources/fake/fake_store.h"

namespace penstock {
namespace {

using testing::HasSubstr;

template <class Act>
Error error_of(Act act) {
  try {
    act();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::internal, {.what = "no error"});
}

class OtherSources : public testing::TestWithParam<int> {
 protected:
  OtherSources() {
    options_.fields = parse_fields(
        Json::parse(R"({"value": {"columns": ["value"]}})", "test"), "fields");
    options_.workers = GetParam();
    options_.cache = "ram";
  }
  std::shared_ptr<const TableDataset> prepare(std::unique_ptr<Source> source) {
    return TableDataset::prepare(options_, std::move(source), *device_);
  }
  std::unique_ptr<FakeStore> store(std::int64_t rows,
                                   FakeStoreTrouble trouble = {}) {
    return counting_store(rows, requests_of(options_), std::move(trouble));
  }
  static std::unique_ptr<Source> table(const CountingOptions& table,
                                       std::vector<ColumnRequest> requests) {
    return std::make_unique<FakeSource>(counting_table(table), requests);
  }
  /// What batches of these ids hold.
  std::vector<float> values(const TableDataset& set,
                            const std::vector<SampleId>& ids) {
    TableDataset::RowReader reader(set);
    ParsedBlock rows;
    reader.read(ids, rows);
    const std::size_t row_bytes = set.layout().row_bytes;
    std::vector<std::byte> packed(ids.size() * row_bytes);
    set.encoder().encode(rows, packed.data());
    std::vector<float> out(ids.size());
    for (std::size_t row = 0; row < out.size(); ++row)
      std::memcpy(&out[row], packed.data() + row * row_bytes, sizeof(float));
    return out;
  }

  TableDatasetOptions options_;
  std::unique_ptr<Device> device_ = open_device({.kind = "cpu"});
};

TEST_P(OtherSources, NumberRowsByTheirPosition) {
  auto set = prepare(store(5000));
  ASSERT_EQ(set->rows(), 5000);
  for (std::int64_t id : {0, 1, 4999}) EXPECT_EQ(set->keys().integer(id), id);
  EXPECT_EQ(set->fingerprint(),
            prepare(store(5000, {.chunk_rows = 0}))->fingerprint());
}

TEST_P(OtherSources, AreReadByPositionWhereNothingIsKept) {
  options_.cache = "none";
  auto set = prepare(store(300));
  EXPECT_THAT(values(*set, {17, 299, 17, 0}),
              testing::ElementsAre(17, 299, 17, 0));
}

TEST_P(OtherSources, AreReadByOneReaderUnderAGlobalLock) {
  auto made = store(4000, {.global_lock = true});
  const FakeStore& locked = *made;
  auto set = prepare(std::move(made));
  EXPECT_EQ(set->rows(), 4000);
  EXPECT_EQ(locked.counts().readers_open, 0);
}

TEST_P(OtherSources, EndByTheErrorOfABlockThatIsNotAsPromised) {
  Error error = error_of([&] {
    prepare(store(3000, {.spoil = [](Block& block) {
                    if (block.rows > 10) --block.columns[0].length;
                  }}));
  });
  EXPECT_EQ(error.parts().code, "source.wrong_rows");
  EXPECT_EQ(error.kind(), ErrorKind::source);
}

TEST_P(OtherSources, WithoutKeysAndPositionsAreRefused) {
  class Neither : public Source {
   public:
    Neither() : Source({.shown = "a stream", .types = {ColumnType::float64}}) {}
    RowCount count() const override { return {}; }
    std::unique_ptr<Reader> open_reader() override { return nullptr; }
  };
  Error error = error_of([&] { prepare(std::make_unique<Neither>()); });
  EXPECT_EQ(error.parts().code, "source.no_key");
  EXPECT_THAT(error.parts().what, HasSubstr("a stream"));
}

TEST_P(OtherSources, JoinedOnesLeaveOutOrRefuseRowsThatOneOfThemLacks) {
  options_.fields = fake_fields();
  auto join = [&] {
    return joined(table({.rows = 90}, {{"items", ReadAs::json}}),
                  table({.rows = 80, .scrambled = true}, {{"value"}}));
  };
  Error error = error_of([&] { prepare(join()); });
  EXPECT_EQ(error.parts().code, "data.bad_rows");
  EXPECT_THAT(error.parts().why,
              HasSubstr("row 800, column 'value': has no row with key 800"));
  options_.source.skip_bad = true;
  auto set = prepare(join());
  EXPECT_EQ(set->rows(), 80);
  EXPECT_EQ(set->facts().scan->quarantine.size(), 10u);
  FakeDataset plain;
  plain.table.rows = 80;
  EXPECT_EQ(set->fingerprint(), plain.prepare(*device_)->fingerprint());
}

TEST_P(OtherSources, ConcatenatedOnesAreOneUnlessAKeyComesTwice) {
  auto both = [&](std::int64_t first_rows) {
    FakeTable last = counting_table({.rows = 100});
    last.rows.erase(last.rows.begin(), last.rows.begin() + 40);
    std::vector<std::unique_ptr<Source>> sources;
    sources.push_back(
        std::make_unique<FakeSource>(last, requests_of(options_)));
    sources.push_back(table({.rows = first_rows}, requests_of(options_)));
    return concatenated(std::move(sources));
  };
  auto set = prepare(both(40));
  EXPECT_EQ(
      set->fingerprint(),
      prepare(table({.rows = 100}, requests_of(options_)))->fingerprint());
  Error error = error_of([&] { prepare(both(41)); });
  EXPECT_EQ(error.parts().code, "source.duplicate_key");
  EXPECT_THAT(error.parts().where, HasSubstr("a fake table + a fake table"));
}

INSTANTIATE_TEST_SUITE_P(Workers, OtherSources, testing::Values(0, 1, 2, 8));

}  // namespace
}  // namespace penstock
