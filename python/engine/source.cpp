#include "python/engine/source.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "penstock/dataset/dataset.h"

namespace penstock::python {
namespace {

using Array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Answer = std::tuple<std::optional<Array>, std::optional<Array>,
                          std::optional<Array>>;
using Problem = std::tuple<std::int64_t, std::size_t, std::string>;

/// What a request is answered with, and how Python is asked for it.
struct Served {
  const OwnColumn* column;
  ColumnType type;
  std::string dtype;  ///< that numbers are converted to; "": as they are
};

[[noreturn]] void refuse(const ColumnRequest& request, const OwnColumn& column,
                         const char* wanted) {
  throw Error(ErrorKind::request,
              {.code = "source.column_type",
               .what = "cannot read column '" + column.name + "'",
               .where = request.setting,
               .why = "the column holds " + std::string(name_of(column.type)) +
                      ", but " + wanted + " is needed",
               .next = "name another column, or change its type in the "
                       "source's 'columns'"});
}

Served served(const OwnColumn& column, const ColumnRequest& request) {
  const ColumnType type = column.type;
  const bool boolean = type.kind == ColumnKind::boolean;
  const bool number = boolean || type.kind == ColumnKind::number;
  const bool floats = type.dtype == Dtype::float64 ||
                      type.dtype == Dtype::float32 ||
                      type.dtype == Dtype::float16;
  switch (request.as) {
    case ReadAs::number:
      if (!number) refuse(request, column, "a number");
      return {&column, type, ""};
    case ReadAs::integer:
      if (!number || (!boolean && floats))
        refuse(request, column, "an integer");
      return {&column, ColumnType::int64, "int64"};
    case ReadAs::json:
      if (!type.is_text()) refuse(request, column, "JSON text");
      return {&column, ColumnType::json, ""};
    case ReadAs::key:
    case ReadAs::value:
      break;
  }
  if (!request.hashed) return {&column, type, ""};
  if (!number && !type.is_text()) refuse(request, column, "a number or a text");
  if (!number || boolean) return {&column, type, ""};
  return floats ? Served{&column, ColumnType::float64, "float64"}
                : Served{&column, ColumnType::int64, "int64"};
}

void append(Bytes& to, const std::optional<Array>& from) {
  if (from) to.append(from->data(), from->nbytes());
}

/// What one column of a read came to.
void fill(Column& column, const OwnColumn& about, ColumnType type,
          std::int64_t rows, const Answer& answer) {
  const auto& [validity, offsets, values] = answer;
  column.type = type;
  column.length = rows;
  append(column.validity, validity);
  append(column.offsets, offsets);
  if (type.kind == ColumnKind::fixed) column.item = about.item;
  if (type.kind != ColumnKind::list) return append(column.values, values);
  Column& child = column.children.emplace_back();
  child.type = ColumnType::number(about.element);
  append(child.values, values);
  child.length =
      static_cast<std::int64_t>(child.values.size() / size_of(about.element));
}

Schema schema_of(const OwnSource& about) {
  Schema schema;
  for (const OwnColumn& column : about.columns)
    schema.columns.push_back(
        {.name = column.name,
         .declared = std::string(name_of(column.type)),
         .boolean = column.type.kind == ColumnKind::boolean,
         .text = column.type.is_text()});
  return schema;
}

class PythonSource;

/// Reads by calling Python; so may several, of which one at a time runs there.
class PythonReader final : public Reader {
 public:
  explicit PythonReader(const PythonSource& source) : source_(source) {}
  void read(const ReadRequest& request, Block& out) override;

 private:
  const PythonSource& source_;
};

class PythonSource final : public Source {
 public:
  PythonSource(std::shared_ptr<const OwnSource> about,
               std::shared_ptr<Function> function,
               const std::vector<ColumnRequest>& requests, StopFlag stop)
      : Source(facts_of(*about, requests)),
        about_(std::move(about)),
        function_(std::move(function)),
        stop_(stop) {
    for (const ColumnRequest& request : requests)
      served_.push_back(served(column_named(*about_, request), request));
  }

  RowCount count() const override {
    return {.rows = about_->rows, .exact = true};
  }
  bool lengths(std::size_t request, std::int64_t first,
               std::span<std::int32_t> out) const override {
    const auto& known = served_[request].column->lengths;
    if (!known) return false;
    std::copy_n(known->begin() + first, out.size(), out.begin());
    return true;
  }
  std::unique_ptr<Reader> open_reader() override {
    return std::make_unique<PythonReader>(*this);
  }

  void read(std::span<const std::int64_t> positions, Block& out) const {
    end_if_stopped(stop_);
    out.clear();
    out.columns.clear();
    out.rows = std::ssize(positions);
    function_->call([&](const nb::object& call) {
      nb::list requested;
      for (const Served& each : served_)
        requested.append(nb::make_tuple(each.column->name, each.dtype));
      auto [answers, problems] =
          nb::cast<std::tuple<std::vector<Answer>, std::vector<Problem>>>(
              call(numpy_copy(positions), requested));
      PENSTOCK_ASSERT(answers.size() == served_.size(),
                      "every request is answered");
      for (std::size_t at = 0; at < served_.size(); ++at)
        fill(out.columns.emplace_back(), *served_[at].column, served_[at].type,
             out.rows, answers[at]);
      for (auto& [row, column, why] : problems)
        out.problems.push_back({row, column, std::move(why)});
    });
    end_if_stopped(stop_);
  }

