#include "penstock/transforms/category/vocabulary.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "penstock/base/key.h"
#include "penstock/base/spec.h"

namespace penstock {
namespace {

std::int64_t integer_of(std::string_view value) {
  std::int64_t integer = 0;
  std::memcpy(&integer, value.data(), sizeof(integer));
  return integer;
}

/// The bytes of a class, in `value`; none where the statistics hold another
/// type there.
std::optional<std::string_view> bytes_of(const Json& value, ClassType type) {
  const Json::Value& held = value.value();
  if (const bool* truth = std::get_if<bool>(&held);
      truth != nullptr && type == ClassType::boolean)
    return std::string_view(*truth ? "\1" : "\0", 1);
  if (const auto* integer = std::get_if<std::int64_t>(&held);
      integer != nullptr && type == ClassType::integer)
    return std::string_view(reinterpret_cast<const char*>(integer),
                            sizeof(*integer));
  if (value.is_string() && type == ClassType::text) return value.string();
  return std::nullopt;
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

void ClassCounts::add(std::string_view value, std::int64_t count) {
  const auto number = static_cast<std::size_t>(values_.add(value));
  counts_.resize(static_cast<std::size_t>(values_.size()));
  counts_[number] += count;
}

void ClassCounts::add(std::span<const std::string_view> values) {
  numbers_.resize(values.size());
  values_.add(values, numbers_);
  counts_.resize(static_cast<std::size_t>(values_.size()));
  for (std::int64_t number : numbers_)
    ++counts_[static_cast<std::size_t>(number)];
}

// The classes are sorted at the end, so the order in which parts are merged
// does not show.
void ClassCounts::take(ClassCounts& other) {
  ClassCounts from;
  std::swap(from, other);
  if (values_.size() == 0) return std::swap(*this, from);
  std::vector<std::string_view> values;
  values.reserve(from.counts_.size());
  for (std::int64_t n = 0; n < from.values_.size(); ++n)
    values.push_back(from.values_.value(n));
  numbers_.resize(values.size());
  values_.add(values, numbers_);
  counts_.resize(static_cast<std::size_t>(values_.size()));
  for (std::size_t n = 0; n < values.size(); ++n)
    counts_[static_cast<std::size_t>(numbers_[n])] += from.counts_[n];
}

std::int64_t ClassCounts::total() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0});
}

std::int64_t ClassCounts::count_of(std::string_view value) const {
  const std::int64_t number = values_.find(value);
  return number < 0 ? 0 : counts_[static_cast<std::size_t>(number)];
}

// Eight bytes of each value after those that all have in common are compared as
// one number, and the values themselves only where these are equal. The sign of
// an integer is flipped, so that it can be compared without one.
std::vector<ClassCounts::Counted> ClassCounts::classes(
    ClassType type, std::int64_t min_count, bool by_frequency) const {
  struct Class {
    std::uint64_t part;  // in the order of classes: all of an integer
    Counted of;
  };
  std::vector<Class> found;
  found.reserve(counts_.size());
  std::size_t common = 0;  // bytes with which all values begin
  for (std::size_t n = 0; n < counts_.size(); ++n) {
    if (counts_[n] < min_count) continue;
    const std::string_view value = values_.value(static_cast<std::int64_t>(n));
    if (found.empty()) common = value.size();
    common =
        common_length(value, found.empty() ? value : found[0].of.value, common);
    found.push_back({0, {value, counts_[n]}});
  }
  for (Class& one : found)
    one.part = type == ClassType::integer
                   ? static_cast<std::uint64_t>(integer_of(one.of.value)) ^
                         (std::uint64_t{1} << 63)
                   : key_part(one.of.value, common);
  std::ranges::sort(found, [&](const Class& a, const Class& b) {
    if (by_frequency && a.of.count != b.of.count)
      return a.of.count > b.of.count;
    return a.part != b.part ? a.part < b.part : a.of.value < b.of.value;
  });
  std::vector<Counted> classes;
  classes.reserve(found.size());
  for (const Class& one : found) classes.push_back(one.of);
  return classes;
}

std::int64_t ClassCounts::write(const std::vector<Counted>& classes,
                                ClassType type, Json& statistics) {
  Json::Array values, counts;
  values.reserve(classes.size());
  counts.reserve(classes.size());
  std::int64_t all = 0;
  for (const auto& [value, count] : classes) {
    values.push_back(json_of_class(type, value));
    counts.push_back(count);
    all += count;
  }
  statistics["classes"] = std::move(values);
  statistics["counts"] = std::move(counts);
  return all;
}

Vocabulary::Vocabulary(const Json& statistics, ClassType type,
                       const std::string& path)
    : type_(type) {
  Spec spec(statistics, path);
  const Json* classes = spec.raw("classes");
  if (classes == nullptr || !classes->is_array())
    spec.refuse("classes", "the list of classes is missing",
                "use the statistics that a run saved for this field");
  const Json::Array& list = classes->array();
  std::vector<std::string_view> values;
  values.reserve(list.size());
  for (const Json& value : list) {
    const std::optional<std::string_view> bytes = bytes_of(value, type);
    if (!bytes) break;
    values.push_back(*bytes);
  }
  std::vector<std::int64_t> numbers(values.size());
  values_.add(values, numbers);
  for (std::size_t at = 0; at < list.size(); ++at)
    if (at == numbers.size() || numbers[at] != static_cast<std::int64_t>(at))
      spec.refuse("classes",
                  "found " + list[at].dump() +
                      ", which is listed twice or has another type than the "
                      "column's values",
                  "use the statistics that a run saved for this field");
}

bool Vocabulary::is_of(const Json& statistics) const {
  const Json* classes = statistics.find("classes");
  if (classes == nullptr || !classes->is_array() ||
      std::ssize(classes->array()) != values_.size())
    return false;
  std::int64_t at = 0;
  return std::ranges::all_of(classes->array(), [&](const Json& value) {
    return bytes_of(value, type_) == values_.value(at++);
  });
}

}  // namespace penstock
