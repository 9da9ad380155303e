#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "penstock/base/block.h"
#include "penstock/base/random.h"
#include "penstock/sources/sources.h"

namespace penstock {

/// Synthetic but physical measurements of radio transmitters: who heard a
/// transmission, how strongly, and where it came from.
///
/// A map of 300 x 300 km has 40 stations. A session is one transmission from
/// one place, measured in 3 to 9 rows. The signal falls with the third power
/// of the distance; each pair of session and station has a log-normal
/// shadowing of 4 dB, each measurement 1.5 dB of noise. Stations below 3 dB
/// hear nothing, some miss a transmission by chance, and of those left a row
/// lists the strongest ten. A transmitter that fewer than three would hear is
/// put elsewhere.
///
/// Every number depends on the seed, the session and the row within it alone,
/// so a longer data set begins with the rows of a shorter one (the last 11 of
/// which may fall into other sessions, so that none has under 3 rows). Not
/// thread-safe; holds one session and no row.
class PositionsDemo {
 public:
  static constexpr int kStations = 40;

  PositionsDemo(std::uint64_t seed, std::int64_t rows);

  /// The columns of a block: id (1, 2, ...), recorded_at (UTC, in whole
  /// milliseconds, as ISO-8601 text), session, receivers, tx_lat, tx_lon.
  static std::vector<NewColumn> columns(const std::string& time_type,
                                        const std::string& json_type);

  /// Fills `block` with the next rows, at most `most`; false if none exist
  /// left. The rows are the same for any cut into blocks.
  bool next(std::int64_t most, Block& block);

 private:
  struct Station {
    std::string name;
    double lat, lon, alt_m, offset_hz;
  };
  struct Heard {
    int station;
    double snr_db;
  };
  /// What all rows of a session share.
  struct Session {
    std::int64_t number = -1;
    std::int64_t rows = 0;
    double lat = 0, lon = 0;
    double offset_hz = 0;
    std::array<double, kStations> mean_db{};  ///< shadowing included
  };

  Random draws(std::int64_t row, int station, std::uint64_t purpose) const;
  void begin_session();
  bool place(std::uint64_t attempt);
  std::vector<Heard> audible(std::int64_t row) const;
  std::vector<Heard> heard(std::int64_t row) const;
  void write_receivers(std::int64_t row, std::string& json) const;
  void write_row(std::int64_t row, Block& block);

  std::uint64_t seed_;
  std::int64_t rows_;
  std::int64_t done_ = 0;
  std::int64_t row_ = 0;  // within the session
  std::vector<Station> stations_;
  Session session_;
  std::string json_;
};

struct DemoOptions {
  std::int64_t rows = 4030;
  std::uint64_t seed = 1;
  SourceSpec to;                    ///< table "measurements" if it names none
  std::string json_type = "jsonb";  ///< of `receivers`: jsonb, json or text
  bool replace = false;             ///< a table that is there already
  /// Hears a line from time to time once `quiet_s` have passed: "wrote 412000
  /// of 1000000 rows [00:03<00:04]". May be empty.
  std::function<void(const std::string& line)> progress = {};
  double quiet_s = 2;                       ///< before the first such line
  const std::atomic<bool>* stop = nullptr;  ///< ends the writing when it is set
};

/// Makes the table of the demo and returns how many rows it wrote. An existing
/// table is an Error(request) unless `replace`. Whatever fails, the table is
/// there whole or as it was before; likewise when it is stopped, which gives 0
/// rows.
std::int64_t write_positions_demo(const DemoOptions& options);

}  // namespace penstock
