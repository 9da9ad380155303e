#include "penstock/sources/postgres/connection.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>

#include "penstock/base/connection_string.h"
#include "penstock/sources/postgres/test_server.h"

namespace penstock::postgres {
namespace {

using testing::HasSubstr;
using testing::Not;

SourceSpec at(const std::string& uri) {
  SourceSpec spec;
  spec.kind = "postgres";
  spec.uri = uri;
  spec.table = "t";
  return spec;
}

Error connecting(const std::string& uri) {
  return error_of(
      [&] { Connection connection(at(uri), Connection::Use::to_read); });
}

/// A port of 127.0.0.1 that takes connections in and never says a word.
class SilentServer {
 public:
  explicit SilentServer(bool listening = true) {
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(socket_, any, size), 0);
    if (listening) {
      EXPECT_EQ(::listen(socket_, 4), 0);
    }
    EXPECT_EQ(::getsockname(socket_, any, &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~SilentServer() { ::close(socket_); }
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;
  std::string place() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  int socket_ = -1;
  int port_ = 0;
};

TEST(PostgresConnection, IsRefusedWhereNobodyListens) {
  SilentServer nobody(false);
  Error error =
      connecting("postgresql://ann:hunter2@" + nobody.place() + "/lab");
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "postgres.refused");
  EXPECT_EQ(error.parts().where, "postgresql://" + nobody.place() + "/lab");
  EXPECT_THAT(error.what(), HasSubstr("cannot read table 't'"));
  EXPECT_THAT(error.what(), Not(HasSubstr("hunter2")));
}

TEST(PostgresConnection, IsRefusedWhereThereIsNoSocket) {
  EXPECT_EQ(connecting("postgresql:///lab?host=/nonexistent").parts().code,
            "postgres.refused");
}

TEST(PostgresConnection, GivesUpWhereNobodyAnswers) {
  SilentServer silent;
  Error error =
      connecting("postgresql://" + silent.place() + "/lab?connect_timeout=2");
  EXPECT_EQ(error.parts().code, "postgres.connect_timeout");
}

TEST(PostgresConnection, GivesEachHostItsTime) {
  SilentServer silent, nobody(false);
  const std::string ports =
      silent.place().substr(silent.place().find(':') + 1) + "," +
      nobody.place().substr(nobody.place().find(':') + 1);
  Error error =
      connecting("host=127.0.0.1,127.0.0.1 connect_timeout=2 port=" + ports);
  EXPECT_THAT(error.what(), HasSubstr("timeout expired"));
  EXPECT_THAT(error.what(), HasSubstr("refused"));
}

TEST(PostgresConnection, NamesAHostThatIsUnknown) {
  EXPECT_EQ(connecting("postgresql://no-such-host.invalid/lab").parts().code,
            "postgres.unknown_host");
}

TEST(PostgresConnection, HidesAPasswordInAStringThatCannotBeRead) {
  for (const char* uri :
       {"postgresql://ann:hunter%zz2@host/lab", "postgresql://ann:hun/ter2@h/l",
        "host=h password='hunter2", "postgresql://ann@host:hunter2/lab",
        "host=h hunter2 port=1"}) {
    Error error = connecting(uri);
    EXPECT_EQ(error.parts().where.find("hun"), std::string::npos) << uri;
    EXPECT_THAT(error.what(), Not(HasSubstr("hun"))) << uri;
    EXPECT_THAT(error.what(), Not(HasSubstr("ter2"))) << uri;
  }
  Error error = connecting("host=h hunter2");
  EXPECT_EQ(error.kind(), ErrorKind::request);
  EXPECT_EQ(error.parts().code, "postgres.uri");
}

constexpr const char* kMisread[] = {
    "postgresql://u:SEC@RET@127.0.0.1:1/db",
    "postgresql://u:SEC@RET@SEC@127.0.0.1:1/db",
    "postgresql://u:a@@SECRET@127.0.0.1:1/db",
    "postgresql://u:@SECRET@127.0.0.1:1/db",
    "postgresql://u:SECRET@@127.0.0.1:1/db",
    "postgresql://u:SEC@RET%40127.0.0.1:1/db",
    "postgresql://u:SEC%40RET%40127.0.0.1/db",
    "postgresql://u:a@SEC%40RET/db",
    "postgresql://u:a@SEC/RET@127.0.0.1:1/db",
    "postgresql://u:a@SEC:RET@127.0.0.1:1/db",
    "postgresql://u:a@SEC,RET@127.0.0.1:1/db",
    "postgresql://u:a@h,SEC%40RET/db",
    "postgresql://u:SEC/RET@127.0.0.1:1/db",
    "postgresql://u:1/SECRET@127.0.0.1:1/db",
    "postgresql://u:1/SECRET?x@127.0.0.1:1/db",
    "postgresql://u:1/SEC?user=RET@127.0.0.1:1/db",
    "postgresql://u:1/SEC?password=RET@127.0.0.1/db",
    "postgresql://127.0.0.1:1/db?user=u:SECRET@127.0.0.1",
    "postgresql://u:SECRET",
    "postgresql://u:SECRET/db",
    "postgresql://u:99999",
    "postgresql://u:5ECRET%40127.0.0.1/db",
    "postgresql://u@127.0.0.1:SECRET/db",
    "postgresql://127.0.0.1:1,h:SECRET/db",
    "postgresql://u%3ASECRET@127.0.0.1:1/db",
    "postgresql://u:SEC%RET@127.0.0.1:1/db",
    "postgresql://u:\"SEC\"RET%@127.0.0.1:1/db",
    "postgresql://u:%00SECRET@127.0.0.1:1/db",
    "postgresql://[u:SECRET",
    "postgresql://[::1]SECRET",
    "postgresql://127.0.0.1:1/db?pasword=SECRET",
    "postgresql://127.0.0.1:1/db?password=a&SEC=RET",
    "postgresql://127.0.0.1:1/db?password=SEC=RET",
    "postgresql://127.0.0.1:1/db?SECRET",
    "postgresql://127.0.0.1:1/db?dbname=x://u:SECRET",
    "POSTGRESQL://u:SECRET@127.0.0.1:1/db",
    "POSTGRESQL://u:SECRET@127.0.0.1:1/db?sslmode=disable",
    " postgresql://u:SECRET@127.0.0.1:1/db",
    "postgres+psycopg2://u:SECRET@127.0.0.1:1/db",
    "postgresql:/u:SECRET@127.0.0.1:1/db",
    "u:SECRET@127.0.0.1/db",
    "jdbc:postgresql://127.0.0.1:1/db?user=u&password=SECRET",
    "host=127.0.0.1 port=1 password=SEC RET",
    "host=127.0.0.1 port=1 password='SEC'RET' user=u",
    "host=127.0.0.1 port=1 password='SECRET",
    "host=127.0.0.1 port=1 pasword=SECRET",
    "host=127.0.0.1 port=SECRET",
    "host=SEC@RET port=1",
    "host=u:SECRET port=1",
    "host=127.0.0.1 port=1 user=u:SECRET",
    "host=127.0.0.1 port=1 dbname=u:SECRET",
    "host=127.0.0.1 port=1 dbname='password=SECRET'",
    "postgresql://127.0.0.1:1/u:SECRET",
    "host=127.0.0.1 port=1 dbname=u:SECRET@h",
    "host=127.0.0.1 port=1 dbname=postgresql://u:5ECRET"};

// All of these are refused before anything is sent.
TEST(PostgresConnection, HidesAPasswordThatIsReadInAnotherWayThanMeant) {
  for (const char* uri : kMisread) {
    Error error = connecting(uri);
    EXPECT_EQ(error.parts().code, "postgres.uri")
        << uri << ": " << error.what();
    EXPECT_EQ(error.kind(), ErrorKind::request) << uri;
    for (const char* part : {"SEC", "RET", "ECRET", "99999"})
      EXPECT_THAT(error.json(), Not(HasSubstr(part))) << uri;
  }
}

TEST(PostgresConnection, NamesNoTableThatMayBeAPieceOfAPassword) {
  SourceSpec spec = at("postgresql://u:SEC");
  spec.table = "RET";
  Error error =
      error_of([&] { Connection connection(spec, Connection::Use::to_read); });
  EXPECT_EQ(error.parts().code, "postgres.uri");
  EXPECT_THAT(error.json(), Not(HasSubstr("RET")));
}

TEST(PostgresConnection, NeedsWhatWasNotStoredWithARun) {
  EXPECT_THAT(
      connecting("***").what(),
      testing::AllOf(HasSubstr("not stored"), HasSubstr("--set source.uri=")));
}

TEST(PostgresConnection, HidesAPasswordThatLibpqUnderstands) {
  for (const char* uri :
       {"postgresql://u:SEC%40RET@127.0.0.1:1/db",
        "postgresql://u:SEC?RET@127.0.0.1:1/db",
        "postgresql://u:SEC:RET@127.0.0.1:1/db",
        "postgresql://u:SEC#RET@127.0.0.1:1/db",
        "postgresql://u:SEC&RET=%22@127.0.0.1:1/db",
        "postgresql://u:SEC RET@127.0.0.1:1/db",
        "postgresql://u:\"SEC\"RET@127.0.0.1:1/db",
        "postgresql://127.0.0.1:1/db?password=SEC%40RET",
        "postgresql://u@127.0.0.1:1/db?password=SEC/RET",
        "host=127.0.0.1 port=1 password=SEC@RET",
        "host=127.0.0.1 port=1 password='SEC RET\\'' dbname=d"}) {
    Error error = connecting(uri);
    EXPECT_EQ(error.parts().code, "postgres.refused")
        << uri << ": " << error.what();
    for (const char* part : {"SEC", "RET"})
      EXPECT_THAT(error.json(), Not(HasSubstr(part))) << uri;
  }
}

TEST(PostgresConnection, TakesAnAtWhereItCannotBelongToAPassword) {
  for (const char* uri :
       {"postgresql://u@127.0.0.1:1/db", "postgresql://@127.0.0.1:1/db",
        "postgresql://u%40corp:pw@127.0.0.1:1/db",
        "host=127.0.0.1 port=1 user=u@corp", "host=@penstock-nobody port=1",
        "postgresql:///db?host=@penstock-nobody&user=u@corp"})
    EXPECT_EQ(connecting(uri).parts().code, "postgres.refused")
        << connecting(uri).what();
  EXPECT_THAT(connecting("host=127.0.0.1 port=1,1").what(),
              HasSubstr("could not match 2 port numbers to 1 hosts"));
}

class PostgresSession : public testing::Test {
 protected:
  std::string code(const std::string& uri) {
    Error error = connecting(uri);
    EXPECT_EQ(error.kind(), ErrorKind::source);
    EXPECT_THAT(error.what(), Not(HasSubstr("sesam")));
    EXPECT_FALSE(error.parts().next.empty());
    return error.parts().code;
  }
  std::string setting(const std::string& uri, const char* name) {
    Connection connection(at(uri), Connection::Use::to_read);
    return std::string(
        text_in(connection.execute("SHOW " + std::string(name)), 0, 0));
  }

