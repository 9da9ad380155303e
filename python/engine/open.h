#pragma once

#include <memory>
#include <string>
#include <vector>

#include "python/engine/rows.h"

namespace penstock::python {

/// What a loader is opened with. Texts of JSON, because settings are checked by
/// the same code as a job file's.
struct OpenRequest {
  std::string job;                ///< the document
  std::vector<std::string> sets;  ///< "section.key=value"
  std::string side = "train";     ///< or "val" or "test"
  int rank = 0;
  int world = 1;
  /// The ranks are compared after the opening (Engine::compare_ranks()).
  bool agrees_later = false;
  OwnRows rows;  ///< in place of a source and fields
};

/// Reads and prepares the data set. Throws Error, or nb::python_error when a
/// signal's handler raised meanwhile.
std::shared_ptr<Session> opened(const OpenRequest& opening);

/// A job's `source` section that says what the URI says.
std::string source_section(const std::string& uri);

}  // namespace penstock::python
