#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/transforms/transforms.h"

namespace penstock {

/// One field over the rows of one block, from the column to the tensors, as a
/// data set does it. For tests.
class FieldRun {
 public:
  /// `section`: of the one field `x`, which requests one column.
  FieldRun(const std::string& section, Column column, ColumnInfo info = {})
      : FieldRun(section, one(std::move(column)), std::move(info)) {}
  FieldRun(const std::string& section, std::vector<Column> answers,
           ColumnInfo info = {})
      : fields_(parse_fields(Json::parse(R"({"x": )" + section + "}", "test"),
                             "fields")),
        layout_(layout_of(fields_)) {
    block_.rows = answers[0].length;
    FieldColumns columns;
    for (const ColumnRequest& request : fields_[0].kind->facts().columns) {
      info.name = request.column;
      columns.at.push_back(columns.info.size());
      columns.types.push_back(answers[columns.info.size()].type);
      columns.info.push_back(info);
    }
    block_.columns = std::move(answers);
    bound_ = fields_[0].kind->bind(std::move(columns));
    auto parser = bound_->parser();
    parser->parse(block_, values_, faults_);
    const Values& canonical = parser->canonical(values_);
    for (std::int64_t row = 0; row < canonical.rows(); ++row) {
      auto bytes = canonical.row(row);
      canonical_.emplace_back(reinterpret_cast<const char*>(bytes.data()),
                              bytes.size());
    }
  }

  /// Fits in parts of one block of ids each; `train`: which rows are in it,
  /// all where it is empty. Then encodes all rows.
  void fit(std::vector<std::uint8_t> train = {}) {
    if (train.empty()) train.assign(static_cast<std::size_t>(block_.rows), 1);
    auto fit = bound_->fit(nullptr);
    if (fit != nullptr) {
      do {
        std::vector<std::unique_ptr<FieldFit>> parts;
        for (std::size_t at = 0; at < train.size(); at += FieldFit::kBlock) {
          std::size_t end =
              std::min(train.size(), at + std::size_t{FieldFit::kBlock});
          std::vector<ValueRow> rows;
          for (std::size_t row = at; row < end; ++row)
            rows.push_back(values_.row(static_cast<std::int64_t>(row)));
          parts.push_back(fit->part());
          parts.back()->add(rows, std::span(train).subspan(at, end - at));
        }
        for (auto& part : parts) fit->merge(*part);
      } while (fit->again());
      statistics_ = fit->statistics();
    } else if (auto unfitted = bound_->unfitted()) {
      statistics_ = *unfitted;
    }
    encode(statistics_);
  }

  std::optional<Json> unfitted() const { return bound_->unfitted(); }

  void encode(const Json& statistics) {
    std::vector<ValueRow> rows;
    for (std::int64_t row = 0; row < block_.rows; ++row)
      rows.push_back(values_.row(row));
    stored_.assign(rows.size() * layout_.row_bytes, std::byte{0xdb});
    bound_->encoder(statistics, "statistics.x")
        ->encode(rows, {.data = stored_.data(), .stride = layout_.row_bytes},
                 faults_);
  }

  /// All rows of a tensor, one after the other.
  template <class T>
  std::vector<T> tensor(std::size_t at = 0) const {
    const TensorSpec& spec = layout_.tensors.at(at);
    EXPECT_EQ(size_of(spec.dtype), sizeof(T));
    std::vector<T> all;
    for (std::int64_t row = 0; row < block_.rows; ++row) {
      std::vector<T> values(spec.bytes / sizeof(T));
      std::memcpy(values.data(),
                  stored_.data() +
                      static_cast<std::size_t>(row) * layout_.row_bytes +
                      spec.offset,
                  spec.bytes);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
  const std::vector<TensorSpec>& tensors() const { return layout_.tensors; }
  const Json& statistics() const { return statistics_; }
  const std::vector<RowFault>& faults() const { return faults_.rows; }
  /// What stands for each row in hashes.
  const std::vector<std::string>& canonical() const { return canonical_; }

 private:
  static std::vector<Column> one(Column column) {
    std::vector<Column> columns;
    columns.push_back(std::move(column));
    return columns;
  }

  std::vector<Field> fields_;
  RowLayout layout_;
  Block block_;
  std::shared_ptr<const BoundField> bound_;
  Values values_;
  Faults faults_;
  std::vector<std::string> canonical_;
  std::vector<std::byte> stored_;
  Json statistics_;
};

/// Columns of a few rows; nullopt is NULL.
inline Column column_of(const std::vector<std::optional<std::string>>& texts) {
  Column column{.type = ColumnType::text};
  for (const auto& text : texts)
    text ? column.append_text(*text) : column.append_null();
  return column;
}
template <class Number>
Column column_of(ColumnType type,
                 const std::vector<std::optional<Number>>& numbers) {
  Column column{.type = type};
  for (const auto& number : numbers)
    number ? column.append_number(*number) : column.append_null();
  return column;
}

}  // namespace penstock
