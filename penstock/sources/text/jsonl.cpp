#include <simdjson.h>

#include <algorithm>
#include <map>

#include "penstock/base/error.h"
#include "penstock/base/utf8.h"
#include "penstock/sources/text/text_file.h"

// A line is an object. Members of objects in objects are columns of their own,
// "a.b"; lists stay JSON text, which fields like `json_set` read. simdjson
// finds the members; values that are not requested are passed over.

namespace penstock::text {
namespace {

namespace od = simdjson::ondemand;
using files::FileColumn;

constexpr int kDeepest = 32;  // objects in objects

/// Where the members of an object go.
struct Members {
  struct Member {
    std::string name;
    std::int64_t column = -1;  ///< of the reader; -1: its members are columns
    std::unique_ptr<Members> members = {};
  };
  std::vector<Member> all;

  void add(std::string_view path, std::int64_t column) {
    std::size_t dot = path.find('.');
    std::string name(path.substr(0, dot));
    auto found = std::ranges::find(all, name, &Member::name);
    if (found == all.end())
      found = all.insert(all.end(), Member{.name = std::move(name)});
    if (dot == path.npos) {
      found->column = column;
      return;
    }
    if (found->members == nullptr) found->members = std::make_unique<Members>();
    found->members->add(path.substr(dot + 1), column);
  }
  /// Members mostly come in the order in which they came before.
  const Member* find(std::string_view name, std::size_t& next) const {
    for (std::size_t tried = 0; tried < all.size(); ++tried, ++next) {
      if (next >= all.size()) next = 0;
      if (all[next].name == name) return &all[next++];
    }
    return nullptr;
  }
};

std::string_view without_space(std::string_view token) {
  return token.substr(0, token.find_last_not_of(" \n\r\t") + 1);
}

/// What the values of a path look like.
struct Seen {
  Looks scalar = Looks::nothing;
  bool list = false;
  bool object = false;
};

struct JsonlFile final : files::RowFile,
                         std::enable_shared_from_this<JsonlFile> {
  JsonlFile(const files::DataFile& file, const FileSettings& settings,
            StopFlag stop)
      : text(file, settings.encoding, stop) {
    rows_found = find_rows(text, 0, 1, {}, stop);
  }
  const std::vector<FileColumn>& columns() const override { return columns_; }
  const std::vector<std::int64_t>& chunk_ends() const override {
    return rows_found.ends;
  }
  std::unique_ptr<files::ChunkReader> open(
      const std::vector<std::size_t>& columns) const override;

  PlainText text;
  CellReader reader{{}, '.'};
  std::vector<FileColumn> columns_;
  TextRows rows_found;
};

/// The lines of a chunk, one after the other, as documents.
class Lines {
 public:
  /// `work(document or error, line, row)` for each that is not empty.
  template <class Work>
  void each(const JsonlFile& file, std::size_t chunk, Work work) {
    const TextChunk& of = file.rows_found.chunks[chunk];
    const std::string_view bytes = buffer_.read(file.text, of);
    each_row(bytes, {}, of.line, [&](std::string_view row, std::int64_t line) {
      od::document document;
      auto error = parser_
                       .iterate(row.data(), row.size(),
                                row.size() + simdjson::SIMDJSON_PADDING)
                       .get(document);
      work(error, document, line, row);
    });
  }

 private:
  ChunkBuffer buffer_;
  od::parser parser_;
};
static_assert(ChunkBuffer::kPadding >= simdjson::SIMDJSON_PADDING);

class JsonlReader final : public files::ChunkReader {
 public:
  JsonlReader(std::shared_ptr<const JsonlFile> file,
              std::vector<std::size_t> columns)
      : file_(std::move(file)), columns_(std::move(columns)) {
    for (std::size_t at = 0; at < columns_.size(); ++at)
      members_.add(file_->columns_[columns_[at]].name,
                   static_cast<std::int64_t>(at));
  }

  void read(std::int64_t chunk, const files::PieceSink& sink) override {
    Block block;
    for (std::size_t column : columns_)
      block.columns.emplace_back().type = file_->columns_[column].type;
    block_ = &block;
    lines_.each(*file_, static_cast<std::size_t>(chunk),
                [&](simdjson::error_code error, od::document& document,
                    std::int64_t line, std::string_view row) {
                  line_ = line;
                  filled_.assign(columns_.size(), false);
                  od::object object;
                  if (!error) error = document.get_object().get(object);
                  if (!error) error = members(object, members_, 0);
                  const char* rest = nullptr;
                  if (!error && !document.current_location().get(rest))
                    error = simdjson::TAPE_ERROR;  // something follows it
                  if (error) refuse(error, row);
                  for (std::size_t c = 0; c < columns_.size(); ++c)
                    if (!filled_[c]) block.columns[c].append_null();
                  ++block.rows;
                });
    sink(std::move(block));
  }

