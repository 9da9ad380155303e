#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "penstock/demo/positions.h"
#include "penstock/run/run.h"
#include "penstock/session/session.h"

namespace penstock {

/// The demo's rows in a folder of their own, for the tests of this room.
class PositionsRun {
 public:
  explicit PositionsRun(std::int64_t rows = 600) {
    char name[] = "/tmp/penstock-run-XXXXXX";
    folder_ = ::mkdtemp(name);
    DemoOptions demo;
    demo.rows = rows;
    demo.to.kind = "sqlite";
    demo.to.path = path("d.sqlite");
    demo.to.table = "measurements";
    write_positions_demo(demo);
  }
  ~PositionsRun() { std::filesystem::remove_all(folder_); }
  PositionsRun(const PositionsRun&) = delete;
  PositionsRun& operator=(const PositionsRun&) = delete;

  std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }

  Job job(const std::vector<std::string>& sets = {}) const {
    Json document = Json::parse(R"({
      "source": {"kind": "sqlite", "table": "measurements"},
      "fields": {
        "receivers": {"json_set": {"column": "receivers",
          "keys": ["snr_db", "lat", "lon", "signal_present"], "max": 8,
          "overflow": "strongest", "sort_by": "snr_db"}, "standardize": true},
        "target": {"columns": ["tx_lat", "tx_lon"], "standardize": true}},
      "split": {"train": 0.8, "val": 0.2, "by": "session"},
      "loader": {"batch_size": 32},
      "device": {"kind": "sim", "step_ms": 10, "clock": "virtual"}
    })",
                                "test");
    document["source"]["path"] = path("d.sqlite");
    document["output"]["dir"] = path("runs");
    for (const std::string& set : sets) apply_setting(document, set);
    return parse_job(document);
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace penstock
