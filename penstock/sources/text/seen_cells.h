#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "penstock/base/columns.h"
#include "penstock/sources/files/file_settings.h"
#include "penstock/sources/text/cells.h"

namespace penstock::text {

/// Where a cell stands.
struct CellPlace {
  std::size_t file = 0;  ///< which of a source
  std::int64_t row = 0;  ///< of the file

  auto operator<=>(const CellPlace&) const = default;
};

/// Cells of one column that were looked at.
class SeenCells {
 public:
  /// `written`: with its quotation marks.
  void add(Looks looks, std::string_view written, CellPlace place);
  /// Those that stand behind these.
  void add(const SeenCells& later);
  /// So many are texts that the others need not be looked at.
  void stop() { stopped_ = true; }

  /// What holds all of them.
  Looks looks() const { return looks_; }
  std::int64_t cells(Looks like) const { return of(like).cells; }
  bool stopped() const { return stopped_; }

 private:
  friend class NumberQuestion;
  struct Like {
    std::int64_t cells = 0;
    std::string first = {};  ///< as written
    CellPlace place = {};
    bool all_same = true;  ///< as the first
  };
  const Like& of(Looks like) const {
    return like_[static_cast<std::size_t>(like)];
  }

  std::array<Like, static_cast<std::size_t>(Looks::text) + 1> like_;
  Looks looks_ = Looks::nothing;
  bool stopped_ = false;
};

/// What has to be asked of a column that would be one of texts by itself,
/// because nearly all of its cells are numbers, or would be with other marks.
class NumberQuestion {
 public:
  NumberQuestion(const SeenCells& seen, const SourceSpec& spec);

  /// All cells are numbers where the decimal mark is a comma.
  bool decimal_commas() const;
  /// At least ten cells and nine of ten are numbers.
  bool asked() const;
  /// The settings that make numbers of the most: "decimal=,&thousands=.";
  /// empty: those that are there.
  const std::string& marks() const { return marks_; }
  /// `path`: of the first file; `place_of` shows where a cell stands.
  Doubt doubt(const std::string& column, const std::string& path,
              const std::function<std::string(CellPlace)>& place_of) const;

 private:
  /// The first cell that is no number as the file is read.
  const SeenCells::Like& stray() const;
  /// The text that stands for no value, where it is the only one that is no
  /// number with `marks_`; empty: there are others.
  std::string no_value() const;

  const SeenCells& seen_;
  const SourceSpec& spec_;
  const char quote_;
  std::int64_t cells_ = 0;    ///< that hold something
  std::int64_t numbers_ = 0;  ///< as the file is read
  std::int64_t most_ = 0;     ///< with `marks_`
  std::string marks_;
};

}  // namespace penstock::text
