#include "penstock/sources/arrow/arrow_column.h"

#include <arrow/api.h>
#include <arrow/util/float16.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "penstock/base/error.h"
#include "penstock/sources/arrow/arrow_error.h"
#include "penstock/sources/arrow/damaged.h"
#include "penstock/sources/decimal_units.h"
#include "penstock/sources/files/checked_column.h"

// Where the layouts of Arrow and of our blocks agree,
// the buffers are borrowed: numbers, booleans, texts, bytes, lists of numbers.
// Times, decimals and half floats become float64 or float32; dictionaries their
// values.

namespace penstock::arrow_files {
namespace {

using Id = arrow::Type;

/// Keeps an array alive as long as something borrows from it.
using Owner = std::shared_ptr<const void>;

Bytes borrowed(const std::shared_ptr<arrow::Buffer>& buffer,
               const Owner& owner) {
  if (buffer == nullptr || buffer->size() == 0) return {};
  return Bytes::borrow({reinterpret_cast<const std::byte*>(buffer->data()),
                        static_cast<std::size_t>(buffer->size())},
                       owner);
}

/// A column with the validity and the place of an array.
Column framed(const arrow::ArrayData& data, ColumnType type,
              const Owner& owner) {
  Column column{.type = type};
  column.first = data.offset;
  column.length = data.length;
  if (data.GetNullCount() != 0)
    column.validity = borrowed(data.buffers[0], owner);
  return column;
}

// Ownership: a column that borrows holds the array's data, not the batch, so a
// block may outlive the reader and the batch that it came from. Validity,
// offsets and lengths come from the file; whatever indexes by them is checked
// first, because Arrow's cheap validation does not look at every value.
class Converter {
 public:
  Converter(const files::FileColumn& as, std::size_t at,
            std::vector<RowProblem>& problems, const files::DataFile& file,
            const std::string& where)
      : as_(as), at_(at), problems_(problems), file_(file), where_(where) {}

  Column convert(const std::shared_ptr<arrow::Array>& array) {
    Dtype dtype = Dtype::float64;
    if (dtype_of(*array->type(), dtype))
      return numbers_of(*array, ColumnType::number(dtype));
    switch (array->type_id()) {
      case Id::NA: {
        Column column{.type = ColumnType::null};
        column.length = array->length();
        return column;
      }
      case Id::BOOL:
        return numbers_of(*array, ColumnType::boolean);
      case Id::STRING:
      case Id::BINARY:
        return bytes<arrow::BinaryArray>(array);
      case Id::LARGE_STRING:
      case Id::LARGE_BINARY:
        return bytes<arrow::LargeBinaryArray>(array);
      case Id::STRING_VIEW:
      case Id::BINARY_VIEW:
        return views(static_cast<const arrow::BinaryViewArray&>(*array));
      case Id::FIXED_SIZE_BINARY:
        return fixed_bytes(
            static_cast<const arrow::FixedSizeBinaryArray&>(*array));
      case Id::DICTIONARY:
        return dictionary(static_cast<const arrow::DictionaryArray&>(*array));
      case Id::EXTENSION:
        return extension(static_cast<const arrow::ExtensionArray&>(*array));
      default:
        return nested(*array);
    }
  }

 private:
  Column numbers_of(const arrow::Array& array, ColumnType type) {
    const Owner owner = array.data();
    Column column = framed(*array.data(), type, owner);
    column.values = borrowed(array.data()->buffers[1], owner);
    return column;
  }

  Column nested(const arrow::Array& array) {
    const bool list_of_numbers = as_.type.kind == ColumnKind::list;
    if (array.type_id() == Id::LIST && list_of_numbers)
      return list(static_cast<const arrow::ListArray&>(array));
    if (array.type_id() == Id::LARGE_LIST && list_of_numbers)
      return list(static_cast<const arrow::LargeListArray&>(array));
    if (array.type_id() == Id::FIXED_SIZE_LIST &&
        as_.type.kind == ColumnKind::fixed)
      return tensors(static_cast<const arrow::FixedSizeListArray&>(array));
    return as_.type == ColumnType::json ? json(array) : numbers(array);
  }

  [[noreturn]] void damaged(const std::string& why) const {
    refuse_damaged(file_, where_, "column '" + as_.name + "': " + why);
  }

  template <class Array>
  Column bytes(const std::shared_ptr<arrow::Array>& array) {
    const arrow::ArrayData& data = *array->data();
    const Owner owner = array->data();
    const bool text = arrow::is_string(array->type_id());
    Column column =
        framed(data, text ? ColumnType::text : ColumnType::binary, owner);
    column.wide = sizeof(typename Array::offset_type) == 8;
    column.offsets = borrowed(data.buffers[1], owner);
    column.values = borrowed(data.buffers[2], owner);
    check_offsets(column, static_cast<std::int64_t>(column.values.size()));
    if (text) check_text(column);
    return column;
  }

  void check_offsets(const Column& column, std::int64_t end) const {
    if (!files::offsets_ascend(column, end))
      damaged("the offsets do not ascend");
  }

