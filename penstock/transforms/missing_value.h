#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/base/settings.h"

namespace penstock {

/// What becomes of a value that is missing: the setting `missing` of a field.
struct MissingValue {
  enum class By : std::uint8_t {
    bad,     ///< the row is bad
    mean,    ///< the mean of the train rows
    median,  ///< their median; of an even number the mean of the middle two
    zero,
    nan,
    number,  ///< `fill`
    mask,    ///< a 0, and NAME_mask reports it
    empty,   ///< no element, where rows differ in length
  };

  By by = By::bad;
  double fill = 0;

  bool bad() const { return by == By::bad; }
  bool masked() const { return by == By::mask; }
  /// What stands in the place of the value, where no fit finds it.
  double value() const;
};

/// The rule of a setting that may be one of these, or a number.
Json missing_rule(const std::vector<MissingValue::By>& named,
                  const std::string& description);
/// Left out, such a row is bad.
MissingValue read_missing(Spec& spec, const SettingSchema& setting,
                          const std::vector<MissingValue::By>& named);
/// Null where it is bad.
Json shown_missing(const MissingValue& missing);

/// The setting `missing` of a kind.
template <class Kind>
void add_missing(SettingsTable<Kind>& table, MissingValue Kind::*member,
                 const std::vector<MissingValue::By>& named,
                 const std::string& description) {
  table.setting(
      "missing", missing_rule(named, description),
      [=](Spec& spec, const SettingSchema& setting, Kind& to) {
        to.*member = read_missing(spec, setting, named);
      },
      [=](const Kind& from) { return shown_missing(from.*member); });
}

}  // namespace penstock
