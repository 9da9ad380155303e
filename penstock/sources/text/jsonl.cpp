#include <algorithm>
#include <array>
#include <string_view>

#include "penstock/base/utf8.h"
#include "penstock/base/with_number.h"
#include "penstock/sources/other_columns.h"
#include "penstock/sources/text/json_lines.h"
#include "penstock/sources/text/json_members.h"
#include "penstock/sources/text/json_survey.h"
#include "penstock/sources/text/json_syntax.h"
#include "penstock/sources/text/number_column.h"
#include "penstock/sources/text/text_file.h"

// A line is an object. Members of objects in objects are columns of their own,
// "a.b", and so are keys that are written with a dot; lists stay JSON text,
// which fields like `json_set` read.

namespace penstock::text {
namespace {

namespace od = simdjson::ondemand;
using files::FileColumn;

/// Where the first line begins.
std::int64_t behind_mark(const PlainText& text) {
  std::array<char, kByteOrderMark.size()> start;
  if (text.size() < std::ssize(start)) return 0;
  text.read(0, start.data(), start.size());
  return std::ranges::equal(start, kByteOrderMark) ? std::ssize(start) : 0;
}

struct JsonlFile final : files::RowFile,
                         std::enable_shared_from_this<JsonlFile> {
  JsonlFile(const files::DataFile& file, const FileSettings& settings,
            StopFlag stop)
      : text(std::make_shared<const PlainText>(file, settings.encoding, stop,
                                               QuotationMarks('\0', '\0'))),
        rows_found(std::make_shared<const TextRows>(
            find_rows(*text, behind_mark(*text), 1, {}, stop))) {
    facts_.chunk_ends = rows_found->ends;
  }
  std::string place_of(std::int64_t row) const override {
    return text->place(line_of_row(*text, *rows_found, {}, row));
  }
  void set_columns(std::shared_ptr<const JsonColumns> columns);
  std::shared_ptr<const RowFile> for_columns(
      const std::vector<files::ReadColumn>& columns) const override;
  std::unique_ptr<files::ChunkReader> open(
      const std::vector<std::size_t>& columns) const override;

  const std::shared_ptr<const PlainText> text;
  const std::shared_ptr<const TextRows> rows_found;
  CellReader reader{{}, '.'};
  std::shared_ptr<const JsonColumns> found;
  std::vector<std::uint8_t> strict_;  // by column: of texts, only these are
};

void JsonlFile::set_columns(std::shared_ptr<const JsonColumns> columns) {
  found = std::move(columns);
  for (const JsonColumn& one : found->all) facts_.columns.push_back(one.column);
  if (!found->whole)
    facts_.left_out.push_back(
        {.name = kOtherColumns,
         .why = "columns were determined from parts of the file",
         .next = "give the types of other columns as source.columns"});
  strict_.assign(found->all.size(), 0);
}

std::shared_ptr<const files::RowFile> JsonlFile::for_columns(
    const std::vector<files::ReadColumn>& columns) const {
  auto made = std::make_shared<JsonlFile>(*this);
  bool differs = false;
  for (const files::ReadColumn& read : columns) {
    const JsonColumn& as = found->all[read.column];
    FileColumn& to = made->facts_.columns[read.column];
    if (read.as_number && as.numbers != Looks::nothing) {
      to = column_that_looks(to.name, as.numbers);
      differs = true;
    } else if (read.as_document && !as.chosen && to.type == ColumnType::text) {
      made->strict_[read.column] = 1;
      differs = true;
    }
  }
  return differs ? made : nullptr;
}

class JsonlReader final : public files::ChunkReader {
 public:
  JsonlReader(std::shared_ptr<const JsonlFile> file,
              std::vector<std::size_t> columns)
      : file_(std::move(file)),
        columns_(std::move(columns)),
        numbers_(columns_.size()) {
    for (std::size_t at = 0; at < columns_.size(); ++at)
      members_.add(column(at).name, static_cast<std::int64_t>(at),
                   file_->found->paths);
  }

  void read(std::int64_t chunk, const files::PieceSink& sink) override {
    Block block;
    block_ = &block;
    room_ = static_cast<std::size_t>(file_->chunk_end(chunk) -
                                     file_->chunk_begin(chunk));
    const TextChunk& lines =
        file_->rows_found->chunks[static_cast<std::size_t>(chunk)];
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      block.columns.emplace_back().type = column(c).type;
      if (column(c).type.is_text())
        make_room(block.columns[c], static_cast<std::size_t>(lines.bytes));
      if (is_number(column(c))) numbers_[c].start(column(c).type, room_);
    }
    filled_.assign(columns_.size(), -1);
    lines_.each(*file_->text, lines,
                [&](simdjson::error_code error, od::document& document,
                    std::int64_t line, std::string_view row) {
                  line_ = line;
                  row_ = row;
                  if (static_cast<std::size_t>(block.rows) == room_)
                    make_room();
                  error = take(error, document);
                  if (error) refuse(error, row);
                  end_row();
                });
    for (std::size_t c = 0; c < columns_.size(); ++c)
      if (is_number(column(c)))
        block.columns[c] =
            numbers_[c].take(static_cast<std::size_t>(block.rows));
    sink(std::move(block));
  }

