#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "penstock/transforms/transforms.h"

namespace penstock {

/// A kind whose samples differ in length: the letters of a text column as
/// int32, one element each. A text that holds a '!' is bad. For tests.
class Letters final : public FieldKind {
 public:
  /// What it does wrong, on purpose.
  enum class Wrong {
    nothing,
    throws,
    parses_too_few_rows,
    rejects_no_row_of_the_block,
    too_few_runs,
    half_an_element
  };

  Letters(const std::string& name, const std::string& column, Lengths lengths,
          Wrong wrong = Wrong::nothing)
      : FieldKind({.columns = {{.column = column,
                                .as = ReadAs::value,
                                .setting = name}},
                   .stored = {.element_bytes = 4},
                   .column_elements = 1,
                   .outputs = {{.name = name,
                                .dtype = Dtype::int32,
                                .lengths = lengths}},
                   .recipe = "letters"}),
        wrong_(wrong) {}

  std::shared_ptr<const BoundField> bind(FieldColumns columns) const override {
    return std::make_shared<Bound>(columns.at[0], wrong_);
  }

 private:
  class Parser final : public FieldParser {
   public:
    Parser(std::size_t column, Wrong wrong) : column_(column), wrong_(wrong) {}
    void parse(const Block& block, Values& out, Faults& faults) override {
      for (std::int64_t row = 0; row < block.rows; ++row) {
        std::string_view text = block.columns[column_].text(row);
        if (text.find('!') != text.npos)
          faults.reject({.row = row, .place = "text", .why = "found a '!'"});
        out.bytes.append(text.data(), text.size());
        out.end_row();
      }
      if (wrong_ == Wrong::parses_too_few_rows && block.rows > 0)
        out.ends.pop_back();
      if (wrong_ == Wrong::rejects_no_row_of_the_block)
        faults.reject({.row = block.rows});
    }

   private:
    const std::size_t column_;
    const Wrong wrong_;
  };

  class Encoder final : public FieldEncoder {
   public:
    explicit Encoder(Wrong wrong) : wrong_(wrong) {}
    void encode(std::span<const ValueRow> rows, const StoredRows& out,
                Faults&) override {
      if (wrong_ == Wrong::throws) throw std::runtime_error("letters failed");
      for (ValueRow row : rows) {
        for (std::byte letter : row)
          out.runs->bytes.append_value(static_cast<std::int32_t>(letter));
        if (wrong_ == Wrong::half_an_element) out.runs->bytes.append("", 1);
        out.runs->end_row();
      }
      if (wrong_ == Wrong::too_few_runs) out.runs->ends.pop_back();
    }

   private:
    const Wrong wrong_;
  };

  class Bound final : public BoundField {
   public:
    Bound(std::size_t column, Wrong wrong) : column_(column), wrong_(wrong) {}
    std::unique_ptr<FieldParser> parser() const override {
      return std::make_unique<Parser>(column_, wrong_);
    }
    std::unique_ptr<FieldEncoder> encoder(const Json&,
                                          const std::string&) const override {
      return std::make_unique<Encoder>(wrong_);
    }

   private:
    const std::size_t column_;
    const Wrong wrong_;
  };

  const Wrong wrong_;
};

}  // namespace penstock
