#include "penstock/sources/files/file_set.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>
#include <unordered_map>

#include "penstock/base/error.h"
#include "penstock/base/name_index.h"
#include "penstock/sources/files/row_slice.h"
#include "penstock/sources/schema.h"

namespace penstock::files {
namespace {

constexpr const char* kNoPartition = "__HIVE_DEFAULT_PARTITION__";

Error other_schema(const DataFile& file, const std::string& column,
                   std::string why, std::string next) {
  return Error(ErrorKind::source,
               {.code = "files.schema",
                .what = "cannot read these files as one set of rows",
                .where = file.path + ", column '" + column + "'",
                .why = std::move(why),
                .next = std::move(next)});
}

constexpr const char* kNarrow =
    "name files of one kind as source.path (a pattern or a list)";

/// What to do about a column that some files lack; `can_unite`: the kind has
/// the setting.
std::string next_to_lacking(bool can_unite) {
  return (can_unite ? std::string("set \"schema\": \"union\" to use NULL where "
                                  "the column is missing, or ")
                    : std::string()) +
         kNarrow;
}

/// Classes have one order where all files say the same. Texts are classes
/// without it; numbers are not, whose names they would be.
void agree_on_classes(SetColumn& known, const FileColumn& column,
                      const FileSet& set, std::size_t file) {
  if (known.column.values == column.values) return;
  const bool both = !known.column.values.empty() && !column.values.empty();
  if (both && known.column.type.kind == ColumnKind::number)
    throw other_schema(
        set.data[file], column.name,
        "its numbers mean other class names than in " + set.data[0].path,
        "write the files with the same list of class names, or set "
        "\"columns\": {\"" +
            column.name + "\": \"int64\"} to use the numbers");
  known.column.values.clear();
}

/// The columns of all files; those of later ones stand at the end. A column's
/// type is that of the first file in which it has values. Later files must
/// agree, but a file whose values of it are all missing has no say (its type is
/// null). Indexed by name: O(files * columns).
void unite(FileSet& set, const FileSettings& settings, bool can_unite) {
  const NameIndex chosen(settings.columns,
                         &std::pair<std::string, std::string>::first);
  NameIndex places;
  for (std::size_t f = 0; f < set.files.size(); ++f)
    for (const FileColumn& column : set.files[f]->facts().columns) {
      const std::optional<std::size_t> place = places.find(column.name);
      if (!place) {
        if (f > 0 && !settings.union_schema)
          throw other_schema(
              set.data[f], column.name,
              "the file has this column, but " + set.data[0].path + " does not",
              next_to_lacking(can_unite));
        set.columns.push_back({.column = column, .in_files = column});
        places.add(column.name);
        continue;
      }
      SetColumn* known = &set.columns[*place];
      if (column.index.empty()) known->column.index.clear();
      if (known->in_files.type == column.type &&
          known->in_files.timestamp == column.timestamp &&
          (known->in_files.item == column.item || column.item_varies)) {
        if (known->in_files.item != column.item) known->column.item.clear();
        if (!chosen.find(column.name)) agree_on_classes(*known, column, set, f);
        continue;
      }
      // A file in which all values are missing says no type.
      if (column.type.kind == ColumnKind::null) continue;
      if (known->in_files.type.kind == ColumnKind::null) {
        known->column = known->in_files = column;
        continue;
      }
      throw other_schema(
          set.data[f], column.name,
          "the column is " + column.declared + " here, but " +
              known->in_files.declared + " in " + set.data[0].path,
          std::string("write the files with one type, or ") + kNarrow);
    }
}

/// Why a file that has a column of this name cannot give it; empty: it has
/// none.
std::string why_left_out(const RowFile& file, const std::string& name) {
  for (const LeftOutColumn& one : file.facts().left_out)
    if (one.name == name) return one.why;
  return {};
}

// Lists and tensors that a file lacks are an error even with "union", which
// gives NULL to single values alone.
void find_places(FileSet& set, bool may_lack, bool can_unite) {
  for (std::size_t f = 0; f < set.files.size(); ++f) {
    const std::vector<FileColumn>& own = set.files[f]->facts().columns;
    const NameIndex names(own, &FileColumn::name);
    std::vector<std::int64_t> places;
    for (const SetColumn& column : set.columns) {
      const std::optional<std::size_t> found =
          column.partition ? std::nullopt : names.find(column.in_files.name);
      std::int64_t place = found ? static_cast<std::int64_t>(*found) : -1;
      const bool row_of_values =
          column.in_files.type.kind == ColumnKind::list ||
          column.in_files.type.kind == ColumnKind::fixed;
      if (place < 0 && !column.partition) {
        const std::string& name = column.in_files.name;
        if (const std::string why = why_left_out(*set.files[f], name);
            !why.empty())
          throw other_schema(set.data[f], name, why, kNarrow);
        if (!may_lack || row_of_values)
          throw other_schema(set.data[f], name,
                             "the file lacks this column, which " +
                                 set.data[0].path + " has as " +
                                 column.in_files.declared,
                             next_to_lacking(can_unite));
      }
      if (found && own[*found].type.kind == ColumnKind::null) place = -1;
      places.push_back(place);
    }
    set.places.push_back(std::move(places));
  }
}

bool is_integer(const std::string& text) {
  std::int64_t value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// Columns that folders name: in all files or in none.
void add_partitions(FileSet& set) {
  std::vector<std::string> names;
  for (const auto& partition : set.data[0].partitions) {
    const std::string& name = partition.first;
    if (std::ranges::find(names, name) == names.end() &&
        std::ranges::none_of(set.columns, [&](const SetColumn& column) {
          return column.column.name == name;
        }))
      names.push_back(name);
  }
  set.partitions.resize(set.data.size());
  for (const std::string& name : names) {
    bool integers = true;
    for (std::size_t f = 0; f < set.data.size(); ++f) {
      const DataFile& file = set.data[f];
      auto found = std::ranges::find(
          file.partitions, name, &std::pair<std::string, std::string>::first);
      if (found == file.partitions.end())
        throw other_schema(file, name,
                           "no folder is named " + name + "=..., as those of " +
                               set.data[0].path + " are",
                           kNarrow);
      const bool lacks = found->second == kNoPartition;
      integers = integers && (lacks || is_integer(found->second));
      set.partitions[f].resize(set.columns.size());
      set.partitions[f].push_back(lacks ? "" : found->second);
    }
    FileColumn column{
        .name = name,
        .declared = integers ? "int64 (of folders)" : "text (of folders)",
        .type = integers ? ColumnType::int64 : ColumnType::text};
    set.columns.push_back(
        {.column = column, .in_files = column, .partition = true});
  }
  for (auto& values : set.partitions) values.resize(set.columns.size());
}

void choose_types(FileSet& set, const FileSettings& settings) {
  const NameIndex places(set.columns, [](const SetColumn& column) {
    return std::string_view(column.in_files.name);
  });
  for (const auto& chosen_column : settings.columns) {
    const std::string& name = chosen_column.first;
    const std::string& type = chosen_column.second;
    const std::optional<std::size_t> place = places.find(name);
    if (!place)
      column_of(set.schema(), name, "source.columns", set.data[0].path);
    SetColumn* found = &set.columns[*place];
    // Text files have parsed what was chosen.
    ServedColumn chosen = chosen_type(found->in_files, type);
    found->column.type = chosen.type;
    found->column.declared = type;
    found->column.values.clear();
    found->column.timestamp = type == "timestamp";
    found->column.index.clear();
    if (chosen.by != ServedColumn::By::itself ||
        chosen.type != found->in_files.type)
      found->chosen = chosen;
  }
}

}  // namespace

std::vector<FileColumn> FileSet::seen() const {
  std::vector<FileColumn> all;
  for (const SetColumn& column : columns) all.push_back(column.column);
  return all;
}

std::vector<std::size_t> FileSet::own_columns(
    std::size_t file, const std::vector<std::size_t>& columns) const {
  std::vector<std::size_t> own;
  for (std::size_t column : columns)
    if (std::int64_t place = places[file][column]; place >= 0)
      own.push_back(static_cast<std::size_t>(place));
  return own;
}

Schema FileSet::schema() const {
  Schema schema;
  for (const SetColumn& one : columns) {
    const FileColumn& column = one.column;
    schema.columns.push_back(
        {.name = column.name,
         .declared = column.declared,
         .boolean = column.type.kind == ColumnKind::boolean,
         .timestamp = column.timestamp,
         .text = column.type == ColumnType::text,
         .index = column.index,
         .values = column.values,
         .item = column.item});
  }
  std::set<std::string> left_out;
  for (const auto& file : files)
    std::ranges::copy(file->facts().doubts, std::back_inserter(schema.doubts));
  for (std::size_t f = 0; f < files.size(); ++f)
    for (LeftOutColumn one : files[f]->facts().left_out) {
      if (!left_out.insert(one.name).second) continue;
      if (files.size() > 1) one.why += " (" + data[f].relative + ")";
      schema.left_out.push_back(std::move(one));
    }
  return schema;
}

FileSet open_set(const SourceSpec& spec, const FileKind& kind, StopFlag stop) {
  const FileSettings& settings = file_settings_of(spec);
  FileSet set;
  set.data = kind.find(spec, kind.about);
  set.files = kind.open(spec, set.data, stop);
  const std::vector<SettingSchema> own = kind.about.settings.schemas();
  const bool can_unite = std::ranges::any_of(
      own, [](const SettingSchema& one) { return one.key == "schema"; });
  unite(set, settings, can_unite);
  add_partitions(set);
  find_places(set, settings.union_schema, can_unite);
  choose_types(set, settings);
  return set;
}

void add_path(FileSet& set) {
  const FileColumn column{.name = kPathColumn,
                          .declared = "text (of files)",
                          .type = ColumnType::text};
  set.columns.push_back(
      {.column = column, .in_files = column, .partition = true});
  for (std::size_t f = 0; f < set.data.size(); ++f) {
    set.places[f].push_back(-1);
    set.partitions[f].resize(set.columns.size());
    set.partitions[f].back() = set.data[f].relative;
  }
}

SetReader::SetReader(std::shared_ptr<const FileSet> set,
                     std::vector<std::size_t> columns)
    : set_(std::move(set)) {
  std::unordered_map<std::size_t, std::size_t> known;
  for (std::size_t column : columns) {
    const auto [place, is_new] = known.try_emplace(column, columns_.size());
    if (is_new) columns_.push_back(column);
    places_.push_back(place->second);
  }
}

void SetReader::open(std::size_t file) {
  if (file_ == file && reader_ != nullptr) return;
  reader_.reset();
  reader_ = set_->files[file]->open(set_->own_columns(file, columns_));
  file_ = file;
}

void SetReader::read(std::size_t file, std::int64_t chunk,
                     const PieceSink& sink) {
  open(file);
  reader_->again(again_);
  reader_->read(chunk, [&](Block&& piece) {
    return sink(repeated(completed(std::move(piece))));
  });
}

Placed SetReader::place(std::size_t file, std::int64_t chunk,
                        std::span<const std::int64_t> rows,
                        std::span<const std::size_t> places, Block& to,
                        bool wait) {
  if (places_.size() != columns_.size()) return Placed::no;
  for (std::size_t column : columns_)
    if (set_->places[file][column] < 0) return Placed::no;
  open(file);
  reader_->again(again_);
  return reader_->place(chunk, rows, places, to, wait);
}

// The file's reader gives its own columns alone, in the order of `columns_`;
// those that it lacks, and those of folders, are put between them. Problems
// name a column by its place, so they are renumbered.
Block SetReader::completed(Block&& piece) const {
  Block whole;
  whole.rows = piece.rows;
  whole.owner = std::move(piece.owner);
  std::size_t next = 0;
  std::vector<std::size_t> at;  // by column of the piece
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const SetColumn& column = set_->columns[columns_[c]];
    if (set_->places[file_][columns_[c]] < 0) {
      whole.columns.push_back(constant(columns_[c], piece.rows));
      continue;
    }
    at.push_back(c);
    Column& own = piece.columns[next++];
    whole.columns.push_back(
        column.chosen
            ? converted(std::move(own), *column.chosen, c, whole.problems)
            : std::move(own));
  }
  for (RowProblem& problem : piece.problems)
    whole.problems.push_back(
        {problem.row, at[problem.column], std::move(problem.why)});
  return whole;
}

/// A column that is asked for more than once is lent to all who ask.
Block SetReader::repeated(Block&& piece) const {
  if (places_.size() == columns_.size()) return std::move(piece);
  Block all;
  all.rows = piece.rows;
  auto held = std::make_shared<const Block>(std::move(piece));
  all.owner = held;
  for (std::size_t c = 0; c < places_.size(); ++c) {
    all.columns.push_back(
        slice_of(held->columns[places_[c]], 0, held->rows, held));
    for (const RowProblem& problem : held->problems)
      if (problem.column == places_[c])
        all.problems.push_back({problem.row, c, problem.why});
  }
  return all;
}

Column SetReader::constant(std::size_t column, std::int64_t rows) const {
  const SetColumn& of = set_->columns[column];
  const std::string& text = set_->partitions[file_].empty()
                                ? std::string()
                                : set_->partitions[file_][column];
  Column made{.type = of.in_files.type};
  if (made.type.kind == ColumnKind::list) made.children.emplace_back();
  if (made.type.kind == ColumnKind::fixed) made.item = {0};
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  for (std::int64_t row = 0; row < rows; ++row) {
    if (text.empty())
      made.append_null();
    else if (made.type.is_text())
      made.append_text(text);
    else
      made.append_int64(number);
  }
  if (!of.chosen) return made;
  std::vector<RowProblem> none;
  return converted(std::move(made), *of.chosen, 0, none);
}

}  // namespace penstock::files