 private:
  const FileColumn& column(std::size_t at) const {
    return file_->facts().columns[columns_[at]];
  }
  /// For texts of so many bytes of lines, and not to grow with each of them.
  void make_room(Column& column, std::size_t bytes) const {
    column.values.resize(bytes / columns_.size());
    column.values.clear();
  }
  /// For more rows than there were when the file was opened.
  void make_room() {
    room_ = 2 * room_ + 1;
    for (std::size_t c = 0; c < columns_.size(); ++c)
      if (is_number(column(c))) numbers_[c].make_room(room_);
  }
  // Invariant: between two lines all columns have block_->rows rows. filled_[c]
  // is the last row that has a value in column c, so a member that is missing
  // and one that stands twice are both seen without a list of names for each
  // line.
  void end_row() {
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (filled_[c] == block_->rows) continue;
      if (is_number(column(c)))
        numbers_[c].set_missing(static_cast<std::size_t>(block_->rows));
      else
        block_->columns[c].append_null();
    }
    ++block_->rows;
  }

  // On-Demand parsing checks only what it walks over. A line counts as read
  // once its object has been walked to the end and nothing follows it; members
  // that no column needs are skipped by their structure alone.
  simdjson::error_code take(simdjson::error_code error,
                            od::document& document) {
    od::object object;
    if (!error) error = document.get_object().get(object);
    if (!error) error = members(object, members_.top());
    const char* rest = nullptr;
    if (!error && !document.current_location().get(rest))
      error = simdjson::TAPE_ERROR;  // something follows it
    return error;
  }

  /// Where a part of the line is: " (train.jsonl:51:10)".
  std::string place_of(std::string_view token) const {
    return " (" + file_->text->place(line_) + ":" +
           std::to_string(token.data() - row_.data() + 1) + ")";
  }
  void refuse(simdjson::error_code error, std::string_view row) {
    const std::string why = why_bad_line(error, row, file_->text->place(line_));
    for (std::size_t c = 0; c < columns_.size(); ++c)
      block_->problems.push_back({block_->rows, c, why});
  }

  simdjson::error_code members(od::object& object, JsonMembers& wanted) {
    std::size_t next = 0;
    for (auto each : object) {
      od::field field;
      if (auto error = std::move(each).get(field)) return error;
      JsonMembers::Member* member = next_named(wanted.all, field, next);
      if (member == nullptr) {
        std::string_view name;
        if (auto error = field.unescaped_key().get(name)) return error;
        member = wanted.find(name, next);
      }
      if (member == nullptr) continue;
      if (auto error = take(field.value(), *member)) return error;
    }
    return simdjson::SUCCESS;
  }

  simdjson::error_code take(od::value& value,
                            const JsonMembers::Member& member) {
    od::json_type type;
    if (auto error = value.type().get(type)) return error;
    if (member.column >= 0)
      return value_of(value, type, static_cast<std::size_t>(member.column));
    if (member.path == JsonPath::column) return simdjson::SUCCESS;
    if (type == od::json_type::object) {
      od::object object;
      if (auto error = value.get_object().get(object)) return error;
      return members(object, *member.members);
    }
    if (type == od::json_type::null) return null(value);
    return member.path == JsonPath::object ? problem_of_members(value, member)
                                           : simdjson::SUCCESS;
  }

  static simdjson::error_code null(od::value& value) {
    return without_space(value.raw_json_token()) == "null"
               ? simdjson::SUCCESS
               : simdjson::TAPE_ERROR;
  }

  /// Something else stands where an object was expected.
  simdjson::error_code problem_of_members(od::value& value,
                                          const JsonMembers::Member& member) {
    std::string_view raw = without_space(value.raw_json_token());
    for (const JsonMembers::Member& inner : member.members->all)
      if (inner.column >= 0)
        add_problem(static_cast<std::size_t>(inner.column), raw, raw,
                    "an object");
    return simdjson::SUCCESS;
  }

  /// `token` stands in the line, and is what was found or its beginning.
  void add_problem(std::size_t at, std::string_view token,
                   std::string_view found, const std::string& expected) {
    block_->problems.push_back({block_->rows, at,
                                "holds " + beginning(found) + " where " +
                                    expected + " is expected" +
                                    place_of(token)});
  }

