#include "penstock/sources/memory/arrow_data.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/utf8.h"
#include "penstock/sources/left_out.h"
#include "penstock/sources/memory/arrow_values.h"
#include "penstock/sources/pandas_index.h"

namespace penstock {
namespace {

[[noreturn]] void refuse_stream(
    std::string why,
    std::string next =
        "pass a table or data frame, not a stream that was already read") {
  throw Error(ErrorKind::source,
              {.code = "source.stream",
               .what = "cannot take the rows of an Arrow stream",
               .where = "__arrow_c_stream__",
               .why = std::move(why),
               .next = std::move(next)});
}

/// Ends a stream however its reading ends.
struct StreamEnd {
  ArrowArrayStream& stream;
  ~StreamEnd() {
    if (stream.release != nullptr) stream.release(&stream);
  }
};

void check(ArrowArrayStream& stream, int code) {
  if (code == 0) return;
  const char* said = stream.get_last_error(&stream);
  refuse_stream(said != nullptr ? said : std::strerror(code));
}

/// What a schema's metadata has under a key: a count, then each key and value
/// behind their lengths, all of these int32; empty: nothing.
std::string_view metadata_of(const ArrowSchema& schema, std::string_view key) {
  const char* at = schema.metadata;
  if (at == nullptr) return {};
  auto number = [&] {
    std::int32_t read = 0;
    std::memcpy(&read, at, sizeof(read));
    at += sizeof(read);
    return read;
  };
  auto text = [&] {
    const auto size = static_cast<std::size_t>(number());
    const std::string_view read(at, size);
    at += size;
    return read;
  };
  for (std::int32_t pairs = number(); pairs > 0; --pairs) {
    const std::string_view name = text(), value = text();
    if (name == key) return value;
  }
  return {};
}

}  // namespace

LeftOutColumn left_out_column(const ArrowColumn& column,
                              const std::string& type) {
  if (!column.ambiguous.empty())
    return {column.info.name, column.ambiguous, kRenameColumns};
  return {column.info.name, why_unsupported(type), kConvertColumn};
}

// Ownership, by "The Arrow C data interface" and "C stream interface": each
// array and the schema belong to whoever has them, and `release` must be called
// just once; a null `release` marks one that was released. The table takes them
// over as they come, so that its destructor releases them also if a later batch
// fails. The stream is the caller's, but is released here, whatever happens.
// Children are released with their parent, never alone.
std::shared_ptr<const ArrowTable> ArrowTable::read(ArrowArrayStream& stream,
                                                   const Classes& classes) {
  if (stream.release == nullptr) refuse_stream("the stream was released");
  StreamEnd end{stream};
  std::shared_ptr<ArrowTable> table(new ArrowTable);
  check(stream, stream.get_schema(&stream, &table->schema_));
  if (std::string_view(table->schema_.format) != "+s")
    refuse_stream("the stream returns single columns, expected record batches");
  table->add_columns(table->schema_, "", {});
  table->find_ambiguous();
  table->find_index();
  std::int64_t rows = 0;
  while (true) {
    ArrowArray batch = {};
    check(stream, stream.get_next(&stream, &batch));
    if (batch.release == nullptr) break;
    if (batch.length == 0) {
      batch.release(&batch);
      continue;
    }
    table->batches_.push_back(batch);
    rows += batch.length;
    table->ends_.push_back(rows);
  }
  for (std::size_t c = 0; c < table->columns_.size(); ++c) {
    ArrowColumn& column = table->columns_[c];
    column.has_nulls = false;
    for (const ArrowArray& batch : table->batches_)
      column.has_nulls |= may_hold_nulls(batch, table->paths_[c]);
    if (auto found = classes.find(column.info.name); found != classes.end())
      table->declare(c, found->second);
  }
  return table;
}

void ArrowTable::find_index() {
  const PandasIndex index(metadata_of(schema_, "pandas"));
  for (std::size_t c = 0; c < columns_.size(); ++c)
    if (paths_[c].size() == 1)
      columns_[c].info.index = index.of(columns_[c].info.name);
}

void ArrowTable::find_ambiguous() {
  std::vector<ColumnPath> paths;
  for (const std::vector<std::size_t>& places : paths_) {
    ColumnPath& path = paths.emplace_back(ColumnPath{.places = places});
    const ArrowSchema* schema = &schema_;
    for (std::size_t place : places) {
      schema = schema->children[place];
      path.names.emplace_back(schema->name != nullptr ? schema->name : "");
    }
  }
  const std::vector<std::string> why = why_ambiguous(paths);
  for (std::size_t c = 0; c < columns_.size(); ++c)
    columns_[c].ambiguous = why[c];
}

/// Where the dictionary of a record batch holds other texts, the column is one
/// of texts.
void ArrowTable::declare(std::size_t column,
                         const std::vector<std::string>& classes) {
  const ArrowSchema& schema = schema_of(column);
  const bool integers = columns_[column].type.kind == ColumnKind::number &&
                        schema.dictionary == nullptr;
  const bool texts =
      columns_[column].type == ColumnType::text && schema.dictionary != nullptr;
  const std::set<std::string_view> different(classes.begin(), classes.end());
  if ((!integers && !texts) || different.size() != classes.size()) return;
  for (std::size_t batch = 0; texts && batch < batches_.size(); ++batch) {
    const Place at = place(batch, column, 0);
    if (dictionary_of(*at.schema, *at.array) != classes) return;
  }
  columns_[column].info.values = classes;
}

const ArrowSchema& ArrowTable::schema_of(std::size_t column) const {
  const ArrowSchema* schema = &schema_;
  for (std::size_t child : paths_[column]) schema = schema->children[child];
  return *schema;
}

bool ArrowTable::borrows(std::size_t column) const {
  return paths_[column].size() == 1 &&
         is_borrowed(columns_[column], schema_of(column));
}

std::optional<ColumnType> ArrowTable::code_type(std::size_t column) const {
  const ArrowColumn& of = columns_[column];
  if (of.info.values.empty()) return std::nullopt;
  return of.type.kind == ColumnKind::number ? of.type
                                            : index_type(schema_of(column));
}

ArrowTable::~ArrowTable() {
  for (ArrowArray& batch : batches_)
    if (batch.release != nullptr) batch.release(&batch);
  if (schema_.release != nullptr) schema_.release(&schema_);
}

void ArrowTable::add_columns(const ArrowSchema& schema,
                             const std::string& prefix,
                             const std::vector<std::size_t>& path) {
  for (std::int64_t c = 0; c < schema.n_children; ++c) {
    const ArrowSchema& child = *schema.children[c];
    const std::string name = prefix + (child.name != nullptr ? child.name : "");
    if (!is_utf8(name))
      refuse_stream("the name of one of its columns is " + shown_text(name),
                    "give that column another name");
    std::vector<std::size_t> here = path;
    here.push_back(static_cast<std::size_t>(c));
    if (std::string_view(child.format) == "+s" && child.n_children > 0) {
      add_columns(child, name + ".", here);
      continue;
    }
    columns_.push_back(arrow_column(name, child));
    paths_.push_back(std::move(here));
  }
}

Column ArrowTable::column(std::size_t batch, std::size_t column) const {
  return this->column(batch, column, 0, batches_[batch].length);
}

// Offsets add up: row i of a struct is row offset + i of each child, to which
// the child's own offset is added. `first` is thus an index into the buffers.
ArrowTable::Place ArrowTable::place(std::size_t batch, std::size_t column,
                                    std::int64_t begin) const {
  Place at{&schema_, &batches_[batch], {}, batches_[batch].offset + begin};
  for (std::size_t child : paths_[column]) {
    at.above.push_back(at.array);
    at.schema = at.schema->children[child];
    at.array = at.array->children[child];
    at.first += at.array->offset;
  }
  return at;
}

Column ArrowTable::column(std::size_t batch, std::size_t column,
                          std::int64_t begin, std::int64_t rows) const {
  const Place at = place(batch, column, begin);
  return arrow_values(columns_[column], *at.schema, *at.array, at.above, begin,
                      at.first, rows);
}

// The same array without its dictionary: its buffers are the codes. The copy of
// the schema is shallow, and is not released.
Column ArrowTable::codes(std::size_t batch, std::size_t column,
                         std::int64_t begin, std::int64_t rows) const {
  const Place at = place(batch, column, begin);
  ArrowColumn numbers;
  numbers.type = *code_type(column);
  ArrowSchema plain = *at.schema;
  plain.dictionary = nullptr;
  return arrow_values(numbers, plain, *at.array, at.above, begin, at.first,
                      rows);
}

std::vector<std::int64_t> ArrowTable::rows_with_gaps(std::size_t batch,
                                                     std::size_t column,
                                                     std::int64_t begin,
                                                     std::int64_t rows) const {
  const Place at = place(batch, column, begin);
  return penstock::rows_with_gaps(columns_[column], *at.array, at.first, rows);
}

}  // namespace penstock