  void check_text(Column& column) {
    files::drop_bad_text(column, [this](std::int64_t row, std::string why) {
      problem(row, std::move(why));
    });
  }
  void problem(std::int64_t row, std::string why) {
    problems_.push_back({row, at_,
                         std::move(why) + " (" + file_.path +
                             (where_.empty() ? "" : ", " + where_) + ")"});
  }

  Column views(const arrow::BinaryViewArray& array) {
    // As bytes: text that is not UTF-8 is a matter of its row.
    auto bytes = array.data()->Copy();
    bytes->type = arrow::binary_view();
    check(arrow::MakeArray(bytes)->ValidateFull(), file_, where_);
    const bool text = array.type_id() == Id::STRING_VIEW;
    Column column{.type = text ? ColumnType::text : ColumnType::binary};
    for (std::int64_t row = 0; row < array.length(); ++row)
      array.IsNull(row) ? column.append_null()
                        : column.append_text(array.GetView(row));
    if (text) check_text(column);
    return column;
  }

  Column fixed_bytes(const arrow::FixedSizeBinaryArray& array) {
    Column column{.type = as_.type};
    const auto width = static_cast<std::size_t>(array.byte_width());
    const bool uuid = column.type == ColumnType::uuid;
    if (uuid && width != 16)
      damaged("the values have " + std::to_string(width) +
              " bytes, expected 16, as UUIDs have");
    for (std::int64_t row = 0; row < array.length(); ++row) {
      const std::uint8_t* value = array.GetValue(row);
      if (array.IsNull(row))
        column.append_null();
      else if (uuid)
        column.append_uuid(reinterpret_cast<const std::byte*>(value));
      else
        column.append_text({reinterpret_cast<const char*>(value), width});
    }
    return column;
  }

  Column dictionary(const arrow::DictionaryArray& array) {
    if (array.dictionary() != dictionary_array_) {
      dictionary_array_ = array.dictionary();
      std::vector<RowProblem> of_values;
      dictionary_ = Converter(as_, at_, of_values, file_, where_)
                        .convert(dictionary_array_);
      bad_values_.assign(static_cast<std::size_t>(dictionary_.length), "");
      for (const RowProblem& bad : of_values)
        bad_values_[static_cast<std::size_t>(bad.row)] = bad.why;
    }
    Column column{.type = dictionary_.type};
    for (std::int64_t row = 0; row < array.length(); ++row) {
      if (array.IsNull(row)) {
        column.append_null();
        continue;
      }
      std::int64_t index = array.GetValueIndex(row);
      if (index < 0 || index >= dictionary_.length)
        damaged("value " + std::to_string(index) + " of a dictionary of " +
                std::to_string(dictionary_.length));
      if (const std::string& bad = bad_values_[static_cast<std::size_t>(index)];
          !bad.empty())
        problems_.push_back({row, at_, bad});
      column.append_from(dictionary_, index);
    }
    return column;
  }

  Column extension(const arrow::ExtensionArray& array) {
    Column column = convert(array.storage());
    if (as_.type == ColumnType::json) column.type = as_.type;
    return column;
  }

  template <class Array>
  Column list(const Array& array) {
    const arrow::ArrayData& data = *array.data();
    const Owner owner = array.data();
    Column column = framed(data, ColumnType::list, owner);
    column.wide = sizeof(typename Array::offset_type) == 8;
    column.offsets = borrowed(data.buffers[1], owner);
    column.children.push_back(convert(array.values()));
    check_offsets(column, column.children[0].length);
    return column;
  }

  // A tensor has no element that is missing. Row r of a fixed-size list has the
  // elements (offset + r) * size to (offset + r + 1) * size of its child, which
  // has an offset of its own. A null list still takes `size` elements, so no
  // offsets are needed.
  Column tensors(const arrow::FixedSizeListArray& array) {
    const arrow::ArrayData& data = *array.data();
    const Owner owner = array.data();
    const std::int64_t size = array.list_type()->list_size();
    Column column = framed(data, as_.type, owner);
    column.item = as_.item.empty() ? Shape{size} : as_.item;
    Column child = convert(array.values());
    const auto width = size_of(as_.type.dtype);
    if (child.length < (data.offset + data.length) * size)
      damaged("the lists need " +
              std::to_string((data.offset + data.length) * size) +
              " values, but there are " + std::to_string(child.length));
    if (child.first * static_cast<std::int64_t>(width) >
        static_cast<std::int64_t>(child.values.size()))
      damaged("the lists begin beyond the end of their values");
    if (child.values.size() > 0)
      column.values =
          Bytes::borrow(child.values.span().subspan(
                            static_cast<std::size_t>(child.first) * width),
                        owner);
    if (child.validity.size() != 0)
      for (std::int64_t row = 0; row < column.length; ++row)
        for (std::int64_t at = 0; at < size; ++at)
          if (column.valid(row) &&
              !child.valid((data.offset + row) * size + at)) {
            problem(row, files::kListGap);
            break;
          }
    return column;
  }

