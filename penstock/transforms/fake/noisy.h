#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "penstock/transforms/transforms.h"

namespace penstock {

/// A kind like a spectrogram that is augmented: a number is stored in two
/// tensors of equal size, three bytes and a float, and comes into the batch
/// with noise that is drawn for every epoch. A negative number is bad. The
/// device `sim` finishes it, by way of its scratch memory. For tests.
class Noisy final : public FieldKind {
 public:
  /// What its finisher does wrong, on purpose.
  enum class Wrong {
    nothing,
    throws,
    rejects_no_row_of_the_call,
    writes_behind_its_rows
  };

  Noisy(const std::string& name, const std::string& column,
        Wrong wrong = Wrong::nothing)
      : FieldKind({.columns = {{.column = column,
                                .as = ReadAs::number,
                                .setting = name}},
                   .stored = {.tensors = {{.name = name,
                                           .dtype = Dtype::uint8,
                                           .row_shape = {3}},
                                          {.name = name + "_value",
                                           .row_shape = {1}}}},
                   .recipe = "noisy"}),
        wrong_(wrong) {}

  std::unique_ptr<FieldFinisher> finisher(bool) const override {
    return std::make_unique<Finisher>(wrong_);
  }
  std::shared_ptr<const BoundField> bind(FieldColumns columns) const override {
    return std::make_shared<Bound>(columns.at[0]);
  }

 private:
  static constexpr std::size_t kValue = 4;  // its offset in a stored row
  static constexpr std::size_t kBytes = 8;  // of a stored row

  class Finisher final : public FieldFinisher {
   public:
    explicit Finisher(Wrong wrong) : wrong_(wrong) {}

    void finish(std::span<const StoredRow> rows, const DrawKey& key,
                std::span<const TensorPlace> to) override {
      if (wrong_ == Wrong::throws) throw std::runtime_error("noisy failed");
      if (wrong_ == Wrong::rejects_no_row_of_the_call)
        rejected_ = {{.row = std::ssize(rows)}};
      constexpr std::uint64_t kNoise = 0x6e6f6973;  // "nois"
      for (std::size_t r = 0; r < rows.size(); ++r) {
        Random random = key.random(rows[r], kNoise);
        for (std::size_t i = 0; i < 3; ++i)
          to[0].row(r)[i] =
              rows[r].tensors[i] ^ static_cast<std::byte>(random.below(256));
        float value = 0;
        std::memcpy(&value, rows[r].tensors + kValue, sizeof(value));
        value += static_cast<float>(random.uniform());
        std::memcpy(to[1].row(r), &value, sizeof(value));
        if (wrong_ == Wrong::writes_behind_its_rows)
          std::memcpy(to[1].row(r) + sizeof(value), &value, sizeof(value));
      }
    }
    std::span<const RowFault> rejected() const override { return rejected_; }
    std::optional<QueueNeeds> queue_needs(MemoryKind memory) const override {
      if (memory != MemoryKind::sim || wrong_ != Wrong::nothing)
        return std::nullopt;
      return QueueNeeds{.scratch_bytes = kBytes};
    }
    void queue(const QueuedRows& rows, Stream& stream) override {
      std::vector<StoredRow> copies(rows.rows.begin(), rows.rows.end());
      for (std::size_t r = 0; r < copies.size(); ++r) {
        std::byte* copy = rows.scratch + r * kBytes;
        stream.copy(copy, copies[r].tensors, kBytes);
        copies[r].tensors = copy;
      }
      QueuedRows from = rows;
      from.rows = copies;
      FieldFinisher::queue(from, stream);
    }

   private:
    const Wrong wrong_;
    std::vector<RowFault> rejected_;
  };

  class Parser final : public FieldParser {
   public:
    explicit Parser(std::size_t column) : column_(column) {}
    void parse(const Block& block, Values& out, Faults& faults) override {
      out.width = sizeof(double);
      for (std::int64_t row = 0; row < block.rows; ++row) {
        double number = block.columns[column_].as_float64(row);
        if (number < 0)
          faults.reject({.row = row, .place = "noisy", .why = "is negative"});
        out.bytes.append_value(number);
      }
    }

   private:
    const std::size_t column_;
  };

  class Encoder final : public FieldEncoder {
   public:
    void encode(std::span<const ValueRow> rows, const StoredRows& out,
                Faults&) override {
      for (std::size_t r = 0; r < rows.size(); ++r) {
        double number = 0;
        std::memcpy(&number, rows[r].data(), sizeof(number));
        auto value = static_cast<float>(number);
        std::byte* to = out.data + r * out.stride;
        std::fill_n(to, 3, static_cast<std::byte>(static_cast<int>(number)));
        std::memcpy(to + kValue, &value, sizeof(value));
      }
    }
  };

  class Bound final : public BoundField {
   public:
    explicit Bound(std::size_t column) : column_(column) {}
    std::unique_ptr<FieldParser> parser() const override {
      return std::make_unique<Parser>(column_);
    }
    std::unique_ptr<FieldEncoder> encoder(const Json&,
                                          const std::string&) const override {
      return std::make_unique<Encoder>();
    }

   private:
    const std::size_t column_;
  };

  const Wrong wrong_;
};

}  // namespace penstock