  simdjson::error_code value_of(od::value& value, od::json_type type,
                                std::size_t at) {
    const FileColumn& as = column(at);
    Column& to = block_->columns[at];
    std::string_view token = without_space(value.raw_json_token());
    if (filled_[at] == block_->rows) {
      block_->problems.push_back(
          {block_->rows, at, "appears twice in its line" + place_of(token)});
      return simdjson::SUCCESS;
    }
    std::string_view found = token;
    bool good = false;
    switch (type) {
      case od::json_type::null:
        return null(value);
      case od::json_type::array:
      case od::json_type::object:
        if (auto error = simdjson::to_json_string(value).get(found))
          return error;
        found = without_space(found);
        if (!syntax_.is_value(found)) return simdjson::TAPE_ERROR;
        if ((good = to.type.is_text() && !strict(at))) to.append_text(found);
        break;
      case od::json_type::string:
        if (to.type == ColumnType::json) {  // as written
          if (!syntax_.is_value(token)) return simdjson::STRING_ERROR;
          to.append_text(token);
          good = true;
          break;
        }
        if (auto error = value.get_string().get(found)) return error;
        good = to.type.kind != ColumnKind::null &&
               (to.type.is_text() || as.timestamp) &&
               append_cell(file_->reader, found, as, to);
        found = token;
        break;
      case od::json_type::boolean:
      case od::json_type::number:
        if (type == od::json_type::boolean && token != "true" &&
            token != "false")
          return simdjson::TAPE_ERROR;
        if (is_number(as) && plain_number(token, at)) {
          if (!is_json_decimal(token)) return simdjson::NUMBER_ERROR;
          good = true;
          break;
        }
        if (type == od::json_type::number && !is_json_number(token))
          return simdjson::NUMBER_ERROR;
        good = is_number(as)
                   ? number(token, at)
                   : to.type.kind != ColumnKind::null && !strict(at) &&
                         append_cell(file_->reader, token, as, to);
        break;
    }
    if (good)
      filled_[at] = block_->rows;
    else
      add_problem(at, token, found, strict(at) ? "a text" : expected_of(as));
    return simdjson::SUCCESS;
  }

  bool strict(std::size_t at) const {
    return file_->strict_[columns_[at]] != 0;
  }

  bool plain_number(std::string_view token, std::size_t at) {
    const auto row = static_cast<std::size_t>(block_->rows);
    return with_number(column(at).type.dtype, [&]<class Number>(Typed<Number>) {
      return file_->reader.plain_number(token,
                                        numbers_[at].values<Number>()[row]);
    });
  }
  bool number(std::string_view token, std::size_t at) {
    const auto row = static_cast<std::size_t>(block_->rows);
    return with_number(column(at).type.dtype, [&]<class Number>(Typed<Number>) {
      return file_->reader.number(token, numbers_[at].values<Number>()[row]);
    });
  }

  const std::shared_ptr<const JsonlFile> file_;
  const std::vector<std::size_t> columns_;
  JsonTree members_;
  JsonSyntax syntax_;
  Lines lines_;
  Block* block_ = nullptr;             // while a chunk is read
  std::vector<NumberColumn> numbers_;  // of the block, where it has such
  std::size_t room_ = 0;               // of them, in rows
  std::vector<std::int64_t> filled_;   // the last row that is, by column
  std::int64_t line_ = 0;
  std::string_view row_;  // the text of the line
};

std::unique_ptr<files::ChunkReader> JsonlFile::open(
    const std::vector<std::size_t>& columns) const {
  return std::make_unique<JsonlReader>(shared_from_this(), columns);
}

}  // namespace

std::vector<std::shared_ptr<const files::RowFile>> open_jsonl(
    const SourceSpec& spec, const std::vector<files::DataFile>& data,
    StopFlag stop) {
  const FileSettings& settings = file_settings_of(spec);
  const CellReader reader({}, '.');
  JsonSurvey survey(reader);
  std::vector<std::shared_ptr<JsonlFile>> opened;
  bool whole = true;
  for (const files::DataFile& file : data) {
    auto jsonl = std::make_shared<JsonlFile>(file, settings, stop);
    const TextRows& rows = *jsonl->rows_found;
    const std::vector<std::size_t> chunks =
        looked_at(rows.chunks.size(), data.size());
    for (std::size_t chunk : chunks) {
      end_if_stopped(stop);
      survey.look(*jsonl->text, rows.chunks[chunk]);
    }
    whole &= chunks.size() == rows.chunks.size();
    opened.push_back(std::move(jsonl));
  }
  survey.check_objects();
  // A member that a line lacks is NULL there, and so it is in a whole file.
  const auto columns =
      std::make_shared<const JsonColumns>(survey.columns(settings, whole));
  std::vector<std::shared_ptr<const files::RowFile>> all;
  for (const auto& jsonl : opened) {
    jsonl->set_columns(columns);
    all.push_back(jsonl);
  }
  return all;
}

}  // namespace penstock::text
