#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/setting_schema.h"
#include "penstock/base/settings.h"
#include "penstock/base/spec.h"
#include "penstock/transforms/field_kind.h"

namespace penstock {

/// What the program knows of a kind of field: its descriptor, in the kind's own
/// folder.
struct FieldDescriptor {
  std::string key;  ///< the key of a field's section that names the kind
  /// Of a field's section, `key` included.
  std::vector<SettingSchema> (*settings)();
  /// Checks the section of the field `name`; the caller then calls finish().
  std::shared_ptr<const FieldKind> (*make)(const std::string& name,
                                           Spec& section);
};

/// That of a kind whose section is read into one `Settings`.
template <class Settings, const SettingsTable<Settings>& (*kTable)(),
          std::shared_ptr<const FieldKind> (*kMake)(std::string, Settings)>
FieldDescriptor describe_field(std::string key) {
  return {.key = std::move(key),
          .settings = [] { return kTable().schemas(); },
          .make =
              [](const std::string& name, Spec& section) {
                Settings settings;
                kTable().read(section, settings);
                return kMake(name, std::move(settings));
              }};
}

/// All kinds, in the order in which hints name them.
const std::vector<FieldDescriptor>& field_descriptors();

}  // namespace penstock
