#pragma once

#include <any>
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/base/setting_schema.h"
#include "penstock/base/spec.h"

namespace penstock {

/// Parts of SettingsTable that do not depend on the struct.
namespace settings {
/// Reads what `setting` says; `otherwise` is for one that is not required.
std::string read_text(Spec& spec, const SettingSchema& setting,
                      const std::string& otherwise);
std::int64_t read_integer(Spec& spec, const SettingSchema& setting,
                          std::int64_t otherwise, std::int64_t min,
                          std::int64_t max);
}  // namespace settings

/// The settings of a section, each written once: its key, which values it may
/// have, the member that it sets, and what it means. The parser, the JSON
/// Schema and the resolved settings in reports are made of it. The default of
/// a setting is what its member holds in `defaults`.
///
///     const SettingsTable<Window> table = SettingsTable<Window>()
///         .integer("length", &Window::length, 1, 1000, "in samples")
///         .text("name", &Window::name, "as reports show it");
///
/// Not changed once it is built, and then thread-safe.
template <class T>
class SettingsTable {
 public:
  /// Reads one setting into a T, where it is there.
  using Read = std::function<void(Spec&, const SettingSchema&, T&)>;
  /// The setting's value; null if there is nothing to show.
  using Show = std::function<Json(const T&)>;

  explicit SettingsTable(T defaults = T()) : defaults_(std::move(defaults)) {}

  SettingsTable& text(std::string key, std::string T::*member,
                      std::string about) {
    return setting(
        std::move(key), settings::rule_of("string", std::move(about)),
        [member](Spec& spec, const SettingSchema& setting, T& to) {
          to.*member = settings::read_text(spec, setting, to.*member);
        },
        [member](const T& from) { return Json(from.*member); });
  }

  /// A `member` that is a std::optional may be missing.
  template <class Integer>
  SettingsTable& integer(std::string key, Integer T::*member, std::int64_t min,
                         std::int64_t max, std::string about) {
    return setting(
        std::move(key), settings::integer_rule(min, max, std::move(about)),
        [member, min, max](Spec& spec, const SettingSchema& setting, T& to) {
          if (spec.raw(setting.key) == nullptr && !setting.required) return;
          to.*member = static_cast<ValueOf<Integer>>(
              settings::read_integer(spec, setting, min, min, max));
        },
        [member](const T& from) { return integer_json(from.*member); });
  }

  SettingsTable& number(std::string key, double T::*member, double min,
                        double max, std::string about) {
    return setting(
        std::move(key), settings::number_rule(min, max, std::move(about)),
        [member, min, max](Spec& spec, const SettingSchema& setting, T& to) {
          to.*member = spec.number(
              setting.key,
              setting.required ? std::nullopt : std::optional(to.*member), min,
              max);
        },
        [member](const T& from) { return Json(from.*member); });
  }

  SettingsTable& boolean(std::string key, bool T::*member, std::string about) {
    return setting(
        std::move(key), settings::rule_of("boolean", std::move(about)),
        [member](Spec& spec, const SettingSchema& setting, T& to) {
          to.*member = spec.boolean(setting.key, to.*member);
        },
        [member](const T& from) { return Json(from.*member); });
  }

  /// One of a few values, each with its name. The values may be anything that
  /// can be compared: texts, enumerators, booleans, or optionals of these.
  template <class Value>
  SettingsTable& choice(
      std::string key, Value T::*member,
      std::vector<std::pair<std::string, std::type_identity_t<Value>>> values,
      std::string about) {
    std::vector<std::string> names;
    for (const auto& [name, value] : values) names.push_back(name);
    Json rule = settings::choice_rule(names, std::move(about));
    return setting(
        std::move(key), std::move(rule),
        [member, values, names](Spec& spec, const SettingSchema& setting,
                                T& to) {
          if (spec.raw(setting.key) == nullptr && !setting.required) return;
          std::string chosen = spec.choice(setting.key, names);
          for (const auto& [name, value] : values)
            if (name == chosen) to.*member = value;
        },
        [member, values](const T& from) {
          for (const auto& [name, value] : values)
            if (value == from.*member) return Json(name);
          return Json();
        });
  }

  /// A list of texts that may be empty.
  SettingsTable& texts(std::string key, std::vector<std::string> T::*member,
                       std::string about) {
    return setting(
        std::move(key), settings::list_rule(std::move(about), false),
        [member](Spec& spec, const SettingSchema& setting, T& to) {
          if (spec.raw(setting.key) != nullptr)
            to.*member = spec.texts(setting.key);
        },
        [member](const T& from) { return settings::list_of(from.*member); });
  }

  /// At least one text, none of them twice. It must be there.
  SettingsTable& names(std::string key, std::vector<std::string> T::*member,
                       std::string about) {
    setting(
        std::move(key), settings::list_rule(std::move(about), true),
        [member](Spec& spec, const SettingSchema& setting, T& to) {
          to.*member = spec.names(setting.key);
        },
        [member](const T& from) { return settings::list_of(from.*member); });
    return required();
  }

  /// An object of its own whose settings set members of the same struct.
  SettingsTable& section(std::string key, SettingsTable<T> inner,
                         std::string about) {
    inner.rule("description", std::move(about));
    Json rule = inner.schema();
    return setting(
        std::move(key), std::move(rule),
        [inner](Spec& spec, const SettingSchema& setting, T& to) {
          if (spec.raw(setting.key) == nullptr && !setting.required) return;
          Spec section = spec.section(setting.key);
          inner.read(section, to);
          section.finish();
        },
        [inner](const T& from) { return inner.shown(from); });
  }

