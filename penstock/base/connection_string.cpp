// libpq's two grammars, followed strictly (conninfo_uri_parse_options and
// conninfo_parse in its fe-connect.c). A wrong guess shows a password, so what
// cannot be read with certainty is hidden as a whole: an unknown keyword, a '@'
// or ':' that may belong to a password, a port that is not a number.

#include "penstock/base/connection_string.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "penstock/base/ascii.h"

namespace penstock {
namespace {

using Text = std::string_view;
constexpr std::size_t kNone = Text::npos;

/// All keywords that libpq knows up to version 18, and "ssl" of JDBC.
constexpr Text kKeywords[] = {
    "service",
    "servicefile",
    "user",
    "password",
    "passfile",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "port",
    "client_encoding",
    "options",
    "application_name",
    "fallback_application_name",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
    "ssl",
    "sslmode",
    "sslnegotiation",
    "sslcompression",
    "sslcert",
    "sslkey",
    "sslcertmode",
    "sslpassword",
    "sslrootcert",
    "sslcrl",
    "sslcrldir",
    "sslsni",
    "sslkeylogfile",
    "requiressl",
    "requirepeer",
    "require_auth",
    "min_protocol_version",
    "max_protocol_version",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
    "gssencmode",
    "gssdelegation",
    "gsslib",
    "krbsrvname",
    "replication",
    "target_session_attrs",
    "load_balance_hosts",
    "scram_client_key",
    "scram_server_key",
    "oauth_issuer",
    "oauth_client_id",
    "oauth_client_secret",
    "oauth_scope",
};

constexpr Text kSecrets[] = {"password", "sslpassword", "scram_client_key",
                             "scram_server_key", "oauth_client_secret"};

/// In small letters: what options or sslkey are set to is a secret where it
/// holds one of them (options=-c app.token=...,
/// sslkey=pkcs11:...;pin-value=...).
constexpr Text kSecretWords[] = {"passw", "secret", "token", "pin-value",
                                 "api_key"};

bool space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

bool has(Text text, Text part) { return text.find(part) != kNone; }

/// `text` with %41 as A, or nothing where libpq would refuse it.
std::optional<std::string> decoded(Text text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      plain += text[at];
      continue;
    }
    unsigned value = 0;
    Text digits = text.substr(at + 1, 2);
    auto [end, failed] =
        std::from_chars(digits.begin(), digits.end(), value, 16);
    if (failed != std::errc() || end != digits.begin() + 2 || value == 0)
      return std::nullopt;
    plain += static_cast<char>(value);
    at += 2;
  }
  return plain;
}

template <class Check>
bool all_of_list(Text list, Check check) {
  for (std::size_t at = 0; at <= list.size();) {
    std::size_t end = std::min(list.find(',', at), list.size());
    if (end > at && !check(list.substr(at, end - at))) return false;
    at = end + 1;
  }
  return true;
}

bool is_port(Text text) {
  std::uint16_t port = 0;
  auto [end, failed] = std::from_chars(text.begin(), text.end(), port);
  return failed == std::errc() && end == text.end() && port > 0;
}

/// A name that begins with '@' is an abstract socket of Linux; one with a '/'
/// is a folder; one with ':' an address of IPv6.
bool is_host(Text text) {
  bool address = text.find_first_not_of("0123456789abcdefABCDEF:.%") == kNone;
  return text.find('@', 1) == kNone &&
         (text.starts_with('/') || address || text.find(':') == kNone) &&
         std::ranges::none_of(text, space);
}

bool is_database(Text text) { return text.find_first_of("@:=") == kNone; }

bool is_secret(Text keyword, Text value) {
  if (std::ranges::find(kSecrets, keyword) != std::end(kSecrets)) return true;
  if (keyword != "options" && keyword != "sslkey") return false;
  const std::string small = ascii_lower(value);
  return std::ranges::any_of(kSecretWords,
                             [&](Text word) { return has(small, word); });
}

/// Whether a value fits its keyword and cannot be a piece of a password.
bool is_value_of(Text keyword, Text value) {
  if (keyword == "user") return !has(value, ":");
  if (keyword == "dbname") return is_database(value);
  if (keyword == "host" || keyword == "hostaddr")
    return all_of_list(value, is_host);
  if (keyword == "port") return all_of_list(value, is_port);
  return true;
}

/// A connection string in its two forms, as assembled.
struct Forms {
  std::string shown, stored;

  void add(Text text) {
    shown += text;
    stored += text;
  }
};

class UriReader {
 public:
  explicit UriReader(Text scheme, Text rest) : rest_(rest) {
    forms_.add(scheme);
  }
  std::optional<Forms> read() {
    if (at_elsewhere() || !user() || !hosts() || !database() || !query())
      return std::nullopt;
    return forms_;
  }

 private:
  /// libpq looks for the '@' up to the first '/', and takes the first one.
  std::size_t end_of_user() const {
    return rest_.substr(0, rest_.find('/')).find('@');
  }
  /// Where there is a ':', another '@' may mean that more belongs to the
  /// password.
  bool at_elsewhere() const {
    std::size_t last = rest_.rfind('@');
    return last != kNone && last != end_of_user() && rest_.find(':') < last;
  }

  bool user() {
    std::size_t end = end_of_user();
    if (end == kNone) return true;
    Text all = rest_.substr(0, end);
    std::size_t colon = all.find(':');
    Text name = all.substr(0, colon);
    auto plain = decoded(name);
    if (!plain || !is_value_of("user", *plain)) return false;
    forms_.add(name);
    if (colon != kNone) {
      if (!decoded(all.substr(colon + 1))) return false;
      forms_.shown += ":***";
    }
    forms_.add("@");
    rest_.remove_prefix(end + 1);
    return true;
  }

