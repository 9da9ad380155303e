#include "penstock/base/spec.h"

#include <algorithm>
#include <cmath>

#include "penstock/base/error.h"
#include "penstock/base/secret.h"

namespace penstock {
namespace {

std::string shown(double number) { return Json(number).dump(); }

/// A value as a message may show it. A list or an object may hold a secret
/// anywhere: only its size is shown.
std::string shown(const Json& value) {
  auto sized = [&](std::size_t count, const char* thing) {
    return std::string(value.type_name()) + " of " + std::to_string(count) +
           " " + thing + (count == 1 ? "" : "s");
  };
  if (value.is_array()) return sized(value.array().size(), "item");
  if (value.is_object()) return sized(value.object().size(), "key");
  if (value.is_string()) return Json(without_password(value.string())).dump();
  return value.dump();
}

std::string range(std::int64_t min, std::int64_t max) {
  return std::to_string(min) + " to " + std::to_string(max);
}

}  // namespace

Spec::Spec(const Json& object, std::string path)
    : object_(&object), path_(std::move(path)) {
  if (!object.is_object())
    throw Error(ErrorKind::request,
                {.code = "settings.type",
                 .what = "cannot use the settings",
                 .where = path_.empty() ? "the top of the file" : path_,
                 .why = "found " + std::string(object.type_name()) +
                        ", expected an object",
                 .next = R"(write {"key": value, ...}; 'penstock schema' )"
                         "lists the keys"});
}

std::string Spec::path_of(std::string_view key) const {
  std::string shown = key.empty() ? "\"\"" : std::string(key);
  return path_.empty() ? shown : path_ + "." + shown;
}

void Spec::refuse(std::string_view key, std::string why,
                  std::string next) const {
  throw Error(ErrorKind::request, {.code = "settings.value",
                                   .what = "cannot use the settings",
                                   .where = path_of(key),
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

const Json* Spec::look_up(std::string_view key) {
  if (std::ranges::find(known_, key) == known_.end()) known_.emplace_back(key);
  const Json* found = object_->find(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

bool Spec::has(std::string_view key) const {
  const Json* found = object_->find(key);
  return found != nullptr && !found->is_null();
}

const Json* Spec::raw(std::string_view key) { return look_up(key); }

std::string Spec::text(std::string_view key) {
  const Json* found = look_up(key);
  if (found == nullptr) refuse(key, "this key is missing", "add it as a text");
  if (!found->is_string())
    refuse(key, "found " + shown(*found) + ", expected a text",
           "write it in quotation marks");
  return found->string();
}

std::string Spec::text(std::string_view key, std::string_view otherwise) {
  return look_up(key) == nullptr ? std::string(otherwise) : text(key);
}

std::int64_t Spec::integer(std::string_view key,
                           std::optional<std::int64_t> otherwise,
                           std::int64_t min, std::int64_t max) {
  const Json* found = look_up(key);
  if (found == nullptr && otherwise) return *otherwise;
  if (found == nullptr)
    refuse(key, "this key is missing", "add it as an integer");
  auto* value = std::get_if<std::int64_t>(&found->value());
  if (value == nullptr)
    refuse(key,
           "found " + shown(*found) + ", expected an integer from " +
               range(min, max),
           "write only digits, without quotation marks");
  if (*value < min || *value > max)
    refuse(key,
           "found " + std::to_string(*value) + ", expected " + range(min, max),
           *value < min ? "write a larger number" : "write a smaller number");
  return *value;
}

double Spec::number(std::string_view key, std::optional<double> otherwise,
                    double min, double max) {
  const Json* found = look_up(key);
  if (found == nullptr && otherwise) return *otherwise;
  if (found == nullptr)
    refuse(key, "this key is missing", "add it as a number");
  if (!found->is_number())
    refuse(key, "found " + shown(*found) + ", expected a number",
           "write a number, without quotation marks");
  double value = found->number();
  if (!(value >= min && value <= max))
    refuse(key,
           "found " + shown(value) + ", expected " + shown(min) + " to " +
               shown(max),
           value < min ? "write a larger number" : "write a smaller number");
  return value;
}

bool Spec::boolean(std::string_view key, bool otherwise) {
  const Json* found = look_up(key);
  if (found == nullptr) return otherwise;
  auto* value = std::get_if<bool>(&found->value());
  if (value == nullptr)
    refuse(key, "found " + shown(*found) + ", expected true or false",
           "write true or false, without quotation marks");
  return *value;
}

std::string Spec::choice(std::string_view key, std::string_view otherwise,
                         std::initializer_list<std::string_view> allowed) {
  if (look_up(key) == nullptr) return std::string(otherwise);
  return choice(key, std::vector<std::string>(allowed.begin(), allowed.end()));
}

std::string Spec::choice(std::string_view key,
                         const std::vector<std::string>& allowed) {
  std::string value = text(key);
  if (std::ranges::find(allowed, value) != allowed.end()) return value;
  std::string all;
  for (const std::string& name : allowed)
    all += (all.empty() ? "" : ", ") + name;
  refuse(key, "found " + shown(Json(value)) + ", expected one of: " + all,
         did_you_mean(value, allowed));
}

std::vector<std::string> Spec::texts(std::string_view key) {
  const Json* found = look_up(key);
  std::vector<std::string> values;
  if (found == nullptr) return values;
  if (!found->is_array())
    refuse(key, "found " + shown(*found) + ", expected a list of texts",
           R"(write a list such as ["a", "b"])");
  for (const Json& item : found->array()) {
    if (!item.is_string())
      refuse(key, "found " + shown(item) + " in a list of texts",
             "write it in quotation marks, or leave it out");
    values.push_back(item.string());
  }
  return values;
}

std::vector<std::string> Spec::names(std::string_view key) {
  std::vector<std::string> names = texts(key);
  if (names.empty())
    refuse(key, "the list is missing or empty", "list at least one name");
  for (std::size_t i = 1; i < names.size(); ++i)
    if (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i),
                  names[i]) != names.begin() + static_cast<std::ptrdiff_t>(i))
      refuse(key, "'" + names[i] + "' is listed twice", "list the name once");
  return names;
}

Spec Spec::section(std::string_view key) {
  const Json* found = look_up(key);
  if (found == nullptr)
    refuse(key, "this section is missing", "add it as an object");
  return Spec(*found, path_of(key));
}

void Spec::finish() const {
  for (const auto& [key, value] : object_->object()) {
    if (std::ranges::find(known_, key) != known_.end()) continue;
    throw Error(ErrorKind::request, {.code = "settings.unknown_key",
                                     .what = "cannot use the settings",
                                     .where = without_password(path_of(key)),
                                     .why = "there is no such key",
                                     .next = did_you_mean(key, known_)});
  }
}

}  // namespace penstock
