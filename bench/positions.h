#pragma once

#include <filesystem>
#include <string>

#include "penstock/base/base.h"

namespace penstock {

/// The demo's rows in a SQLite file of their own, which is removed at the end,
/// and the quick start's job over them.
class Positions {
 public:
  explicit Positions(std::int64_t rows);
  ~Positions();
  Positions(const Positions&) = delete;
  Positions& operator=(const Positions&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  std::string path() const { return (folder_ / "positions.sqlite").string(); }
  /// examples/positions/job.json without a model, on the device `cpu`; the
  /// runs go to the folder.
  Json job() const;

 private:
  std::filesystem::path folder_;
};

}  // namespace penstock
