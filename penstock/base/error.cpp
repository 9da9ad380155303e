#include "penstock/base/error.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/base/printable.h"

namespace penstock {

std::string_view name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::request:
      return "request";
    case ErrorKind::source:
      return "source";
    case ErrorKind::transform:
      return "transform";
    case ErrorKind::device:
      return "device";
    case ErrorKind::out_of_memory:
      return "out_of_memory";
    case ErrorKind::internal:
      break;
  }
  return "internal";
}

int exit_code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::request:
      return 2;
    case ErrorKind::source:
      return 3;
    case ErrorKind::transform:
      return 4;
    case ErrorKind::device:
      return 5;
    case ErrorKind::out_of_memory:
      return 6;
    case ErrorKind::internal:
      break;
  }
  return 70;
}

Error::Error(const Error&) = default;
Error& Error::operator=(const Error&) = default;
Error::~Error() = default;

namespace {

/// Names of files and columns, cells and messages of servers are in them.
ErrorParts shown(ErrorParts parts) {
  for (std::string* part : {&parts.what, &parts.where, &parts.next})
    *part = printable(*part);
  parts.why = printable_lines(parts.why);  // an exception's text may have lines
  return parts;
}

}  // namespace

Error::Error(ErrorKind kind, ErrorParts parts)
    : kind_(kind), parts_(shown(std::move(parts))), text_(parts_.what) {
  if (!parts_.where.empty()) text_ += " at " + parts_.where;
  if (!parts_.why.empty()) text_ += ": " + parts_.why;
  if (!parts_.next.empty()) text_ += "; " + parts_.next;
}

std::string Error::json() const {
  Json error;
  error["kind"] = name_of(kind_);
  error["code"] = parts_.code;
  error["what"] = parts_.what;
  error["where"] = parts_.where;
  error["why"] = parts_.why;
  error["next"] = parts_.next;
  Json document;
  document["error"] = std::move(error);
  return document.dump();
}

Error Error::in_stage(std::string_view stage) const {
  ErrorParts parts = parts_;
  parts.what = std::string(stage) + ": " + parts.what;
  return Error(kind_, std::move(parts)).caused_by(cause_);
}

Error Error::caused_by(std::shared_ptr<const void> cause) const {
  Error caused = *this;
  caused.cause_ = std::move(cause);
  return caused;
}

void fail_assertion(const char* condition, const char* says, const char* file,
                    int line) {
  throw Error(ErrorKind::internal,
              {.code = "internal.assertion",
               .what = says,
               .where = std::string(file) + ":" + std::to_string(line),
               .why = std::string("'") + condition + "' does not hold",
               .next = "this is a bug in Penstock, please report it"});
}

namespace {

/// Letters that are put in, left out or replaced, and neighbours that change
/// places.
/// The distance of optimal string alignment, by rows of the dynamic programme:
/// only the last two rows are kept. O(|a| |b|), for names of a few letters.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> two_before, before(b.size() + 1), row;
  std::iota(before.begin(), before.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    row.assign(1, i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = before[j] + (a[i] == b[j] ? 0 : 1);
      row.push_back(std::min({replaced, row[j] + 1, before[j + 1] + 1}));
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
        row.back() = std::min(row.back(), two_before[j - 1] + 1);
    }
    two_before = std::exchange(before, std::move(row));
  }
  return before.back();
}

}  // namespace

std::string nearest(std::string_view word,
                    std::span<const std::string> candidates) {
  std::size_t closest = std::max<std::size_t>(1, (word.size() + 1) / 3) + 1;
  std::string found;
  for (const std::string& candidate : candidates) {
    std::size_t distance = edit_distance(word, candidate);
    if (distance < closest) {
      closest = distance;
      found = candidate;
    }
  }
  return found;
}

std::string did_you_mean(std::string_view word,
                         std::span<const std::string> candidates) {
  std::string found = nearest(word, candidates);
  if (!found.empty()) return "did you mean '" + found + "'?";
  if (candidates.empty()) return "nothing can be chosen here";
  std::string all = "choose one of: ";
  for (const std::string& candidate : candidates) {
    if (&candidate != candidates.data()) all += ", ";
    all += candidate;
  }
  return all;
}

}  // namespace penstock
