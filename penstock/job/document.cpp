#include "penstock/job/document.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "penstock/base/error.h"
#include "penstock/base/secret.h"
#include "penstock/base/user_file.h"
#include "penstock/base/utf8.h"
#include "penstock/sampling/sampling.h"
#include "penstock/sources/sources.h"

namespace penstock {
namespace {

// Comments go from // to the end of a line. Spaces take their place, so that
// errors name the right column. A slash outside of a text is never JSON.
std::string without_comments(std::string text) {
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_text && text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      in_text = !in_text;
    else if (!in_text && text.compare(i, 2, "//") == 0)
      for (; i < text.size() && text[i] != '\n'; ++i) text[i] = ' ';
  }
  return text;
}

}  // namespace

Json without_secrets(Json document) {
  if (const Json* source = document.find("source"))
    document["source"] = without_secrets_of_source(*source);
  const Json* sources = document.find("sources");
  if (sources == nullptr || !sources->is_array()) return document;
  Json shown{Json::Array{}};
  for (Json entry : sources->array()) {
    if (entry.is_object())
      if (const Json* source = entry.find("source"))
        entry["source"] = without_secrets_of_source(*source);
    shown.push_back(std::move(entry));
  }
  document["sources"] = std::move(shown);
  return document;
}

void use_own_model(Json& document, const std::string& named) {
  Json section;
  if (const Json* before = document.find("model");
      before != nullptr && before->is_object()) {
    const Json* kind = before->find("kind");
    const bool own = kind != nullptr && *kind == Json("own");
    for (const auto& [key, value] : before->object())
      if (own || key == "target") section[key] = value;
  }
  section["kind"] = "own";
  section["class"] = named;
  document["model"] = std::move(section);
}

bool names_job(const std::string& text) {
  return text.ends_with(".json") && kind_of_uri(text) == nullptr;
}

namespace {

/// A section in its short form becomes an object, so that one of its keys can
/// be set.
void write_out(const std::string& section, Json& at) {
  if (section == "device" && at.is_string()) {
    Json kind = at;
    at = Json(Json::Object{{"kind", std::move(kind)}});
  } else if (section == "source" && at.is_string()) {
    at = source_section(parse_source_spec(at, section));
  } else if (section == "split" && at.is_number()) {
    at = split_section(at, section);
  }
}

}  // namespace

// "a.b.c=value": the value is JSON where it can be parsed as such, else a text.
// A section in its short form ("device": "cuda") is written out when a key
// inside it is set, so that what it said is kept.
void apply_setting(Json& document, const std::string& set) {
  auto refuse = [&](const std::string& where, std::string why) {
    throw Error(ErrorKind::request,
                {.code = "settings.override",
                 .what = "cannot use --set " +
                         without_password(set.substr(0, set.find('='))),
                 .where = where,
                 .why = std::move(why) + ", expected section.key=value",
                 .next = "write, for example, --set loader.batch_size=512"});
  };
  if (!is_utf8(set))
    throw Error(ErrorKind::request,
                {.code = "settings.override",
                 .what = "cannot use the setting " +
                         without_password(set.substr(0, set.find('='))),
                 .where = "--set",
                 .why = "the setting is not valid UTF-8, and a run stores its "
                        "settings as JSON",
                 .next = "write the setting in UTF-8; for a file name, create "
                         "a symbolic link with a UTF-8 name"});
  std::size_t equals = set.find('=');
  if (equals == std::string::npos || equals == 0)
    refuse("--set", equals == 0 ? "the key is missing" : "the '=' is missing");
  std::string text = set.substr(equals + 1);
  Json value(text);
  try {
    value = Json::parse(text, "--set");
  } catch (const Error&) {
    // Not JSON: then it is a text.
  }
  Json* at = &document;
  std::string path = set.substr(0, equals);
  for (std::size_t start = 0; start <= path.size();) {
    std::size_t dot = std::min(path.find('.', start), path.size());
    std::string so_far = path.substr(0, start == 0 ? 0 : start - 1);
    write_out(so_far, *at);
    if (!at->is_null() && !at->is_object())
      refuse(so_far.empty() ? "the top of the file" : so_far,
             "found " + std::string(at->type_name()));
    at = &(*at)[path.substr(start, dot - start)];
    start = dot + 1;
  }
  *at = std::move(value);
}

namespace {

[[noreturn]] void refuse_rows(const std::string& path, std::string why,
                              std::string next) {
  throw Error(ErrorKind::request, {.code = "json.rows",
                                   .what = "cannot read a job",
                                   .where = path,
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

/// Of what is a source of rows, or would be one if it were written otherwise:
/// the answer that a source's name gets.
[[noreturn]] void refuse_source(const std::string& path) {
  const SourceSpec spec = parse_source_spec(Json(path), "job");
  const SourceKind* kind = source_kind(spec.kind);
  refuse_rows(
      path,
      "the file holds data (" + kind->shown + "), not the settings of a job",
      "write and run a job for this file: penstock train --init " + path +
          " --target COLUMN");
}

/// True for settings of which at least one is a section of a job.
bool has_section(const Json& document) {
  static constexpr const char* kSections[] = {"source", "sources", "fields",
                                              "split",  "loader",  "device",
                                              "model",  "train",   "output"};
  return document.is_object() &&
         std::ranges::any_of(kSections, [&](const char* section) {
           return document.find(section) != nullptr;
         });
}

/// Of a file that holds settings; rows in JSON are told from them.
Json parsed_job(const std::string& path) {
  const std::string how = how_to_read_json(path);
  auto refuse = [&] {
    refuse_rows(path, "the file holds rows of data, not the settings of a job",
                "to use the file as a source, " + how);
  };
  try {
    Json document = read_settings(path);
    const bool empty = document.is_object() && document.object().empty();
    if (!how.empty() && !empty && !has_section(document)) refuse();
    return document;
  } catch (const Error& error) {
    if (error.parts().code != "json.syntax") throw;
    const std::string text = read_user_file(path, "cannot read the job file");
    // Of a job that is not valid JSON the place of the mistake is told.
    if (!how.empty() && text.find("\"source") == std::string::npos) refuse();
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    const std::string suffix = std::filesystem::path(path).extension();
    if (first != text.npos && text[first] != '{' && text[first] != '/' &&
        !suffix.empty() && suffix != ".json")
      refuse_source(path);
    throw;
  }
}

}  // namespace

Json read_settings(const std::string& path) {
  return Json::parse(
      without_comments(read_user_file(path, "cannot read the job file")), path);
}

Json read_job(const std::string& path, const std::vector<std::string>& sets) {
  std::error_code unknown;
  const bool there = std::filesystem::exists(path, unknown);
  if (std::filesystem::is_directory(path, unknown) ||
      (there && kind_of_file(path) != nullptr) ||
      (!there && path.find(':') != path.npos))
    refuse_source(path);
  Json document = parsed_job(path);
  for (const std::string& set : sets) apply_setting(document, set);
  return document;
}

}  // namespace penstock
