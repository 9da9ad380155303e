#include "python/engine/source_columns.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "penstock/base/hash.h"
#include "penstock/inspect/inspect.h"
#include "python/engine/interruptible.h"
#include "python/engine/list_gaps.h"
#include "python/engine/media_values.h"
#include "python/engine/table.h"

namespace penstock::python {
namespace {

// What is read at most: numbers alone, so that it is the same everywhere.
constexpr std::int64_t kMostRows = 1'000'000;
constexpr std::size_t kMostBytes = std::size_t{128} << 20;

/// A column, as far as rows were read.
struct SeenColumn {
  ColumnInfo info;
  ColumnType type;
  std::string kind;  ///< as TableColumn has it
  std::string dtype;
  bool has_nulls = false;
  std::vector<std::int64_t> item;
  std::unordered_set<std::uint64_t> texts;  ///< hashes of those that differ
  bool any = false;     ///< a value that is not NULL was seen
  bool is_key = false;  ///< of the declared primary key, or a part of it
};

/// The numbers of a list written as JSON, or of lists of lists.
enum class Written : std::uint8_t { integers, reals, other };

Written written_in(std::string_view json, bool nested) {
  if (json.size() < 2 || json.front() != '[' || json.back() != ']')
    return Written::other;
  json = json.substr(1, json.size() - 2);
  if (json.find_first_not_of(nested ? "0123456789+-.eE, \t\r\n[]"
                                    : "0123456789+-.eE, \t\r\n") != json.npos)
    return Written::other;
  return json.find_first_of(".eE") == json.npos ? Written::integers
                                                : Written::reals;
}

bool is_text(const SeenColumn& column) {
  return (column.type.is_text() && column.type != ColumnType::json) ||
         column.type.kind == ColumnKind::dictionary;
}

/// What is known without reading a row.
SeenColumn declared(const ColumnInfo& info, ColumnType type) {
  SeenColumn column{.info = info, .type = type};
  const bool unknown = info.declared.empty() || info.nested;
  column.kind = unknown                    ? "unsupported"
                : info.timestamp           ? "time"
                : info.boolean             ? "boolean"
                : type == ColumnType::json ? "list"
                : is_text(column)          ? "text"
                                           : std::string(name_of(type));
  column.dtype =
      type == ColumnType::json ? "int64" : std::string(name_of(type.dtype));
  column.item.assign(info.item.begin(), info.item.end());
  if (column.kind == "list" && !info.item.empty()) column.kind = "tensor";
  return column;
}

/// What becomes of it depends on its rows, as far as they were seen.
bool is_open(const SeenColumn& column, std::size_t most_texts) {
  if (column.kind == "text")
    return column.info.values.empty() && column.texts.size() <= most_texts;
  if (column.kind == "binary" || column.kind == "uuid" ||
      column.kind == "null" || column.kind == "unsupported")
    return false;
  return !column.has_nulls;
}

void look_at_shape(const Column& values, SeenColumn& column) {
  if (column.item.empty())
    column.item.assign(values.item.begin(), values.item.end());
  if (values.type.kind == ColumnKind::list) {
    const ColumnType element = values.children[0].type;
    column.dtype = name_of(element.dtype);
    if (element.kind != ColumnKind::number) column.kind = "unsupported";
  }
  if (values.type.kind == ColumnKind::dictionary &&
      !values.children[0].type.is_text())
    column.kind = "unsupported";
}

bool is_row_of_numbers(const Column& values) {
  return values.type.kind == ColumnKind::list ||
         values.type.kind == ColumnKind::fixed;
}

void look_at(const Column& values, const std::vector<bool>& bad,
             SeenColumn& column) {
  look_at_shape(values, column);
  if (column.kind == "unsupported") return;
  const bool codes = values.type.kind == ColumnKind::dictionary;
  for (std::int64_t row = 0; row < values.length; ++row) {
    if (bad[static_cast<std::size_t>(row)]) {
      // A row of numbers is whole, or cannot be one.
      column.has_nulls |= is_row_of_numbers(values);
      continue;
    }
    if (!values.valid(row) || lacks_element(values, row)) {
      column.has_nulls = true;
      continue;
    }
    column.any = true;
    if (column.kind == "text") {
      const Column& words = codes ? values.children[0] : values;
      const std::int64_t at = codes ? values.as_int64(row) : row;
      if (words.valid(at)) column.texts.insert(hash64(words.text(at)));
    } else if (column.type == ColumnType::json) {
      const Written written =
          written_in(values.text(row), column.kind == "tensor");
      if (written == Written::other) column.kind = "unsupported";
      if (written != Written::integers) column.dtype = "float64";
    }
  }
}

class SourceColumns {
 public:
  /// `section` is a job's, as JSON.
  static SourceColumns seen(const std::string& section,
                            std::size_t most_texts) {
    return interruptible<SourceColumns>(
        [section, most_texts](const Stop& stop) {
          SourceColumns columns;
          columns.look(
              parse_source_spec(Json::parse(section, "the source"), "source"),
              most_texts, StopFlag(stop.get()));
          return columns;
        });
  }

