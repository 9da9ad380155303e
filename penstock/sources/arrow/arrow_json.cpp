#include <arrow/api.h>
#include <arrow/util/decimal.h>
#include <arrow/util/float16.h>

#include "penstock/base/json.h"
#include "penstock/sources/arrow/arrow_column.h"
#include "penstock/sources/decimal.h"

namespace penstock::arrow_files {
namespace {

void append_text(std::string_view value, std::string& text) {
  text += Json(value).dump();
}

template <class Array>
void append_number_of(const arrow::Array& array, std::int64_t row,
                      std::string& text) {
  append_json_number(static_cast<const Array&>(array).Value(row), text);
}

template <class Array>
void append_list(const arrow::Array& array, std::int64_t row,
                 std::string& text) {
  const auto& list = static_cast<const Array&>(array);
  const std::int64_t begin = list.value_offset(row);
  const std::int64_t end = begin + list.value_length(row);
  text += '[';
  for (std::int64_t at = begin; at < end; ++at) {
    if (at > begin) text += ',';
    append_json(*list.values(), at, text);
  }
  text += ']';
}

void append_struct(const arrow::StructArray& array, std::int64_t row,
                   std::string& text) {
  text += '{';
  for (int field = 0; field < array.num_fields(); ++field) {
    if (field > 0) text += ',';
    append_text(array.type()->field(field)->name(), text);
    text += ':';
    append_json(*array.field(field), row, text);
  }
  text += '}';
}

/// What has no form of its own in JSON is written as Arrow shows it.
void append_shown(const arrow::Array& array, std::int64_t row,
                  std::string& text) {
  auto scalar = array.GetScalar(row);
  append_text(scalar.ok() ? (*scalar)->ToString() : std::string(), text);
}

/// False where it is no number.
bool append_any_number(const arrow::Array& array, std::int64_t row,
                       std::string& text) {
  using Id = arrow::Type;
  switch (array.type_id()) {
    case Id::BOOL:
      text += static_cast<const arrow::BooleanArray&>(array).Value(row)
                  ? "true"
                  : "false";
      return true;
    case Id::INT8:
      append_number_of<arrow::Int8Array>(array, row, text);
      return true;
    case Id::INT16:
      append_number_of<arrow::Int16Array>(array, row, text);
      return true;
    case Id::INT32:
      append_number_of<arrow::Int32Array>(array, row, text);
      return true;
    case Id::INT64:
      append_number_of<arrow::Int64Array>(array, row, text);
      return true;
    case Id::UINT8:
      append_number_of<arrow::UInt8Array>(array, row, text);
      return true;
    case Id::UINT16:
      append_number_of<arrow::UInt16Array>(array, row, text);
      return true;
    case Id::UINT32:
      append_number_of<arrow::UInt32Array>(array, row, text);
      return true;
    case Id::UINT64:
      append_number_of<arrow::UInt64Array>(array, row, text);
      return true;
    case Id::FLOAT:
      append_number_of<arrow::FloatArray>(array, row, text);
      return true;
    case Id::DOUBLE:
      append_number_of<arrow::DoubleArray>(array, row, text);
      return true;
    case Id::HALF_FLOAT:
      append_json_number(
          arrow::util::Float16::FromBits(
              static_cast<const arrow::HalfFloatArray&>(array).Value(row))
              .ToFloat(),
          text);
      return true;
    default:
      return false;
  }
}

}  // namespace

void append_json(const arrow::Array& array, std::int64_t row,
                 std::string& text) {
  if (array.IsNull(row)) {
    text += "null";
    return;
  }
  if (append_any_number(array, row, text)) return;
  using Id = arrow::Type;
  switch (array.type_id()) {
    case Id::DECIMAL128:
      text +=
          static_cast<const arrow::Decimal128Array&>(array).FormatValue(row);
      return;
    case Id::STRING:
      return append_text(
          static_cast<const arrow::StringArray&>(array).GetView(row), text);
    case Id::LARGE_STRING:
      return append_text(
          static_cast<const arrow::LargeStringArray&>(array).GetView(row),
          text);
    case Id::LIST:
      return append_list<arrow::ListArray>(array, row, text);
    case Id::LARGE_LIST:
      return append_list<arrow::LargeListArray>(array, row, text);
    case Id::FIXED_SIZE_LIST:
      return append_list<arrow::FixedSizeListArray>(array, row, text);
    case Id::MAP:
      return append_list<arrow::MapArray>(array, row, text);
    case Id::STRUCT:
      return append_struct(static_cast<const arrow::StructArray&>(array), row,
                           text);
    case Id::DICTIONARY: {
      const auto& values = static_cast<const arrow::DictionaryArray&>(array);
      return append_json(*values.dictionary(), values.GetValueIndex(row), text);
    }
    default:
      return append_shown(array, row, text);
  }
}

}  // namespace penstock::arrow_files
