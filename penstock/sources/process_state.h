#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace penstock {

struct ProcessState {
  char letter = '?';   ///< 'R' runs, 'S' sleeps, 'T' is stopped, ...
  double seconds = 0;  ///< of processor time that it has used
};

/// What the system says of a process; '?' where it says nothing.
inline ProcessState state_of_process(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text(std::istreambuf_iterator<char>(file), {});
  const std::size_t end = text.rfind(')');
  if (end == text.npos) return {};
  std::istringstream rest(text.substr(end + 1));
  ProcessState state;
  rest >> state.letter;
  std::string skipped;
  for (int at = 0; at < 10; ++at) rest >> skipped;
  double user = 0, system = 0;
  rest >> user >> system;
  state.seconds = (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return state;
}

}  // namespace penstock
