#include "penstock/session/agreement.h"

#include <algorithm>
#include <map>
#include <optional>

#include "penstock/base/utf8.h"

// A rank's text is a JSON document: its number, and either the facts or the
// failure of its opening. All ranks get the same texts, sort them by rank and
// look for the same things in the same order, so that all of them throw, or
// none does.

namespace penstock {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::size_t kMostShown = 3;          // differences, in an error
constexpr std::size_t kLongestValue = 80;      // bytes, in an error
constexpr std::size_t kLongestFailure = 2000;  // bytes of a reported error

/// What one rank gave.
struct Answer {
  std::int64_t rank = 0;
  std::optional<ErrorKind> failed;
  std::string failure;
  Json facts;
};

/// Ranks by the value that they have, in order of their first rank.
using Stated = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;

[[noreturn]] void refuse_answers(const Rank& rank, std::string why) {
  throw Error(ErrorKind::request,
              {.code = "ranks.agree",
               .what = "cannot compare the ranks",
               .where = "rank " + std::to_string(rank.rank) + " of " +
                        std::to_string(rank.world),
               .why = std::move(why),
               .next = "use one version of Penstock on all ranks, and pass an "
                       "'agree' that is an all-gather: it takes the text of "
                       "this rank and returns the texts of all ranks"});
}

Json document_of(const Rank& rank) {
  Json json;
  json["v"] = kVersion;
  json["rank"] = rank.rank;
  return json;
}

ErrorKind kind_named(const std::string& name) {
  for (ErrorKind kind :
       {ErrorKind::request, ErrorKind::source, ErrorKind::transform,
        ErrorKind::device, ErrorKind::out_of_memory})
    if (name == name_of(kind)) return kind;
  return ErrorKind::internal;
}

Answer parse_answer(const std::string& text) {
  Json json = Json::parse(text, "the text of a rank");
  Spec spec(json, "");
  spec.integer("v", {}, kVersion, kVersion);
  Answer answer{.rank = spec.integer("rank", {}, 0, INT32_MAX)};
  if (spec.has("failed")) answer.failed = kind_named(spec.text("failed"));
  answer.failure = spec.text("why", "");
  if (const Json* facts = spec.raw("facts")) answer.facts = *facts;
  spec.finish();
  return answer;
}

/// By rank. More than one process may be of a rank, as those are that share
/// its rows by tensor parallelism; but each rank must be there.
std::vector<Answer> parse_answers(const std::vector<std::string>& texts,
                                  const Rank& rank) {
  std::vector<Answer> answers;
  for (const std::string& text : texts) {
    try {
      answers.push_back(parse_answer(text));
    } catch (const Error& error) {
      refuse_answers(rank,
                     "'agree' returned a text that no rank with this version "
                     "of Penstock writes: " +
                         error.parts().why);
    }
  }
  std::ranges::stable_sort(answers, {}, &Answer::rank);
  return answers;
}

void check_all_there(const std::vector<Answer>& answers, const Rank& rank) {
  std::int64_t next = 0;
  for (const Answer& answer : answers)
    if (answer.rank == next) ++next;
  if (next >= rank.world) return;
  refuse_answers(rank, "'agree' returned " + std::to_string(answers.size()) +
                           " texts for " + std::to_string(rank.world) +
                           " ranks, but no text of rank " +
                           std::to_string(next));
}

/// "rank 1", "ranks 0..3, 7".
std::string shown(const std::vector<std::int64_t>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (i > 0) text += ", ";
    text += std::to_string(ranks[i]);
    if (end - i > 1) {
      text += end - i == 2 ? ", " : "..";
      text += std::to_string(ranks[end - 1]);
    }
    i = end;
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

std::string shown_value(const std::string& path, const std::string& value) {
  constexpr std::size_t kDigits = 16;  // of a fingerprint
  if (path == "fingerprint") return value.substr(0, kDigits);
  return value.empty() ? "''" : beginning(value, kLongestValue);
}

void add_leaves(const Json& json, const std::string& path,
                std::vector<std::pair<std::string, Json>>& leaves) {
  if (!json.is_object()) return leaves.push_back({path, json});
  for (const auto& [name, value] : json.object())
    add_leaves(value, path.empty() ? name : path + "." + name, leaves);
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.string() : value.dump();
}

/// The paths at which ranks differ, in the order of the facts. A fact that a
/// rank does not have at all differs from every other. A null means "not known"
/// and agrees with everything.
std::vector<std::pair<std::string, Stated>> differences(
    const std::vector<Answer>& answers) {
  std::vector<std::string> paths;
  std::map<std::string, Stated> found;
  std::map<std::string, std::size_t> answered;  // answers that have the fact
  std::map<std::string, bool> unknown;
  for (const Answer& answer : answers) {
    std::vector<std::pair<std::string, Json>> leaves;
    add_leaves(answer.facts, "", leaves);
    for (const auto& [path, value] : leaves) {
      if (answered[path]++ == 0) paths.push_back(path);
      if (value.is_null()) unknown[path] = true;
      Stated& values = found[path];
      std::string text = text_of(value);
      auto same = std::ranges::find(values, text, &Stated::value_type::first);
      if (same == values.end()) same = values.insert(same, {text, {}});
      std::vector<std::int64_t>& ranks = same->second;
      if (ranks.empty() || ranks.back() != answer.rank)
        ranks.push_back(answer.rank);
    }
  }
  std::vector<std::pair<std::string, Stated>> differ;
  for (const std::string& path : paths)
    if (!unknown[path] &&
        (found[path].size() > 1 || answered[path] < answers.size()))
      differ.push_back({path, found[path]});
  return differ;
}

std::string shown(const std::string& path, const Stated& values) {
  std::string text = path + " is ";
  for (const auto& [value, ranks] : values)
    text += (&value == &values.front().first ? "" : ", ") +
            shown_value(path, value) + " on " + shown(ranks);
  return text + (values.size() == 1 ? " alone" : "");
}

bool is_of_data(const std::string& path) {
  return path == "fingerprint" || path.starts_with("rows.");
}

/// Settings come first: other rows are what comes of them.
[[noreturn]] void refuse_differences(
    std::vector<std::pair<std::string, Stated>> differ) {
  bool data = std::ranges::all_of(differ, is_of_data,
                                  &std::pair<std::string, Stated>::first);
  if (!data) std::erase_if(differ, [](auto& d) { return is_of_data(d.first); });
  std::string why;
  for (std::size_t i = 0; i < std::min(kMostShown, differ.size()); ++i)
    why += (i == 0 ? "" : "; ") + shown(differ[i].first, differ[i].second);
  if (differ.size() > kMostShown)
    why += "; and " + std::to_string(differ.size() - kMostShown) + " more";
  if (data)
    throw Error(ErrorKind::source,
                {.code = "ranks.data",
                 .what = "the ranks did not read the same rows",
                 .where = differ.front().first,
                 .why = std::move(why),
                 .next = "make sure that nothing writes to the table while the "
                         "ranks start, or give all ranks the same copy; then "
                         "start all ranks again"});
  throw Error(ErrorKind::request,
              {.code = "ranks.settings",
               .what = "the ranks were not opened with the same settings",
               .where = differ.front().first,
               .why = std::move(why),
               .next = "open the same loaders, with the same job, in the same "
                       "order on every rank"});
}

void check_no_failure(const std::vector<Answer>& answers) {
  std::vector<std::int64_t> ranks;
  const Answer* first = nullptr;
  for (const Answer& answer : answers) {
    if (!answer.failed) continue;
    if (first == nullptr) first = &answer;
    if (ranks.empty() || ranks.back() != answer.rank)
      ranks.push_back(answer.rank);
  }
  if (first == nullptr) return;
  throw Error(
      *first->failed,
      {.code = "ranks.failed",
       .what = "another rank could not open its data set",
       .where = shown(ranks),
       .why = first->failure,
       .next = "fix the error on that rank, and start all ranks again"});
}

}  // namespace

std::string failure_text(const Rank& rank, std::string_view kind,
                         const std::string& message) {
  Json json = document_of(rank);
  json["failed"] = kind;
  json["why"] = beginning(message, kLongestFailure);
  return json.dump();
}

void compare_ranks(const Agree& agree, const Rank& rank, const Json& facts) {
  Json json = document_of(rank);
  json["facts"] = facts;
  std::vector<Answer> answers = parse_answers(agree(json.dump()), rank);
  check_no_failure(answers);
  std::vector<std::pair<std::string, Stated>> differ = differences(answers);
  if (!differ.empty()) refuse_differences(std::move(differ));
  check_all_there(answers, rank);
}

std::string failure_text(const Rank& rank, const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return failure_text(rank, name_of(error.kind()), error.what());
  } catch (const std::bad_alloc&) {
    return failure_text(rank, name_of(ErrorKind::out_of_memory),
                        "out of memory");
  } catch (const std::exception& error) {
    return failure_text(rank, name_of(ErrorKind::internal), error.what());
  } catch (...) {
    return failure_text(rank, name_of(ErrorKind::internal),
                        "an exception of unknown type");
  }
}

void refuse_failure(const std::string& text) {
  const Answer answer = parse_answer(text);
  throw Error(answer.failed.value_or(ErrorKind::internal),
              {.code = "ranks.failed",
               .what = "another rank has failed",
               .where = shown(std::vector{answer.rank}),
               .why = answer.failure,
               .next = "fix the error on that rank, and start all ranks again "
                       "with --resume latest"});
}

// `agree` is a collective operation: a rank that fails and does not call it
// leaves all others waiting. So each rank calls it just once on every path,
// here with its failure in place of its facts.
void report_failure(const Agree& agree, const Rank& rank,
                    const std::exception_ptr& failure) noexcept {
  try {
    agree(failure_text(rank, failure));
  } catch (...) {
    // What failed here is thrown, and is what must be fixed.
  }
}

}  // namespace penstock
