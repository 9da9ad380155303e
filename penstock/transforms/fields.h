#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/base/tensor.h"

namespace penstock {

/// A JSON list of objects in one column -> [max, keys] and a mask [max].
struct JsonSet {
  /// What happens to a list of more than `max` elements.
  enum class Overflow { first, strongest, error };

  std::string column;
  std::vector<std::string> keys;
  int max = 0;
  int min = 1;  ///< shorter lists leave their row out
  Overflow overflow = Overflow::first;
  std::string sort_by;  ///< for `strongest`
  std::vector<std::string> required;
};

/// Columns of the table, one number each -> [columns].
struct Columns {
  std::vector<std::string> columns;
  Dtype dtype = Dtype::float32;
};

/// One entry of a job's `fields` section.
struct Field {
  std::string name;
  std::variant<JsonSet, Columns> rule;
  bool standardize = false;

  const JsonSet* json_set() const { return std::get_if<JsonSet>(&rule); }
  const Columns* columns() const { return std::get_if<Columns>(&rule); }
};

/// Checks a `fields` section, in its order. Throws Error(request) with the
/// JSON path; at least one field is needed.
std::vector<Field> parse_fields(const Json& section, const std::string& path);

/// One tensor of a batch, seen per row.
struct TensorSpec {
  std::string name;
  Dtype dtype = Dtype::float32;
  Shape row_shape;         ///< without the batch dimension
  std::size_t offset = 0;  ///< of its bytes in a packed row
  std::size_t bytes = 0;   ///< per row
};

/// How a packed row looks: the tensors in field order, a mask `NAME_mask`
/// right after its field, each at a multiple of its element size.
struct RowLayout {
  std::vector<TensorSpec> tensors;
  std::size_t row_bytes = 0;  ///< of packed rows a multiple of 8
};

RowLayout layout_of(const std::vector<Field>& fields);

}  // namespace penstock
