#include <algorithm>
#include <optional>

#include "penstock/base/error.h"
#include "penstock/sources/files/where.h"
#include "penstock/sources/timestamp.h"

// A condition is bound to columns once: names become numbers of columns, and
// what is compared must be of one kind.

namespace penstock::files {
namespace {

using Kind = Condition::Kind;

enum class Compared : std::uint8_t { number, text, time, null, other, truth };

class Binder {
 public:
  Binder(const std::string& text, const std::vector<FileColumn>& columns,
         std::vector<std::size_t>& used)
      : text_(text), columns_(columns), used_(used) {}

  void bind_truth(Condition& node) {
    switch (node.kind) {
      case Kind::both:
      case Kind::either:
      case Kind::no:
        for (Condition& part : node.parts) bind_truth(part);
        return;
      case Kind::column: {
        Compared is = bind(node);
        if (is == Compared::number) return;
        fail(node,
             "column '" + node.text + "' is not a condition by itself: it is " +
                 declared(node),
             "compare the column with a value");
      }
      case Kind::text:
        fail(node, "a text is not a condition",
             "compare the text with a column");
      case Kind::number:
      case Kind::null:
        return;
      case Kind::is_null:
        if (bind(node.parts[0]) == Compared::truth)
          fail(node, "IS NULL follows a comparison",
               "name a column before IS NULL");
        return;
      case Kind::like:
        if (Compared is = bind(node.parts[0]);
            is != Compared::text && is != Compared::null)
          fail(node.parts[0],
               "LIKE is about text, and this is " + shown(node.parts[0], is),
               "compare with = < > instead");
        return;
      case Kind::compare:
      case Kind::in:
      case Kind::between:
        bind_comparison(node);
        return;
    }
  }

 private:
  [[noreturn]] void fail(const Condition& at, std::string why,
                         std::string next) const {
    throw bad_condition(text_, at.position, std::move(why), std::move(next));
  }
  const FileColumn& column(const Condition& node) const {
    return columns_[used_[node.column]];
  }
  std::string declared(const Condition& node) const {
    return column(node).declared;
  }
  std::string shown(const Condition& node, Compared is) const {
    if (node.kind == Kind::column)
      return "column '" + node.text + "' (" + declared(node) + ")";
    if (node.kind == Kind::number) return "a number";
    if (node.kind == Kind::text) return "a text";
    return is == Compared::truth ? "a condition" : "NULL";
  }

  // An exact name comes first. Names that differ only in case are found as in
  // SQL, unless two columns would match.
  std::size_t find(const Condition& node) const {
    auto found = std::ranges::find(columns_, node.text, &FileColumn::name);
    if (found == columns_.end()) {
      auto like = [&](const FileColumn& c) {
        return same_ascii(c.name, node.text);
      };
      if (std::ranges::count_if(columns_, like) == 1)
        found = std::ranges::find_if(columns_, like);
    }
    if (found != columns_.end())
      return static_cast<std::size_t>(found - columns_.begin());
    std::vector<std::string> names;
    for (const FileColumn& c : columns_) names.push_back(c.name);
    fail(node, "there is no column '" + node.text + "'",
         did_you_mean(node.text, names));
  }

  Compared bind(Condition& node) {
    if (node.kind == Kind::number) return Compared::number;
    if (node.kind == Kind::text) return Compared::text;
    if (node.kind == Kind::null) return Compared::null;
    if (node.kind != Kind::column) {
      bind_truth(node);
      return Compared::truth;
    }
    std::size_t at = find(node);
    auto used = std::ranges::find(used_, at);
    node.column = static_cast<std::size_t>(used - used_.begin());
    if (used == used_.end()) used_.push_back(at);
    const FileColumn& of = columns_[at];
    if (of.type.is_text()) return Compared::text;
    if (of.timestamp) return Compared::time;
    if (of.type.kind == ColumnKind::number ||
        of.type.kind == ColumnKind::boolean)
      return Compared::number;
    return of.type.kind == ColumnKind::null ? Compared::null : Compared::other;
  }

  void bind_comparison(Condition& node) {
    std::vector<Compared> are;
    for (Condition& part : node.parts) are.push_back(bind(part));
    for (std::size_t at = 0; at < are.size(); ++at)
      if (are[at] == Compared::truth || are[at] == Compared::other)
        fail(node.parts[at],
             are[at] == Compared::truth
                 ? "a condition is compared"
                 : shown(node.parts[at], are[at]) + " cannot be compared",
             are[at] == Compared::truth
                 ? "combine conditions by AND, OR and NOT"
                 : "only IS NULL can be applied to it");
    for (std::size_t at = 1; at < are.size(); ++at)
      agree(node.parts[0], are[0], node.parts[at], are[at]);
  }

  /// What is compared is of one kind; a text beside a time becomes a time.
  void agree(Condition& left, Compared& one, Condition& right,
             Compared& other) {
    if (one == Compared::null || other == Compared::null) return;
    if (one == Compared::time && other == Compared::text) time(right, other);
    if (other == Compared::time && one == Compared::text) time(left, one);
    auto plain = [](Compared is) {
      return is == Compared::time ? Compared::number : is;
    };
    if (plain(one) == plain(other)) return;
    fail(right, shown(right, other) + " is compared with " + shown(left, one),
         plain(one) == Compared::text
             ? "write the value in 'quotation marks'"
             : "write the value without quotation marks");
  }
  void time(Condition& node, Compared& is) const {
    if (node.kind != Kind::text) return;
    std::optional<double> seconds = timestamp_from(node.text);
    if (!seconds)
      fail(node, "'" + node.text + "' is not a time",
           "write the time in ISO-8601: '2023-11-14 22:13:20'");
    node.kind = Kind::number;
    node.number = static_cast<long double>(*seconds);
    is = Compared::number;
  }

  const std::string& text_;
  const std::vector<FileColumn>& columns_;
  std::vector<std::size_t>& used_;
};

}  // namespace

std::vector<std::size_t> bind_condition(const std::string& text,
                                        const std::vector<FileColumn>& columns,
                                        Condition& condition) {
  std::vector<std::size_t> used;
  Binder(text, columns, used).bind_truth(condition);
  return used;
}

}  // namespace penstock::files
