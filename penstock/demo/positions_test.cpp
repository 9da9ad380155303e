#include "penstock/demo/positions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "penstock/base/base.h"
#include "penstock/demo/fake/positions_run.h"
#include "penstock/inspect/inspect.h"
#include "penstock/session/session.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

struct Row {
  std::int64_t id;
  std::string recorded_at, session, receivers;
  double tx_lat, tx_lon;
  friend bool operator==(const Row&, const Row&) = default;
};

std::vector<Row> rows_of(std::uint64_t seed, std::int64_t rows,
                         std::int64_t block_rows = 100) {
  PositionsDemo demo(seed, rows);
  std::vector<Row> all;
  Block block;
  while (demo.next(block_rows, block)) {
    EXPECT_LE(block.rows, block_rows);
    for (std::int64_t i = 0; i < block.rows; ++i)
      all.push_back({block.columns[0].int64(i),
                     std::string(block.columns[1].text(i)),
                     std::string(block.columns[2].text(i)),
                     std::string(block.columns[3].text(i)),
                     block.columns[4].float64(i), block.columns[5].float64(i)});
  }
  return all;
}

std::map<std::string, std::vector<Row>> sessions_of(std::uint64_t seed,
                                                    std::int64_t rows) {
  std::map<std::string, std::vector<Row>> sessions;
  for (Row& row : rows_of(seed, rows))
    sessions[row.session].push_back(std::move(row));
  return sessions;
}

Json::Array receivers_of(const Row& row) {
  return Json::parse(row.receivers, "row " + std::to_string(row.id)).array();
}

// Spherical law of cosines: another formula than the one that made the data.
double distance_km(const Row& row, const Json& receiver) {
  constexpr double kRadian = M_PI / 180;
  double lat = receiver.find("lat")->number() * kRadian;
  double lon = receiver.find("lon")->number() * kRadian;
  return 6371.0088 * std::acos(std::sin(lat) * std::sin(row.tx_lat * kRadian) +
                               std::cos(lat) * std::cos(row.tx_lat * kRadian) *
                                   std::cos(lon - row.tx_lon * kRadian));
}

struct Spread {
  double n = 0, sum = 0, squares = 0;
  void add(double value) {
    ++n;
    sum += value;
    squares += value * value;
  }
  double mean() const { return sum / n; }
  double deviation() const { return std::sqrt(squares / n - mean() * mean()); }
};

