#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "penstock/report/metrics/sink.h"

namespace penstock {

/// An event file as TensorBoard reads them: scalars by name, those of epochs
/// under "epoch/". Format: tensorflow/core/util/event.proto in records of
/// tensorflow/core/lib/io/record_writer.h.
class TensorBoardFile : public MetricSink {
 public:
  /// Begins `folder`/events.out.tfevents.SECONDS.HOST.PROCESS.
  explicit TensorBoardFile(const std::filesystem::path& folder);

  void add(std::int64_t step, double time, const Metrics& metrics) override;
  void add_epoch(std::int64_t step, double time,
                 const Metrics& metrics) override;

 private:
  void append(const std::string& bytes);
  std::filesystem::path file_;
};

}  // namespace penstock
