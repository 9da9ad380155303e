#include "penstock/transforms/text/text.h"

#include <utility>
#include <vector>

#include "penstock/base/settings.h"
#include "penstock/transforms/array/array.h"
#include "penstock/transforms/kinds.h"

namespace penstock {
namespace {

const SettingsTable<Text>& text_settings() {
  static const SettingsTable<Text> table =
      SettingsTable<Text>()
          .section(
              "text",
              SettingsTable<Text>()
                  .text("column", &Text::column, "Column of texts or bytes")
                  .required()
                  .not_empty()
                  .choice("missing", &Text::null_is_empty,
                          {{"bad", false}, {"empty", true}},
                          "What to do with NULL. bad: the row is bad; empty: "
                          "the row is a text without bytes"),
              "Turns a column of texts or bytes into their bytes, packed one "
              "after the other.")
          .required();
  return table;
}

std::shared_ptr<const FieldKind> array_of_bytes(const std::string& name,
                                                const Text& text) {
  return make_array(
      name, {.column = text.column,
             .shape = {},
             .lengths = Lengths::packed,
             .dtype = Dtype::uint8,
             .of = Dtype::uint8,
             .missing = {.by = text.null_is_empty ? MissingValue::By::empty
                                                  : MissingValue::By::bad}});
}

FieldFacts facts_of(const std::string& name, const Text& text,
                    const FieldFacts& bytes) {
  return {.columns = {{.column = text.column,
                       .as = ReadAs::value,
                       .setting = "fields." + name + ".text.column",
                       .document = true}},
          .stored = bytes.stored,
          .column_elements = bytes.column_elements,
          .outputs = bytes.outputs,
          .recipe = text_settings().shown(text),
          .built_in = true};
}

/// An array of bytes in all but its settings.
class TextKind final : public FieldKind {
 public:
  TextKind(std::string name, const Text& text,
           std::shared_ptr<const FieldKind> bytes)
      : FieldKind(facts_of(name, text, bytes->facts())),
        name_(std::move(name)),
        bytes_(std::move(bytes)) {}

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
  const std::shared_ptr<const FieldKind> bytes_;
};

}  // namespace

std::shared_ptr<const FieldKind> make_text(std::string name, Text text) {
  auto bytes = array_of_bytes(name, text);
  return std::make_shared<TextKind>(std::move(name), text, std::move(bytes));
}

FieldDescriptor text_field() {
  return describe_field<Text, text_settings, make_text>("text");
}

}  // namespace penstock
