#include "penstock/run/answer_table.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

namespace penstock {
namespace {

template <class Value>
bool all_are(const std::vector<Json>& names) {
  return std::ranges::all_of(names, [](const Json& name) {
    return std::holds_alternative<Value>(name.value());
  });
}

/// A class as people write it: a text without quotes.
std::string shown(const Json& name) {
  return name.is_string() ? name.string() : name.dump();
}

ColumnType type_of_prediction(const AnswerFacts& facts) {
  if (facts.of == AnswerFacts::Of::labels) return ColumnType::json;
  if (all_are<std::int64_t>(facts.names)) return ColumnType::int64;
  return all_are<bool>(facts.names) ? ColumnType::boolean : ColumnType::text;
}

void append_number(Column& column, double value) {
  if (std::isnan(value))
    column.append_null();
  else if (column.type == ColumnType::float64)
    column.append_float64(value);
  else
    column.append_number(static_cast<float>(value));
}

}  // namespace

AnswerTable::AnswerTable(AnswerFacts facts, ColumnType key, bool texts)
    : facts_(std::move(facts)) {
  columns_.push_back({.name = "key", .type = key});
  const bool values = facts_.of == AnswerFacts::Of::values;
  if (!values)
    columns_.push_back(
        {.name = "prediction", .type = type_of_prediction(facts_)});
  for (const Json& name : facts_.names)
    columns_.push_back({.name = values ? shown(name) : "p_" + shown(name),
                        .type = values ? ColumnType::float64
                                       : ColumnType::number(Dtype::float32)});
  if (texts) columns_.push_back({.name = "text", .type = ColumnType::text});
  for (const NewColumn& column : columns_)
    block_.columns.emplace_back().type = column.type;
}

void AnswerTable::add_text(std::string_view text) {
  block_.columns.back().append_text(text);
}

void AnswerTable::add(const Json& key, std::span<const double> answers) {
  PENSTOCK_ASSERT(answers.size() == facts_.names.size(),
                  "a row has a number for each name");
  if (columns_[0].type == ColumnType::int64)
    block_.columns[0].append_int64(key.integer());
  else
    block_.columns[0].append_text(shown(key));
  if (facts_.of == AnswerFacts::Of::one_class)
    add_class(answers);
  else if (facts_.of == AnswerFacts::Of::labels)
    add_labels(answers);
  const std::size_t first = facts_.of == AnswerFacts::Of::values ? 1 : 2;
  for (std::size_t i = 0; i < answers.size(); ++i)
    append_number(block_.columns[first + i], answers[i]);
  ++block_.rows;
}

void AnswerTable::add_class(std::span<const double> answers) {
  const auto likeliest = std::ranges::max_element(answers);
  const Json& name =
      facts_.names[static_cast<std::size_t>(likeliest - answers.begin())];
  Column& column = block_.columns[1];
  if (column.type == ColumnType::int64)
    column.append_int64(name.integer());
  else if (column.type == ColumnType::boolean)
    column.append_boolean(std::get<bool>(name.value()));
  else
    column.append_text(shown(name));
}

void AnswerTable::add_labels(std::span<const double> answers) {
  Json labels(Json::Array{});
  for (std::size_t i = 0; i < answers.size(); ++i)
    if (answers[i] > 0.5) labels.push_back(facts_.names[i]);
  block_.columns[1].append_text(labels.dump());
}

Block AnswerTable::take() {
  Block rows = std::exchange(block_, {});
  for (const NewColumn& column : columns_)
    block_.columns.emplace_back().type = column.type;
  return rows;
}

}  // namespace penstock