  /// Of a job's section, as JSON: what cannot be read, also by itself, and why.
  static std::vector<std::pair<std::string, std::string>> unread(
      const std::string& section) {
    using Unread = std::vector<std::pair<std::string, std::string>>;
    return interruptible<Unread>([section](const Stop& stop) {
      SourceSpec spec =
          parse_source_spec(Json::parse(section, "the source"), "source");
      Unread all;
      for (const LeftOutColumn& one : read_schema(spec).left_out) try {
          open_source(spec, {{.column = one.name, .as = ReadAs::value}},
                      {.stop = StopFlag(stop.get()), .keys = false});
        } catch (const Error&) {
          all.emplace_back(one.name, one.why);
        }
      return all;
    });
  }

  std::vector<TableColumn> columns() const {
    std::vector<TableColumn> all;
    for (const SeenColumn& column : columns_)
      all.emplace_back(
          column.info.name, column.info.declared,
          column.type == ColumnType::json && !column.any ? "unsupported"
                                                         : column.kind,
          column.dtype, column.has_nulls, column.item,
          column.info.values.size(), column.is_key, column.info.index);
    return all;
  }
  std::optional<std::int64_t> distinct(std::size_t column,
                                       std::size_t most) const {
    const std::size_t found = columns_.at(column).texts.size();
    if (found > most) return std::nullopt;
    return static_cast<std::int64_t>(found);
  }
  /// Of the first rows of a column of bytes that are not NULL.
  std::optional<MediaTuple> media(std::size_t column) const {
    const ColumnRequest wanted = requests_.at(column);
    return tuple_of(interruptible<std::optional<Media>>(
        [spec = spec_, wanted](const Stop& stop) {
          return media_in(spec, wanted, StopFlag(stop.get()));
        }));
  }
  /// What is not among the columns: its name, and why.
  std::vector<std::pair<std::string, std::string>> left_out() const {
    std::vector<std::pair<std::string, std::string>> all;
    for (const LeftOutColumn& one : left_out_)
      all.emplace_back(one.name, one.why);
    return all;
  }
  std::int64_t rows() const { return rows_; }
  bool all_rows() const { return all_rows_; }

 private:
  void look(SourceSpec spec, std::size_t most_texts, StopFlag stop) {
    spec.stage.clear();  // the files where they are
    spec_ = spec;
    const Schema schema = surveyed_schema(spec);
    left_out_ = schema.left_out;
    const std::vector<ColumnRequest> all = surveyed_columns(schema);
    requests_ = all;
    const std::vector<ColumnType> types =
        open_source(spec, all, {.stop = stop, .keys = false})->types();
    std::vector<ColumnRequest> wanted;
    std::vector<std::size_t> places;
    for (std::size_t at = 0; at < all.size(); ++at) {
      SeenColumn& column =
          columns_.emplace_back(declared(schema.columns[at], types[at]));
      column.is_key =
          column.info.primary_key ||
          std::ranges::count(schema.primary_key, column.info.name) > 0;
      if (!is_open(columns_[at], most_texts)) continue;
      wanted.push_back(all[at]);
      places.push_back(at);
    }
    if (!wanted.empty()) read(spec, wanted, places, most_texts, stop);
  }

  void read(const SourceSpec& spec, const std::vector<ColumnRequest>& wanted,
            const std::vector<std::size_t>& places, std::size_t most_texts,
            StopFlag stop) {
    const auto source =
        open_source(spec, wanted, {.stop = stop, .keys = false});
    std::size_t bytes = 0;
    for (const Partition& part : source->partitions(1)) {
      source->open_reader()->scan(part, {}, [&](KeyList&, Block& block) {
        end_if_stopped(stop);
        bool open = false;
        for (std::size_t at = 0; at < places.size(); ++at) {
          SeenColumn& column = columns_[places[at]];
          std::vector<bool> bad(static_cast<std::size_t>(block.rows));
          for (const RowProblem& problem : block.problems)
            if (problem.column == at)
              bad[static_cast<std::size_t>(problem.row)] = true;
          if (is_open(column, most_texts))
            look_at(block.columns[at], bad, column);
          open = open || is_open(column, most_texts);
        }
        rows_ += block.rows;
        bytes += block.bytes();
        all_rows_ = open && rows_ < kMostRows && bytes < kMostBytes;
        return all_rows_;
      });
      if (!all_rows_) return;
    }
  }

  SourceSpec spec_;
  std::vector<ColumnRequest> requests_;  // of `columns_`
  std::vector<SeenColumn> columns_;
  std::vector<LeftOutColumn> left_out_;
  std::int64_t rows_ = 0;
  bool all_rows_ = true;
};

}  // namespace

void bind_source_columns(nb::module_& module) {
  nb::class_<SourceColumns>(module, "SourceColumns",
                            "What the columns of a job's source hold.")
      .def_static("seen", &SourceColumns::seen, nb::arg("section"),
                  nb::arg("most_texts"))
      .def_static("unread", &SourceColumns::unread, nb::arg("section"))
      .def_prop_ro("rows", &SourceColumns::rows)
      .def_prop_ro("all_rows", &SourceColumns::all_rows)
      .def_prop_ro("columns", &SourceColumns::columns)
      .def_prop_ro("left_out", &SourceColumns::left_out)
      .def("media", &SourceColumns::media, nb::arg("column"))
      .def("distinct", &SourceColumns::distinct, nb::arg("column"),
           nb::arg("most"));
}

}  // namespace penstock::python