 private:
  static const OwnColumn& column_named(const OwnSource& about,
                                       const ColumnRequest& request) {
    auto found =
        std::ranges::find(about.columns, request.column, &OwnColumn::name);
    if (found != about.columns.end()) return *found;
    std::vector<std::string> names;
    for (const OwnColumn& column : about.columns) names.push_back(column.name);
    throw Error(ErrorKind::request,
                {.code = "source.unknown_column",
                 .what = "cannot read column '" + request.column + "' of " +
                         about.shown,
                 .where = request.setting,
                 .why = "the source's 'columns' has no such column",
                 .next = did_you_mean(request.column, names)});
  }

  static SourceFacts facts_of(const OwnSource& about,
                              const std::vector<ColumnRequest>& requests) {
    SourceFacts facts{.shown = about.shown,
                      .schema = schema_of(about),
                      .abilities = {.by_position = true,
                                    .sorted = true,
                                    .global_lock = about.global_lock},
                      .identity = about.identity};
    if (!about.chunk_ends.empty())
      facts.chunks =
          std::make_shared<const ChunkMap>(ChunkMap{.ends = about.chunk_ends});
    for (const ColumnRequest& request : requests)
      facts.types.push_back(served(column_named(about, request), request).type);
    return facts;
  }

  const std::shared_ptr<const OwnSource> about_;
  const std::shared_ptr<Function> function_;
  const StopFlag stop_;
  std::vector<Served> served_;  // by request
};

void PythonReader::read(const ReadRequest& request, Block& out) {
  PENSTOCK_ASSERT(request.keys == nullptr, "positions are no keys");
  source_.read(request.positions, out);
}

/// "float32", or "text", "json", "binary", "list", "fixed" with a dtype.
OwnColumn column_from(const std::string& name, const std::string& kind,
                      const std::string& dtype, std::vector<std::int64_t> item,
                      std::optional<std::vector<std::int32_t>> lengths) {
  OwnColumn column{.name = name, .lengths = std::move(lengths)};
  Dtype number = Dtype::float64;
  PENSTOCK_ASSERT(dtype.empty() || dtype_from(dtype, number),
                  "a type that we know");
  if (kind == "number")
    column.type = number == Dtype::boolean ? ColumnType::boolean
                                           : ColumnType::number(number);
  else if (kind == "text")
    column.type = ColumnType::text;
  else if (kind == "json")
    column.type = ColumnType::json;
  else if (kind == "binary")
    column.type = ColumnType::binary;
  else
    column.type =
        kind == "list" ? ColumnType::list : ColumnType::tensor(number);
  column.element = number;
  column.item.assign(item.begin(), item.end());
  return column;
}

}  // namespace

OwnRows rows_of_source(OwnSource source, nb::object read) {
  auto about = std::make_shared<const OwnSource>(std::move(source));
  auto function = std::make_shared<Function>(std::move(read));
  return {.maker =
              [about, function](const Job& job, Device& device, StopFlag stop) {
                TableDatasetOptions options =
                    dataset_options(job, device.memory_kind());
                return prepare_dataset(
                    options,
                    std::make_unique<PythonSource>(about, function,
                                                   requests_of(options), stop),
                    device);
              },
          .function = function,
          .schema = schema_of(*about)};
}

void bind_source(nb::module_& module) {
  using Lengths = std::optional<std::vector<std::int32_t>>;
  nb::class_<OwnSource>(module, "OwnSource",
                        "What is known of a source before a row is read.")
      .def(
          "__init__",
          [](OwnSource* made, std::string shown, const std::string& identity,
             std::int64_t rows, std::vector<std::int64_t> chunk_ends,
             bool global_lock) {
            new (made) OwnSource{.shown = std::move(shown),
                                 .identity = Json::parse(identity, "identity"),
                                 .rows = rows,
                                 .columns = {},
                                 .chunk_ends = std::move(chunk_ends),
                                 .global_lock = global_lock};
          },
          nb::arg("shown"), nb::arg("identity"), nb::arg("rows"),
          nb::arg("chunk_ends"), nb::arg("global_lock"))
      .def(
          "add_column",
          [](OwnSource& source, const std::string& name,
             const std::string& kind, const std::string& dtype,
             std::vector<std::int64_t> item, Lengths lengths) {
            source.columns.push_back(column_from(
                name, kind, dtype, std::move(item), std::move(lengths)));
          },
          nb::arg("name"), nb::arg("kind"), nb::arg("dtype"), nb::arg("item"),
          nb::arg("lengths").none());
  module.def("source_rows", &rows_of_source, nb::arg("source"),
             nb::arg("read"));
}

}  // namespace penstock::python
