#pragma once

#include <string>
#include <vector>

namespace penstock {

/// What another program said.
struct ProgramAnswer {
  int failed = 0;     ///< why it could not be started: an errno
  int exit_code = 0;  ///< -1: a signal ended it
  std::string said;
};

/// What a program, looked for along PATH, writes to both its outputs, once it
/// has ended. Waits for it.
ProgramAnswer answer_of_program(const std::vector<std::string>& command);

/// Of what it said: of several lines often its error.
std::string last_line(std::string text);

}  // namespace penstock
