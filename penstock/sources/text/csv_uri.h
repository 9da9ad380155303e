#pragma once

#include <string>

#include "penstock/sources/files/file_settings.h"

namespace penstock::text {

/// "csv:PATH?SETTINGS", as a user can write it: with the settings of the file
/// that are `given` and not the defaults, and behind them `more`, such as
/// "header=false", which come in place of given ones of these names.
std::string csv_uri(const std::string& path, const FileSettings& given,
                    const std::string& more);

/// "columns={...}": those that are given, and one more.
std::string with_column_type(const FileSettings& given,
                             const std::string& column,
                             const std::string& type);

/// "na=...": the texts for no value that are given, and one more.
std::string with_no_value(const FileSettings& given, const std::string& text);

}  // namespace penstock::text
