#pragma once

#include <string>

#include "penstock/sources/files/file_settings.h"
#include "penstock/sources/spec.h"

namespace penstock::text {

/// "csv:PATH?SETTINGS", as a user can write it: the source with its settings
/// that are not the defaults, and behind them `more`, such as "header=false",
/// which come in place of given ones of these names. Of a list of files it
/// names the `first`.
std::string csv_uri(const SourceSpec& spec, const std::string& first,
                    const std::string& more);

/// "columns={...}": those that are given, and one more.
std::string with_column_type(const FileSettings& given,
                             const std::string& column,
                             const std::string& type);

/// "na=...": the texts for no value that are given, and one more.
std::string with_no_value(const FileSettings& given, const std::string& text);

}  // namespace penstock::text
