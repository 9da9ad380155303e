#include "penstock/sources/unnamed_source.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/base/ascii.h"
#include "penstock/base/connection_string.h"
#include "penstock/base/error.h"
#include "penstock/base/folder.h"
#include "penstock/base/secret.h"
#include "penstock/sources/files/data_files.h"
#include "penstock/sources/not_read.h"
#include "penstock/sources/uri_settings.h"

namespace penstock {

bool may_hold_password(const std::string& file) {
  std::error_code unknown;
  return !files::is_stored(file) && without_password(file) != file &&
         !std::filesystem::exists(file, unknown);
}

void refuse_uri(const std::string& uri, const std::string& setting,
                std::string why, std::string next) {
  std::string shown = shown_place(uri);
  if (shown.ends_with(kHiddenConnection))
    why += "; its text is hidden, since it may hold a password";
  throw Error(ErrorKind::request,
              {.code = "source.uri",
               .what = "cannot use the source '" + shown + "'",
               .where = setting,
               .why = std::move(why),
               .next = std::move(next)});
}

namespace {

namespace fs = std::filesystem;

constexpr const char* kEveryKind =
    "name a file or folder, or write KIND:PATH, for example csv:PATH, "
    "sqlite:PATH#table or postgresql://host/base#table "
    "(docs/how-to/job_file.md has all kinds)";
constexpr std::size_t kLookedAt = 4096;

/// Empty for what is not a file: a pipe without a writer would be waited for.
std::string beginning_of(const std::string& path) {
  std::error_code unknown;
  if (!fs::is_regular_file(path, unknown)) return {};
  std::string text(kLookedAt, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

/// The first character of each line that is not a space; as many as were read.
std::string first_of_lines(std::string_view text) {
  std::string found;
  bool at_begin = true;
  for (const char c : text) {
    if (c == '\n') at_begin = true;
    if (!at_begin || std::isspace(static_cast<unsigned char>(c)) != 0) continue;
    found += c;
    at_begin = false;
  }
  return found;
}

bool is_text(std::string_view bytes) {
  return !bytes.empty() && std::ranges::none_of(bytes, [](char c) {
    return (c >= 0 && c < ' ' &&
            std::isspace(static_cast<unsigned char>(c)) == 0) ||
           c == '\x7f';
  });
}

/// The URI for a file whose beginning shows its kind; empty: it does not. By
/// magic numbers first, which no text begins with; then by what text looks
/// like. It only ever suggests: a wrong guess is a hint in a message, not a
/// wrong read.
std::string uri_by_content(const std::string& path) {
  struct Magic {
    std::string_view bytes;
    const char* prefix;
    const char* after;
  };
  static constexpr std::array<Magic, 5> kMagic = {
      {{"PAR1", "parquet:", ""},
       {"ARROW1", "arrow:", ""},
       {"SQLite format 3", "sqlite:", "#TABLE"},
       {"\x89HDF", "hdf5:", ""},
       {"\x93NUMPY", "npy:", ""}}};
  const std::string begin = beginning_of(path);
  for (const Magic& magic : kMagic)
    if (begin.starts_with(magic.bytes))
      return magic.prefix + path + magic.after;
  if (!is_text(begin)) return "";
  const std::string firsts = first_of_lines(begin);
  if (firsts.find_first_not_of('{') == firsts.npos) return "jsonl:" + path;
  const std::string_view line =
      std::string_view(begin).substr(0, begin.find('\n'));
  const bool table = line.find_first_of(",;\t|") != line.npos;
  return (table ? "csv:" : "text:") + path;
}

/// Files that are converted by one command: how their names end, what they are,
/// and the command, in which % stands for the name, or what pandas calls its
/// reader.
struct Converted {
  std::string_view end, shown, command;
};
constexpr std::string_view kByPandas = "python -c 'import pandas; pandas.read_";
constexpr std::array<Converted, 12> kConverted = {
    {{".bz2", "compressed with bzip2", "bunzip2 -k %"},
     {".xz", "compressed with xz", "unxz -k %"},
     {".lzma", "compressed with lzma", "unlzma -k %"},
     {".zip", "a zip archive", "unzip %"},
     {".7z", "an archive of 7-Zip", "7z x %"},
     {".xlsx", "an Excel workbook", "excel"},
     {".xls", "an Excel workbook", "excel"},
     {".ods", "a spreadsheet", "excel"},
     {".pkl", "a pickle, which may run code when it is read", "pickle"},
     {".dta", "a table of Stata", "stata"},
     {".sas7bdat", "a table of SAS", "sas"},
     {".sav", "a table of SPSS", "spss"}}};

/// The same of schemes.
struct Scheme {
  std::string_view begin, why, next;
};
constexpr std::array<Scheme, 9> kSchemes = {
    {{"https://", "files cannot be read over HTTP",
      "download the file: curl -LO "},
     {"http://", "files cannot be read over HTTP",
      "download the file: curl -LO "},
     {"ftp://", "files cannot be read over FTP", "download the file: curl -O "},
     {"gs://", "Google's object store is not supported",
      "copy the file: gsutil cp "},
     {"az://", "Azure's object store is not supported",
      "copy the file to a disk"},
     {"abfs", "Azure's object store is not supported",
      "copy the file to a disk"},
     {"hdfs://", "HDFS is not supported", "copy the file: hdfs dfs -get "},
     {"mysql", "PostgreSQL is the only supported server",
      "export the table as CSV or Parquet"},
     {"mssql", "PostgreSQL is the only supported server",
      "export the table as CSV or Parquet"}}};

void refuse_scheme(const std::string& uri, const std::string& setting) {
  if (uri.find("://") == uri.npos) return;
  for (const Scheme& scheme : kSchemes) {
    if (!uri.starts_with(scheme.begin)) continue;
    const std::string shown = shown_place(uri);
    std::string next(scheme.next);
    if (next.ends_with(' '))
      next += shown.ends_with(kHiddenConnection)
                  ? "URL"
                  : shown + (next.find(" cp ") != next.npos ? " ." : "");
    refuse_uri(uri, setting, std::string(scheme.why), std::move(next));
  }
}

void refuse_converted(const std::string& path, const std::string& setting) {
  for (const Converted& each : kConverted) {
    if (!ascii_lower(path).ends_with(each.end)) continue;
    std::string command(each.command);
    if (const std::size_t at = command.find('%'); at != command.npos)
      command.replace(at, 1, path);
    else
      command = std::string(kByPandas) + command + "(\"" + path +
                "\").to_csv(\"" +
                path.substr(0, path.size() - each.end.size()) +
                ".csv\", index=False)'";
    refuse_uri(path, setting, "the file is " + std::string(each.shown),
               command);
  }
}

/// What the first picture, sound or tar file below a folder is.
struct Held {
  std::string kind;     ///< "images", "audio", "tar", or empty
  std::string example;  ///< one of the files
};

Held held_by(const std::string& folder) {
  static constexpr std::array<std::pair<std::string_view, const char*>, 15>
      kEnds = {{{".jpg", "images"},
                {".jpeg", "images"},
                {".png", "images"},
                {".webp", "images"},
                {".gif", "images"},
                {".bmp", "images"},
                {".tif", "images"},
                {".tiff", "images"},
                {".wav", "audio"},
                {".flac", "audio"},
                {".mp3", "audio"},
                {".ogg", "audio"},
                {".aiff", "audio"},
                {".aif", "audio"},
                {".tar", "tar"}}};
  Held held;
  std::error_code unknown;
  each_below(folder, unknown, [&](const FolderEntry& entry) {
    if (!held.kind.empty()) return false;
    const std::string name = entry.path.filename().string();
    const std::string lower = ascii_lower(name);
    for (const auto& [ending, kind] : kEnds)
      if (lower.ends_with(ending)) held = {kind, name};
    return held.kind.empty() && entry.is_folder();
  });
  return held;
}

}  // namespace

std::string shown_place(const std::string& uri) {
  const SourceKind* kind = kind_of_uri(uri);
  if (kind != nullptr && kind->server)
    return shown_connection(parts_of_uri(uri, kind).place);
  if (kind != nullptr || uri.find_first_of(":@=") == uri.npos)
    return without_password(uri);
  const std::size_t scheme = uri.find("://");
  const bool named =
      scheme != uri.npos &&
      std::all_of(uri.begin(),
                  uri.begin() + static_cast<std::ptrdiff_t>(scheme),
                  [](char c) { return c >= 'a' && c <= 'z'; });
  // A URL without credentials, a query or a port holds no secret.
  if (named && uri.starts_with("http") &&
      uri.find_first_of("@=:?", scheme + 3) == uri.npos)
    return uri;
  return (named ? uri.substr(0, scheme + 3) : "") + kHiddenConnection;
}

void refuse_near_kind(const std::string& uri, const std::string& setting) {
  const std::size_t colon = uri.find(':');
  if (colon == uri.npos || colon == 0) return;
  std::vector<std::string> prefixes;
  for (const SourceKind& kind : source_kinds())
    for (const std::string& prefix : kind.prefixes)
      prefixes.push_back(prefix.substr(0, prefix.find(':')));
  const std::string given = uri.substr(0, colon);
  const std::string found = nearest(given, prefixes);
  if (!found.empty())
    refuse_uri(uri, setting, "'" + given + "' is not a kind of source",
               "did you mean '" + found + ":'?");
}

std::string how_to_read_json(const std::string& path) {
  const std::string begin = beginning_of(path);
  if (!is_text(begin)) return "";
  const std::string firsts = first_of_lines(begin);
  const std::size_t first = begin.find('{');
  if (firsts.starts_with('[') && first != begin.npos &&
      begin.find_first_not_of(" \t\r\n", begin.find('[') + 1) == first)
    return "write one object per line: jq -c '.[]' " + path + " > " +
           (ascii_lower(path).ends_with(".json")
                ? path.substr(0, path.size() - 5)
                : path) +
           ".jsonl";
  const bool lines = firsts.size() > 1 && firsts[0] == '{' && firsts[1] == '{';
  const bool one = !firsts.empty() && firsts[0] == '{' &&
                   begin.find('\n') == begin.find_last_not_of(" \n\r\t") + 1;
  return lines || one ? "write jsonl:" + path : "";
}

void refuse_folder(const std::string& folder, const std::string& kinds,
                   const std::string& setting) {
  auto refused = [&](std::string why, std::string next) {
    return Error(
        ErrorKind::request,
        {.code = "source.uri",
         .what = "cannot determine what is in the folder '" + folder + "'",
         .where = setting,
         .why = std::move(why),
         .next = std::move(next)});
  };
  if (!kinds.empty())
    throw refused("the folder has files of several kinds", "write " + kinds);
  const Held held = held_by(folder);
  const std::string named = " ('" + held.example + "')";
  const std::string place =
      folder.ends_with('/') ? folder.substr(0, folder.size() - 1) : folder;
  if (held.kind == "images")
    throw refused("the folder holds pictures" + named, "write images:" + place);
  if (held.kind == "audio")
    throw refused("the folder holds sounds" + named, "write audio:" + place);
  if (held.kind == "tar")
    throw refused("the folder holds tar files" + named,
                  "for shards of pictures write images:" + place + "/*.tar");
  throw refused("none of its files has a name that shows its kind",
                "write the kind first, for example parquet:" + place);
}

void refuse_unnamed(const std::string& uri, const std::string& setting) {
  refuse_scheme(uri, setting);
  refuse_near_kind(uri, setting);
  const bool may_be_file = uri.find("://") == uri.npos;
  std::error_code unknown;
  if (!may_be_file || may_hold_password(uri))
    refuse_uri(uri, setting, "the text does not begin with a kind of source",
               kEveryKind);
  if (!fs::exists(uri, unknown))
    refuse_uri(uri, setting, "the file or folder does not exist",
               advice_for_missing(uri));
  if (!fs::is_regular_file(uri, unknown))
    refuse_uri(uri, setting, "the path is neither a file nor a folder",
               "name a file or a folder");
  refuse_converted(uri, setting);
  if (ascii_lower(uri).ends_with(".json")) {
    const std::string how = how_to_read_json(uri);
    if (!how.empty())
      refuse_uri(uri, setting, "the names of JSON lines files end with .jsonl",
                 how);
  }
  const std::string content = uri_by_content(uri);
  refuse_uri(uri, setting, "the name does not show the kind of the file",
             content.empty() ? kEveryKind : "write " + content);
}

}  // namespace penstock
