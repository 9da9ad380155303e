#include "penstock/sources/postgres/failure.h"

#include <algorithm>
#include <utility>

#include "penstock/base/secret.h"

namespace penstock::postgres {
namespace {

/// A cause and the next step; @user, @database, @table and @place are filled
/// in.
struct Cause {
  std::string_view sign;  // words, or an SQLSTATE or its first two characters
  const char* code;
  const char* next;
};

constexpr const char* kNotReady =
    "wait until the server has started, then try again";
constexpr const char* kTooMany =
    "close other connections, lower source.connections, or ask the server's "
    "administrator to raise max_connections or the role's limit";

constexpr const char* kGone =
    "another program has dropped or renamed the table, or a table that the "
    "view @table reads: create it again, then start again";
constexpr const char* kPooler =
    "a connection pooler in front of the server gives each statement another "
    "session: name the server itself in source.uri, or set the pooler to "
    "session pooling (PgBouncer: pool_mode = session)";
constexpr const char* kChanged =
    "another program has changed the columns of @table: start again";

// In this order: the first sign that is found names the cause.
constexpr Cause kConnecting[] = {
    {"could not translate host name", "postgres.unknown_host",
     "check the host's name in source.uri"},
    {"Connection refused", "postgres.refused",
     "check host and port in source.uri, and that the server runs and listens "
     "there (listen_addresses)"},
    {"No such file or directory", "postgres.refused",
     "no server listens on this socket: start the server, or name host and "
     "port in source.uri"},
    {"timeout expired", "postgres.connect_timeout",
     "check host and port in source.uri and firewalls between; "
     "connect_timeout=SECONDS in source.uri waits longer"},
    {"No route to host", "postgres.unreachable",
     "check the host in source.uri and the network"},
    {"Network is unreachable", "postgres.unreachable",
     "check the host in source.uri and the network"},
    {"password authentication failed", "postgres.password",
     "check the password: libpq takes it from source.uri, PGPASSWORD or "
     "~/.pgpass"},
    {"no password supplied", "postgres.password",
     "give one in ~/.pgpass or PGPASSWORD"},
    {"authentication failed", "postgres.authentication",
     "check how the server lets user '@user' in (pg_hba.conf)"},
    {"sorry, too many clients", "postgres.too_many_connections", kTooMany},
    {"too many connections", "postgres.too_many_connections", kTooMany},
    {"connection slots are reserved", "postgres.too_many_connections",
     kTooMany},
    {"the database system is", "postgres.not_ready", kNotReady},
    {"unsupported startup parameter", "postgres.pooler",
     "PgBouncer in front of the server accepts no options: leave them out of "
     "source.uri and PGOPTIONS, or name the server itself"},
    {"server does not support SSL", "postgres.tls_refused",
     "enable TLS on the server (ssl = on), or choose another sslmode in "
     "source.uri"},
    {"certificate", "postgres.tls_certificate",
     "check sslrootcert, sslcert and sslmode in source.uri"},
    {"SSL error", "postgres.tls",
     "check sslmode in source.uri and the server's TLS settings"},
    {"no pg_hba.conf entry", "postgres.not_admitted",
     "ask for an entry in the server's pg_hba.conf for user '@user' and "
     "database '@database' from this host"},
    {"pg_hba.conf rejects", "postgres.not_admitted",
     "ask for an entry in the server's pg_hba.conf for user '@user' and "
     "database '@database' from this host"},
    {"permission denied for database", "postgres.permission",
     "as its owner: GRANT CONNECT ON DATABASE \"@database\" TO \"@user\""},
    {"role \"", "postgres.no_role",
     "check the user in source.uri; without one, libpq uses the login name"},
    {"is not permitted to log in", "postgres.no_role",
     "name another user in source.uri, or ALTER ROLE ... LOGIN"},
    {"database \"", "postgres.no_database",
     "check the database in source.uri; psql -l lists the databases"},
    {"closed the connection unexpectedly", "postgres.lost",
     "see the server's log, then try again"},
};

constexpr Cause kStatements[] = {
    {"", "postgres.lost",
     "the server ended or the network broke: see the server's log, then start "
     "again"},
    {"08", "postgres.lost",
     "the server ended or the network broke: see the server's log, then start "
     "again"},
    {"57P01", "postgres.killed",
     "an administrator ended the connection or the server: start again when "
     "the server is up"},
    {"57P02", "postgres.killed",
     "the server crashed or was stopped: start again when it is up"},
    {"57P03", "postgres.not_ready", kNotReady},
    {"57P05", "postgres.killed", "raise idle_session_timeout for user '@user'"},
    {"25P03", "postgres.killed",
     "raise idle_in_transaction_session_timeout for user '@user'"},
    {"57014", "postgres.statement_timeout",
     "raise the timeout: ALTER ROLE \"@user\" SET statement_timeout = 0, or "
     "options=-c%20statement_timeout%3D0 in source.uri"},
    {"55P03", "postgres.locked",
     "another program has locked the table: try again when that program is "
     "done"},
    {"40P01", "postgres.locked",
     "another program has locked the table: try again when that program is "
     "done"},
    {"40001", "postgres.conflict",
     "a standby had to remove old versions of the rows: set "
     "hot_standby_feedback = on or a larger max_standby_streaming_delay, and "
     "try again"},
    {"26000", "postgres.pooler", kPooler},
    {"42P05", "postgres.pooler", kPooler},
    {"42P01", "postgres.table_gone", kGone},
    {"42703", "postgres.changed", kChanged},
    {"25006", "postgres.read_only",
     "the server is a standby or read-only: name the primary in source.uri"},
    {"53100", "postgres.server_disk_full",
     "free some space on the server's disk"},
    {"53200", "postgres.server_memory",
     "the server ran out of memory: see its log; lower source.connections or "
     "work_mem"},
    {"53300", "postgres.too_many_connections", kTooMany},
    {"22P05", "postgres.encoding",
     "the database's encoding cannot be turned into UTF-8, or text holds "
     "\\u0000"},
    {"22021", "postgres.encoding",
     "text must be valid in the database's encoding, without zero bytes"},
    {"XX001", "postgres.corrupt",
     "the server's files are damaged: see its log"},
    {"XX002", "postgres.corrupt", "an index is damaged: REINDEX TABLE @table"},
    {"2BP01", "postgres.dependents",
     "drop what depends on the table first, or choose another name"},
    {"3F000", "postgres.no_schema",
     "create the schema first, or choose another name"},
};

/// `text` with its placeholders filled in. What is filled in is not scanned
/// again: a user may be called "ann@user".
std::string filled_in(std::string_view text, const About& about) {
  const std::pair<std::string_view, const std::string*> places[] = {
      {"@user", &about.user},
      {"@database", &about.database},
      {"@table", &about.table},
      {"@place", &about.place}};
  std::string filled;
  while (!text.empty()) {
    auto found = std::ranges::find_if(places, [&](const auto& place) {
      return text.starts_with(place.first);
    });
    if (found == std::end(places)) {
      filled += text.front();
      text.remove_prefix(1);
      continue;
    }
    filled += found->second->empty() ? "..." : *found->second;
    text.remove_prefix(found->first.size());
  }
  return filled;
}

Error refusal(const About& about, std::string code, const std::string& says,
              const std::string& next) {
  return Error(ErrorKind::source, {.code = std::move(code),
                                   .what = about.doing,
                                   .where = about.place,
                                   .why = says,
                                   .next = filled_in(next, about)});
}

bool asks_for_tls(const About& about, const std::string& says) {
  return says.find("pg_hba.conf") != says.npos &&
         (says.find("no encryption") != says.npos ||
          says.find("SSL off") != says.npos) &&
         (about.sslmode == "disable" || about.sslmode == "allow");
}

/// A missing privilege, which need not be one of the table.
Error no_right(const About& about, const std::string& says) {
  std::string next = "as its owner: GRANT SELECT ON @table TO \"@user\"";
  if (says.find("row-level security") != says.npos)
    next =
        "row_security is off, so the server refuses to hide rows: to read all "
        "rows, run ALTER ROLE \"@user\" BYPASSRLS as a superuser; to read only "
        "the rows that the policy shows, set row_security = on (ALTER ROLE ... "
        "SET, or options in source.uri)";
  constexpr std::string_view kSchema = "permission denied for schema ";
  if (says.starts_with(kSchema))
    next = "as its owner: GRANT USAGE ON SCHEMA \"" +
           says.substr(kSchema.size()) + "\" TO \"@user\"";
  return refusal(about, "postgres.permission", says, next);
}

}  // namespace

Error connection_failure(const About& about, const std::string& says) {
  if (asks_for_tls(about, says))
    return refusal(about, "postgres.tls_required", says,
                   "the server may accept only encrypted connections: write "
                   "sslmode=require in source.uri");
  for (const Cause& cause : kConnecting)
    if (says.find(cause.sign) != says.npos)
      return refusal(about, cause.code, says, cause.next);
  return refusal(about, "postgres.connect", says,
                 "check source.uri; to test it with psql: psql '@place'");
}

Error statement_failure(const About& about, std::string_view sqlstate,
                        const std::string& says) {
  if (sqlstate.empty() && says.find("out of memory") != says.npos)
    return Error(ErrorKind::out_of_memory,
                 {.code = "postgres.out_of_memory",
                  .what = about.doing,
                  .where = about.place,
                  .why = "libpq reports: " + says,
                  .next = "free some memory, or give the program more memory"});
  // A client that cancels and a time limit share one SQLSTATE.
  if (sqlstate == "57014" && says.find("user request") != says.npos)
    return refusal(about, "postgres.cancelled", says,
                   "another session cancelled the statement "
                   "(pg_cancel_backend); start again");
  if (sqlstate == "42501") return no_right(about, says);
  if (sqlstate == "25006" && !about.own_sql.empty())
    return Error(
        ErrorKind::request,
        {.code = "source.query_writes",
         .what = about.doing,
         .where = about.own_sql,
         .why = "the query writes, or calls a function that writes: " + says,
         .next = "remove the part that writes: sources are only read"});
  // A relation that is dropped while a statement is planned, and a statement
  // that was prepared before the columns changed, have no SQLSTATE of their
  // own.
  if (says.find("could not open relation with OID") != says.npos)
    return refusal(about, "postgres.table_gone", says, kGone);
  if (says.find("cached plan must not change result type") != says.npos)
    return refusal(about, "postgres.changed", says, kChanged);
  for (const Cause& cause : kStatements)
    if (cause.sign == sqlstate ||
        (cause.sign.size() == 2 && sqlstate.starts_with(cause.sign)))
      return refusal(about, cause.code, says, cause.next);
  return refusal(
      about, "postgres.failed",
      says + " (SQLSTATE " + std::string(sqlstate) + ")",
      sqlstate.starts_with("22")
          ? "check " +
                (about.own_sql.empty() ? "source.where" : about.own_sql) +
                ", which may fail on single rows, as a cast does"
          : "inspect the table with psql: \\d @table");
}

Error silent_failure(const About& about, std::int64_t seconds) {
  return refusal(about, "postgres.silent",
                 "the server has stopped responding: no data came for " +
                     std::to_string(seconds) +
                     " seconds, and a new connection gets no response either",
                 "check the server and the network, then start again");
}

std::string without_secret(std::string says, const std::string& password) {
  says = without_password(says);
  if (!password.empty())
    for (std::size_t at = 0; (at = says.find(password, at)) != says.npos;
         at += 3)
      says.replace(at, password.size(), "***");
  std::string line;
  for (char c : says) {
    bool blank = c == '\n' || c == '\t' || c == ' ';
    if (blank && (line.empty() || line.back() == ' ')) continue;
    line += blank ? ' ' : c;
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

std::string without_quotes(const std::string& says) {
  std::size_t quoted = says.find('"');
  return quoted == says.npos ? says : says.substr(0, quoted) + "\"...\"";
}

}  // namespace penstock::postgres
