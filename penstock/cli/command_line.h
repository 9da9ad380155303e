#pragma once

#include <optional>

#include "penstock/cli/verb.h"

namespace penstock {

/// True where --json is among the arguments: it is known before they are read,
/// so that even their errors are documents.
bool wants_json(int argc, char** argv);

/// A command line that was read.
struct Command {
  const Verb* verb = nullptr;
  RunVerb run;
  std::string log_level;  ///< of --log; empty: none was given
};

/// Reads the arguments. nullopt: help or the version was asked for, and is
/// printed. Throws Error(request).
std::optional<Command> read_command_line(int argc, char** argv,
                                         Invocation& invocation);

}  // namespace penstock
