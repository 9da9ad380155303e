#include "penstock/sources/arrow/declared_classes.h"

#include <arrow/api.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/json.h"
#include "penstock/sources/arrow/class_labels.h"
#include "penstock/sources/pandas_index.h"

namespace penstock::arrow_files {
namespace {

/// What a library has written about a schema; empty: nothing.
std::string text_by(const arrow::Schema& schema, const std::string& library) {
  if (schema.metadata() == nullptr) return {};
  const int at = schema.metadata()->FindKey(library);
  return at < 0 ? std::string() : schema.metadata()->value(at);
}

/// The same; null where it is not there.
Json written_by(const arrow::Schema& schema, const std::string& library) {
  try {
    return Json::parse(text_by(schema, library), library);
  } catch (const Error&) {
    return {};  // nothing that we know
  }
}

bool is_text(const Json* of, std::string_view text) {
  return of != nullptr && of->is_string() && of->string() == text;
}

bool is_categorical_of_pandas(const Json& pandas, const std::string& name) {
  const Json* columns = member(&pandas, "columns");
  return columns != nullptr && columns->is_array() &&
         std::ranges::any_of(columns->array(), [&](const Json& column) {
           return is_text(member(&column, "field_name"), name) &&
                  is_text(member(&column, "pandas_type"), "categorical");
         });
}

}  // namespace

void declare_classes(const arrow::Schema& schema,
                     std::vector<ArrowColumn>& columns) {
  const Json face = written_by(schema, "huggingface");
  const Json pandas = written_by(schema, "pandas");
  const PandasIndex index(text_by(schema, "pandas"));
  const Json* features = member(member(&face, "info"), "features");
  for (ArrowColumn& column : columns) {
    const ColumnType type = column.column.type;
    if (column.names.size() == 1)
      column.column.index = index.of(column.names[0]);
    const std::vector<std::shared_ptr<arrow::Field>> fields =
        schema.GetAllFieldsByName(column.names[0]);
    const arrow::DataType& in_file = *fields[0]->type();
    if (type.kind == ColumnKind::number && type.dtype != Dtype::float32 &&
        type.dtype != Dtype::float64)
      column.column.values = names_of_labels(features, column.names);
    if (in_file.id() == arrow::Type::DICTIONARY && type == ColumnType::text)
      column.ordered =
          static_cast<const arrow::DictionaryType&>(in_file).ordered() ||
          is_categorical_of_pandas(pandas, column.names[0]);
  }
}

bool SharedDictionary::add(const arrow::Array& values) {
  if (values.type_id() != arrow::Type::DICTIONARY) return shared_ = false;
  auto dictionary =
      static_cast<const arrow::DictionaryArray&>(values).dictionary();
  if (dictionary_ == nullptr) dictionary_ = dictionary;
  return shared_ = shared_ && (dictionary == dictionary_ ||
                               dictionary->Equals(dictionary_));
}

std::vector<std::string> SharedDictionary::classes() const {
  std::vector<std::string> classes;
  if (!shared_ || dictionary_ == nullptr) return classes;
  for (std::int64_t at = 0; at < dictionary_->length(); ++at) {
    auto value = dictionary_->GetScalar(at);
    if (!value.ok() || !(*value)->is_valid) return {};
    classes.push_back(
        static_cast<const arrow::BaseBinaryScalar&>(**value).value->ToString());
  }
  return usable(std::move(classes));
}

}  // namespace penstock::arrow_files