TEST(PositionsDemo, NumbersItsRowsFromOne) {
  std::vector<Row> rows = rows_of(1, 500);
  ASSERT_EQ(rows.size(), 500u);
  for (std::size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(rows[i].id, static_cast<std::int64_t>(i) + 1);
}

TEST(PositionsDemo, MakesTheSameRowsAgainHoweverTheyAreCut) {
  std::vector<Row> rows = rows_of(3, 700, 64);
  EXPECT_EQ(rows_of(3, 700, 64), rows);
  EXPECT_EQ(rows_of(3, 700, 1), rows);
  EXPECT_EQ(rows_of(3, 700, 1000), rows);
  EXPECT_NE(rows_of(4, 700, 64), rows);
}

TEST(PositionsDemo, BeginsWithTheRowsOfAShorterOne) {
  std::vector<Row> longest = rows_of(5, 400);
  for (std::int64_t rows = 300; rows < 340; ++rows) {
    std::vector<Row> shorter = rows_of(5, rows);
    for (std::size_t i = 0; i + 11 < shorter.size(); ++i)
      ASSERT_EQ(shorter[i], longest[i]) << "row " << i << " of " << rows;
  }
}

TEST(PositionsDemo, HasSessionsOfThreeToNineRowsFromOnePlace) {
  std::map<std::int64_t, int> sizes;
  for (const auto& [name, rows] : sessions_of(2, 3000)) {
    ++sizes[std::ssize(rows)];
    for (const Row& row : rows) {
      EXPECT_EQ(row.tx_lat, rows[0].tx_lat);
      EXPECT_EQ(row.tx_lon, rows[0].tx_lon);
    }
  }
  EXPECT_EQ(sizes.begin()->first, 3);
  EXPECT_EQ(sizes.rbegin()->first, 9);
  EXPECT_EQ(sizes.size(), 7u) << "every size from 3 to 9 occurs";
}

TEST(PositionsDemo, LeavesNoShortSessionAtTheEnd) {
  for (std::int64_t rows = 3; rows < 120; ++rows)
    for (const auto& [name, session] : sessions_of(7, rows)) {
      EXPECT_GE(session.size(), 3u) << name << " of " << rows;
      EXPECT_LE(session.size(), 9u) << name << " of " << rows;
    }
  EXPECT_EQ(sessions_of(7, 2).size(), 1u) << "two rows are one session";
}

TEST(PositionsDemo, StampsRowsInOrderToTheMillisecond) {
  std::string last;
  for (const Row& row : rows_of(1, 300)) {
    EXPECT_THAT(row.recorded_at,
                MatchesRegex("2026-01-..T..:..:..[.][0-9][0-9][0-9]Z"));
    EXPECT_LT(last, row.recorded_at);
    last = row.recorded_at;
  }
}

TEST(PositionsDemo, ListsThreeToTenReceiversThatHearSomething) {
  std::set<std::size_t> counts;
  for (const Row& row : rows_of(1, 2000)) {
    Json::Array receivers = receivers_of(row);
    counts.insert(receivers.size());
    std::set<std::string> names;
    for (const Json& receiver : receivers) {
      EXPECT_GE(receiver.find("snr_db")->number(), 3.0);
      EXPECT_TRUE(names.insert(receiver.find("station")->string()).second);
    }
  }
  EXPECT_EQ(*counts.begin(), 3u);
  EXPECT_EQ(*counts.rbegin(), 10u);
}

TEST(PositionsDemo, HasFortyStationsThatStayWhereTheyAre) {
  std::map<std::string, std::pair<double, double>> places;
  for (const Row& row : rows_of(1, 4000))
    for (const Json& receiver : receivers_of(row)) {
      std::pair place{receiver.find("lat")->number(),
                      receiver.find("lon")->number()};
      auto known =
          places.try_emplace(receiver.find("station")->string(), place);
      EXPECT_EQ(known.first->second, place);
    }
  EXPECT_EQ(std::ssize(places), PositionsDemo::kStations);
}

TEST(PositionsDemo, KeepsToTheMap) {
  auto on_the_map = [](double lat, double lon) {
    return std::abs(lat - 45.5) < 1.35 && std::abs(lon - 9.5) < 1.93;
  };
  for (const Row& row : rows_of(6, 2000)) {
    EXPECT_TRUE(on_the_map(row.tx_lat, row.tx_lon));
    for (const Json& receiver : receivers_of(row))
      EXPECT_TRUE(on_the_map(receiver.find("lat")->number(),
                             receiver.find("lon")->number()));
  }
}

// Within 15 km no station falls below 3 dB, so that nothing is selected: what
// is left after the path loss is shadowing and noise.
TEST(PositionsDemo, LosesSignalByTheLawOfDistanceAndShadowing) {
  Spread shadowing;
  Spread noise;
  for (std::uint64_t seed = 0; seed < 8; ++seed)
    for (const auto& [name, rows] : sessions_of(seed, 4000)) {
      std::map<std::string, Spread> stations;
      for (const Row& row : rows)
        for (const Json& receiver : receivers_of(row)) {
          double km = distance_km(row, receiver);
          if (km < 0.1 || km > 15) continue;
          stations[receiver.find("station")->string()].add(
              receiver.find("snr_db")->number() - 57.5 + 30 * std::log10(km));
        }
      for (const auto& [station, offsets] : stations) {
        if (offsets.n < 3) continue;
        double n = offsets.n;
        shadowing.add(offsets.mean());
        noise.add(offsets.deviation() * offsets.deviation() * n / (n - 1));
      }
    }
  EXPECT_GT(shadowing.n, 1000);
  EXPECT_NEAR(shadowing.mean(), 0, 0.4);
  EXPECT_NEAR(shadowing.deviation(), std::sqrt(16 + 2.25 / 5.5), 0.3);
  EXPECT_NEAR(std::sqrt(noise.mean()), 1.5, 0.06);
}

TEST(PositionsDemo, SometimesLosesAKeyOrItsValue) {
  std::map<std::string, int> nulls;
  std::map<std::string, int> missing;
  int receivers = 0;
  for (const Row& row : rows_of(1, 3000))
    for (const Json& receiver : receivers_of(row)) {
      ++receivers;
      for (const char* key : {"station", "lat", "lon", "alt_m", "snr_db",
                              "freq_offset_hz", "signal_present"}) {
        const Json* value = receiver.find(key);
        if (value == nullptr) ++missing[key];
        if (value != nullptr && value->is_null()) ++nulls[key];
      }
    }
  for (const char* key : {"alt_m", "freq_offset_hz", "signal_present"}) {
    EXPECT_NEAR(nulls[key], 0.01 * receivers, 60) << key;
    EXPECT_NEAR(missing[key], 0.01 * receivers, 60) << key;
  }
  for (const char* key : {"station", "lat", "lon", "snr_db"})
    EXPECT_EQ(nulls[key] + missing[key], 0) << key;
}

TEST(PositionsDemo, MissesStationsByChance) {
  // Within 15 km everything is audible, and rarely among more than ten.
  double listed = 0;
  double expected = 0;
  for (const auto& [name, rows] : sessions_of(1, 20000)) {
    std::set<std::string> near;
    for (const Row& row : rows)
      for (const Json& receiver : receivers_of(row))
        if (distance_km(row, receiver) < 15)
          near.insert(receiver.find("station")->string());
    expected += static_cast<double>(near.size() * rows.size());
    for (const Row& row : rows)
      for (const Json& receiver : receivers_of(row))
        listed += near.count(receiver.find("station")->string()) != 0 ? 1 : 0;
  }
  EXPECT_NEAR(listed / expected, 0.91, 0.02);
}

TEST(PositionsDemo, HasRowsOfAboutAKilobyte) {
  double bytes = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    for (const Row& row : rows_of(seed, 1000))
      bytes += static_cast<double>(row.receivers.size());
  EXPECT_GT(bytes / 10000, 900);
  EXPECT_LT(bytes / 10000, 1024);
}

// Figures that are quoted somewhere were measured on these very rows.
TEST(PositionsDemo, IsTheOneThatFiguresWereMeasuredOn) {
  Sha256 hash;
  for (const Row& row : rows_of(17, 100)) {
    hash.add(row.recorded_at);
    hash.add(row.session);
    hash.add(row.receivers);
    hash.add(std::as_bytes(std::span(&row.tx_lat, 1)));
    hash.add(std::as_bytes(std::span(&row.tx_lon, 1)));
  }
  EXPECT_EQ(hash.hex(),
            "7183d13d749eac3f9a0fb97a6a6ecbb8214147fb509f4528776501ca0bea1b54");
}

class PositionsTable : public testing::Test {
 protected:
  PositionsTable()
      : path_(std::filesystem::temp_directory_path() /
              ("penstock_demo_" + std::to_string(getpid()) + ".sqlite")) {
    std::filesystem::remove(path_);
  }
  ~PositionsTable() override { std::filesystem::remove(path_); }

  DemoOptions options(std::int64_t rows) const {
    return {.rows = rows,
            .seed = 4,
            .to = {.kind = "sqlite", .path = path_.string()}};
  }

  std::vector<Row> read() const {
    SourceSpec spec{
        .kind = "sqlite", .path = path_.string(), .table = "measurements"};
    std::unique_ptr<Source> source =
        open_source(spec, {{"recorded_at", ReadAs::value},
                           {"session", ReadAs::value},
                           {"receivers", ReadAs::json},
                           {"tx_lat", ReadAs::number},
                           {"tx_lon", ReadAs::number}});
    std::vector<Row> rows;
    std::vector<Partition> parts = source->partitions(1);
    for (const Partition& part : parts)
      source->open_reader()->scan(
          part, {.rows = 256}, [&](KeyList& keys, Block& block) {
            for (std::int64_t i = 0; i < block.rows; ++i)
              rows.push_back(
                  {keys.integer(i), "", std::string(block.columns[1].text(i)),
                   std::string(block.columns[2].text(i)),
                   block.columns[3].float64(i), block.columns[4].float64(i)});
            return true;
          });
    return rows;
  }

  std::filesystem::path path_;
};

TEST_F(PositionsTable, HoldsEveryRowAsItWasMade) {
  EXPECT_EQ(write_positions_demo(options(2500)), 2500);
  std::vector<Row> made = rows_of(4, 2500);
  for (Row& row : made) row.recorded_at = "";
  EXPECT_EQ(read(), made);
}

TEST_F(PositionsTable, DeclaresItsColumns) {
  DemoOptions chosen = options(10);
  chosen.json_type = "json";
  write_positions_demo(chosen);
  SourceSpec spec{
      .kind = "sqlite", .path = path_.string(), .table = "measurements"};
  Schema schema = read_schema(spec);
  std::vector<std::string> names;
  for (const ColumnInfo& column : schema.columns) names.push_back(column.name);
  EXPECT_THAT(names, testing::ElementsAre("id", "recorded_at", "session",
                                          "receivers", "tx_lat", "tx_lon"));
  EXPECT_TRUE(schema.find("id")->primary_key);
  EXPECT_TRUE(schema.find("recorded_at")->timestamp);
  EXPECT_EQ(schema.find("receivers")->declared, "json");
}

TEST_F(PositionsTable, IsNotReplacedUnlessAsked) {
  write_positions_demo(options(10));
  try {
    write_positions_demo(options(20));
    FAIL() << "there is such a table";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_THAT(error.what(), HasSubstr("measurements"));
  }
  EXPECT_EQ(read().size(), 10u);
  DemoOptions again = options(20);
  again.replace = true;
  EXPECT_EQ(write_positions_demo(again), 20);
  EXPECT_EQ(read().size(), 20u);
}

TEST_F(PositionsTable, RefusesWhatCannotBeMade) {
  auto error_of = [](const DemoOptions& chosen) -> std::string {
    try {
      write_positions_demo(chosen);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::request);
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(error_of(options(0)), HasSubstr("at least one row"));
  DemoOptions chosen = options(10);
  chosen.json_type = "xml";
  EXPECT_THAT(error_of(chosen), HasSubstr("jsonb, json, text"));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(PositionsTable, TellsHowFarItIs) {
  DemoOptions chosen = options(2500);
  std::vector<std::string> lines;
  chosen.quiet_s = 0;
  chosen.progress = [&](const std::string& line) { lines.push_back(line); };
  write_positions_demo(chosen);
  ASSERT_FALSE(lines.empty());
  EXPECT_THAT(lines[0],
              MatchesRegex("wrote 1024 of 2500 rows [[]00:0.<00:0.[]]"));
  lines.clear();
  chosen.quiet_s = 1000;
  chosen.replace = true;
  write_positions_demo(chosen);
  EXPECT_TRUE(lines.empty());
}

TEST_F(PositionsTable, IsAsItWasWhenTheWritingIsStopped) {
  std::atomic<bool> stop{false};
  DemoOptions chosen = options(5000);
  chosen.quiet_s = 0;
  chosen.progress = [&](const std::string&) { stop = true; };
  chosen.stop = &stop;
  EXPECT_EQ(write_positions_demo(chosen), 0);
  EXPECT_FALSE(std::filesystem::exists(path_));
  write_positions_demo(options(10));
  chosen.replace = true;
  stop = false;
  EXPECT_EQ(write_positions_demo(chosen), 0);
  EXPECT_TRUE(stop);
  EXPECT_FALSE(std::filesystem::exists(path_.string() + "-journal"));
  EXPECT_EQ(read().size(), 10u);
}

/// The demo's rows in a PostgreSQL table of their own and in a SQLite file;
/// skipped without a server (see tools/with_postgres).
class PositionsInPostgres : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const char* uri = std::getenv("PENSTOCK_TEST_POSTGRES");
    const char* required = std::getenv("PENSTOCK_REQUIRE_POSTGRES");
    if (uri == nullptr && required != nullptr && required[0] == '1')
      FAIL() << "there is no server: run this through tools/with_postgres";
    if (uri == nullptr)
      GTEST_SKIP() << "no server: run this through tools/with_postgres";
    uri_ = uri;
    write_positions_demo(
        {.rows = kRows,
         .to = {.kind = "postgres", .uri = uri_, .table = table_},
         .json_type = GetParam(),
         .replace = true});
  }

  static std::vector<std::string> batches(const Job& job) {
    std::vector<std::string> lines;
    look_at_batches(job, {.epoch = 2, .end_step = 5},
                    [&](const Json& line) { lines.push_back(line.dump()); });
    return lines;
  }
  static std::string fingerprint(const Job& job) {
    std::unique_ptr<Device> device = open_device(job.device);
    return TableDataset::prepare(dataset_options(job, device->memory_kind()),
                                 *device)
        ->fingerprint();
  }
  Job job(int connections, const std::string& cache) const {
    Json source;
    source["kind"] = "postgres";
    source["uri"] = uri_;
    source["table"] = table_;
    source["connections"] = connections;
    return file_.job(
        {"source=" + source.dump(), "loader.cache=" + cache, kWhen});
  }
  Job in_file() const { return file_.job({kWhen}); }

  static constexpr const char* kWhen =
      R"(fields.when={"columns": ["recorded_at"], "dtype": "float64"})";
  static constexpr std::int64_t kRows = 5000;  // enough to be cut in two
  PositionsRun file_{kRows};
  std::string uri_;
  std::string table_ =
      "demo_" + std::string(GetParam()) + std::to_string(::getpid());
};

TEST_P(PositionsInPostgres, GiveTheBatchesThatTheyGiveInSqlite) {
  std::vector<std::string> expected = batches(in_file());
  ASSERT_EQ(expected.size(), 5u);
  EXPECT_EQ(fingerprint(job(2, "ram")), fingerprint(in_file()));
  for (int connections : {1, 2, 4})
    for (const char* cache : {"none", "ram", "device"})
      EXPECT_EQ(batches(job(connections, cache)), expected)
          << connections << " connections, cache " << cache;
}

TEST_P(PositionsInPostgres, AreAsTheyWereWhenTheWritingIsStopped) {
  std::atomic<bool> stop{false};
  EXPECT_EQ(write_positions_demo(
                {.rows = 2 * kRows,
                 .to = {.kind = "postgres", .uri = uri_, .table = table_},
                 .json_type = GetParam(),
                 .replace = true,
                 .progress = [&](const std::string&) { stop = true; },
                 .quiet_s = 0,
                 .stop = &stop}),
            0);
  EXPECT_TRUE(stop);
  EXPECT_EQ(batches(job(1, "ram")), batches(in_file()));
}

INSTANTIATE_TEST_SUITE_P(JsonTypes, PositionsInPostgres,
                         testing::Values("json", "jsonb", "text"));

}  // namespace
}  // namespace penstock
