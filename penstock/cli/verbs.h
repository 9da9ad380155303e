#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <functional>

#include "penstock/base/base.h"

namespace penstock {

/// What the command line asked for.
struct Verbs {
  const std::atomic<bool>* stop = nullptr;
  std::atomic<bool>* save = nullptr;
  std::function<void()> run;   ///< set by the verb that was named
  bool json = false;           ///< one JSON document on standard output
  bool ends_in_order = false;  ///< the verb heeds `stop`
  bool interrupted = false;    ///< the run was stopped, its state is saved
  int exit_code = 0;  ///< of a verb that showed what it could and failed
};

/// The reader of standard output has gone, as `head` does, or its terminal is
/// closed: nobody is there to be told.
struct OutputClosed {};

/// Adds all verbs to `app`; parsing then sets `verbs.run`.
void add_verbs(CLI::App& app, Verbs& verbs);

/// Prints the error (a document on standard output with --json, else a line
/// on standard error) and returns its exit code.
int report_error(const Error& error, bool json);

}  // namespace penstock
