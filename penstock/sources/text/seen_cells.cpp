#include "penstock/sources/text/seen_cells.h"

#include <algorithm>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/base/utf8.h"
#include "penstock/sources/text/csv_header.h"
#include "penstock/sources/text/csv_uri.h"

namespace penstock::text {
namespace {

constexpr std::int64_t kFewestNumbers = 10;

/// Under marks that are not those by which the file is read.
struct OtherMarks {
  std::string settings;
  std::vector<Looks> numbers;  ///< what then are such
  std::vector<Looks> tells;    ///< of which one must be there
};

const std::vector<OtherMarks>& other_marks(const FileSettings& settings) {
  using enum Looks;
  static const std::vector<OtherMarks> none;
  static const std::vector<OtherMarks> of_commas = {
      {"thousands=.", {integer, real, points}, {points}}};
  static const std::vector<OtherMarks> of_points = {
      {"decimal=,", {integer, comma, grouped}, {comma}},
      {"thousands=,", {integer, real, grouped, commas}, {grouped, commas}},
      // 1.234 is one more number of a file that holds 1.234,5.
      {"decimal=,&thousands=.",
       {integer, real, comma, grouped, points},
       {points}}};
  if (!settings.thousands.empty()) return none;
  return settings.decimal == "," ? of_commas : of_points;
}

/// A cell in a URI, unchanged where a list allows it.
bool is_plain_in_uri(std::string_view text) {
  return is_utf8(text) && text.find_first_of(",&%#\"' \\") == text.npos;
}

}  // namespace

void SeenCells::add(Looks looks, std::string_view written, CellPlace place) {
  looks_ = wider(looks_, looks);
  Like& like = like_[static_cast<std::size_t>(looks)];
  if (like.cells++ == 0) {
    like.first = written;
    like.place = place;
  } else if (looks == Looks::text) {
    like.all_same = like.all_same && like.first == written;
  }
}

void SeenCells::add(const SeenCells& later) {
  looks_ = wider(looks_, later.looks_);
  stopped_ = stopped_ || later.stopped_;
  for (std::size_t at = 0; at < like_.size(); ++at) {
    Like& to = like_[at];
    const Like& from = later.like_[at];
    if (from.cells == 0) continue;
    if (to.cells == 0) {
      to = from;
      continue;
    }
    to.cells += from.cells;
    to.all_same = to.all_same && from.all_same && to.first == from.first;
  }
}

NumberQuestion::NumberQuestion(const SeenCells& seen, const SourceSpec& spec)
    : seen_(seen),
      spec_(spec),
      quote_(quote_of(file_settings_of(spec))),
      numbers_(seen.cells(Looks::integer) + seen.cells(Looks::real)) {
  auto sum = [&](const std::vector<Looks>& of) {
    std::int64_t cells = 0;
    for (Looks looks : of) cells += seen.cells(looks);
    return cells;
  };
  for (std::size_t at = 1; at < seen.like_.size(); ++at)
    cells_ += seen.like_[at].cells;
  most_ = numbers_;
  for (const OtherMarks& marks : other_marks(file_settings_of(spec)))
    if (sum(marks.tells) > 0 && sum(marks.numbers) > most_) {
      most_ = sum(marks.numbers);
      marks_ = marks.settings;
    }
}

bool NumberQuestion::decimal_commas() const {
  return !seen_.stopped() && marks_.starts_with("decimal") && most_ == cells_;
}

bool NumberQuestion::asked() const {
  return !seen_.stopped() && numbers_ < cells_ && most_ >= kFewestNumbers &&
         most_ * 10 >= cells_ * 9;
}

const SeenCells::Like& NumberQuestion::stray() const {
  const SeenCells::Like* first = nullptr;
  for (std::size_t at = 1; at < seen_.like_.size(); ++at) {
    const SeenCells::Like& like = seen_.like_[at];
    const auto looks = static_cast<Looks>(at);
    if (looks == Looks::integer || looks == Looks::real || like.cells == 0)
      continue;
    if (first == nullptr || like.place < first->place) first = &like;
  }
  return *first;
}

std::string NumberQuestion::no_value() const {
  const SeenCells::Like& texts = seen_.of(Looks::text);
  const bool only =
      texts.cells > 0 && texts.all_same && most_ + texts.cells == cells_;
  return only && is_plain_in_uri(texts.first) &&
                 texts.first.find_first_of("0123456789") == std::string::npos
             ? texts.first
             : std::string();
}

Doubt NumberQuestion::doubt(
    const std::string& column, const std::string& path,
    const std::function<std::string(CellPlace)>& place_of) const {
  const std::string name = Json(column).dump();
  const SeenCells::Like& first = stray();
  const std::string none = no_value();
  std::string settings = marks_;
  if (!none.empty())
    settings += (settings.empty() ? "" : "&") +
                with_no_value(file_settings_of(spec_), none);
  const char* type = seen_.cells(Looks::real) == 0 ? "int64" : "float64";
  const std::int64_t others = cells_ - numbers_;
  const std::string leaves_out =
      "'" +
      csv_uri(spec_, path,
              with_column_type(file_settings_of(spec_), column, type) +
                  "&on_bad=skip") +
      "' to leave such rows out";
  std::string next = "write ";
  if (!settings.empty())
    next += "'" + csv_uri(spec_, path, settings) + "'" +
            (none.empty() ? " for numbers" : " for no value");
  else
    next += leaves_out;
  return {.column = column,
          .type = type,
          .why = std::to_string(numbers_) + " of its " +
                 std::to_string(cells_) + " cells are numbers, and " +
                 (others == 1 ? "1 is not: "
                              : std::to_string(others) + " are not, first ") +
                 shown_text(inside(first.first, quote_)) + " (" +
                 place_of(first.place) + ")",
          .next = next + ", or {" + name + ":\"text\"} as columns for classes"};
}

}  // namespace penstock::text
