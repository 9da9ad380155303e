#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "penstock/cli/options.h"

namespace penstock {

/// What the program and the verb that runs know of each other.
struct Invocation {
  std::vector<std::string> command;         ///< as the program was called
  const std::atomic<bool>* stop = nullptr;  ///< set when the run shall end
  std::atomic<bool>* save = nullptr;        ///< set when it shall save
  bool json = false;         ///< one JSON document on standard output
  bool interrupted = false;  ///< the run was stopped, its state is saved
  int exit_code = 0;         ///< of a verb that showed what it could and failed
};

/// Does what a verb is for, after the command line was read.
using RunVerb = std::function<void(Invocation&)>;

/// A verb of the command line, in its own file verbs/NAME.cpp:
/// `penstock NAME ...`.
struct Verb {
  std::string name;
  std::string help;  ///< one line
  std::string example = {};
  bool ends_in_order = false;  ///< it heeds `stop`
  /// Declares the options, --json among them (see add_json).
  RunVerb (*add)(Options& options, Invocation& invocation) = nullptr;
};

/// All verbs, in the order of `penstock --help`.
const std::vector<Verb>& verbs();

/// Adds --json, which sets `invocation.json`.
void add_json(Options& options, Invocation& invocation,
              const std::string& help);
/// Adds --set section.key=value, which may be given several times.
void add_sets(Options& options, std::vector<std::string>& sets);

}  // namespace penstock
