#include "python/engine/table.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "penstock/dataset/dataset.h"
#include "python/engine/gil.h"
#include "python/engine/list_gaps.h"
#include "python/engine/media_values.h"
#include "python/engine/rows.h"

namespace penstock::python {
namespace {

std::string kind_of(const ArrowColumn& column) {
  if (!column.readable()) return "left out";
  if (column.info.timestamp) return "time";
  if (column.type.kind == ColumnKind::list &&
      column.element.kind != ColumnKind::number)
    return "unsupported";
  return std::string(name_of(column.type));
}

/// The memory belongs to a library of Python.
std::shared_ptr<const ArrowTable> with_lock(
    std::shared_ptr<const ArrowTable> table) {
  auto* held = new std::shared_ptr<const ArrowTable>(std::move(table));
  const ArrowTable* at = held->get();
  return {at, [held](const ArrowTable*) {
            if (!Py_IsInitialized()) return;
            GilAcquire lock;
            delete held;
          }};
}

/// What is known of a table's bytes without reading all of them: rows that are
/// spread evenly over it.
std::string sample_of(const ArrowTable& table) {
  constexpr std::int64_t kSampled = 1024;
  Sha256 hash;
  for (std::size_t c = 0; c < table.columns().size(); ++c) {
    const ArrowColumn& about = table.columns()[c];
    if (!about.readable()) continue;
    Column sample{.type = about.type, .item = about.item};
    if (about.type.kind == ColumnKind::list)
      sample.children.emplace_back().type = about.element;
    const std::int64_t step =
        std::max<std::int64_t>(1, table.rows() / kSampled);
    for (std::int64_t row = 0; row < table.rows(); row += step) {
      const auto batch = static_cast<std::size_t>(
          std::ranges::upper_bound(table.ends(), row) - table.ends().begin());
      const std::int64_t begin = batch == 0 ? 0 : table.ends()[batch - 1];
      sample.append_from(table.column(batch, c, row - begin, 1), 0);
    }
    hash.add(sample.validity.span());
    hash.add(sample.offsets.span());
    hash.add(sample.values.span());
    for (const Column& child : sample.children) hash.add(child.values.span());
  }
  return hash.hex();
}

/// Finds a text among those that are kept without a copy of it.
struct HashOfText {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};

/// Numbers of rows, as Arrow and numpy have them.
using RowNumbers =
    nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::device::cpu, nb::ro>;
using Picked = std::shared_ptr<const std::vector<std::int64_t>>;

Picked picked_of(const std::optional<RowNumbers>& rows, std::int64_t most) {
  if (!rows) return nullptr;
  auto all = std::make_shared<std::vector<std::int64_t>>();
  all->reserve(rows->size());
  for (std::size_t at = 0; at < rows->size(); ++at) {
    const std::uint64_t row = (*rows)(at);
    if (row >= static_cast<std::uint64_t>(most))
      throw nb::index_error("a row that is picked is not in the table");
    all->push_back(static_cast<std::int64_t>(row));
  }
  return all;
}

class Table {
 public:
  Table(const nb::capsule& stream, std::string shown,
        const ArrowTable::Classes& classes, const Table* fitted,
        const std::optional<RowNumbers>& rows)
      : shown_(std::move(shown)),
        table_(table_of(stream, classes)),
        fitted_(fitted == nullptr ? table_ : fitted->table_),
        picked_(picked_of(rows, table_->rows())) {
    if (picked_ == nullptr) return;
    in_order_ = *picked_;
    std::ranges::sort(in_order_);
  }

  std::int64_t rows() const {
    return picked_ == nullptr ? table_->rows() : std::ssize(*picked_);
  }
  std::vector<TableColumn> columns() const {
    std::vector<TableColumn> columns;
    for (std::size_t at = 0; at < table_->columns().size(); ++at) {
      const ArrowColumn& column = table_->columns()[at];
      columns.emplace_back(
          column.info.name,
          column.readable() ? column.info.declared
                            : left_out_column(column, column.unsupported).why,
          kind_of(column),
          std::string(name_of(column.type.kind == ColumnKind::list
                                  ? column.element.dtype
                                  : column.type.dtype)),
          (column.has_nulls && any_null(at)) || any_gap(at),
          std::vector<std::int64_t>(column.item.begin(), column.item.end()),
          column.info.values.size(), column.info.primary_key,
          column.info.index);
    }
    return columns;
  }
  /// The number of different texts of a column; none where they are more.
  std::optional<std::int64_t> distinct(std::size_t column,
                                       std::size_t most) const {
    GilRelease unlocked;
    std::unordered_set<std::string, HashOfText, std::equal_to<>> seen;
    const bool few =
        each_row(column, [&](const Column& texts, std::int64_t row) {
          if (!texts.valid(row) || seen.contains(texts.text(row))) return true;
          if (seen.size() == most) return false;
          seen.emplace(texts.text(row));
          return true;
        });
    if (!few) return std::nullopt;
    return static_cast<std::int64_t>(seen.size());
  }
  /// Of its first rows that are not NULL, of a column of bytes.
  std::optional<MediaTuple> media(std::size_t column) const {
    GilRelease unlocked;
    const ArrowColumn& about = table_->columns().at(column);
    FirstFiles first;
    each_row(column, [&](const Column& values, std::int64_t row) {
      return first.add(values, row);
    });
    return tuple_of(first.media(about.info.name));
  }
  /// Of the rows for which the condition `where` is true; "": of all.
  OwnRows source_rows(const std::string& where) const {
    auto whole = table_, fitted = fitted_;
    const TableName name{.shown = shown_,
                         .digest = sample_of(*whole),
                         .where = where,
                         .picked = picked_};
    return {
        .maker =
            [whole, fitted, name](const Job& job, Device& device,
                                  StopFlag stop) {
              TableDatasetOptions options =
                  dataset_options(job, device.memory_kind());
              const bool all_train =
                  options.split.whole() && !options.source.skip_bad;
              auto open = [table = all_train ? whole : fitted, name,
                           requests = requests_of(options)](StopFlag stopped) {
                return open_arrow_table(table, name, requests, stopped);
              };
              std::unique_ptr<Source> source = open(stop);
              if (source->abilities().in_memory) options.open = open;
              return prepare_dataset(options, std::move(source), device);
            },
        .schema = schema()};
  }

