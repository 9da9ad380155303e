#pragma once

#include <string>

#include "penstock/base/base.h"

namespace penstock {

/// The reader of standard output has gone, as `head` does, or its terminal is
/// closed: there is nothing left to write to.
struct OutputClosed {};

/// Writes to standard output, control characters as printable_lines() has them
/// (JSON stays the same document). Throws OutputClosed, or Error(request) where
/// the disk is full.
void print(const std::string& text);
/// For what moves the cursor itself.
void print_as_is(const std::string& text);
void print_document(const Json& json);

/// Prints the error (a document on standard output with --json, else a line
/// on standard error) and returns its exit code.
int report_error(const Error& error, bool json);

/// What the exception that is being handled is for the user, whatever it is.
Error error_of_exception();

/// Prints the exception that is being handled as report_error() does, and
/// returns its exit code: also where there is no memory to say it with.
int report_exception(bool json) noexcept;

}  // namespace penstock