  /// All settings of another struct, which is the member `member` of this one.
  template <class Inner>
  SettingsTable& inside(Inner T::*member, const SettingsTable<Inner>& table) {
    defaults_.*member = table.defaults();
    return embed(
        table, [member](auto& values) -> auto& { return values.*member; });
  }

  /// The same where `member` holds the struct as a std::any: settings of one
  /// kind only, whose type others need not know.
  template <class Own>
  SettingsTable& own(std::any T::*member, const SettingsTable<Own>& table) {
    defaults_.*member = table.defaults();
    return embed(
        table, [member](auto& values) -> auto& {
          using Held = std::conditional_t<
              std::is_const_v<std::remove_reference_t<decltype(values)>>,
              const Own, Own>;
          return std::any_cast<Held&>(values.*member);
        });
  }

  /// Any other setting. `rule` is its JSON Schema.
  SettingsTable& setting(std::string key, Json rule, Read read, Show show) {
    // With its type: g++ 12 destroys an inner aggregate twice, one that has
    // defaults and is written without it, where what follows throws.
    settings_.push_back(
        {SettingSchema{.key = std::move(key), .rule = std::move(rule)}, read,
         show});
    return *this;
  }

  /// The setting that was added last must be there.
  SettingsTable& required() {
    settings_.back().schema.required = true;
    return *this;
  }
  /// How the setting that was added last shows in the identity of rows.
  SettingsTable& identity(Identity how) {
    settings_.back().schema.identity = how;
    return *this;
  }
  /// The text that was added last is not empty where it is there.
  SettingsTable& not_empty() { return last_rule("minLength", 1); }
  /// The integer that was added last is a multiple of `step`.
  SettingsTable& multiple_of(std::int64_t step) {
    return last_rule("multipleOf", step);
  }
  /// Adds a word to the schema of the setting that was added last, which the
  /// parser does not see: check() must hold it.
  SettingsTable& last_rule(const std::string& word, Json value) {
    settings_.back().schema.rule[word] = std::move(value);
    return *this;
  }
  /// The same for the schema of the whole section.
  SettingsTable& rule(const std::string& word, Json value) {
    if (value != Json("")) rules_[word] = std::move(value);
    return *this;
  }
  /// What the settings mean to each other. Called after all were read; refuses
  /// through the Spec.
  SettingsTable& check(std::function<void(Spec&, T&)> check) {
    checks_.push_back(std::move(check));
    return *this;
  }

  /// Reads the settings of a section over what `values` holds. The caller may
  /// read others of the section, and then calls finish(). Throws
  /// Error(request) with the JSON path.
  void read(Spec& section, T& values) const {
    for (const Setting& one : settings_) one.read(section, one.schema, values);
    check_all(section, values);
  }
  /// A section that has these settings alone.
  T parse(Spec section) const {
    T values = defaults_;
    read(section, values);
    section.finish();
    return values;
  }
  const T& defaults() const { return defaults_; }

  /// With the defaults.
  std::vector<SettingSchema> schemas() const {
    std::vector<SettingSchema> all;
    for (const Setting& one : settings_) {
      all.push_back(one.schema);
      Json otherwise = one.show(defaults_);
      bool empty = otherwise.is_null() || otherwise.is_object() ||
                   otherwise == Json("") || otherwise == Json(Json::Array{});
      if (!empty && !one.schema.required)
        all.back().rule["default"] = std::move(otherwise);
    }
    return all;
  }
  Json schema() const { return object_schema(schemas(), rules_); }

  /// Writes every setting that has a value into an object, which may hold
  /// others.
  void show(const T& values, Json& object) const {
    for (const Setting& one : settings_)
      if (Json value = one.show(values); !value.is_null())
        object[one.schema.key] = std::move(value);
  }
  /// The same of the settings that show in the identity of rows by their value
  /// (Identity::value), where that is not the default.
  void show_identity(const T& values, Json& object) const {
    for (const Setting& one : settings_) {
      if (one.schema.identity != Identity::value) continue;
      Json value = one.show(values);
      if (!value.is_null() && value != one.show(defaults_))
        object[one.schema.key] = std::move(value);
    }
  }
  Json shown(const T& values) const {
    Json object{Json::Object{}};
    show(values, object);
    return object;
  }

 private:
  template <class Other>
  friend class SettingsTable;

  struct Setting {
    SettingSchema schema;
    Read read;
    Show show;
  };

  template <class Value>
  struct Held {
    using type = Value;
  };
  template <class Value>
  struct Held<std::optional<Value>> {
    using type = Value;
  };
  template <class Value>
  using ValueOf = typename Held<Value>::type;

  template <std::integral Integer>
  static Json integer_json(Integer value) {
    return Json(static_cast<std::int64_t>(value));
  }
  template <std::integral Integer>
  static Json integer_json(const std::optional<Integer>& value) {
    return value ? integer_json(*value) : Json();
  }

  /// Adds the settings of `table`, whose struct is `inner_of` a T.
  template <class Inner, class InnerOf>
  SettingsTable& embed(const SettingsTable<Inner>& table, InnerOf inner_of) {
    for (const auto& one : table.settings_)
      settings_.push_back(
          {.schema = one.schema,
           .read = [inner_of, read = one.read](
                       Spec& spec, const SettingSchema& setting,
                       T& to) { read(spec, setting, inner_of(to)); },
           .show = [inner_of, show = one.show](
                       const T& from) { return show(inner_of(from)); }});
    return check([inner_of, table](Spec& spec, T& to) {
      table.check_all(spec, inner_of(to));
    });
  }
  void check_all(Spec& section, T& values) const {
    for (const auto& check : checks_) check(section, values);
  }

  T defaults_;
  std::vector<Setting> settings_;
  std::vector<std::function<void(Spec&, T&)>> checks_;
  Json rules_{Json::Object{}};
};

}  // namespace penstock
