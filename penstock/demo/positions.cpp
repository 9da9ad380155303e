#include "penstock/demo/positions.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numbers>

#include "penstock/base/base.h"
#include "penstock/monitor/monitor.h"

namespace penstock {
namespace {

// The map lies around Milan. cos(45.5 deg) is written out: a library's last
// bit must not change the data.
constexpr double kMapKm = 300.0;
constexpr double kCentreLat = 45.5;
constexpr double kCentreLon = 9.5;
constexpr double kKmPerDegree = 111.19508;
constexpr double kCosCentre = 0.7009092643;
constexpr double kEarthKm = 6371.0088;

constexpr double kSnrAtOneKm = 57.5;
constexpr double kPathLossExponent = 3.0;
constexpr double kShadowingDb = 4.0;
constexpr double kNoiseDb = 1.5;
constexpr double kThresholdDb = 3.0;
constexpr double kNearestKm = 0.05;
// No draw of Random::normal() is beyond sqrt(2 * 53 * ln 2).
constexpr double kMostDeviations = 8.6;

constexpr double kMissed = 0.1;
constexpr double kNullKey = 0.01;     // of each key that may be null,
constexpr double kMissingKey = 0.01;  // and as often it is not there
constexpr std::size_t kFewestHeard = 3;
constexpr std::size_t kMostHeard = 10;
constexpr std::int64_t kFewestRows = 3;
constexpr std::int64_t kMostRows = 9;
constexpr std::uint64_t kMostAttempts = 1000;

constexpr std::int64_t kBlockRows = 1024;

// What a number is drawn for; the last key of Random.
enum Purpose : std::uint64_t {
  kStationSite = 0x64656d6f00,
  kSessionRows,
  kSessionPlace,
  kSessionTime,
  kShadowing,
  kMeasurement,  // noise
  kReceiver,     // missed by chance
  kReport,       // what it says, and which keys it leaves out
};

std::uint64_t bits(std::int64_t number) {
  return static_cast<std::uint64_t>(number);
}

double lat_of(double north_km) {
  return kCentreLat + (north_km - kMapKm / 2) / kKmPerDegree;
}

double lon_of(double east_km) {
  return kCentreLon + (east_km - kMapKm / 2) / (kKmPerDegree * kCosCentre);
}

// Great-circle distance by the haversine formula.
double distance_km(double lat1, double lon1, double lat2, double lon2) {
  constexpr double kRadian = std::numbers::pi / 180.0;
  double north = std::sin(0.5 * kRadian * (lat2 - lat1));
  double east = std::sin(0.5 * kRadian * (lon2 - lon1));
  double h = north * north +
             std::cos(kRadian * lat1) * std::cos(kRadian * lat2) * east * east;
  return 2.0 * kEarthKm * std::asin(std::sqrt(std::min(1.0, h)));
}

// What has gone through log() and cos() may differ in its last bit between
// C libraries; nine decimals are the same everywhere.
double nine_decimals(double value) { return std::round(value * 1e9) / 1e9; }

void append_number(std::string& json, double value) {
  char text[32];
  auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  std::string_view digits(text, static_cast<std::size_t>(end - text));
  json += digits;
  if (digits.find_first_of(".e") == digits.npos) json += ".0";
}

// Appends a key that may be null or missing.
template <class Write>
void append_fragile(std::string& json, std::string_view key, double luck,
                    Write write) {
  if (luck < kMissingKey) return;
  ((json += ", \"") += key) += "\": ";
  if (luck < kMissingKey + kNullKey)
    json += "null";
  else
    write();
}

std::int64_t rows_of_session(Random random, std::int64_t left) {
  auto rows = kFewestRows + static_cast<std::int64_t>(random.below(
                                bits(kMostRows - kFewestRows + 1)));
  if (left == rows || left >= rows + kFewestRows) return rows;
  // Rows that would be left over make no session of their own.
  return left <= kMostRows ? left : left - kFewestRows;
}

// One session every two minutes, its rows two seconds apart.
std::string time_of(Random random, std::int64_t session, std::int64_t row) {
  using std::chrono::milliseconds;
  constexpr std::chrono::sys_days kFirst =
      std::chrono::year{2026} / std::chrono::January / 1;
  auto drawn = static_cast<std::int64_t>(random.below(60'000));
  return utc_text(kFirst +
                  milliseconds(120'000 * session + drawn + 2'037 * row));
}

}  // namespace

PositionsDemo::PositionsDemo(std::uint64_t seed, std::int64_t rows)
    : seed_(seed), rows_(rows) {
  for (int i = 0; i < kStations; ++i) {
    Random random(seed, 0, bits(i), kStationSite);
    char name[8];
    std::snprintf(name, sizeof(name), "S%02d", i + 1);
    Station station{.name = name};
    station.lat = lat_of(kMapKm * random.uniform());
    station.lon = lon_of(kMapKm * random.uniform());
    station.alt_m = std::round(10.0 * (40.0 + 900.0 * random.uniform())) / 10.0;
    station.offset_hz = 20.0 * random.normal();
    stations_.push_back(std::move(station));
  }
}

std::vector<NewColumn> PositionsDemo::columns(const std::string& time_type,
                                              const std::string& json_type) {
  return {
      {.name = "id", .type = ColumnType::int64, .primary_key = true},
      {.name = "recorded_at", .type = ColumnType::text, .declared = time_type},
      {.name = "session", .type = ColumnType::text},
      {.name = "receivers", .type = ColumnType::json, .declared = json_type},
      {.name = "tx_lat", .type = ColumnType::float64},
      {.name = "tx_lon", .type = ColumnType::float64}};
}

Random PositionsDemo::draws(std::int64_t row, int station,
                            std::uint64_t purpose) const {
  return Random(seed_, bits(session_.number), bits(row * kStations + station),
                purpose);
}

void PositionsDemo::begin_session() {
  ++session_.number;
  row_ = 0;
  session_.rows = rows_of_session(
      Random(seed_, bits(session_.number), 0, kSessionRows), rows_ - done_);
  std::uint64_t attempt = 0;
  while (!place(attempt))
    PENSTOCK_ASSERT(++attempt < kMostAttempts,
                    "somewhere on the map three stations hear a transmitter");
}

// Puts the transmitter somewhere; true when each of the rows that the session
// may have is heard by enough stations. Log-distance path loss with log-normal
// shadowing: snr(d) = snr(1 km) - 10 n log10(d) + X, where n is the exponent
// and X is normal, in dB, drawn once for each station and session. Rejection
// keeps the draws independent of the number of attempts before, as each attempt
// has a key of its own.
bool PositionsDemo::place(std::uint64_t attempt) {
  Random random(seed_, bits(session_.number), attempt, kSessionPlace);
  session_.lat = lat_of(kMapKm * random.uniform());
  session_.lon = lon_of(kMapKm * random.uniform());
  session_.offset_hz = 150.0 * random.normal();
  for (int i = 0; i < kStations; ++i) {
    auto at = static_cast<std::size_t>(i);
    const Station& station = stations_[at];
    double km =
        distance_km(session_.lat, session_.lon, station.lat, station.lon);
    Random shadowing(seed_, bits(session_.number), bits(i), kShadowing);
    session_.mean_db[at] =
        kSnrAtOneKm -
        10.0 * kPathLossExponent * std::log10(std::max(km, kNearestKm)) +
        kShadowingDb * shadowing.normal();
  }
  for (std::int64_t row = 0; row < kMostRows; ++row)
    if (audible(row).size() < kFewestHeard) return false;
  return true;
}

// The stations that this row's signal reaches, by number.
std::vector<PositionsDemo::Heard> PositionsDemo::audible(
    std::int64_t row) const {
  std::vector<Heard> audible;
  for (int i = 0; i < kStations; ++i) {
    double mean = session_.mean_db[static_cast<std::size_t>(i)];
    if (mean < kThresholdDb - kMostDeviations * kNoiseDb) continue;
    Random random = draws(row, i, kMeasurement);
    double snr = nine_decimals(mean + kNoiseDb * random.normal());
    if (snr >= kThresholdDb) audible.push_back({i, snr});
  }
  return audible;
}

// Those of them that a row lists, by number.
std::vector<PositionsDemo::Heard> PositionsDemo::heard(std::int64_t row) const {
  std::vector<Heard> strongest = audible(row);
  std::ranges::stable_sort(strongest, std::ranges::greater{}, &Heard::snr_db);
  std::vector<Heard> kept;
  std::size_t left = strongest.size();
  for (const Heard& heard : strongest) {
    Random random = draws(row, heard.station, kReceiver);
    bool missed = random.uniform() < kMissed;
    if (!missed || kept.size() + left <= kFewestHeard) kept.push_back(heard);
    --left;
    if (kept.size() == kMostHeard) break;
  }
  std::ranges::sort(kept, std::ranges::less{}, &Heard::station);
  return kept;
}

void PositionsDemo::write_receivers(std::int64_t row, std::string& json) const {
  json.clear();
  json += '[';
  for (const Heard& heard : heard(row)) {
    const Station& station = stations_[static_cast<std::size_t>(heard.station)];
    Random random = draws(row, heard.station, kReport);
    if (json.size() > 1) json += ", ";
    ((json += "{\"station\": \"") += station.name) += "\", \"lat\": ";
    append_number(json, station.lat);
    json += ", \"lon\": ";
    append_number(json, station.lon);
    append_fragile(json, "alt_m", random.uniform(),
                   [&] { append_number(json, station.alt_m); });
    json += ", \"snr_db\": ";
    append_number(json, heard.snr_db);
    double offset_hz =
        session_.offset_hz + station.offset_hz + 2.0 * random.normal();
    append_fragile(json, "freq_offset_hz", random.uniform(),
                   [&] { append_number(json, nine_decimals(offset_hz)); });
    // The receiver's own verdict; unsure where the signal is weak.
    double sure = 1.0 / (1.0 + std::exp(kThresholdDb - heard.snr_db));
    bool present = random.uniform() < sure;
    append_fragile(json, "signal_present", random.uniform(),
                   [&] { json += present ? "true" : "false"; });
    json += "}";
  }
  json += "]";
}

void PositionsDemo::write_row(std::int64_t row, Block& block) {
  char name[32];
  std::snprintf(name, sizeof(name), "tx-%07lld",
                static_cast<long long>(session_.number));
  write_receivers(row, json_);
  Random time(seed_, bits(session_.number), 0, kSessionTime);
  block.columns[0].append_int64(done_ + 1);
  block.columns[1].append_text(time_of(time, session_.number, row));
  block.columns[2].append_text(name);
  block.columns[3].append_text(json_);
  block.columns[4].append_float64(session_.lat);
  block.columns[5].append_float64(session_.lon);
  ++block.rows;
}

bool PositionsDemo::next(std::int64_t most, Block& block) {
  block.clear();
  block.columns.resize(6);
  std::vector<NewColumn> made = columns("", "");
  for (std::size_t c = 0; c < made.size(); ++c)
    block.columns[c].type = made[c].type;
  for (; block.rows < most && done_ < rows_; ++done_, ++row_) {
    if (row_ == session_.rows) begin_session();
    write_row(row_, block);
  }
  return block.rows > 0;
}

namespace {

/// Reports the progress of writing, at most twice a second.
class Pace {
 public:
  explicit Pace(const DemoOptions& options) : options_(options) {}

  void wrote(std::int64_t rows) {
    double now = seconds(wall_clock().now() - start_);
    if (!options_.progress || now < next_) return;
    next_ = now + 0.5;
    double left = now * static_cast<double>(options_.rows - rows) /
                  static_cast<double>(rows);
    options_.progress("wrote " + std::to_string(rows) + " of " +
                      std::to_string(options_.rows) + " rows [" +
                      shown_time(now) + "<" + shown_time(left) + "]");
  }

 private:
  const DemoOptions& options_;
  Nanoseconds start_ = wall_clock().now();
  double next_ = options_.quiet_s;
};

}  // namespace

std::int64_t write_positions_demo(const DemoOptions& options) {
  auto refuse = [](std::string where, std::string why, std::string next) {
    throw Error(ErrorKind::request, {.code = "demo.options",
                                     .what = "cannot make the demo data",
                                     .where = std::move(where),
                                     .why = std::move(why),
                                     .next = std::move(next)});
  };
  if (options.rows < 1)
    refuse("--rows", "found " + std::to_string(options.rows),
           "ask for at least one row");
  const std::string& json_type = options.json_type;
  if (json_type != "jsonb" && json_type != "json" && json_type != "text")
    refuse("--json-type", "found \"" + json_type + "\"",
           "choose one of: jsonb, json, text");

  SourceSpec to = options.to;
  if (to.table.empty()) to.table = "measurements";
  std::string time_type = to.kind == "postgres" ? "timestamptz" : "TIMESTAMP";
  std::unique_ptr<TableWriter> table = create_table(
      to, PositionsDemo::columns(time_type, json_type), options.replace);
  PositionsDemo demo(options.seed, options.rows);
  Block block;
  Pace pace(options);
  std::int64_t written = 0;
  while (demo.next(kBlockRows, block)) {
    if (options.stop != nullptr && options.stop->load()) return 0;
    table->write(block);
    written += block.rows;
    pace.wrote(written);
  }
  table->finish();
  return written;
}

}  // namespace penstock
