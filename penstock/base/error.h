#pragma once

#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace penstock {

/// Who can do something about an error. Each kind has an exit code of the
/// program.
enum class ErrorKind {
  request,        ///< the user's settings: exit code 2
  source,         ///< the place where the data lives: 3
  transform,      ///< what the data says: 4
  device,         ///< the accelerator: 5
  out_of_memory,  ///< a memory limit that we know was reached: 6
  internal,       ///< our bug: 70
};

std::string_view name_of(ErrorKind kind);
int exit_code_of(ErrorKind kind);

/// The parts of an error message. `what` says what we were doing and what
/// happened; the others may be empty.
struct ErrorParts {
  std::string code = {};   ///< stable and dotted, for scripts: "sqlite.locked"
  std::string what = {};   ///< "cannot read table 'measurements'"
  std::string where = {};  ///< file, table, row key, byte offset, JSON path
  std::string why = {};    ///< what was found and what was expected
  std::string next = {};   ///< one concrete thing to try
};

/// The one exception class of Penstock. Immutable; copies share only their
/// cause.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, ErrorParts parts);
  Error(const Error&);
  Error& operator=(const Error&);
  ~Error() override;

  ErrorKind kind() const { return kind_; }
  const ErrorParts& parts() const { return parts_; }
  /// One line for people: what, where, why, next.
  const char* what() const noexcept override { return text_.c_str(); }
  /// The document {"error": {kind, code, what, where, why, next}}.
  std::string json() const;
  /// The same error as seen from a stage: `what` gets the stage's name first.
  Error in_stage(std::string_view stage) const;
  /// The same error with its cause, an exception of another language: kept for
  /// the code that put it there, and released by the last copy.
  Error caused_by(std::shared_ptr<const void> cause) const;
  const std::shared_ptr<const void>& cause() const { return cause_; }

 private:
  ErrorKind kind_;
  ErrorParts parts_;
  std::string text_;
  std::shared_ptr<const void> cause_;
};

/// Ends with an internal error unless `holds`. On in release builds too.
#define PENSTOCK_ASSERT(holds, says)                                \
  do {                                                              \
    if (!(holds))                                                   \
      ::penstock::fail_assertion(#holds, says, __FILE__, __LINE__); \
  } while (false)

[[noreturn]] void fail_assertion(const char* condition, const char* says,
                                 const char* file, int line);

/// The candidate that resembles `word` most, or "" when none is close.
/// Example: nearest("batchsize", {"batch_size", "seed"}) == "batch_size".
std::string nearest(std::string_view word,
                    std::span<const std::string> candidates);
/// "did you mean 'batch_size'?", or the list of what is known.
std::string did_you_mean(std::string_view word,
                         std::span<const std::string> candidates);

}  // namespace penstock
