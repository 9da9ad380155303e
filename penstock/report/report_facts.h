#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/base/json_path.h"

namespace penstock {

// What a report.json says, for those who show it. The document may be of an
// older or a newer version, or only begun: what is missing, or is something
// else than expected, is unknown, and never an error.

/// The parts of the time, in the order in which they are drawn.
struct PartName {
  const char* key;    ///< in "parts" and "timeline"
  const char* shown;  ///< for people
  const char* brief;  ///< in tables
};
inline constexpr std::array<PartName, 5> kParts = {
    {{"compute", "computes", "compute"},
     {"wait_data", "waits for data", "data"},
     {"wait_copy", "waits for the copy", "copy"},
     {"host", "waits for the host", "host"},
     {"sync", "waits for other ranks", "sync"}}};

/// "Input-bound: ...": what limits the run, in one sentence.
std::string verdict_sentence(const Json& report);

/// What the wall time of a whole run went to: its steps, and what passed
/// outside of them. Empty where it is not known.
struct WallPart {
  const char* key;    ///< "steps", or as in "outside"
  const char* shown;  ///< for people
  double seconds = 0;
};
std::vector<WallPart> wall_parts(const Json& report);
/// "wall time 12.3 s: steps 48.1 %, checkpoints 40.2 %, ..."; may be empty.
std::string wall_line(const Json& report);
/// The greatest part of the wall time, those of the steps each for itself:
/// "checkpoints 40 %"; may be empty.
std::string greatest_part(const Json& report);

/// "Set loader.workers from 1 to 4: 35 % faster by prediction (costs ...)",
/// the best first.
std::vector<std::string> action_sentences(const Json& report);

/// The tuner's changes, in their order, as cells of a table with its heading:
/// when, what, predicted and measured gain. Empty where it made none.
std::vector<std::vector<std::string>> tuner_rows(const Json& report);

/// Samples per second of an accelerator that never waits; none where its steps
/// take no time.
std::optional<double> needed_rate(const Json& report);

/// A stage, or the threads that do several of them.
struct ShownStage {
  std::string name;
  std::vector<std::string> of_pool = {};  ///< the stages that one pool does
  bool limits = false;                    ///< the verdict names it
  std::optional<double> workers = {};     ///< 0: the loop's own thread
  std::optional<double> rate = {};        ///< samples per second
  std::optional<double> busy = {};        ///< of the time of its threads
  std::optional<double> p50_ms = {}, p99_ms = {}, max_ms = {};
  std::optional<double> waits_for_input = {}, waits_for_room = {};
};
/// Those that do any work, in the order of the data; a pool that does several
/// stages follows the last of them, with the rate that they have together.
std::vector<ShownStage> shown_stages(const Json& report);

/// Some time of a run, with the share of each part in it.
struct TimeSlice {
  double from_s = 0, to_s = 0;
  std::array<double, kParts.size()> shares{};
  double outside = 0;  ///< validation and checkpoints
  bool known = false;  ///< false: no step ended here
};
/// The time line in at most `most` slices.
std::vector<TimeSlice> time_slices(const Json& report, std::size_t most);

/// A number over time: (seconds, value), without what is not known.
std::vector<std::pair<double, double>> curve_of(const Json& report,
                                                const char* column);

/// A line of the memory table.
struct MemoryLine {
  std::string owner;
  /// Bytes, at the end of the run and at any time.
  std::optional<double> planned = {}, used = {}, peak = {};
};
std::vector<MemoryLine> memory_lines(const Json& report);
/// (seconds, bytes) of an owner of the device's memory ("activations"), or of
/// all of them where it is empty.
std::vector<std::pair<double, double>> memory_over_time(const Json& report,
                                                        std::string_view owner);

/// "the rows are scanned before the first batch: ...": how the rows of each
/// source were prepared, and why. None for arrays and functions.
std::vector<std::string> preparation_sentences(const Json& report);

/// Every value with the path to it: {"loader.workers", "4"}.
std::vector<std::pair<std::string, std::string>> flattened(const Json& json);

/// "12,345", "12.3", "0.0123": what people read; "n/a" where it is not known.
std::string shown_number(std::optional<double> number);
/// "1,650", "437 k", "14.0 M": a rate.
std::string shown_rate(std::optional<double> rate);
/// "71.2 %" of a share of 0.712.
std::string shown_share(std::optional<double> share);
/// "1.4 GiB".
std::string shown_size(std::optional<double> bytes);
/// "12.3 s", "3:25:07 h".
std::string shown_seconds(std::optional<double> seconds);

}  // namespace penstock
