#include "penstock/base/spec.h"

#include <algorithm>

#include "penstock/base/connection_string.h"
#include "penstock/base/error.h"
#include "penstock/base/secret.h"
#include "penstock/sources/sources.h"

namespace penstock {
namespace {

constexpr double kLongestRoundTripMs = 60'000;
constexpr int kConnections = 2;  // to a server, where nothing is said
constexpr int kMostConnections = 64;

/// The first digits of a SHA-256, enough to tell apart.
bool is_fingerprint(const std::string& text) {
  return text.size() >= 16 && text.size() <= 64 &&
         text.find_first_not_of("0123456789abcdef") == text.npos;
}

std::string text_not_empty(Spec& section, std::string_view key) {
  std::string text = section.text(key);
  if (text.empty()) section.refuse(key, "it is empty", "write what it names");
  return text;
}

/// Where a source lies, as a message may show it. What is neither a file nor a
/// connection string that can be read may hold a password anywhere.
std::string shown_place(const std::string& uri) {
  if (uri.starts_with("postgresql://") || uri.starts_with("postgres://"))
    return shown_connection(uri.substr(0, uri.rfind('#')));
  if (uri.starts_with("sqlite:") || uri.find_first_of(":@=") == uri.npos)
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
  throw Error(
      ErrorKind::request,
      {.code = "source.uri",
       .what = "cannot use the source '" + shown + "'",
       .where = path,
       .why = std::move(why),
       .next = "write sqlite:PATH#table or postgresql://host/base#table"});
}

SourceSpec from_uri(const std::string& uri, const std::string& path) {
  SourceSpec spec;
  std::size_t hash = uri.rfind('#');
  std::string place = uri.substr(0, hash);
  if (hash != std::string::npos) {
    spec.table = uri.substr(hash + 1);
    if (spec.table.empty()) refuse_uri(uri, path, "no table follows the '#'");
  }
  if (place.starts_with("sqlite:")) {
    spec.kind = "sqlite";
    spec.path = place.substr(std::string_view("sqlite:").size());
    if (spec.path.empty()) refuse_uri(uri, path, "it names no file");
  } else if (place.starts_with("postgresql://") ||
             place.starts_with("postgres://")) {
    spec.kind = "postgres";
    spec.uri = place;
    spec.connections = kConnections;
    // Then the table is a piece of a password, and is not shown.
    if (spec.table.find('@') != std::string::npos)
      refuse_uri("postgresql://", path,
                 "an '@' follows the '#': in a password, '#' is written as "
                 "%23");
  } else {
    refuse_uri(uri, path, "expected it to begin with sqlite: or postgresql://");
  }
  return spec;
}

/// A key of the other kind is known, and does not belong here.
void refuse_keys_of(std::string_view other, const Spec& section,
                    const SourceSpec& spec,
                    std::initializer_list<std::string_view> keys,
                    std::string_view instead) {
  for (std::string_view key : keys) {
    if (!section.has(key)) continue;
    throw Error(
        ErrorKind::request,
        {.code = "source.other_kind",
         .what = "cannot use the settings",
         .where = section.path_of(key),
         .why = "'" + std::string(key) + "' belongs to kind \"" +
                std::string(other) + "\", and this source is of kind \"" +
                spec.kind + "\"",
         .next = std::string(instead) + ", or set " + section.path_of("kind") +
                 " to \"" + std::string(other) + "\""});
  }
}

}  // namespace

SourceSpec parse_source_spec(const Json& json, const std::string& path) {
  if (json.is_string()) return from_uri(json.string(), path);
  Spec section(json, path);
  SourceSpec spec;
  section.text("kind");  // it has no default
  spec.kind = section.choice("kind", "", {"sqlite", "postgres"});
  if (spec.kind == "sqlite") {
    refuse_keys_of("postgres", section, spec, {"uri"},
                   "name the file as " + section.path_of("path"));
    refuse_keys_of("postgres", section, spec, {"connections"}, "leave it out");
    spec.path = text_not_empty(section, "path");
    if (spec.path.find("://") != spec.path.npos)
      section.refuse("path", "it is a connection string, not a file",
                     R"(a server needs "kind": "postgres" and "uri")");
  } else {
    refuse_keys_of("sqlite", section, spec, {"path"},
                   "name the server as " + section.path_of("uri"));
    spec.uri = text_not_empty(section, "uri");
    spec.connections = static_cast<int>(
        section.integer("connections", kConnections, 1, kMostConnections));
  }
  spec.table = section.text("table", "");
  spec.key = section.text("key", "");
  spec.where = section.text("where", "");
  spec.skip_bad = section.choice("on_bad", "stop", {"stop", "skip"}) == "skip";
  spec.fingerprint = section.text("fingerprint", "");
  if (section.has("fingerprint") && !is_fingerprint(spec.fingerprint))
    section.refuse("fingerprint",
                   "found '" + spec.fingerprint +
                       "', expected 16 to 64 digits of 0..9 and a..f",
                   "copy it from \"dataset\" in a report.json");
  spec.round_trip_ms =
      section.number("round_trip_ms", 0.0, 0, kLongestRoundTripMs);
  section.finish();
  return spec;
}

}  // namespace penstock
