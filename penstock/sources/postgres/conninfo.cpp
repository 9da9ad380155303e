#include "penstock/sources/postgres/conninfo.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "penstock/base/connection_string.h"
#include "penstock/base/error.h"
#include "penstock/sources/postgres/failure.h"

namespace penstock::postgres {

std::string value_of(const Options& options, std::string_view keyword) {
  for (PQconninfoOption* option = options.get();
       option != nullptr && option->keyword != nullptr; ++option)
    if (option->keyword == keyword)
      return option->val == nullptr ? "" : option->val;
  return "";
}

namespace {

bool is_uri(const std::string& text) {
  return text.starts_with("postgresql://") || text.starts_with("postgres://");
}

bool is_port(const std::string& text) {
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  return std::from_chars(text.data(), end, port).ptr == end && port > 0;
}

/// Whether `check` holds for all entries of a list "a,b,c" that are not empty.
template <class Check>
bool all_of_list(std::string_view list, Check check) {
  for (std::size_t at = 0; at <= list.size();) {
    std::size_t end = std::min(list.find(',', at), list.size());
    std::string entry(list.substr(at, end - at));
    if (!entry.empty() && !check(entry)) return false;
    at = end + 1;
  }
  return true;
}

/// libpq ends the password at the first '@', and looks for none after a '/'.
/// Another '@' may mean that more of it belongs to the password.
bool may_end_elsewhere(std::string_view uri) {
  std::string_view text = uri.substr(uri.find("://") + 3);
  std::size_t end = text.substr(0, text.find('/')).find('@');
  std::size_t last = text.rfind('@');
  return last != text.npos && last != end && text.find(':') < last;
}

/// What of a connection string may be a piece of a password in the wrong place,
/// where messages would show it.
const char* misplaced(const std::string& uri, const Options& options) {
  if (is_uri(uri) && may_end_elsewhere(uri))
    return "it has an '@' that may belong to a password";
  if (!all_of_list(value_of(options, "port"), is_port))
    return "its port is not a number from 1 to 65535";
  // A name that begins with '@' is an abstract socket of Linux.
  if (!all_of_list(value_of(options, "host"), [](const std::string& host) {
        return host.find('@', 1) == host.npos;
      }))
    return "its host has an '@' in its name";
  std::string database = value_of(options, "dbname");
  if (database.find('@') != database.npos)
    return "its database has an '@' in its name";
  if (database.find("://") != database.npos)
    return "its database is itself a connection string";
  if (is_uri(uri) && value_of(options, "user").find(':') != std::string::npos)
    return "its user has a ':' in its name";
  return nullptr;
}

std::string trouble_in(const std::string& uri) {
  if (uri == kHiddenConnection)
    return "the connection string was not stored with the run, because it "
           "could not be parsed; pass it again with --set source.uri=...";
  if (!is_uri(uri) && uri.find('=') == uri.npos)  // the name of a database
    return uri.find_first_of(":/@") == uri.npos
               ? ""
               : "it does not begin with postgresql:// and has no key=value";
  char* says = nullptr;
  Options options(PQconninfoParse(uri.c_str(), &says));
  std::string failed = says == nullptr ? "" : says;
  PQfreemem(says);
  if (options == nullptr) return without_secret(without_quotes(failed), "");
  if (const char* found = misplaced(uri, options)) return found;
  return shown_connection(uri) == kHiddenConnection
             ? "a part of it may be a password in the wrong place"
             : "";
}

}  // namespace

void check_readable(const std::string& uri) {
  std::string why = trouble_in(uri);
  if (why.empty()) return;
  throw Error(
      ErrorKind::request,
      {.code = "postgres.uri",
       .what = "cannot reach the database",
       .where = "source.uri",
       .why = "the connection string cannot be parsed: " + why,
       .next = "write postgresql://user@host:port/database; write all other "
               "'/', '@', ':', '#' and '%' as %2F, %40, %3A, %23 and %25"});
}

}  // namespace penstock::postgres
