#pragma once

#include <functional>
#include <string>
#include <vector>

#include "penstock/base/base.h"

namespace penstock {

/// What a benchmark measured of one thing, time after time.
class Repeats {
 public:
  void add(double value) { values_.push_back(value); }
  double median() const;
  /// {"median", "min", "max", "repeats"}.
  Json json() const;

 private:
  std::vector<double> values_;
};

/// Lets each of these measure once to warm up, then `repeats` times in turns,
/// so that whatever else the machine does falls on all of them alike. Returns
/// what each measured, in the same order.
std::vector<Repeats> in_turns(int repeats,
                              const std::vector<std::function<double()>>& of);

/// Seconds that `act` took, by the wall.
double wall_seconds(const std::function<void()>& act);
/// Seconds of processor time that the calling thread spent in `act`.
double cpu_seconds(const std::function<void()>& act);
/// Seconds of processor time that all threads of this program have spent.
double process_cpu_seconds();

/// The beginning of a benchmark's JSON document: its name, its question in
/// one sentence, the command, the machine and the commit that was built
/// ("-dirty" when files other than the results differ from it).
Json result_of(const std::string& bench, const std::string& question, int count,
               char** arguments);

/// The `at`th argument of the program as a number, or `otherwise`.
std::int64_t argument(int count, char** arguments, int at,
                      std::int64_t otherwise);

/// Prints the document; returns the program's exit code.
int finish(const Json& result);

}  // namespace penstock
