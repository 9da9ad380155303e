#include "penstock/sources/not_read.h"

#include <strings.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "penstock/base/error.h"
#include "penstock/base/secret.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

struct Format {
  std::array<const char*, 2> kinds;
  const char* shown;
  std::array<const char*, 2> extensions;
  const char* instead;
};

constexpr std::array<Format, 3> kFormats = {
    {{{"lmdb", "lmdb"},
      "LMDB",
      {".lmdb", ".lmdb"},
      "write its values to Parquet, Arrow or tar, or write your own source "
      "(docs/how-to/own_source.md)"},
     {{"mds", "streaming"},
      "Mosaic's MDS",
      {".mds", ".mds"},
      "write its samples to Parquet or tar with a loop over "
      "streaming.LocalDataset"},
     {{"beton", "ffcv"},
      "FFCV's .beton",
      {".beton", ".beton"},
      "read the folder or table that it was made from"}}};

[[noreturn]] void refuse(const Format& format, const std::string& named,
                         const std::string& setting) {
  throw Error(ErrorKind::request,
              {.code = "files.not_read",
               .what = "cannot read '" + without_password(named) + "'",
               .where = setting,
               .why = std::string(format.shown) + " is not a supported format",
               .next = format.instead});
}

bool ends_with(const std::string& name, std::string_view end) {
  return name.size() > end.size() &&
         ::strcasecmp(name.c_str() + name.size() - end.size(), end.data()) == 0;
}

/// It begins as the index of MDS does, which says what its shards are.
bool is_index_of_mds(const fs::path& path) {
  std::error_code unknown;
  if (!fs::is_regular_file(path, unknown)) return false;
  std::string text(1 << 14, '\0');
  std::ifstream file(path);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text.find("\"shards\"") != text.npos &&
         text.find("\"mds\"") != text.npos;
}

}  // namespace

void refuse_kind_not_read(const std::string& kind, const std::string& setting) {
  for (const Format& format : kFormats)
    if (std::ranges::find(format.kinds, kind) != format.kinds.end())
      refuse(format, kind, setting);
}

void refuse_not_read(const std::string& uri, const std::string& setting) {
  const std::size_t colon = uri.find(':');
  if (colon != uri.npos)
    for (const Format& format : kFormats)
      for (std::string_view kind : format.kinds)
        if (uri.substr(0, colon) == kind) refuse(format, uri, setting);
  std::error_code unknown;
  if (!fs::exists(uri, unknown)) return;
  for (const Format& format : kFormats)
    for (std::string_view end : format.extensions)
      if (ends_with(uri, end)) refuse(format, uri, setting);
  const fs::path folder(uri);
  if (fs::exists(folder / "data.mdb", unknown))
    refuse(kFormats[0], uri, setting);
  if (is_index_of_mds(folder / "index.json")) refuse(kFormats[1], uri, setting);
}

}  // namespace penstock
