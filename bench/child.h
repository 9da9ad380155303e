#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace penstock {

/// What one run of another program cost, as the system counts it.
struct ChildRun {
  std::string output;          ///< its standard output
  double wall_seconds = 0;     ///< from before it was started to its end
  double cpu_seconds = 0;      ///< of all its threads
  std::size_t peak_bytes = 0;  ///< resident at most (VmHWM)
};

/// Runs a program to its end. Ends with an internal error when that does not
/// end well.
ChildRun run_child(const std::vector<std::string>& command);

/// The program `penstock` beside this one.
std::string penstock_program();

}  // namespace penstock
