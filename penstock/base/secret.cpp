#include "penstock/base/secret.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "penstock/base/ascii.h"

namespace penstock {
namespace {

constexpr std::string_view kHidden = "***";

/// Parameters of a URI whose values may be shown, each between two blanks. Of
/// all others we know nothing, so that a key in disguise ("passwor%64") hides
/// its value too.
constexpr std::string_view kHarmless =
    " host hostaddr port user dbname options client_encoding "
    "application_name fallback_application_name connect_timeout "
    "tcp_user_timeout keepalives keepalives_idle keepalives_interval "
    "keepalives_count sslmode ssl sslnegotiation sslcompression sslcert "
    "sslkey sslrootcert sslcrl sslcrldir sslsni ssl_min_protocol_version "
    "ssl_max_protocol_version gssencmode krbsrvname gsslib channel_binding "
    "require_auth passfile service target_session_attrs load_balance_hosts ";

/// What the name of a secret ends in, in lower case.
constexpr std::string_view kSecretNames[] = {
    "password", "passwd", "secret", "scram_client_key", "scram_server_key"};

bool space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

std::size_t skip_space(std::string_view text, std::size_t at) {
  while (at < text.size() && space(text[at])) ++at;
  return at;
}

/// Where a value of libpq's key=value form ends: a quoted one after its closing
/// quote, another at white space; a backslash escapes what follows.
std::size_t end_of_value(std::string_view text, std::size_t at) {
  bool quoted = at < text.size() && text[at] == '\'';
  if (quoted) ++at;
  for (; at < text.size(); ++at) {
    if (quoted && text[at] == '\'') return at + 1;
    if (!quoted && space(text[at])) return at;
    if (text[at] == '\\') ++at;
  }
  return text.size();
}

/// The next value of a secret: [begin, end).
struct Found {
  std::size_t begin = std::string_view::npos;
  std::size_t end = std::string_view::npos;
};

Found next_secret(std::string_view text, std::size_t from) {
  for (std::size_t equals = text.find('=', from); equals != text.npos;
       equals = text.find('=', equals + 1)) {
    std::size_t end = equals;
    while (end > from && space(text[end - 1])) --end;
    const std::string name = ascii_lower(text.substr(from, end - from));
    // Also as people write it wrongly: "passwrd", "passwort".
    bool secret =
        std::ranges::any_of(
            kSecretNames,
            [&](std::string_view s) { return name.ends_with(s); }) ||
        name.substr(name.find_last_of(" \t\n\"'") + 1).starts_with("passw");
    std::size_t value = skip_space(text, equals + 1);
    if (secret) return {value, end_of_value(text, value)};
  }
  return {};
}

std::string without_assigned(std::string_view text) {
  std::string shown;
  std::size_t at = 0;
  for (Found found = next_secret(text, at); found.begin != text.npos;
       found = next_secret(text, at)) {
    shown += text.substr(at, found.begin - at);
    if (found.end > found.begin) shown += kHidden;
    at = found.end;
  }
  return shown + std::string(text.substr(at));
}

/// "user:password@host" is hidden from its first ':' to its last '@', word by
/// word, even without a "://" before it.
std::string without_pairs(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    std::size_t end = 0;
    while (end < text.size() && !space(text[end])) ++end;
    end += end < text.size() ? 1 : 0;
    std::string_view word = text.substr(0, end);
    std::size_t colon = word.find(':');
    std::size_t at = word.rfind('@');
    bool pair = colon != word.npos && at != word.npos && colon + 1 < at;
    shown += pair ? word.substr(0, colon + 1) : word;
    if (pair) (shown += kHidden) += word.substr(at);
    text.remove_prefix(end);
  }
  return shown;
}

/// A parameter of a URI, as it may be shown.
std::string shown_parameter(std::string_view parameter) {
  std::size_t equals = parameter.find('=');
  std::string_view key = parameter.substr(0, equals);
  if (equals == parameter.npos)
    return std::string(parameter.empty() ? parameter : kHidden);
  std::string_view value = parameter.substr(equals + 1);
  std::string blanks = " " + std::string(key) + " ";
  bool harmless = kHarmless.find(blanks) != kHarmless.npos &&
                  std::ranges::none_of(key, space) &&
                  value.find('@') == value.npos &&
                  std::ranges::none_of(value, space);
  return std::string(key) + "=" + std::string(harmless ? value : kHidden);
}

std::string shown_query(std::string_view query) {
  std::string shown;
  for (std::size_t at = 0; at <= query.size();) {
    std::size_t end = std::min(query.find('&', at), query.size());
    shown +=
        (at == 0 ? "?" : "&") + shown_parameter(query.substr(at, end - at));
    at = end + 1;
  }
  return shown;
}

/// Where the ':' is between a user's name and password, written as %3A or not.
std::size_t colon_in(std::string_view text) {
  return std::min({text.find(':'), text.find("%3a"), text.find("%3A")});
}

/// "", or a number that can be a port.
bool is_port(std::string_view text) {
  std::uint16_t port = 0;
  auto [end, failed] = std::from_chars(text.begin(), text.end(), port);
  return text.empty() || (failed == std::errc() && end == text.end());
}

/// The first ':' in "h1:5432,[::1],h2" that is not followed by a port.
std::size_t odd_colon(std::string_view hosts) {
  for (std::size_t at = 0; at <= hosts.size();) {
    std::size_t end = std::min(hosts.find(',', at), hosts.size());
    std::string_view host = hosts.substr(at, end - at);
    std::size_t name = host.find(']') + 1;  // of IPv6; npos + 1 is 0
    std::size_t colon = colon_in(host.substr(name));
    if (colon != host.npos) {
      colon += name;
      if (host[colon] != ':' || !is_port(host.substr(colon + 1)))
        return at + colon;
    }
    at = end + 1;
  }
  return hosts.npos;
}

/// What follows "scheme://", without its secrets. A password may hold any
/// character, and a query an '@': where both readings are possible, nothing
/// after the first ':' is shown.
std::string shown_authority(std::string_view text) {
  auto hidden_from = [](std::string_view all, std::size_t colon) {
    return std::string(all.substr(0, colon)) + ":" + std::string(kHidden);
  };
  std::size_t colon = colon_in(text);
  std::size_t at = text.rfind('@');
  std::size_t question = text.find('?');
  std::string shown;
  if (colon < question && at != text.npos && colon < at) {
    shown = hidden_from(text, colon);
    if (question < at &&
        text.substr(question, at - question).find('=') != text.npos)
      return shown;
    text.remove_prefix(at);
  }
  std::string_view hosts = text.substr(0, text.find_first_of("/?"));
  hosts.remove_prefix(hosts.rfind('@') + 1);  // npos + 1 is 0
  std::size_t odd = odd_colon(hosts);
  if (odd != hosts.npos)  // a password whose '@' and host were forgotten
    return shown + hidden_from(text, static_cast<std::size_t>(hosts.data() -
                                                              text.data()) +
                                         odd);
  question = text.find('?');
  shown += without_assigned(text.substr(0, question));
  if (question != text.npos) shown += shown_query(text.substr(question + 1));
  return shown;
}

}  // namespace

std::string without_password(const std::string& text) {
  constexpr std::string_view kMark = "://";
  std::size_t mark = text.find(kMark);
  if (mark < next_secret(text, 0).begin) {
    std::size_t start = mark + kMark.size();
    return without_pairs(text.substr(0, start)) +
           shown_authority(std::string_view(text).substr(start));
  }
  std::string shown = without_assigned(text);
  mark = shown.find(kMark);
  if (mark == std::string::npos) return without_pairs(shown);
  std::size_t start = mark + kMark.size();
  return without_pairs(shown.substr(0, start)) +
         shown_authority(std::string_view(shown).substr(start));
}

}  // namespace penstock
