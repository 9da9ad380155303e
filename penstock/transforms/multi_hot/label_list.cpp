#include "penstock/transforms/multi_hot/label_list.h"

#include <algorithm>
#include <cstring>

#include "penstock/base/error.h"
#include "penstock/base/json.h"
#include "penstock/base/utf8.h"

namespace penstock {
namespace {

std::string_view without_spaces(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpaces);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
}

std::string split(std::string_view text, const std::string& separator,
                  Labels& labels) {
  if (without_spaces(text).empty()) return {};  // no labels
  for (;;) {
    const std::size_t end = text.find(separator);
    const std::string_view label = without_spaces(text.substr(0, end));
    if (label.empty())
      return "has an empty label between two '" + separator + "'";
    labels.emplace_back(label);
    if (end == text.npos) return {};
    text.remove_prefix(end + separator.size());
  }
}

std::string read_json(std::string_view text, Labels& labels) {
  Json list;
  try {
    list = Json::parse(text, "the labels");
  } catch (const Error&) {
    return "holds " + shown_text(text) +
           ", expected a list of labels: [\"cat\", \"dog\"]";
  }
  if (!list.is_array())
    return "holds " + beginning(text) +
           ", expected a list of labels: [\"cat\", \"dog\"]";
  for (const Json& label : list.array()) {
    const bool integer = std::holds_alternative<std::int64_t>(label.value());
    if (!label.is_string() && !integer)
      return "holds " + beginning(label.dump()) +
             " among its labels, expected texts or integers";
    labels.push_back(integer ? label.dump() : label.string());
  }
  return {};
}

std::string read_integers(const Column& column, std::int64_t row,
                          Labels& labels) {
  const Column& child = column.children.at(0);
  for (std::int64_t at = column.offset(row); at < column.offset(row + 1);
       ++at) {
    if (!child.valid(at)) return "holds NULL among its labels";
    labels.push_back(std::to_string(child.as_int64(at)));
  }
  return {};
}

std::string_view text_of(const Column& column, std::int64_t row) {
  if (column.type.kind != ColumnKind::dictionary) return column.text(row);
  return column.children.at(0).text(column.as_int64(row));
}

bool is_list_of_integers(const Column& column) {
  switch (column.children.at(0).type.dtype) {
    case Dtype::float16:
    case Dtype::bfloat16:
    case Dtype::float32:
    case Dtype::float64:
      return false;
    default:
      return true;
  }
}

}  // namespace

bool may_hold_labels(const ColumnType& type, bool separated) {
  if (type.kind == ColumnKind::list) return !separated;
  return type.is_text() || type.kind == ColumnKind::dictionary;
}

std::string read_labels(const Column& column, std::int64_t row,
                        const std::string& separator, Labels& labels) {
  labels.clear();
  if (!column.valid(row)) return "is NULL, expected labels; [] means no label";
  std::string why;
  if (column.type.kind == ColumnKind::list)
    why = is_list_of_integers(column)
              ? read_integers(column, row, labels)
              : "holds numbers with fractions, expected texts or integers";
  else if (separator.empty())
    why = read_json(text_of(column, row), labels);
  else
    why = split(text_of(column, row), separator, labels);
  std::ranges::sort(labels);
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  return why;
}

void append_labels(const Labels& labels, Bytes& to) {
  for (const std::string& label : labels) {
    to.append_value(static_cast<std::uint32_t>(label.size()));
    to.append(label.data(), label.size());
  }
}

std::string_view next_label(std::string_view& run) {
  std::uint32_t size = 0;
  std::memcpy(&size, run.data(), sizeof(size));
  const std::string_view label = run.substr(sizeof(size), size);
  run.remove_prefix(sizeof(size) + size);
  return label;
}

}  // namespace penstock
