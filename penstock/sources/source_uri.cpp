#include "penstock/sources/source_uri.h"

#include <algorithm>
#include <filesystem>

#include "penstock/base/connection_string.h"
#include "penstock/base/error.h"
#include "penstock/base/secret.h"
#include "penstock/sources/files/object_store.h"

namespace penstock {
namespace {

/// How a URI of this kind begins; empty where it is not of this kind.
std::string prefix_of(const SourceKind& kind, const std::string& uri) {
  for (const std::string& prefix : kind.prefixes)
    if (uri.starts_with(prefix)) return prefix;
  return "";
}

}  // namespace

const SourceKind* kind_of_uri(const std::string& uri) {
  for (const SourceKind& kind : source_kinds())
    if (!prefix_of(kind, uri).empty()) return &kind;
  return nullptr;
}

namespace {

/// "sqlite: or postgresql://"
std::string prefixes() {
  std::string all;
  for (const SourceKind& kind : source_kinds())
    all += (all.empty() ? "" : " or ") + kind.prefixes[0];
  return all;
}

/// A URI up to the table or query that follows, and the rest.
struct UriParts {
  std::string place;
  std::string rest;  ///< "#table", "?key=a&query=SELECT ..."; may be empty
};

UriParts parts_of(const std::string& uri) {
  std::size_t end = std::string::npos;
  for (const char* first : {"?query=", "&query="})
    end = std::min(end, uri.find(first));
  if (end == uri.npos)
    end = uri.rfind('#');
  else if (const std::size_t last = uri.find_last_of("?&", end - 1);
           end > 0 && last != uri.npos && uri.compare(last + 1, 4, "key=") == 0)
    end = last;
  if (end == uri.npos) return {uri, ""};
  return {uri.substr(0, end), uri.substr(end)};
}

/// The place of a source, as a message may show it. Anything that is neither a
/// file nor a connection string that can be read may hold a password anywhere.
std::string shown_place(const std::string& uri) {
  const SourceKind* kind = kind_of_uri(uri);
  if (kind != nullptr && kind->server)
    return shown_connection(parts_of(uri).place);
  if (kind != nullptr || uri.find_first_of(":@=") == uri.npos)
    return without_password(uri);
  std::size_t scheme = uri.find("://");
  bool named = scheme != uri.npos &&
               std::all_of(uri.begin(),
                           uri.begin() + static_cast<std::ptrdiff_t>(scheme),
                           [](char c) { return c >= 'a' && c <= 'z'; });
  return (named ? uri.substr(0, scheme + 3) : "") + kHiddenConnection;
}

[[noreturn]] void refuse_uri(const std::string& uri, const std::string& path,
                             std::string why) {
  std::string shown = shown_place(uri);
  if (shown.ends_with(kHiddenConnection))
    why += "; it is not shown, since it may hold a password";
  throw Error(ErrorKind::request,
              {.code = "source.uri",
               .what = "cannot use the source '" + shown + "'",
               .where = path,
               .why = std::move(why),
               .next = "write " + source_examples()});
}

/// How names of files end whose kind need not be said: ".parquet or .csv".
std::string extensions() {
  std::string all;
  for (const SourceKind& kind : source_kinds())
    if (!kind.extensions.empty())
      all += (all.empty() ? "" : " or ") + kind.extensions[0];
  return all;
}

}  // namespace

bool may_hold_password(const std::string& file) {
  std::error_code unknown;
  return !files::is_stored(file) && without_password(file) != file &&
         !std::filesystem::exists(file, unknown);
}

namespace {

/// A '#' may be in the name of a file, which has no tables.
SourceSpec of_files(const SourceKind& kind, std::string file,
                    const std::string& uri, const std::string& path) {
  if (file.empty()) refuse_uri(uri, path, "it names no file");
  if (files::is_stored(file)) files::check_stored(file);
  if (may_hold_password(file))
    refuse_uri(uri, path,
               "it looks like a connection string, and there is no "
               "such file");
  SourceSpec spec = kind.settings.defaults();
  spec.path = std::move(file);
  return spec;
}

/// "?key=a,b&query=SELECT ...": what follows `query=` is the query as it is.
void read_query(const std::string& rest, const std::string& uri,
                const std::string& path, SourceSpec& spec) {
  const std::size_t query = rest.find("query=");
  spec.query = rest.substr(query + 6);
  if (spec.query.empty()) refuse_uri(uri, path, "no query follows 'query='");
  if (query == 1) return;
  const std::string keys = rest.substr(5, query - 6);
  for (std::size_t at = 0; at <= keys.size();) {
    const std::size_t end = std::min(keys.find(',', at), keys.size());
    if (end == at) refuse_uri(uri, path, "a name is missing in 'key='");
    spec.key.push_back(keys.substr(at, end - at));
    at = end + 1;
  }
}

}  // namespace

SourceSpec spec_of_uri(const std::string& uri, const std::string& path) {
  if (const SourceKind* kind = kind_of_uri(uri); kind != nullptr && kind->files)
    return of_files(*kind, uri.substr(prefix_of(*kind, uri).size()), uri, path);
  if (kind_of_uri(uri) == nullptr && uri.find("://") == uri.npos)
    if (const SourceKind* kind = kind_of_file(uri))
      return of_files(*kind, uri, uri, path);
  if (files::is_stored(uri)) {
    files::check_stored(uri);
    if (const SourceKind* kind = kind_of_file(files::path_of_stored(uri)))
      return of_files(*kind, uri, uri, path);
  }
  const auto [place, rest] = parts_of(uri);
  if (rest == "#") refuse_uri(uri, path, "no table follows the '#'");
  const SourceKind* kind = kind_of_uri(place);
  if (kind == nullptr)
    refuse_uri(uri, path,
               "expected it to begin with " + prefixes() +
                   ", or the name of a file to end with " + extensions());
  SourceSpec spec = kind->settings.defaults();
  if (rest.starts_with('#')) spec.table = rest.substr(1);
  if (rest.starts_with('?') || rest.starts_with('&'))
    read_query(rest, uri, path, spec);
  if (kind->server) {
    spec.uri = place;
    // Then the table is a piece of a password, and is not shown.
    if (spec.table.find('@') != std::string::npos)
      refuse_uri(kind->prefixes[0], path,
                 "an '@' follows the '#': in a password, '#' is written as "
                 "%23");
  } else {
    spec.path = place.substr(prefix_of(*kind, place).size());
    if (spec.path.empty()) refuse_uri(uri, path, "it names no file");
  }
  return spec;
}

std::string without_secrets_of_uri(const std::string& uri) {
  const SourceKind* kind = kind_of_uri(uri);
  if (kind == nullptr || !kind->server) return uri;
  const auto [place, rest] = parts_of(uri);
  return stored_connection(place) + rest;
}

}  // namespace penstock
