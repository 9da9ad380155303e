#include "bench/plain_json.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>

namespace penstock {

struct PlainJson::State {
  std::vector<std::string> keys;
  std::string boolean;
  simdjson::ondemand::parser parser;
  std::vector<double> values;

  void parse(std::string_view text, std::size_t readable) {
    auto document = parser.iterate(text.data(), text.size(), readable);
    std::size_t count_at = values.size();
    values.push_back(0);
    for (simdjson::ondemand::object element : document.get_array()) {
      std::size_t first = values.size();
      values.resize(first + keys.size(), std::nan(""));
      for (auto field : element) {
        std::string_view key = field.unescaped_key();
        auto found = std::ranges::find(keys, key);
        if (found == keys.end()) continue;
        auto slot = first + static_cast<std::size_t>(found - keys.begin());
        simdjson::ondemand::value value = field.value();
        if (value.is_null()) continue;
        values[slot] = key == boolean
                           ? static_cast<double>(bool(value.get_bool()))
                           : double(value.get_double());
      }
      values[count_at] += 1;
    }
  }
};

PlainJson::PlainJson(std::vector<std::string> keys, std::string boolean)
    : state_(std::make_unique<State>()) {
  state_->keys = std::move(keys);
  state_->boolean = std::move(boolean);
}

PlainJson::~PlainJson() = default;

std::span<const double> PlainJson::parse(const Column& column) {
  State& s = *state_;
  s.values.clear();
  auto* end = reinterpret_cast<const char*>(column.values.data()) +
              column.values.size() + Bytes::kPadding;
  for (std::int64_t row = 0; row < column.length; ++row) {
    std::string_view text = column.text(row);
    s.parse(text, static_cast<std::size_t>(end - text.data()));
  }
  return s.values;
}

std::string simdjson_version() {
  return std::to_string(simdjson::SIMDJSON_VERSION_MAJOR) + "." +
         std::to_string(simdjson::SIMDJSON_VERSION_MINOR) + "." +
         std::to_string(simdjson::SIMDJSON_VERSION_REVISION);
}

std::string simdjson_instructions() {
  return simdjson::get_active_implementation()->name();
}

}  // namespace penstock
