#include "penstock/job/manifest_rules.h"

#include <algorithm>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/job/schema.h"

namespace penstock {
namespace {

/// Whether jobs of this program have such a setting of a section; of "model"
/// the kinds decide, and of "fields" the kinds of fields.
bool has_setting(const std::string& path) {
  static const Json schema = Json::parse(job_schema(), "the schema");
  const std::size_t dot = path.find('.');
  const std::string name = path.substr(0, dot);
  if (dot == path.npos || name == "model" || name == "fields") return true;
  const Json* section = schema.find("properties")->find(name);
  if (section == nullptr) return false;
  if (const Json* forms = section->find("anyOf"))
    section = &forms->array().back();  // the full one
  const Json* keys = section->find("properties");
  return keys != nullptr && keys->find(path.substr(dot + 1)) != nullptr;
}

}  // namespace

const Json* ManifestJob::other(const std::string& key) const {
  auto found = all_.find(key);
  return found == all_.end() || found->second.is_null() ? nullptr
                                                        : &found->second;
}

const Json* ManifestJob::first_of(const std::vector<std::string>& keys) const {
  for (const std::string& key : keys)
    if (const Json* found = other(key)) return found;
  return nullptr;
}

const Json* ManifestJob::at(const std::string& path) const {
  const Json* at = &document_;
  for (std::size_t begin = 0; at != nullptr && begin <= path.size();) {
    const std::size_t dot = std::min(path.find('.', begin), path.size());
    at = at->is_object() ? at->find(path.substr(begin, dot - begin)) : nullptr;
    begin = dot + 1;
  }
  return at;
}

void ManifestJob::set(ManifestKey& of, const std::string& path, Json value) {
  if (!has_setting(path)) return leave_out(of, "this program has no " + path);
  Json* at = &document_;
  std::size_t begin = 0;
  for (std::size_t dot; (dot = path.find('.', begin)) != path.npos;
       begin = dot + 1)
    at = &(*at)[path.substr(begin, dot - begin)];
  const std::string key = path.substr(begin);
  if (!at->is_object() && !at->is_null())
    refuse_manifest(of.key,
                    "the job's '" + path.substr(0, begin ? begin - 1 : 0) +
                        "' is " + at->dump() + ", and no section",
                    "write it as a section");
  auto before = made_.find(path);
  if (before != made_.end() && *at->find(key) != value)
    refuse_manifest(of.key,
                    "the key sets " + path + " to " + value.dump() + ", but '" +
                        before->second + "' sets it to " +
                        at->find(key)->dump(),
                    "leave one of them out");
  made_[path] = of.key;
  of.settings.push_back(path + " = " + value.dump());
  (*at)[key] = std::move(value);
}

std::vector<std::string> ManifestJob::fields_of(const char* kind) const {
  std::vector<std::string> names;
  const Json* fields = document_.find("fields");
  if (fields == nullptr || !fields->is_object()) return names;
  for (const auto& [name, field] : fields->object())
    if (field.is_object() && field.find(kind) != nullptr) names.push_back(name);
  return names;
}

const ManifestEntry* manifest_entry(const std::string& key) {
  static const auto by_key = [] {
    std::map<std::string, const ManifestEntry*> made;
    for (const auto* table :
         {&manifest_table_of_runs(), &manifest_table_of_text()})
      for (const ManifestEntry& entry : *table)
        for (const std::string& each : entry.keys) made.emplace(each, &entry);
    return made;
  }();
  auto found = by_key.find(key);
  return found == by_key.end() ? nullptr : found->second;
}

void refuse_manifest(const std::string& key, std::string why,
                     std::string next) {
  throw Error(ErrorKind::request, {.code = "manifest.value",
                                   .what = "cannot use the manifest",
                                   .where = key,
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

std::string name_in(const ManifestKey& of) {
  return of.key.substr(of.key.find('.') + 1);
}

void leave_out(ManifestKey& of, std::string why) {
  of.understood = false;
  of.why = std::move(why);
}

bool is_true(const ManifestKey& of) {
  if (!std::holds_alternative<bool>(of.value.value()))
    refuse_manifest(of.key,
                    "found " + of.value.dump() + ", expected true or false",
                    "write true or false");
  return std::get<bool>(of.value.value());
}

std::int64_t count_of(const std::string& key, const Json& value) {
  if (!std::holds_alternative<std::int64_t>(value.value()) ||
      value.integer() < 0)
    refuse_manifest(key,
                    "found " + value.dump() + ", expected a number, 0 or more",
                    "write a whole number");
  return value.integer();
}

std::string text_of(const ManifestKey& of) {
  if (!of.value.is_string())
    refuse_manifest(of.key, "found " + of.value.dump() + ", expected a text",
                    "write a text");
  return of.value.string();
}

bool is_off(const Json& value) {
  if (value.is_object()) return value.object().empty();
  if (value.is_array()) return value.array().empty();
  for (const Json& off :
       {Json(), Json(false), Json(std::int64_t{0}), Json(0.0), Json(""),
        Json("no"), Json("none"), Json("off"), Json("false")})
    if (value == off) return true;
  return false;
}

ManifestRule becomes(std::string setting) {
  return [setting = std::move(setting)](ManifestJob& job, ManifestKey& of) {
    job.set(of, setting, of.value);
  };
}

ManifestRule becomes_unless(std::string setting, Json as_default) {
  return [setting = std::move(setting), as_default = std::move(as_default)](
             ManifestJob& job, ManifestKey& of) {
    if (of.value.dump() == as_default.dump() && job.at(setting) == nullptr)
      of.why = "it is the default of " + setting + " too";
    else
      job.set(of, setting, of.value);
  };
}

ManifestRule if_true(std::string setting, Json value) {
  return [setting = std::move(setting), value = std::move(value)](
             ManifestJob& job, ManifestKey& of) {
    if (is_true(of)) return job.set(of, setting, value);
    of.why = "it is off here too, unless the job sets it";
  };
}

ManifestRule no_effect(std::string why) {
  return
      [why = std::move(why)](ManifestJob&, ManifestKey& of) { of.why = why; };
}

ManifestRule not_here(std::string why) {
  return [why = std::move(why)](ManifestJob&, ManifestKey& of) {
    if (is_off(of.value))
      of.why = "it is off here too";
    else
      leave_out(of, why);
  };
}

ManifestRule always(Json value, std::string why) {
  return [value = std::move(value), why = std::move(why)](ManifestJob&,
                                                          ManifestKey& of) {
    if (of.value == value)
      of.why = "it is always so here";
    else
      leave_out(of, why);
  };
}

ManifestRule of_fields(const char* kind, const char* setting) {
  return [kind, setting](ManifestJob& job, ManifestKey& of) {
    for (const std::string& name : job.fields_of(kind))
      job.set(of, "fields." + name + "." + kind + "." + setting, of.value);
    if (of.settings.empty())
      of.why = std::string("no field of the job is of the kind '") + kind + "'";
  };
}

}  // namespace penstock
