#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>

#include "penstock/base/error.h"
#include "penstock/base/json.h"
#include "penstock/base/utf8.h"
#include "penstock/sources/files/open_file.h"
#include "penstock/sources/images/find_pictures.h"

namespace penstock::images {
namespace {

/// Reads a labels file line by line. It may list files without their classes.
class Labels {
 public:
  Labels(const std::string& path, const Media& media) : path_(path) {
    refuse_table(media);
    // A pipe without a writer would be waited for.
    if (!files::open_file(path))
      refuse("images.labels", path, why_not_opened(errno),
             "name a file of CSV, TSV or JSON lines");
    file_.open(path, std::ios::binary);
    if (!is_json()) read_header();
  }

  /// The next name and class, which may be empty; nullopt at the end.
  std::optional<std::pair<std::string, std::string>> next() {
    while (std::optional<std::string> text = line()) {
      if (text->empty()) continue;
      return is_json() ? of_json(*text) : of_cells(cells_of(*text));
    }
    return std::nullopt;
  }
  std::string place() const {
    return path_ + ", line " + std::to_string(line_);
  }
  [[noreturn]] void fail(std::string why, std::string next) const {
    refuse("images.labels", place(), std::move(why), std::move(next));
  }

 private:
  static constexpr std::array<const char*, 4> kPath = {"path", "file_name",
                                                       "image", "audio"};
  static constexpr std::array<const char*, 2> kClass = {"class", "label"};
  static constexpr const char* kExpected =
      "give it a column \"path\" (or \"file_name\"), and for the classes "
      "\"class\" (or \"label\")";

  /// What other sources read may say the classes, too.
  void refuse_table(const Media& media) const {
    for (const char* ending :
         {".parquet", ".arrow", ".feather", ".sqlite", ".db"})
      if (path_.ends_with(ending))
        refuse("images.labels", path_, "the file is not text",
               "make the file the source, {\"kind\": \"parquet\", \"path\": "
               "...}, and let a field read its column of paths: {\"" +
                   std::string(media.kind_of_field) +
                   "\": {\"column\": \"path\", \"folder\": ...}}");
  }
  bool is_json() const {
    return path_.ends_with(".jsonl") || path_.ends_with(".ndjson");
  }
  char separator() const {
    return path_.ends_with(".tsv") || path_.ends_with(".tab") ? '\t' : ',';
  }
  std::optional<std::string> line() {
    constexpr std::string_view kMark = "\xEF\xBB\xBF";  // of UTF-8
    std::string text;
    if (!std::getline(file_, text)) return std::nullopt;
    if (++line_ == 1 && text.starts_with(kMark)) text.erase(0, kMark.size());
    if (text.ends_with('\r')) text.pop_back();
    return text;
  }

  std::vector<std::string> cells_of(const std::string& text) const {
    std::vector<std::string> cells(1);
    bool quoted = false;
    for (std::size_t at = 0; at < text.size(); ++at) {
      const bool twice = at + 1 < text.size() && text[at + 1] == '"';
      if (text[at] == '"' && quoted && twice)
        cells.back() += text[++at];
      else if (text[at] == '"')
        quoted = !quoted;
      else if (text[at] == separator() && !quoted)
        cells.emplace_back();
      else
        cells.back() += text[at];
    }
    if (quoted)
      fail("a quotation mark is never closed", "close it on the same line");
    return cells;
  }
  template <class Names>
  static std::size_t find(const std::vector<std::string>& cells,
                          const Names& names) {
    for (const char* name : names)
      if (auto found = std::ranges::find(cells, name); found != cells.end())
        return static_cast<std::size_t>(found - cells.begin());
    return cells.size();
  }
  void read_header() {
    const std::string header = line().value_or("");
    const std::vector<std::string> cells = cells_of(header);
    columns_ = cells.size();
    path_column_ = find(cells, kPath);
    class_column_ = find(cells, kClass);
    if (path_column_ == columns_)
      fail("its first line is " + shown_text(header), kExpected);
  }
  std::pair<std::string, std::string> of_cells(
      const std::vector<std::string>& cells) const {
    if (cells.size() != columns_)
      fail("found " + std::to_string(cells.size()) + " cells, expected " +
               std::to_string(columns_),
           "write one for each column");
    return {cells[path_column_],
            class_column_ < columns_ ? cells[class_column_] : ""};
  }
  std::pair<std::string, std::string> of_json(const std::string& text) const {
    Json row;
    try {
      row = Json::parse(text, path_);
    } catch (const Error& error) {
      fail(error.parts().why, "write one object of JSON on each line");
    }
    const std::optional<std::string> name = member(row, kPath);
    if (!name) fail("this row lacks the key", kExpected);
    return {*name, member(row, kClass).value_or("")};
  }
  template <class Names>
  static std::optional<std::string> member(const Json& row,
                                           const Names& names) {
    for (const char* name : names)
      if (const Json* found = row.is_object() ? row.find(name) : nullptr)
        if (!found->is_null())
          return found->is_string() ? found->string() : found->dump();
    return std::nullopt;
  }

  const std::string path_;
  std::ifstream file_;
  std::int64_t line_ = 0;
  std::size_t columns_ = 0, path_column_ = 0, class_column_ = 0;
};

}  // namespace

std::vector<FoundPicture> pictures_of_labels(
    const std::string& root, const std::string& path, const Media& media,
    const std::vector<std::string>& classes, StopFlag stop) {
  Labels labels(path, media);
  const DeclaredClasses allowed(classes);
  std::vector<FoundPicture> all;
  while (auto row = labels.next()) {
    end_if_stopped(stop);
    auto& [name, of_class] = *row;
    struct stat found {};
    if (::stat((root + "/" + name).c_str(), &found) != 0 ||
        !S_ISREG(found.st_mode))
      labels.fail(std::string("there is no ") + media.one + " '" + name +
                      "' in " + root,
                  "write paths relative to that folder, or set \"path\" to the "
                  "folder that they start from");
    const bool has_class = !of_class.empty();
    if (has_class) allowed.check(of_class, labels.place());
    all.push_back({.name = std::move(name),
                   .of_class = std::move(of_class),
                   .has_class = has_class});
  }
  if (all.empty())
    refuse("images.none", path, std::string("the file lists no ") + media.one,
           std::string("write one line for each ") + media.one +
               ", with its path");
  return all;
}

}  // namespace penstock::images
