#include "penstock/transforms/category/vocabulary.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "penstock/base/spec.h"

namespace penstock {
namespace {

std::int64_t integer_of(std::string_view value) {
  std::int64_t integer = 0;
  std::memcpy(&integer, value.data(), sizeof(integer));
  return integer;
}

/// The bytes of a class; empty where the statistics hold another type there.
std::string bytes_of(const Json& value, ClassType type) {
  const Json::Value& held = value.value();
  if (const bool* truth = std::get_if<bool>(&held);
      truth != nullptr && type == ClassType::boolean)
    return std::string(1, *truth ? '\1' : '\0');
  if (const auto* integer = std::get_if<std::int64_t>(&held);
      integer != nullptr && type == ClassType::integer)
    return {reinterpret_cast<const char*>(integer), sizeof(*integer)};
  if (value.is_string() && type == ClassType::text) return value.string();
  return {};
}

}  // namespace

Json json_of_class(ClassType type, std::string_view value) {
  switch (type) {
    case ClassType::integer:
      return integer_of(value);
    case ClassType::boolean:
      return Json(value[0] != '\0');
    case ClassType::text:
      break;
  }
  return Json(std::string(value));
}

bool class_before(ClassType type, std::string_view a, std::string_view b) {
  return type == ClassType::integer ? integer_of(a) < integer_of(b) : a < b;
}

void ClassCounts::add(std::string_view value, std::int64_t count) {
  auto found = counts_.find(value);
  if (found == counts_.end())
    counts_.emplace(value, count);
  else
    found->second += count;
}

void ClassCounts::add(const ClassCounts& other) {
  for (const auto& [value, count] : other.counts_) add(value, count);
}

std::int64_t ClassCounts::total() const {
  std::int64_t total = 0;
  for (const auto& [value, count] : counts_) total += count;
  return total;
}

std::vector<ClassCounts::Counted> ClassCounts::classes(
    ClassType type, std::int64_t min_count, bool by_frequency) const {
  std::vector<Counted> classes;
  for (const auto& [value, count] : counts_)
    if (count >= min_count) classes.push_back({value, count});
  std::ranges::sort(classes, [&](const Counted& a, const Counted& b) {
    if (by_frequency && a.count != b.count) return a.count > b.count;
    return class_before(type, a.value, b.value);
  });
  return classes;
}

Vocabulary::Vocabulary(const Json& statistics, ClassType type,
                       bool unknown_is_class, const std::string& path) {
  Spec spec(statistics, path);
  const Json* classes = spec.raw("classes");
  if (classes == nullptr || !classes->is_array())
    spec.refuse("classes", "the list of classes is missing",
                "give the statistics of this field as a run has saved them");
  std::int64_t number = unknown_is_class ? 1 : 0;
  for (const Json& value : classes->array()) {
    const std::string bytes = bytes_of(value, type);
    const bool empty_text = value.is_string() && type == ClassType::text;
    if ((bytes.empty() && !empty_text) || find(bytes) >= 0)
      spec.refuse("classes",
                  "found " + value.dump() +
                      ", which is there twice or of another type than the "
                      "column's values",
                  "give the statistics of this field as a run has saved them");
    classes_.add(bytes, number++);
  }
}

std::int64_t Vocabulary::find(std::string_view value) const {
  auto found = classes_.counts_.find(value);
  return found == classes_.counts_.end() ? -1 : found->second;
}

}  // namespace penstock
