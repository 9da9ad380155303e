#include <algorithm>

#include "penstock/base/connection_string.h"
#include "penstock/base/user_file.h"
#include "penstock/job/job.h"
#include "penstock/job/mixed_sources.h"
#include "penstock/job/sections.h"

namespace penstock {
namespace {

/// In a job a source is an object, never the short form of a URI.
const Json* section_of(Spec& spec, std::string_view key) {
  Spec checked(*spec.raw(key), std::string(key));
  return spec.raw(key);
}

/// An example of the section, of the first kind there is.
std::string source_example() {
  const SourceKind& kind = source_kinds()[0];
  return "\"source\": {\"kind\": \"" + kind.name + "\", \"" + kind.place_key() +
         "\": ..., \"table\": ...}";
}

/// Where a job's rows come from.
enum class RowsFrom { source, own_source, own_rows };

void parse_rows(Spec& spec, RowsFrom from, Job& job) {
  if (from == RowsFrom::own_rows) return;
  const bool own = from == RowsFrom::own_source;
  // Both are keys that a job may have, whichever it has.
  spec.raw("source");
  const bool several = !own && spec.raw("sources") != nullptr;
  if (!own && !several && !spec.has("source"))
    spec.refuse("source", "this section is missing", "add " + source_example());
  if (!several && !spec.has("fields"))
    spec.refuse("fields", "this section is missing",
                "name the tensors that a batch shall hold");
  if (!several && spec.has("source")) {
    const Json& section = *section_of(spec, "source");
    job.source = own ? parse_own_source_spec(section, "source")
                     : parse_source_spec(section, "source");
  }
  if (const Json* fields = spec.raw("fields"))
    job.fields = parse_fields(*fields, "fields");
}

/// The sources that are mixed: what else there is has been read.
void parse_several(Spec& spec, RowsFrom from, Job& job) {
  if (from == RowsFrom::source && spec.has("sources"))
    return parse_mixed_sources(spec, job);
  if (!job.loading.exhausted) return;
  Spec(*spec.raw("loader"), "loader")
      .refuse("exhausted", "it is of \"sources\", and there is one",
              "leave it out");
}

Job checked_job(const Json& document, RowsFrom from) {
  Job job;
  job.document = document;
  Spec spec(document, "");
  const Json none{Json::Object{}};
  auto section = [&](std::string_view key) {
    const Json* found = spec.raw(key);
    return Spec(found == nullptr ? none : *found, std::string(key));
  };
  parse_rows(spec, from, job);
  job.split = parse_split(spec.raw("split"), "split");
  job.loading = loading_settings().parse(section("loader"));
  job.split.share = job.loading.limit_share;
  job.split.most = job.loading.limit_rows;
  parse_several(spec, from, job);
  if (from != RowsFrom::own_rows)  // before anything is read
    BatchOperations(job.loading.options, {.outputs = outputs_of(job.fields)});
  job.model = parse_model(spec.raw("model"), job.fields);
  if (!job.model.none() && !job.sources.empty())
    spec.refuse("model",
                "it is trained on the rows of one source, and there "
                "are several",
                "set it to \"none\", or make one source of them: \"kind\": "
                "\"concatenated\"");
  Spec train = section("train");
  training_settings().read(train, job.training);
  learning_settings().read(train, job.model.learning);
  check_switches(train, job.model);
  train.finish();
  const Json* device = spec.raw("device");
  job.device =
      parse_device_spec(device == nullptr ? Json("auto") : *device, "device");
  job.output = output_settings().parse(section("output"));
  spec.finish();
  return job;
}

/// Adds a next step to an error that has none.
Job advised_job(const Json& document, RowsFrom from) {
  try {
    return checked_job(document, from);
  } catch (const Error& error) {
    ErrorParts parts = error.parts();
    if (parts.next.empty())
      parts.next = "'penstock schema' lists every key with its values";
    throw Error(error.kind(), std::move(parts));
  }
}

}  // namespace

Job parse_job(const Json& document) {
  return advised_job(document, RowsFrom::source);
}

Job parse_job_of_rows(const Json& document) {
  return advised_job(document, RowsFrom::own_rows);
}

Job parse_job_of_source(const Json& document) {
  return advised_job(document, RowsFrom::own_source);
}

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

void apply_setting(Json& document, const std::string& set) {
  auto refuse = [&](const std::string& where, std::string why) {
    throw Error(ErrorKind::request,
                {.code = "settings.override",
                 .what = "cannot use --set " +
                         without_password(set.substr(0, set.find('='))),
                 .where = where,
                 .why = std::move(why) + ", expected section.key=value",
                 .next = "for example --set loader.batch_size=512"});
  };
  if (!is_utf8(set))
    throw Error(ErrorKind::request,
                {.code = "settings.override",
                 .what = "cannot use --set " +
                         without_password(set.substr(0, set.find('='))),
                 .where = "--set",
                 .why = "it is not UTF-8, so the run could not be resumed: its "
                        "settings are kept as JSON",
                 .next = "rename the file, or make a link to it whose name is "
                         "UTF-8, and name that"});
  std::size_t equals = set.find('=');
  if (equals == std::string::npos || equals == 0)
    refuse("--set", equals == 0 ? "the key is missing" : "there is no '='");
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
    if (so_far == "device" && at->is_string()) {
      Json kind = *at;
      *at = Json(Json::Object{{"kind", std::move(kind)}});
    }
    if (!at->is_null() && !at->is_object())
      refuse(so_far.empty() ? "the top of the file" : so_far,
             "found " + std::string(at->type_name()));
    at = &(*at)[path.substr(start, dot - start)];
    start = dot + 1;
  }
  *at = std::move(value);
}

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

Json read_job(const std::string& path, const std::vector<std::string>& sets) {
  Json document = Json::parse(
      without_comments(read_user_file(path, "cannot read the job file")), path);
  for (const std::string& set : sets) apply_setting(document, set);
  return document;
}

Job load_job(const std::string& path, const std::vector<std::string>& sets) {
  return parse_job(read_job(path, sets));
}

}  // namespace penstock
