#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/sources/files/row_file.h"
#include "penstock/sources/text/cells.h"
#include "penstock/sources/text/text_rows.h"

namespace penstock::text {

/// The FileColumn that looks so, or that `source.columns` says.
files::FileColumn column_that_looks(const std::string& name, Looks looks);
files::FileColumn column_chosen(const std::string& name, std::string_view type);

/// The types that `source.columns` chooses, which must outlive it.
class ChosenTypes {
 public:
  explicit ChosenTypes(const FileSettings& settings)
      : types_(settings.columns.begin(), settings.columns.end()) {}
  /// Of a column; empty: none is chosen.
  std::string_view of(const std::string& name) const {
    const auto found = types_.find(name);
    return found == types_.end() ? std::string_view() : found->second;
  }

 private:
  std::map<std::string_view, std::string_view> types_;
};

/// The chunks, of those that there are, that are looked at for types: all of a
/// small file, else some that are spread over it.
std::vector<std::size_t> looked_at(std::size_t chunks, std::size_t files);

/// Appends to a column what `text` says, which is not missing. False: it is no
/// such value, and nothing was appended.
bool append_cell(const CellReader& reader, std::string_view text,
                 const files::FileColumn& as, Column& to);

/// "a number of float64", for a problem.
std::string expected_of(const files::FileColumn& column);

/// Reads a chunk, with room before and behind it for vector code.
class ChunkBuffer {
 public:
  static constexpr std::size_t kPadding = 64;
  std::string_view read(const PlainText& text, const TextChunk& chunk);

 private:
  std::vector<char> bytes_;
};

/// Opens files of these kinds, as a FileKind does.
std::vector<std::shared_ptr<const files::RowFile>> open_csv(
    const SourceSpec& spec, const std::vector<files::DataFile>& files,
    StopFlag stop);
std::vector<std::shared_ptr<const files::RowFile>> open_documents(
    const SourceSpec& spec, const std::vector<files::DataFile>& files,
    StopFlag stop);
std::vector<std::shared_ptr<const files::RowFile>> open_jsonl(
    const SourceSpec& spec, const std::vector<files::DataFile>& files,
    StopFlag stop);

}  // namespace penstock::text
