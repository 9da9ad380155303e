#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/transforms/transforms.h"

namespace penstock {

/// An image-like kind: bytes of any number are stored, and a part of `width`
/// of them, drawn for every epoch, comes into the batch; on other sides than
/// train the middle one. A sample with too few bytes is bad. The device `sim`
/// finishes it. For tests.
class Strip final : public FieldKind {
 public:
  Strip(const std::string& name, const std::string& column, std::size_t width)
      : FieldKind(
            {.columns = {{.column = column,
                          .as = ReadAs::value,
                          .setting = name}},
             .stored = {.element_bytes = 1},
             .outputs = {{.name = name,
                          .dtype = Dtype::uint8,
                          .row_shape = {static_cast<std::int64_t>(width)}}},
             .recipe = "strip"}),
        width_(width) {}

  std::unique_ptr<FieldFinisher> finisher(bool train) const override {
    return std::make_unique<Finisher>(width_, train);
  }
  std::shared_ptr<const BoundField> bind(FieldColumns columns) const override {
    return std::make_shared<Bound>(columns.at[0], width_);
  }

 private:
  class Finisher final : public FieldFinisher {
   public:
    Finisher(std::size_t width, bool train) : width_(width), train_(train) {}
    void finish(std::span<const StoredRow> rows, const DrawKey& key,
                std::span<const TensorPlace> to) override {
      constexpr std::uint64_t kCrop = 0x63726f70;  // "crop"
      for (std::size_t r = 0; r < rows.size(); ++r) {
        std::size_t left = rows[r].run.size() - width_;
        std::size_t first =
            train_ ? key.random(rows[r], kCrop).below(left + 1) : left / 2;
        std::memcpy(to[0].row(r), rows[r].run.data() + first, width_);
      }
    }
    std::optional<QueueNeeds> queue_needs(MemoryKind memory) const override {
      if (memory != MemoryKind::sim) return std::nullopt;
      return QueueNeeds();
    }

   private:
    const std::size_t width_;
    const bool train_;
  };

  class Parser final : public FieldParser {
   public:
    Parser(std::size_t column, std::size_t width)
        : column_(column), width_(width) {}
    void parse(const Block& block, Values& out, Faults& faults) override {
      for (std::int64_t row = 0; row < block.rows; ++row) {
        std::string_view bytes = block.columns[column_].text(row);
        if (bytes.size() < width_)
          faults.reject({.row = row,
                         .place = "strip",
                         .why = "found " + std::to_string(bytes.size()) +
                                " bytes, expected at least " +
                                std::to_string(width_)});
        out.bytes.append(bytes.data(), bytes.size());
        out.end_row();
      }
    }

   private:
    const std::size_t column_, width_;
  };

  class Bound final : public BoundField {
   public:
    Bound(std::size_t column, std::size_t width)
        : column_(column), width_(width) {}
    std::unique_ptr<FieldParser> parser() const override {
      return std::make_unique<Parser>(column_, width_);
    }

   private:
    const std::size_t column_, width_;
  };

  const std::size_t width_;
};

}  // namespace penstock