  Column json(const arrow::Array& array) {
    check(array.ValidateFull(), file_, where_);
    Column column{.type = ColumnType::json};
    std::string text;
    for (std::int64_t row = 0; row < array.length(); ++row) {
      if (array.IsNull(row)) {
        column.append_null();
        continue;
      }
      text.clear();
      append_json(array, row, text);
      column.append_text(text);
    }
    return column;
  }

  /// What is turned into floating point numbers.
  Column numbers(const arrow::Array& array) {
    Column column{.type = as_.type};
    if (array.type_id() == Id::HALF_FLOAT)
      return each<arrow::HalfFloatArray>(array, column, [](auto bits) {
        return arrow::util::Float16::FromBits(bits).ToFloat();
      });
    auto scaled = [](double per_second) {
      return [per_second](auto value) {
        return static_cast<double>(value) / per_second;
      };
    };
    auto per_second = [](arrow::TimeUnit::type unit) {
      constexpr double kPer[] = {1, 1e3, 1e6, 1e9};
      return kPer[static_cast<int>(unit)];
    };
    const arrow::DataType& type = *array.type();
    switch (array.type_id()) {
      case Id::TIMESTAMP:
        return each<arrow::TimestampArray>(
            array, column,
            scaled(per_second(
                static_cast<const arrow::TimestampType&>(type).unit())));
      case Id::TIME32:
        return each<arrow::Time32Array>(
            array, column,
            scaled(
                per_second(static_cast<const arrow::TimeType&>(type).unit())));
      case Id::TIME64:
        return each<arrow::Time64Array>(
            array, column,
            scaled(
                per_second(static_cast<const arrow::TimeType&>(type).unit())));
      case Id::DURATION:
        return each<arrow::DurationArray>(
            array, column,
            scaled(per_second(
                static_cast<const arrow::DurationType&>(type).unit())));
      case Id::DATE32:
        return each<arrow::Date32Array>(array, column, [](auto days) {
          return static_cast<double>(days) * 86400;
        });
      case Id::DATE64:
        return each<arrow::Date64Array>(array, column, scaled(1e3));
      case Id::DECIMAL32:
      case Id::DECIMAL64:
      case Id::DECIMAL128:
      case Id::DECIMAL256:
        return decimals(array, column);
      default:
        damaged("found type " + type.ToString() + ", expected " + as_.declared);
    }
  }

  template <class Array, class To>
  Column each(const arrow::Array& array, Column& column, To to) {
    const auto& typed = static_cast<const Array&>(array);
    for (std::int64_t row = 0; row < array.length(); ++row)
      array.IsNull(row) ? column.append_null()
                        : column.append_number(to(typed.Value(row)));
    return std::move(column);
  }

  /// Of units of so many words, or half of one.
  Column decimals(const arrow::Array& array, Column& column) {
    const auto& typed = static_cast<const arrow::FixedSizeBinaryArray&>(array);
    const int scale =
        static_cast<const arrow::DecimalType&>(*array.type()).scale();
    const auto width = static_cast<std::size_t>(typed.byte_width());
    for (std::int64_t row = 0; row < array.length(); ++row)
      array.IsNull(row)
          ? column.append_null()
          : column.append_float64(float64_of(
                DecimalUnits::at(typed.GetValue(row), width), scale));
    return std::move(column);
  }

  const files::FileColumn& as_;
  const std::size_t at_;
  std::vector<RowProblem>& problems_;
  const files::DataFile& file_;
  const std::string& where_;
  std::shared_ptr<arrow::Array> dictionary_array_;
  Column dictionary_;
  std::vector<std::string> bad_values_;
};

}  // namespace

std::shared_ptr<arrow::Array> array_of(const arrow::RecordBatch& batch,
                                       const std::vector<std::string>& names,
                                       const files::DataFile& file,
                                       const std::string& where) {
  auto lacks = [&](const std::string& name) {
    refuse_damaged(file, where, "the file has no column '" + name + "' here");
  };
  std::shared_ptr<arrow::Array> array = batch.GetColumnByName(names[0]);
  if (array == nullptr) lacks(names[0]);
  check(array->Validate(), file, where);
  for (std::size_t depth = 1; depth < names.size(); ++depth) {
    if (array->type_id() != Id::STRUCT) lacks(names[depth]);
    const auto& outer = static_cast<const arrow::StructArray&>(*array);
    int at = outer.struct_type()->GetFieldIndex(names[depth]);
    if (at < 0) lacks(names[depth]);
    array = checked(outer.GetFlattenedField(at), file, where);
  }
  return array;
}

Column column_from(const std::shared_ptr<arrow::Array>& array,
                   const files::FileColumn& as, std::size_t at,
                   std::vector<RowProblem>& problems,
                   const files::DataFile& file, const std::string& where) {
  return Converter(as, at, problems, file, where).convert(array);
}

}  // namespace penstock::arrow_files