 private:
  Schema schema() const {
    Schema schema;
    for (const ArrowColumn& column : table_->columns())
      schema.columns.push_back(column.info);
    return schema;
  }
  /// Calls `look(column of a record batch, row there)` for the rows that are
  /// meant; false once it gives false.
  template <class Look>
  bool each_row(std::size_t column, Look look) const {
    std::size_t next = 0;  // of those that are picked
    for (std::size_t batch = 0; batch < table_->ends().size(); ++batch) {
      const std::int64_t end = table_->ends()[batch];
      const std::int64_t begin = batch == 0 ? 0 : table_->ends()[batch - 1];
      if (picked_ != nullptr &&
          (next == in_order_.size() || in_order_[next] >= end))
        continue;
      const Column values = table_->column(batch, column);
      if (picked_ == nullptr) {
        for (std::int64_t row = 0; row < values.length; ++row)
          if (!look(values, row)) return false;
        continue;
      }
      for (; next < in_order_.size() && in_order_[next] < end; ++next)
        if (!look(values, in_order_[next] - begin)) return false;
    }
    return true;
  }
  /// Of a column that has some.
  bool any_null(std::size_t column) const {
    if (picked_ == nullptr || !table_->columns()[column].readable())
      return true;
    return !each_row(column, [](const Column& values, std::int64_t row) {
      return values.valid(row);
    });
  }

  /// Of rows that are lists or tensors: one of them lacks an element.
  bool any_gap(std::size_t column) const {
    const ArrowColumn& about = table_->columns()[column];
    if (about.type.kind == ColumnKind::list && about.readable())
      return !each_row(column, [](const Column& values, std::int64_t row) {
        return !values.valid(row) || !lacks_element(values, row);
      });
    std::int64_t begin = 0;
    for (std::size_t batch = 0; batch < table_->ends().size(); ++batch) {
      const std::int64_t end = table_->ends()[batch];
      for (std::int64_t row :
           table_->rows_with_gaps(batch, column, 0, end - begin))
        if (picked_ == nullptr ||
            std::ranges::binary_search(in_order_, begin + row))
          return true;
      begin = end;
    }
    return false;
  }

  std::string shown_;
  std::shared_ptr<const ArrowTable> table_, fitted_;
  Picked picked_;                       // null: all
  std::vector<std::int64_t> in_order_;  // the same, ascending
};

}  // namespace

std::shared_ptr<const ArrowTable> table_of(const nb::capsule& stream,
                                           const ArrowTable::Classes& classes) {
  if (std::string_view(stream.name()) != "arrow_array_stream")
    throw nb::type_error("__arrow_c_stream__() gave another capsule");
  auto* from = static_cast<ArrowArrayStream*>(stream.data());
  ArrowArrayStream taken = *from;
  from->release = nullptr;
  GilRelease unlocked;
  return with_lock(ArrowTable::read(taken, classes));
}

void bind_table(nb::module_& module) {
  nb::class_<Table>(module, "Table",
                    "A table of another library, by __arrow_c_stream__.")
      .def(nb::init<nb::capsule, std::string, ArrowTable::Classes, const Table*,
                    std::optional<RowNumbers>>(),
           nb::arg("stream"), nb::arg("shown"), nb::arg("classes"),
           nb::arg("fitted").none() = nb::none(),
           nb::arg("rows").none() = nb::none(),
           "`fitted` is the same table without the classes that all its rows "
           "have told: where not all of them are train rows, it is read. "
           "`rows` are the numbers of those that are meant, uint64; None: "
           "all.")
      .def_prop_ro("rows", &Table::rows)
      .def_prop_ro("columns", &Table::columns)
      .def("distinct", &Table::distinct, nb::arg("column"), nb::arg("most"))
      .def("media", &Table::media, nb::arg("column"))
      .def("source_rows", &Table::source_rows, nb::arg("where"));
}

}  // namespace penstock::python
