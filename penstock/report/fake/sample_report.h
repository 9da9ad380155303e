#pragma once

#include <functional>
#include <vector>

#include "penstock/base/json.h"

namespace penstock {

inline constexpr char kSampleReport[] = R"({
    "version": 1, "run": "runs/20260101T000000000Z-abcdef",
    "au": 0.5, "parts": {"compute": 0.5, "wait_data": 0.375,
      "wait_copy": 0.0625, "host": 0.0625, "sync": 0.0},
    "steps": 400, "samples": 12800, "samples_per_s": 1600.0,
    "first_batch_ms": 25.5,
    "epochs": [
      {"epoch": 0, "seconds": 4.0, "au": 0.5, "samples": 6400,
       "train_loss": 2.5, "val_loss": 2.75, "val_accuracy": 0.5,
       "use": {"cpus": {"mean": 1.5, "max": 1.75},
               "resident_bytes": {"mean": 200000000, "max": 210000000},
               "temperature_c": {"mean": 61.5, "max": 66.0}}},
      {"epoch": 1, "seconds": 4.0, "au": 0.5, "samples": 6400,
       "train_loss": 1.5, "val_loss": null}],
    "timeline": {
      "seconds": [2.0, 4.0, 6.0, 8.0], "epoch": [0, 0, 1, 1],
      "steps": [100, 100, 100, 100], "samples": [3200, 3200, 3200, 3200],
      "compute": [1.0, 1.0, 1.0, 1.0], "wait_data": [0.75, 0.75, 0.25, 0.75],
      "wait_copy": [0.125, 0.125, 0.125, 0.125],
      "host": [0.125, 0.125, 0.125, 0.125], "sync": [0.0, 0.0, 0.0, 0.0],
      "outside": [0.0, 0.0, 0.5, 0.0], "loss": [3.0, 2.0, null, 1.5],
      "cpus": [1.5, 1.5, 1.25, 1.75]},
    "worst_steps": [{"epoch": 0, "step": 7, "ms": 120.5, "parts": {
      "compute": 0.0625, "wait_data": 0.9375, "wait_copy": 0.0, "host": 0.0,
      "sync": 0.0}, "samples": [12, "seven", null]}],
    "verdict": {"limit": "data", "stage": "read",
      "cause": "batches come late: 'read' waits for its source",
      "because": "50.0 % of the steps' time is computing",
      "actions": [
        {"knob": "loader.cache", "from": "none", "to": "ram",
         "predicted_gain": 1.0, "cost": "1 MiB of memory"},
        {"knob": "loader.readers", "from": 4, "to": 8, "predicted_gain": 0.25,
         "cost": "4 connections"}],
      "no_action": null},
    "plan": {"tier": "none", "scan": {"bytes": 1048576}},
    "memory": {"planned": {"host_bytes": 2097152, "device_bytes": 1048576,
        "disk_bytes": 0},
      "used": {"host_bytes": 8388608, "host_bytes_before": 4194304,
        "mapped_bytes": 1048576, "mapped_bytes_before": 1048576,
        "peak_bytes": 16777216, "device_bytes": 1048576},
      "held": [{"for": "rows", "in": "device", "bytes": 524288,
        "peak_bytes": 786432}]},
    "dataset": {"rows": 8000, "train": 6400, "val": 1600,
      "preparation": {"form": "scanned", "reason": "the split is by a column"}},
    "stages": [
      {"name": "plan", "workers": 1, "pool": "loader", "rate": 1000000.0,
       "busy": 0.01, "p50_ms": 0.05, "p99_ms": 0.1, "blocked_get": null,
       "blocked_put": null},
      {"name": "read", "workers": 4, "pool": "readers", "rate": 1650.0,
       "busy": 0.97, "p50_ms": 20.5, "p99_ms": 40.25, "blocked_get": null,
       "blocked_put": 0.0},
      {"name": "collate", "workers": 1, "pool": "loader", "rate": 1000000.0,
       "busy": 0.02, "p50_ms": 0.05, "p99_ms": 0.1, "blocked_get": 0.9,
       "blocked_put": null},
      {"name": "deliver", "workers": 1, "rate": null, "busy": null}],
    "machine": {"processor": "a processor", "cpus": 2.0},
    "settings": {"loader": {"cache": "none", "readers": 4},
      "source": {"path": "d.sqlite"}, "output": {"dir": "runs"},
      "device_used": "sim"},
    "interrupted": false})";

/// The report of a made-up run that waits for its stage 'read': for tests of
/// what is shown of runs.
inline Json sample_report() {
  return Json::parse(kSampleReport, "a sample report");
}

/// Calls `see` with the document, once for each value in it, which is then
/// replaced by something else.
inline void with_each_value_changed(
    const Json& document, const Json& instead,
    const std::function<void(const Json&)>& see) {
  std::function<void(const Json&, const std::function<Json(Json)>&)> walk =
      [&](const Json& at, const std::function<Json(Json)>& whole) {
        see(whole(instead));
        if (at.is_array())
          for (std::size_t i = 0; i < at.array().size(); ++i)
            walk(at.array()[i], [&, i](Json value) {
              Json::Array changed = at.array();
              changed[i] = std::move(value);
              return whole(Json(std::move(changed)));
            });
        if (at.is_object())
          for (std::size_t i = 0; i < at.object().size(); ++i)
            walk(at.object()[i].second, [&, i](Json value) {
              Json::Object changed = at.object();
              changed[i].second = std::move(value);
              return whole(Json(std::move(changed)));
            });
      };
  walk(document, [](Json value) { return value; });
}

}  // namespace penstock
