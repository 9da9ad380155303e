#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "penstock/sources/text/json_lines.h"
#include "penstock/sources/text/json_members.h"

namespace penstock::text {

/// A column, and what it is besides to those who want numbers or documents.
struct JsonColumn {
  files::FileColumn column;
  /// What its numbers look like where it holds more of them than of anything
  /// else; nothing: they are what it holds, or there are fewer.
  Looks numbers = Looks::nothing;
  bool chosen = false;  ///< the job says its type
};

struct JsonColumns {
  std::vector<JsonColumn> all;
  bool whole = true;      ///< there are no other lines than those looked at
  JsonTree::Paths paths;  ///< the columns, and the objects around them
};

/// Finds what the paths of a set of JSON lines hold, in the order in which they
/// come. One thread's.
class JsonSurvey {
 public:
  /// `reader` must outlive it.
  explicit JsonSurvey(const CellReader& reader) : reader_(reader) {}

  /// A line that is damaged is not looked at further: reading it says why.
  void look(const PlainText& text, const TextChunk& chunk);
  /// Throws Error(source), files.damaged, where lines were looked at and none
  /// is an object.
  void check_objects() const;
  /// `whole`: there are no other lines.
  JsonColumns columns(const FileSettings& settings, bool whole) const;

 private:
  /// What the values of a path look like, however its keys are written:
  /// {"a": {"b": 1}} and {"a.b": 1} have the same one.
  struct Seen {
    Looks scalar = Looks::nothing, number = Looks::nothing;
    std::int64_t numbers = 0, others = 0;  ///< NULLs are neither
    bool list = false;
    bool object = false;
    bool members = false;  ///< an object there has some
    /// The objects in which it lies, each once; null: the line itself.
    std::vector<Seen*> within;

    /// Whether an object is its members.
    bool splits() const {
      return object && members && !list && scalar == Looks::nothing;
    }
  };
  /// The members of an object, as they came.
  struct Level {
    struct Member {
      Name name;
      std::string path;
      Seen* seen;
      std::unique_ptr<Level> members = {};
    };
    Seen* of = nullptr;  ///< null: the line itself
    std::vector<Member> all;
    std::map<std::string, std::size_t, std::less<>> by_name;
  };

  Level::Member* member_of(Level& level, simdjson::ondemand::field& field,
                           const std::string& prefix, std::size_t& next);
  void look(simdjson::ondemand::object& object, Level& level,
            const std::string& prefix, int depth);
  std::set<const Seen*> inside_json(const FileSettings& settings) const;

  const CellReader& reader_;
  Lines lines_;
  Level top_;
  std::string plain_;
  std::map<std::string, Seen> seen_;
  std::vector<std::string> order_;
  bool objects_ = false;             ///< there are
  std::string first_bad_, why_bad_;  ///< the first other line, and why
};

}  // namespace penstock::text
