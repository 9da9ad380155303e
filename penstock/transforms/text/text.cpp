#include "penstock/transforms/text/text.h"

#include <utility>
#include <vector>

#include "penstock/base/settings.h"
#include "penstock/transforms/array/array.h"
#include "penstock/transforms/built_in_kind.h"
#include "penstock/transforms/kinds.h"

namespace penstock {
namespace {

const SettingsTable<Text>& text_settings() {
  static const SettingsTable<Text> table =
      SettingsTable<Text>()
          .section("text",
                   SettingsTable<Text>()
                       .text("column", &Text::column, "")
                       .required()
                       .not_empty()
                       .choice("missing", &Text::null_is_empty,
                               {{"bad", false}, {"empty", true}},
                               "what NULL makes of a row"),
                   "A column of texts or bytes -> their bytes, packed.")
          .required();
  return table;
}

/// An array of bytes in all but its settings.
class TextKind final : public BuiltInKind {
 public:
  TextKind(std::string name, Text text)
      : name_(std::move(name)),
        text_(std::move(text)),
        bytes_(make_array(
            name_,
            {.column = text_.column,
             .shape = {},
             .lengths = Lengths::packed,
             .dtype = Dtype::uint8,
             .of = Dtype::uint8,
             .missing = {.by = text_.null_is_empty ? MissingValue::By::empty
                                                   : MissingValue::By::bad}})) {
  }

  std::vector<ColumnRequest> columns() const override {
    return {{.column = text_.column,
             .as = ReadAs::value,
             .setting = "fields." + name_ + ".text.column",
             .document = true}};
  }
  StoredForm stored() const override { return bytes_->stored(); }
  std::vector<Output> outputs() const override { return bytes_->outputs(); }
  std::int32_t length(std::int32_t bytes) const override {
    return bytes_->length(bytes);
  }
  Json recipe() const override { return text_settings().shown(text_); }
  std::shared_ptr<const BoundField> bind(FieldColumns columns) const override {
    const ColumnType& type = columns.types[0];
    if (type.is_text() || type.kind == ColumnKind::binary ||
        type.kind == ColumnKind::dictionary)
      return bytes_->bind(std::move(columns));
    throw column_error("fields.not_text", "fields." + name_ + ".text.column",
                       columns.info[0], type, "expected texts or bytes",
                       "name another column, or use \"columns\" for "
                       "numbers and \"array\" for lists of them");
  }

 private:
  const std::string name_;
  const Text text_;
  const std::shared_ptr<const FieldKind> bytes_;
};

}  // namespace

std::shared_ptr<const FieldKind> make_text(std::string name, Text text) {
  return std::make_shared<TextKind>(std::move(name), std::move(text));
}

FieldDescriptor text_field() {
  return describe_field<Text, text_settings, make_text>("text");
}

}  // namespace penstock