 private:
  std::string line_text() const {
    return " (" + file_->text.place(line_) + ")";
  }
  void refuse(simdjson::error_code error, std::string_view row) {
    std::string why = error == simdjson::INCORRECT_TYPE
                          ? "its line is no JSON object"
                          : std::string("its line is no JSON: ") +
                                simdjson::error_message(error);
    why += line_text() + ": " + shown_text(row);
    for (std::size_t c = 0; c < columns_.size(); ++c)
      block_->problems.push_back({block_->rows, c, why});
  }

  simdjson::error_code members(od::object& object, const Members& wanted,
                               int depth) {
    std::size_t next = 0;
    for (auto field : object) {
      std::string_view name;
      if (auto error = field.unescaped_key().get(name)) return error;
      const Members::Member* member = wanted.find(name, next);
      if (member == nullptr) continue;
      od::value value;
      if (auto error = field.value().get(value)) return error;
      if (auto error = take(value, *member, depth)) return error;
    }
    return simdjson::SUCCESS;
  }

  simdjson::error_code take(od::value& value, const Members::Member& member,
                            int depth) {
    od::json_type type;
    if (auto error = value.type().get(type)) return error;
    if (type == od::json_type::object && member.members != nullptr) {
      od::object object;
      if (auto error = value.get_object().get(object)) return error;
      return members(object, *member.members, depth + 1);
    }
    if (member.column < 0) {
      if (type == od::json_type::null) return simdjson::SUCCESS;
      return problem_of_members(value, member);
    }
    return value_of(value, type, static_cast<std::size_t>(member.column));
  }

  /// Something else stands where an object was expected.
  simdjson::error_code problem_of_members(od::value& value,
                                          const Members::Member& member) {
    std::string_view raw = without_space(value.raw_json_token());
    for (const Members::Member& inner : member.members->all)
      if (inner.column >= 0)
        add_problem(static_cast<std::size_t>(inner.column), raw, "an object");
    return simdjson::SUCCESS;
  }

  void add_problem(std::size_t at, std::string_view found,
                   const std::string& expected) {
    block_->problems.push_back({block_->rows, at,
                                "holds " + beginning(found) + " where " +
                                    expected + " is expected" + line_text()});
  }

  simdjson::error_code value_of(od::value& value, od::json_type type,
                                std::size_t at) {
    const FileColumn& column = file_->columns_[columns_[at]];
    Column& to = block_->columns[at];
    if (filled_[at]) {
      block_->problems.push_back(
          {block_->rows, at, "stands twice in its line" + line_text()});
      return simdjson::SUCCESS;
    }
    std::string_view token = without_space(value.raw_json_token());
    std::string_view found = token;
    bool good = false;
    switch (type) {
      case od::json_type::null:
        if (token != "null") return simdjson::TAPE_ERROR;
        return simdjson::SUCCESS;
      case od::json_type::array:
      case od::json_type::object:
        if (auto error = simdjson::to_json_string(value).get(found))
          return error;
        found = without_space(found);
        if ((good = to.type.is_text())) to.append_text(found);
        break;
      case od::json_type::string:
        if (to.type == ColumnType::json) {  // as it is written
          to.append_text(token);
          good = true;
          break;
        }
        if (auto error = value.get_string().get(found)) return error;
        good = to.type.kind != ColumnKind::null &&
               (to.type.is_text() || column.timestamp) &&
               append_cell(file_->reader, found, column, to);
        found = token;
        break;
      case od::json_type::boolean:
      case od::json_type::number:
        if (type == od::json_type::boolean && token != "true" &&
            token != "false")
          return simdjson::TAPE_ERROR;
        good = to.type.kind != ColumnKind::null &&
               append_cell(file_->reader, token, column, to);
        break;
    }
    if (good)
      filled_[at] = true;
    else
      add_problem(at, found, expected_of(column));
    return simdjson::SUCCESS;
  }

  const std::shared_ptr<const JsonlFile> file_;
  const std::vector<std::size_t> columns_;
  Members members_;
  Lines lines_;
  Block* block_ = nullptr;    // while a chunk is read
  std::vector<bool> filled_;  // of the row, by column
  std::int64_t line_ = 0;
};

std::unique_ptr<files::ChunkReader> JsonlFile::open(
    const std::vector<std::size_t>& columns) const {
  return std::make_unique<JsonlReader>(shared_from_this(), columns);
}

/// Finds what the paths of a set hold, in the order in which they come.
class Survey {
 public:
  explicit Survey(const CellReader& reader) : reader_(reader) {}