  bool hosts() {
    Text all = rest_.substr(0, rest_.find_first_of("/?"));
    bool good = all_of_list(all, [](Text host) {
      std::size_t name = host.starts_with('[') ? host.find(']') : 0;
      if (name == kNone) return false;
      std::size_t colon = host.find(':', name);
      if (colon != kNone && colon + 1 < host.size() &&
          !is_port(host.substr(colon + 1)))
        return false;
      host = host.substr(0, colon);
      if (name > 0) {
        if (!host.ends_with(']')) return false;
        host = host.substr(1, host.size() - 2);
        return host.find_first_not_of("0123456789abcdefABCDEF:.%") == kNone;
      }
      auto plain = decoded(host);
      return plain && is_host(*plain) &&
             (plain->starts_with('/') || !has(*plain, ":"));
    });
    forms_.add(all);
    rest_.remove_prefix(all.size());
    return good;
  }

  bool database() {
    Text name = rest_.substr(0, rest_.find('?'));
    auto plain = decoded(name);
    forms_.add(name);
    rest_.remove_prefix(name.size());
    return plain && is_database(*plain);
  }

  bool query() {
    if (rest_.empty()) return true;
    rest_.remove_prefix(1);
    const char* shown_mark = "?";
    const char* stored_mark = "?";
    while (!rest_.empty()) {
      Text parameter = rest_.substr(0, rest_.find('&'));
      rest_.remove_prefix(std::min(rest_.size(), parameter.size() + 1));
      std::size_t equals = parameter.find('=');
      if (equals == kNone || parameter.find('=', equals + 1) != kNone)
        return false;
      auto keyword = decoded(parameter.substr(0, equals));
      auto value = decoded(parameter.substr(equals + 1));
      if (!keyword || !value ||
          std::ranges::find(kKeywords, *keyword) == std::end(kKeywords) ||
          !is_value_of(*keyword, *value))
        return false;
      bool secret = is_secret(*keyword, *value);
      forms_.shown += shown_mark + *keyword + "=";
      forms_.shown += secret ? "***" : parameter.substr(equals + 1);
      shown_mark = "&";
      if (secret) continue;
      forms_.stored += stored_mark + std::string(parameter);
      stored_mark = "&";
    }
    return true;
  }

  Text rest_;
  Forms forms_;
};

/// key = value or key = 'value', where a backslash takes what follows it.
class PairsReader {
 public:
  explicit PairsReader(Text text) : rest_(text) {}

  std::optional<Forms> read() {
    for (skip_space(); !rest_.empty(); skip_space())
      if (!pair()) return std::nullopt;
    return forms_;
  }

 private:
  void skip_space() {
    while (!rest_.empty() && space(rest_[0])) rest_.remove_prefix(1);
  }
  bool pair() {
    std::size_t end = 0;
    while (end < rest_.size() && rest_[end] != '=' && !space(rest_[end])) ++end;
    Text keyword = rest_.substr(0, end);
    rest_.remove_prefix(end);
    skip_space();
    if (rest_.empty() || rest_[0] != '=') return false;
    rest_.remove_prefix(1);
    skip_space();
    Text before = rest_;
    std::string value;
    if (!take_value(value)) return false;
    if (std::ranges::find(kKeywords, keyword) == std::end(kKeywords) ||
        !is_value_of(keyword, value))
      return false;
    bool secret = is_secret(keyword, value);
    std::string begin = std::string(keyword) + "=";
    Text written = before.substr(0, before.size() - rest_.size());
    forms_.shown += (forms_.shown.empty() ? "" : " ") + begin;
    forms_.shown += secret ? "***" : written;
    if (secret) return true;
    forms_.stored += (forms_.stored.empty() ? "" : " ") + begin;
    forms_.stored += written;
    return true;
  }
  bool take_value(std::string& value) {
    bool quoted = rest_.starts_with('\'');
    if (quoted) rest_.remove_prefix(1);
    for (; !rest_.empty(); rest_.remove_prefix(1)) {
      if (quoted && rest_[0] == '\'') {
        rest_.remove_prefix(1);
        return true;
      }
      if (!quoted && space(rest_[0])) return true;
      if (rest_[0] == '\\' && rest_.size() > 1) rest_.remove_prefix(1);
      value += rest_[0];
    }
    return !quoted;
  }

  Text rest_;
  Forms forms_;
};

std::optional<Forms> forms_of(Text text) {
  for (Text scheme : {Text("postgresql://"), Text("postgres://")})
    if (text.starts_with(scheme))
      return UriReader(scheme, text.substr(scheme.size())).read();
  if (has(text, "=")) return PairsReader(text).read();
  if (text.find_first_of(":/@") != kNone) return std::nullopt;
  return Forms{std::string(text), std::string(text)};
}

}  // namespace

std::string shown_connection(const std::string& text) {
  std::optional<Forms> forms = forms_of(text);
  return forms ? forms->shown : kHiddenConnection;
}

std::string stored_connection(const std::string& text) {
  std::optional<Forms> forms = forms_of(text);
  if (!forms) return kHiddenConnection;
  // Where nothing but a secret was given. An empty setting would be refused.
  return forms->stored.empty() && !text.empty() ? "postgresql://"
                                                : forms->stored;
}

}  // namespace penstock
