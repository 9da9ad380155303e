#pragma once

#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "penstock/sampling/sampling.h"
#include "penstock/sources/sources.h"
#include "penstock/transforms/transforms.h"

namespace penstock {

inline constexpr int kMadeColumns = 32;

/// Rows of 32 float32 with keys, some of which are not usable, made as they are
/// read. They cannot be read by key. `scans` counts partitions that were read.
class MadeSource final : public Source {
 public:
  MadeSource(std::int64_t rows, std::int64_t bad, bool scrambled)
      : Source({.shown = "made rows",
                .schema = {},
                .types = std::vector<ColumnType>(
                    kMadeColumns, ColumnType::number(Dtype::float32)),
                .abilities = {.by_key = true},
                .identity = Json(Json::Object{{"made", Json(rows)}})}),
        rows_(rows + bad),
        bad_(bad),
        order_(rows + bad, 1),
        scrambled_(scrambled) {}

  RowCount count() const override { return {rows_, true}; }
  std::vector<Partition> partitions(int readers) override {
    std::vector<Partition> parts;
    for (std::int64_t r = 0; r < readers; ++r)
      parts.push_back({.index = r,
                       .first = rows_ * r / readers,
                       .end = rows_ * (r + 1) / readers});
    return parts;
  }
  std::unique_ptr<Reader> open_reader() override {
    return std::make_unique<MadeReader>(*this);
  }

  std::shared_ptr<std::atomic<int>> scans =
      std::make_shared<std::atomic<int>>(0);

 private:
  class MadeReader final : public Reader {
   public:
    explicit MadeReader(const MadeSource& source) : source_(source) {}
    void scan(const Partition& part, BlockLimit limit,
              const BlockSink& sink) override {
      ++*source_.scans;
      KeyList keys;
      Block block;
      for (std::int64_t first = part.first; first < part.end;
           first += limit.rows) {
        std::int64_t end = std::min(part.end, first + limit.rows);
        source_.make(first, end, keys, block);
        if (!sink(keys, block)) return;
      }
    }
    void read(const ReadRequest&, Block&) override {}

   private:
    const MadeSource& source_;
  };

  void make(std::int64_t first, std::int64_t end, KeyList& keys,
            Block& block) const {
    keys.clear();
    block = Block();
    block.rows = end - first;
    for (std::int64_t row = first; row < end; ++row)
      keys.append_integer(scrambled_ ? order_(row) : row);
    std::vector<float> values(static_cast<std::size_t>(block.rows));
    for (int c = 0; c < kMadeColumns; ++c) {
      for (std::int64_t row = 0; row < block.rows; ++row)
        values[static_cast<std::size_t>(row)] =
            static_cast<float>(keys.integer(row) % 1000 + c);
      // Every third row is bad, as long as there are bad ones to give.
      for (std::int64_t row = 0; c == 0 && row < block.rows; ++row)
        if (bad_ > 0 && (first + row) % (rows_ / bad_) == 0 &&
            (first + row) / (rows_ / bad_) < bad_)
          values[static_cast<std::size_t>(row)] = NAN;
      Column column{.type = ColumnType::number(Dtype::float32)};
      column.length = block.rows;
      column.values.resize(values.size() * sizeof(float));
      std::memcpy(column.values.mutable_data<float>(), values.data(),
                  values.size() * sizeof(float));
      block.columns.push_back(std::move(column));
    }
  }

  const std::int64_t rows_, bad_;
  const Permutation order_;
  const bool scrambled_;
};

/// One field "x" of all its columns.
inline std::vector<Field> made_fields() {
  Json columns, fields;
  for (int c = 0; c < kMadeColumns; ++c)
    columns.push_back("c" + std::to_string(c));
  fields["x"]["columns"] = columns;
  return parse_fields(fields, "fields");
}

}  // namespace penstock