  // A line that is damaged is not looked at further: reading it says why.
  void look(const JsonlFile& file, std::size_t chunk) {
    lines_.each(file, chunk,
                [&](simdjson::error_code error, od::document& document,
                    std::int64_t, std::string_view) {
                  od::object object;
                  if (error || document.get_object().get(object)) return;
                  look(object, "", 0);
                });
  }

  std::vector<FileColumn> columns(const FileSettings& settings,
                                  bool whole) const {
    std::vector<FileColumn> columns;
    for (const std::string& path : order_) {
      const Seen& seen = seen_.at(path);
      std::string chosen = chosen_for(settings, path);
      const bool json = seen.list || (seen.object && !splits(path));
      if (inside_json(path) || (seen.object && !json && chosen.empty()))
        continue;
      Looks looks = json ? Looks::text : seen.scalar;
      if (looks == Looks::nothing && !whole) looks = Looks::text;
      if (!chosen.empty())
        columns.push_back(column_chosen(path, chosen));
      else if (json)
        columns.push_back(
            {.name = path, .declared = "json", .type = ColumnType::json});
      else
        columns.push_back(column_that_looks(path, looks));
    }
    // What is chosen is a column, also where no line has it.
    for (const auto& [path, type] : settings.columns)
      if (std::ranges::find(columns, path, &FileColumn::name) == columns.end())
        columns.push_back(column_chosen(path, type));
    return columns;
  }

 private:
  void look(od::object& object, const std::string& prefix, int depth) {
    for (auto field : object) {
      std::string_view name;
      od::value value;
      if (field.unescaped_key().get(name)) return;
      std::string path = prefix + std::string(name);
      if (field.value().get(value)) return;
      od::json_type type;
      if (value.type().get(type)) return;
      auto [found, is_new] = seen_.try_emplace(path);
      if (is_new) order_.push_back(path);
      Seen& seen = found->second;
      switch (type) {
        case od::json_type::null:
          break;
        case od::json_type::array:
          seen.list = true;
          break;
        case od::json_type::object: {
          seen.object = true;
          od::object inner;
          if (depth + 1 >= kDeepest) seen.list = true;
          if (seen.list) break;
          if (value.get_object().get(inner)) return;
          look(inner, path + ".", depth + 1);
          break;
        }
        case od::json_type::string:
          seen.scalar = wider(seen.scalar, Looks::text);
          break;
        case od::json_type::boolean:
        case od::json_type::number:
          seen.scalar =
              wider(seen.scalar,
                    reader_.looks({without_space(value.raw_json_token())}));
          break;
      }
    }
  }

  /// Whether an object is its members.
  bool splits(const std::string& path) const {
    const Seen& seen = seen_.at(path);
    if (seen.list || seen.scalar != Looks::nothing) return false;
    auto inner = seen_.lower_bound(path + ".");
    return inner != seen_.end() && inner->first.starts_with(path + ".");
  }
  /// Whether an object around it stays JSON.
  bool inside_json(const std::string& path) const {
    for (std::size_t dot = path.find('.'); dot != path.npos;
         dot = path.find('.', dot + 1)) {
      auto outer = seen_.find(path.substr(0, dot));
      if (outer != seen_.end() && outer->second.object && !splits(outer->first))
        return true;
    }
    return false;
  }

  const CellReader& reader_;
  Lines lines_;
  std::map<std::string, Seen> seen_;
  std::vector<std::string> order_;
};

}  // namespace

std::vector<std::shared_ptr<const files::RowFile>> open_jsonl(
    const SourceSpec& spec, const std::vector<files::DataFile>& data,
    StopFlag stop) {
  const FileSettings& settings = file_settings_of(spec);
  const CellReader reader({}, '.');
  Survey survey(reader);
  std::vector<std::shared_ptr<JsonlFile>> opened;
  bool whole = true;
  for (const files::DataFile& file : data) {
    auto jsonl = std::make_shared<JsonlFile>(file, settings, stop);
    whole &=
        look_at_file(jsonl->rows_found, data.size(), stop,
                     [&](std::size_t chunk) { survey.look(*jsonl, chunk); });
    opened.push_back(std::move(jsonl));
  }
  // A member that a line lacks is NULL there, and so it is in a whole file.
  std::vector<FileColumn> columns = survey.columns(settings, whole);
  std::vector<std::shared_ptr<const files::RowFile>> all;
  for (const auto& jsonl : opened) {
    jsonl->columns_ = columns;
    all.push_back(jsonl);
  }
  return all;
}

}  // namespace penstock::text
