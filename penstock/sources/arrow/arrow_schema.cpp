#include <arrow/api.h>

#include <optional>

#include "penstock/base/error.h"
#include "penstock/base/json.h"
#include "penstock/base/utf8.h"
#include "penstock/sources/arrow/arrow_column.h"
#include "penstock/sources/arrow/declared_classes.h"
#include "penstock/sources/left_out.h"

// What Arrow calls a type and what our blocks call it.

namespace penstock::arrow_files {
namespace {

using Id = arrow::Type;

ColumnType type_of_lists(const arrow::DataType& type) {
  Dtype dtype = Dtype::float64;
  if (!dtype_of(*type.field(0)->type(), dtype)) return ColumnType::json;
  return type.id() == Id::FIXED_SIZE_LIST ? ColumnType::tensor(dtype)
                                          : ColumnType::list;
}

bool describe(const arrow::DataType& type, files::FileColumn& column);

/// Files may differ in it, where rows may: who reads them sees that.
void set_item(Shape item, files::FileColumn& column) {
  column.item = std::move(item);
  column.item_varies = true;
}

/// Dimensions written as JSON; empty where one of them is open.
Shape shape_in(const Json* dimensions) {
  Shape shape;
  if (dimensions == nullptr || !dimensions->is_array()) return shape;
  for (const Json& size : dimensions->array()) {
    if (!std::holds_alternative<std::int64_t>(size.value())) return {};
    shape.push_back(size.integer());
  }
  return shape;
}

std::optional<Json> parsed(const std::string& json) {
  try {
    return Json::parse(json, "the metadata of a type");
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The shape that an extension type gives each row: of Arrow's tensors,
/// {"shape": [2, 3]}; of Array2D and the like of Hugging Face's `datasets`,
/// which are lists of lists, [[2, 3], "float32"].
void describe_shape(std::string_view name, const std::string& about,
                    files::FileColumn& column) {
  const bool tensor = name == "arrow.fixed_shape_tensor";
  if (!tensor && !name.starts_with("datasets.features.features.Array")) return;
  const std::optional<Json> found = parsed(about);
  if (tensor && found && found->is_object())
    set_item(shape_in(found->find("shape")), column);
  if (!tensor && found && found->is_array() && !found->array().empty())
    set_item(shape_in(&found->array()[0]), column);
}

/// The same of a type that Arrow does not know: the field has what it says.
void describe_unknown(const arrow::Field& field, files::FileColumn& column) {
  if (field.metadata() == nullptr) return;
  const auto name = field.metadata()->Get("ARROW:extension:name");
  const auto about = field.metadata()->Get("ARROW:extension:metadata");
  if (name.ok() && about.ok()) describe_shape(*name, *about, column);
}

bool describe_extension(const arrow::ExtensionType& type,
                        files::FileColumn& column) {
  if (!describe(*type.storage_type(), column)) return false;
  if (type.extension_name() == "arrow.uuid") column.type = ColumnType::uuid;
  if (type.extension_name() == "arrow.json") column.type = ColumnType::json;
  describe_shape(type.extension_name(), type.Serialize(), column);
  return true;
}

/// What holds the values of a type without parts; nothing for a type that we
/// cannot read.
std::optional<ColumnType> plain_type(Id::type id) {
  switch (id) {
    case Id::NA:
      return ColumnType::null;
    case Id::BOOL:
      return ColumnType::boolean;
    case Id::HALF_FLOAT:
      return ColumnType::number(Dtype::float32);
    case Id::TIMESTAMP:
    case Id::DATE32:
    case Id::DATE64:
    case Id::TIME32:
    case Id::TIME64:
    case Id::DURATION:
    case Id::DECIMAL32:
    case Id::DECIMAL64:
    case Id::DECIMAL128:
    case Id::DECIMAL256:
      return ColumnType::float64;
    case Id::STRING:
    case Id::LARGE_STRING:
    case Id::STRING_VIEW:
      return ColumnType::text;
    case Id::BINARY:
    case Id::LARGE_BINARY:
    case Id::BINARY_VIEW:
    case Id::FIXED_SIZE_BINARY:
      return ColumnType::binary;
    case Id::MAP:
    case Id::STRUCT:  // in a list, or without members
      return ColumnType::json;
    default:
      return std::nullopt;
  }
}

bool is_timestamp(Id::type id) {
  return id == Id::TIMESTAMP || id == Id::DATE32 || id == Id::DATE64;
}

/// False for a type that we cannot read.
bool describe(const arrow::DataType& type, files::FileColumn& column) {
  Dtype dtype = Dtype::float64;
  if (dtype_of(type, dtype)) {
    column.type = ColumnType::number(dtype);
    return true;
  }
  switch (type.id()) {
    case Id::DICTIONARY:
      return describe(
          *static_cast<const arrow::DictionaryType&>(type).value_type(),
          column);
    case Id::EXTENSION:
      return describe_extension(static_cast<const arrow::ExtensionType&>(type),
                                column);
    case Id::LIST:
    case Id::LARGE_LIST:
    case Id::FIXED_SIZE_LIST:
      column.type = type_of_lists(type);
      if (column.type.kind == ColumnKind::fixed)
        set_item(
            {static_cast<const arrow::FixedSizeListType&>(type).list_size()},
            column);
      return true;
    default:
      break;
  }
  const std::optional<ColumnType> plain = plain_type(type.id());
  if (!plain) return false;
  column.type = *plain;
  column.timestamp = is_timestamp(type.id());
  return true;
}

/// What a schema holds, column by column.
struct Found {
  std::vector<ArrowColumn> columns;
  std::vector<ColumnPath> paths;        // of the same columns
  std::vector<std::string> unreadable;  // why; empty: it can be read
};

void add_columns(const arrow::Field& field, ColumnPath path,
                 const files::DataFile& file, Found& found) {
  const arrow::DataType& type = *field.type();
  if (!is_utf8(field.name()))
    throw Error(ErrorKind::source,
                {.code = "files.encoding",
                 .what = "cannot use a column name",
                 .where = file.path,
                 .why = "the name of the column is " + shown_text(field.name()),
                 .next = "rename the column and write the file again"});
  path.names.push_back(field.name());
  if (type.id() == Id::STRUCT && type.num_fields() > 0) {
    for (int at = 0; at < type.num_fields(); ++at) {
      ColumnPath member = path;
      member.places.push_back(static_cast<std::size_t>(at));
      add_columns(*type.field(at), std::move(member), file, found);
    }
    return;
  }
  std::string name;
  for (const std::string& part : path.names)
    name += (name.empty() ? "" : ".") + part;
  ArrowColumn column{.column = {.name = name, .declared = type.ToString()},
                     .names = path.names};
  found.unreadable.push_back(describe(type, column.column)
                                 ? ""
                                 : why_unsupported(column.column.declared));
  describe_unknown(field, column.column);
  found.columns.push_back(std::move(column));
  found.paths.push_back(std::move(path));
}

}  // namespace

bool dtype_of(const arrow::DataType& type, Dtype& dtype) {
  switch (type.id()) {
    case Id::INT8:
      dtype = Dtype::int8;
      return true;
    case Id::INT16:
      dtype = Dtype::int16;
      return true;
    case Id::INT32:
      dtype = Dtype::int32;
      return true;
    case Id::INT64:
      dtype = Dtype::int64;
      return true;
    case Id::UINT8:
      dtype = Dtype::uint8;
      return true;
    case Id::UINT16:
      dtype = Dtype::uint16;
      return true;
    case Id::UINT32:
      dtype = Dtype::uint32;
      return true;
    case Id::UINT64:
      dtype = Dtype::uint64;
      return true;
    case Id::FLOAT:
      dtype = Dtype::float32;
      return true;
    case Id::DOUBLE:
      dtype = Dtype::float64;
      return true;
    default:
      return false;
  }
}

std::vector<ArrowColumn> columns_of(const arrow::Schema& schema,
                                    const files::DataFile& file,
                                    std::vector<LeftOutColumn>& left_out) {
  Found found;
  for (int at = 0; at < schema.num_fields(); ++at)
    add_columns(*schema.field(at), {{static_cast<std::size_t>(at)}, {}}, file,
                found);
  const std::vector<std::string> ambiguous = why_ambiguous(found.paths);
  std::vector<ArrowColumn> columns;
  for (std::size_t at = 0; at < found.columns.size(); ++at) {
    ArrowColumn& column = found.columns[at];
    if (!ambiguous[at].empty())
      left_out.push_back({column.column.name, ambiguous[at], kRenameColumns});
    else if (!found.unreadable[at].empty())
      left_out.push_back(
          {column.column.name, found.unreadable[at], kConvertColumn});
    else
      columns.push_back(std::move(column));
  }
  declare_classes(schema, columns);
  return columns;
}

}  // namespace penstock::arrow_files
