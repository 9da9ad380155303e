#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/json.h"

namespace penstock {

/// How a setting of a source shows in the identity of its rows, by which rows
/// that were kept are found again.
enum class Identity : std::uint8_t {
  /// By its value, unless that is the default: another value may mean other
  /// rows.
  value,
  /// By what the source makes of it and writes there itself: the files that a
  /// path names, the columns that are read.
  written,
  /// Not at all: it changes how rows are read, never which rows.
  none,
};

/// A setting as a JSON Schema (draft 2020-12) describes it.
struct SettingSchema {
  std::string key;
  Json rule{Json::Object{}};  ///< of the value: type, range, default, ...
  bool required = false;
  Identity identity = Identity::value;
};

/// The schema of an object with these settings and no others. `more` are
/// further members of the rule: "description", "oneOf", ...
Json object_schema(const std::vector<SettingSchema>& settings,
                   const Json& more = Json(Json::Object{}));

/// The settings that one kind has in addition to the shared ones.
struct KindSettings {
  Json when{Json::Object{}};  ///< a rule that only sections of this kind fit
  std::vector<SettingSchema> settings;
};

/// The schema of a section of one of these kinds, without the settings of the
/// others. `shared` are those of all kinds.
Json schema_of_kinds(const std::vector<SettingSchema>& shared,
                     const std::vector<KindSettings>& kinds,
                     const Json& more = Json(Json::Object{}));

/// The rules of single values.
namespace settings {
Json rule_of(std::string_view type, std::string about);
Json list_rule(std::string about, bool not_empty);
Json integer_rule(std::int64_t min, std::int64_t max, std::string about);
Json number_rule(double min, double max, std::string about);
Json choice_rule(const std::vector<std::string>& names, std::string about);
Json list_of(const std::vector<std::string>& texts);
}  // namespace settings

}  // namespace penstock
