#include "penstock/transforms/field_kind.h"

#include <cstring>
#include <utility>

#include "penstock/base/error.h"

namespace penstock {
namespace {

/// Stores values as they were parsed.
class CopyEncoder final : public FieldEncoder {
 public:
  void encode(std::span<const ValueRow> rows, const StoredRows& out,
              Faults&) override {
    std::byte* to = out.data;
    for (ValueRow row : rows) {
      if (out.runs == nullptr) {
        std::memcpy(to, row.data(), row.size());
        to += out.stride;
        continue;
      }
      out.runs->bytes.append(row.data(), row.size());
      out.runs->end_row();
    }
  }
};

}  // namespace

void check_rejected(std::span<const RowFault> rejected, std::int64_t rows,
                    const std::string& field) {
  std::int64_t least = 0;
  for (const RowFault& fault : rejected) {
    if (fault.row < least || fault.row >= rows)
      throw Error(
          ErrorKind::internal,
          {.code = "transform.wrong_row",
           .what = "a field kind rejected a row that it was not given, or rows "
                   "in another order",
           .where = "field '" + field + "'",
           .why = "found row " + std::to_string(fault.row) + " of " +
                  std::to_string(rows) + ", expected at least " +
                  std::to_string(least),
           .next = "correct the kind, or report the error to its author"});
    least = fault.row + 1;
  }
}

FieldKind::FieldKind(FieldFacts facts) : facts_(std::move(facts)) {
  if (facts_.outputs.empty())
    facts_.outputs = outputs_of({.tensors = facts_.stored.tensors});
  if (facts_.stored_recipe.is_null()) facts_.stored_recipe = facts_.recipe;
}

void FieldFinisher::queue(const QueuedRows& rows, Stream& stream) {
  PENSTOCK_ASSERT(stream.runs_host_code(),
                  "a field is queued where its kind says that it can be");
  struct Places {
    std::vector<StoredRow> rows;
    std::vector<TensorPlace> to;
    std::vector<std::vector<std::int64_t>> starts;
  };
  auto own = std::make_shared<Places>();
  own->rows.assign(rows.rows.begin(), rows.rows.end());
  own->to.assign(rows.to.begin(), rows.to.end());
  HostKernel kernel;
  for (const StoredRow& row : own->rows) {
    if (rows.tensor_bytes > 0)
      kernel.read.emplace_back(row.tensors, rows.tensor_bytes);
    if (!row.run.empty()) kernel.read.push_back(row.run);
  }
  for (TensorPlace& place : own->to) {
    for (std::size_t r = 0; r < own->rows.size(); ++r)
      kernel.written.emplace_back(place.row(r), place.bytes);
    place.starts =
        own->starts.emplace_back(place.starts.begin(), place.starts.end());
  }
  kernel.run = [this, own, key = rows.key] { finish(own->rows, key, own->to); };
  stream.run(std::move(kernel));
}

std::unique_ptr<FieldEncoder> BoundField::encoder(const Json&,
                                                  const std::string&) const {
  return std::make_unique<CopyEncoder>();
}

Error column_error(std::string code, std::string setting,
                   const ColumnInfo& column, ColumnType type,
                   const std::string& expected, std::string next) {
  return Error(
      ErrorKind::request,
      {.code = std::move(code),
       .what = "cannot use the settings",
       .where = std::move(setting),
       .why = "column '" + column.name + "' (" + column.declared + ") holds " +
              std::string(name_of(type)) + ", " + expected,
       .next = std::move(next)});
}

}  // namespace penstock
