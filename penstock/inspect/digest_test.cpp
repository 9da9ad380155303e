#include "penstock/inspect/digest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "penstock/demo/fake/positions_run.h"

namespace penstock {
namespace {

std::vector<Json> lines(const Job& job, const BatchQuery& query) {
  std::vector<Json> all;
  look_at_batches(job, query, [&](const Json& line) { all.push_back(line); });
  return all;
}

TEST(LookAtBatches, IsTheSameForAllWorkersTiersAndDevices) {
  PositionsRun positions;
  BatchQuery query{.epoch = 2, .first_step = 3, .end_step = 6};
  std::vector<Json> expected = lines(positions.job(), query);
  ASSERT_EQ(expected.size(), 3u);
  for (const char* device : {"cpu", R"({"kind": "sim"})"})
    for (const char* cache : {"device", "ram", "none"})
      for (const char* workers : {"0", "1", "2", "8"})
        EXPECT_EQ(
            lines(positions.job({std::string("device=") + device,
                                 std::string("loader.cache=") + cache,
                                 std::string("loader.workers=") + workers}),
                  query),
            expected)
            << device << cache << workers;
  EXPECT_EQ(lines(positions.job({"loader.read=per_sample"}), query), expected);
}

TEST(LookAtBatches, StopsAtTheEndOfTheEpoch) {
  PositionsRun positions;
  EXPECT_LT(lines(positions.job(), {.end_step = 1000}).size(), 20u);
  EXPECT_TRUE(
      lines(positions.job(), {.first_step = 900, .end_step = 1000}).empty());
}

TEST(LookAtBatches, ShowsTheValidationSideInOrder) {
  PositionsRun positions;
  std::vector<Json> val =
      lines(positions.job(), {.side = Side::val, .end_step = 100});
  std::int64_t before = 0;
  for (const Json& line : val)
    for (const Json& key : line.find("keys")->array()) {
      EXPECT_GT(key.integer(), before);
      before = key.integer();
    }
}

TEST(LookAtBatches, WritesWhatItDigests) {
  PositionsRun positions;
  std::string out = positions.path("out");
  std::vector<Json> seen =
      lines(positions.job({"loader.tail=pad"}), {.end_step = 2, .out = out});
  std::string file =
      real_files().read(out + "/epoch-000000-step-000000001.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  Json header = Json::parse(file.substr(8, length), "header");
  EXPECT_EQ(header.object().size(), 4u) << "two fields, a mask, the weight";
  EXPECT_EQ(header.object().back().first, "weight");
  EXPECT_EQ(header.find("receivers")->find("shape")->dump(), "[32, 8, 4]");
  Sha256 digest;
  digest.add(std::string_view(file).substr(8 + length));
  EXPECT_EQ(digest.hex(), seen[1].find("bytes_digest")->string());
}

// The golden rows: the digests were made by another implementation.
TEST(GoldenRows, GiveTheKnownDigests) {
  std::string data = PENSTOCK_TEST_DATA "/j1/";
  Json golden = Json::parse(real_files().read(data + "golden.json"), "golden");
  int compared = 0;
  for (const auto& [name, job] : golden.object()) {
    const Json* first = job.find("first_batch_unshuffled");
    if (first == nullptr) continue;
    Json document;
    document["source"] = *job.find("source");
    document["source"]["kind"] = "sqlite";
    document["source"]["path"] = data + "golden.sqlite";
    document["split"] = *job.find("split");
    document["fields"] = *job.find("fields");
    document["loader"]["shuffle"] = false;
    document["loader"]["batch_size"] = *first->find("batch_size");
    document["device"] = "cpu";
    std::vector<Json> seen = lines(parse_job(document), {});
    ASSERT_EQ(seen.size(), 1u);
    EXPECT_EQ(seen[0].find("order_digest")->string(),
              first->find("order_digest")->string());
    EXPECT_EQ(seen[0].find("bytes_digest")->string(),
              first->find("bytes_digest")->string())
        << name;
    ++compared;
  }
  EXPECT_EQ(compared, 2);
}

}  // namespace
}  // namespace penstock
