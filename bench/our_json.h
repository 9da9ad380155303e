#pragma once

#include <span>

#include "penstock/transforms/json_set/set_reader.h"

namespace penstock {

/// Our parsing alone: a json_set's texts into its elements and numbers, checked
/// and chosen, without what a BlockParser does with them (keys, hashes,
/// notes, memory of their own).
class OurJson {
 public:
  explicit OurJson(const JsonSet& set) : reader_(set) {}

  /// As PlainJson::parse. The texts are good and long enough.
  std::span<const double> parse(const Column& column) {
    values_.clear();
    auto* end = reinterpret_cast<const char*>(column.values.data()) +
                column.values.size() + Bytes::kPadding;
    for (std::int64_t row = 0; row < column.length; ++row) {
      std::string_view text = column.text(row);
      auto fault = reader_.read(
          text, static_cast<std::size_t>(end - (text.data() + text.size())));
      PENSTOCK_ASSERT(!fault, "the benchmark's rows are good");
      reader_.append_to(values_);
    }
    return values_.as<double>();
  }

 private:
  SetReader reader_;
  Bytes values_;
};

}  // namespace penstock
