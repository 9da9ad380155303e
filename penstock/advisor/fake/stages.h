#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "penstock/monitor/monitor.h"

namespace penstock {

/// What a stage of a plain table does, by the name that it has there.
inline StageWork work_of_stage(std::string_view name) {
  if (name == "read") return StageWork::reads;
  if (name == "read per sample") return StageWork::reads_per_sample;
  if (name == "parse") return StageWork::parses;
  if (name == "collate") return StageWork::makes;
  if (name == "gather") return StageWork::gathers;
  if (name == "finish on device") return StageWork::on_device;
  return StageWork::other;
}

/// A stage that was busy for so long, and for the share `cpu` of that on a
/// processor.
inline StageNumbers stage(const std::string& name, int workers,
                          std::int64_t items, Nanoseconds busy,
                          double cpu = 1) {
  return {.name = name,
          .work = work_of_stage(name),
          .workers = workers,
          .items = items,
          .busy_wall = busy,
          .busy_cpu = Nanoseconds(static_cast<std::int64_t>(
              cpu * static_cast<double>(busy.count())))};
}

}  // namespace penstock