  TestSchema schema_;
};

TEST_F(PostgresSession, IsSetUpForReading) {
  EXPECT_EQ(setting(test_postgres(), "TimeZone"), "UTC");
  EXPECT_EQ(setting(test_postgres(), "client_encoding"), "UTF8");
  EXPECT_EQ(setting(test_postgres(), "application_name"), "penstock");
  EXPECT_EQ(setting(test_postgres(), "default_transaction_read_only"), "on");
  EXPECT_EQ(setting(test_postgres(), "lock_timeout"), "10s");
}

TEST_F(PostgresSession, WaitsForLocksAsLongAsTheConnectionStringSays) {
  EXPECT_EQ(setting(test_postgres(), "lock_timeout"), "10s");
  std::string own = test_postgres();
  own += own.find('?') == std::string::npos ? "?" : "&";
  own += "options=-c%20lock_timeout%3D1s";
  EXPECT_EQ(setting(own, "lock_timeout"), "1s");
  EXPECT_EQ(setting(own, "TimeZone"), "UTC");
}

TEST_F(PostgresSession, TakesEitherFormOfAConnectionString) {
  std::string data = std::getenv("PENSTOCK_TEST_POSTGRES_DATA");
  std::string socket = data.substr(0, data.rfind('/')) + "/socket";
  EXPECT_EQ(setting("host=" + socket + " user=penstock dbname=postgres port=" +
                        std::getenv("PENSTOCK_TEST_POSTGRES_PORT"),
                    "TimeZone"),
            "UTC");
}

TEST_F(PostgresSession, IsFoundBehindAHostThatDoesNotAnswer) {
  SilentServer silent;
  const std::string port = std::getenv("PENSTOCK_TEST_POSTGRES_PORT");
  const std::string hosts =
      "host=127.0.0.1,127.0.0.1 dbname=postgres user=password_only "
      "password='open, sesame' connect_timeout=2 port=";
  EXPECT_EQ(
      setting(hosts + silent.place().substr(silent.place().find(':') + 1) +
                  "," + port,
              "TimeZone"),
      "UTC");
}

TEST_F(PostgresSession, NeedsTheRightPassword) {
  EXPECT_EQ(
      setting(schema_.uri_of("password_only:open%2C%20sesame"), "TimeZone"),
      "UTC");
  EXPECT_EQ(code(schema_.uri_of("password_only:sesam")), "postgres.password");
  EXPECT_EQ(code(schema_.uri_of("password_only") + "?passfile=/nonexistent"),
            "postgres.password");
}

/// A variable of the environment, for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    ::setenv(name, value, 1);
  }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST_F(PostgresSession, FindsAPasswordThatWasNotStored) {
  Variable password("PGPASSWORD", "open, sesame");
  std::string port = std::getenv("PENSTOCK_TEST_POSTGRES_PORT");
  for (const std::string& uri :
       {"host=127.0.0.1 dbname=postgres user=password_only password=a port=" +
            port,
        schema_.uri_of("password_only:a"),
        schema_.uri_of("password_only") + "?password=a"})
    EXPECT_EQ(setting(stored_connection(uri), "TimeZone"), "UTC") << uri;
}

TEST_F(PostgresSession, NeedsADatabaseAndARoleThatExist) {
  std::string uri = test_postgres();
  std::size_t name = uri.find("/postgres?");
  std::string elsewhere = uri;
  elsewhere.replace(name, 9, "/nowhere");
  EXPECT_EQ(code(elsewhere), "postgres.no_database");
  std::string nobody = uri;
  nobody.replace(nobody.find("penstock@"), 8, "nobody_here");
  EXPECT_EQ(code(nobody), "postgres.no_role");
}

TEST_F(PostgresSession, SaysWhenTlsIsRefusedOrRequired) {
  EXPECT_EQ(code(schema_.uri_of("password_only:sesam") + "?sslmode=require"),
            "postgres.tls_refused");
  EXPECT_EQ(code(schema_.uri_of("tls_only") + "?sslmode=disable"),
            "postgres.tls_required");
  EXPECT_EQ(code(schema_.uri_of("tls_only")), "postgres.not_admitted");
}

TEST_F(PostgresSession, SaysWhenARoleHasTooManyConnections) {
  std::string role = "few_" + schema_.name();
  schema_.execute("CREATE ROLE " + role + " LOGIN CONNECTION LIMIT 1");
  std::string uri = test_postgres();
  uri.replace(uri.find("penstock@"), 8, role);
  {
    Connection first(at(uri), Connection::Use::to_read);
    EXPECT_EQ(code(uri), "postgres.too_many_connections");
  }
  // The server counts the first one until it has noticed its end.
  while (!schema_.session().try_execute("DROP ROLE " + role)) {
  }
}

TEST_F(PostgresSession, SaysWhatAStatementFailedOf) {
  Connection connection(at(test_postgres()), Connection::Use::to_read);
  auto failing = [&](const std::string& sql) {
    Error error = error_of([&] { connection.execute(sql); });
    EXPECT_EQ(error.kind(), ErrorKind::source);
    return error.parts().code;
  };
  EXPECT_EQ(failing("SET statement_timeout = 20; SELECT pg_sleep(20)"),
            "postgres.statement_timeout");
  EXPECT_EQ(failing("CREATE TABLE x(y int)"), "postgres.read_only");
  EXPECT_EQ(failing("SELECT 1/0"), "postgres.failed");
  schema_.execute("CREATE TABLE t(id int)");
  schema_.execute("BEGIN; LOCK TABLE t");
  EXPECT_EQ(failing("SET statement_timeout = 0; SET lock_timeout = 20; TABLE " +
                    schema_.name() + ".t"),
            "postgres.locked");
  schema_.execute("ROLLBACK");
}

TEST_F(PostgresSession, SaysThatSomebodyEndedIt) {
  Connection connection(at(test_postgres()), Connection::Use::to_read);
  std::string pid(text_in(connection.execute("SELECT pg_backend_pid()"), 0, 0));
  schema_.ask("SELECT pg_terminate_backend(" + pid + ", 5000)");
  EXPECT_EQ(error_of([&] { connection.execute("SELECT 1"); }).parts().code,
            "postgres.killed");
  EXPECT_FALSE(connection.alive());
  EXPECT_EQ(error_of([&] { connection.execute("SELECT 1"); }).parts().code,
            "postgres.lost");
}

}  // namespace
}  // namespace penstock::postgres
