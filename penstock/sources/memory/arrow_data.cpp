#include "penstock/sources/memory/arrow_data.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/sources/memory/arrow_values.h"

namespace penstock {
namespace {

[[noreturn]] void refuse_stream(std::string why) {
  throw Error(ErrorKind::source,
              {.code = "source.stream",
               .what = "cannot take the rows of an Arrow stream",
               .where = "__arrow_c_stream__",
               .why = std::move(why),
               .next = "give a table or data frame, not a stream that was "
                       "read before"});
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

}  // namespace

std::shared_ptr<const ArrowTable> ArrowTable::read(ArrowArrayStream& stream) {
  if (stream.release == nullptr) refuse_stream("it was released");
  StreamEnd end{stream};
  std::shared_ptr<ArrowTable> table(new ArrowTable);
  check(stream, stream.get_schema(&stream, &table->schema_));
  if (std::string_view(table->schema_.format) != "+s")
    refuse_stream("it gives single columns, expected record batches");
  table->add_columns(table->schema_, "", {});
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
  }
  return table;
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

std::vector<std::int64_t> ArrowTable::rows_with_gaps(std::size_t batch,
                                                     std::size_t column,
                                                     std::int64_t begin,
                                                     std::int64_t rows) const {
  const Place at = place(batch, column, begin);
  return penstock::rows_with_gaps(columns_[column], *at.array, at.first, rows);
}

}  // namespace penstock
