#pragma once

#include <string>
#include <vector>

#include "penstock/base/json.h"

namespace penstock {

// A job's settings as given: a document that is not yet checked.

/// Whether a text names a job file, NAME.json, rather than a source: one that
/// begins with the kind of a source, as "jsonl:rows.json" does, names a source.
bool names_job(const std::string& text);

/// Reads a job file, not yet checked, and applies `sets`, each
/// "section.key=value" (a value that parses as JSON is JSON, else text; the
/// sections device, source and split may be in their short form).
Json read_job(const std::string& path, const std::vector<std::string>& sets);

/// Settings of any file, of JSON with comments.
Json read_settings(const std::string& path);

/// The settings as they may be stored and shown.
Json without_secrets(Json document);

/// As read_job() applies one. Throws Error(request), code settings.override.
void apply_setting(Json& document, const std::string& set);

/// Makes a job's model one in Python, "FILE.py:NAME": what its section says of
/// such a model stays, and of another kind its target.
void use_own_model(Json& document, const std::string& named);

}  // namespace penstock
