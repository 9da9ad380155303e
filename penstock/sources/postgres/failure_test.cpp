#include "penstock/sources/postgres/failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace penstock::postgres {
namespace {

using testing::HasSubstr;
using testing::Not;

const About kAbout{.doing = "cannot read table 't'",
                   .place = "postgresql://db.lab:5432/lab",
                   .table = "t",
                   .user = "ann",
                   .database = "lab",
                   .sslmode = "prefer"};

std::string connection_code(const std::string& says) {
  Error error = connection_failure(kAbout, says);
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_FALSE(error.parts().next.empty());
  EXPECT_EQ(error.parts().why, says);
  EXPECT_EQ(error.parts().where, kAbout.place);
  EXPECT_THAT(error.what(), Not(HasSubstr("@")));  // all is filled in
  return error.parts().code;
}

std::string statement_code(const char* state, const char* says = "so it is") {
  Error error = statement_failure(kAbout, state, says);
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_THAT(error.what(), Not(HasSubstr("@")));
  return error.parts().code;
}

TEST(ConnectionFailure, HasACodeForEachCause) {
  for (auto [says, code] :
       std::initializer_list<std::pair<const char*, const char*>>{
           {"connection to server at \"127.0.0.1\", port 1 failed: Connection "
            "refused Is the server running on that host?",
            "refused"},
           {"connection to server on socket \"/tmp/.s.PGSQL.5432\" failed: No "
            "such file or directory",
            "refused"},
           {"could not translate host name \"nowhere\" to address: Name or "
            "service not known",
            "unknown_host"},
           {"connection to server at \"10.9.9.9\", port 5432 failed: timeout "
            "expired",
            "connect_timeout"},
           {"connection to server at \"10.9.9.9\" failed: No route to host",
            "unreachable"},
           {"connection to server at \"10.9.9.9\" failed: Network is "
            "unreachable",
            "unreachable"},
           {"FATAL: unsupported startup parameter: options", "pooler"},
           {"FATAL: password authentication failed for user \"ann\"",
            "password"},
           {"fe_sendauth: no password supplied", "password"},
           {"FATAL: Peer authentication failed for user \"ann\"",
            "authentication"},
           {"FATAL: role \"ann\" does not exist", "no_role"},
           {"FATAL: role \"ann\" is not permitted to log in", "no_role"},
           {"FATAL: database \"lab\" does not exist", "no_database"},
           {"FATAL: permission denied for database \"lab\"", "permission"},
           {"FATAL: sorry, too many clients already", "too_many_connections"},
           {"FATAL: too many connections for role \"ann\"",
            "too_many_connections"},
           {"FATAL: remaining connection slots are reserved for "
            "non-replication superuser connections",
            "too_many_connections"},
           {"FATAL: the database system is starting up", "not_ready"},
           {"server does not support SSL, but SSL was required", "tls_refused"},
           {"root certificate file \"/root/.postgresql/root.crt\" does not "
            "exist",
            "tls_certificate"},
           {"SSL error: certificate verify failed", "tls_certificate"},
           {"SSL error: wrong version number", "tls"},
           {"FATAL: no pg_hba.conf entry for host \"10.0.0.7\", user \"ann\", "
            "database \"lab\", no encryption",
            "not_admitted"},
           {"FATAL: pg_hba.conf rejects connection for host \"10.0.0.7\"",
            "not_admitted"},
           {"server closed the connection unexpectedly", "lost"},
           {"FATAL: etwas anderes", "connect"}})
    EXPECT_EQ(connection_code(says), "postgres." + std::string(code)) << says;
}

TEST(ConnectionFailure, AsksForTlsWhereItWasSwitchedOff) {
  About about = kAbout;
  about.sslmode = "disable";
  for (const char* word : {"no encryption", "SSL off"}) {
    Error error = connection_failure(
        about,
        "FATAL: no pg_hba.conf entry for host \"::1\", user \"ann\", "
        "database \"lab\", " +
            std::string(word));
    EXPECT_EQ(error.parts().code, "postgres.tls_required");
    EXPECT_THAT(error.parts().next, HasSubstr("sslmode=require"));
  }
}

TEST(StatementFailure, HasACodeForEachState) {
  for (auto [state, code] :
       std::initializer_list<std::pair<const char*, const char*>>{
           {"", "lost"},
           {"08006", "lost"},
           {"57P01", "killed"},
           {"57P02", "killed"},
           {"57P03", "not_ready"},
           {"57P05", "killed"},
           {"25P03", "killed"},
           {"57014", "statement_timeout"},
           {"55P03", "locked"},
           {"40P01", "locked"},
           {"40001", "conflict"},
           {"26000", "pooler"},
           {"42P05", "pooler"},
           {"42501", "permission"},
           {"25006", "read_only"},
           {"53100", "server_disk_full"},
           {"53200", "server_memory"},
           {"53300", "too_many_connections"},
           {"22P05", "encoding"},
           {"22021", "encoding"},
           {"XX001", "corrupt"},
           {"XX002", "corrupt"},
           {"2BP01", "dependents"},
           {"3F000", "no_schema"},
           {"42P01", "table_gone"},
           {"42703", "changed"},
           {"42P02", "failed"}})
    EXPECT_EQ(statement_code(state), "postgres." + std::string(code)) << state;
  EXPECT_EQ(statement_code("57014", "canceling statement due to user request"),
            "postgres.cancelled");
  EXPECT_THAT(statement_failure(kAbout, "22P02", "").parts().next,
              HasSubstr("source.where"));
}

TEST(StatementFailure, SaysTheStateItDoesNotKnow) {
  EXPECT_THAT(statement_failure(kAbout, "42P02", "it is not there").what(),
              testing::AllOf(HasSubstr("it is not there (SQLSTATE 42P02)"),
                             HasSubstr("\\d t")));
}

TEST(StatementFailure, TellsOurMemoryFromTheServers) {
  Error ours = statement_failure(kAbout, "", "out of memory for query result");
  EXPECT_EQ(ours.kind(), ErrorKind::out_of_memory);
  EXPECT_EQ(ours.parts().code, "postgres.out_of_memory");
  Error theirs = statement_failure(kAbout, "53200", "out of memory");
  EXPECT_EQ(theirs.kind(), ErrorKind::source);
}

TEST(StatementFailure, NamesTheGrantToMake) {
  EXPECT_THAT(statement_failure(kAbout, "42501", "denied").parts().next,
              HasSubstr("GRANT SELECT ON t TO \"ann\""));
}

TEST(StatementFailure, NamesTheRightThatIsMissing) {
  auto next = [](const char* says) {
    return statement_failure(kAbout, "42501", says).parts().next;
  };
  EXPECT_THAT(next("permission denied for table t"),
              HasSubstr("GRANT SELECT ON t TO \"ann\""));
  EXPECT_THAT(next("permission denied for schema lab data"),
              HasSubstr("GRANT USAGE ON SCHEMA \"lab data\" TO \"ann\""));
  EXPECT_THAT(
      next("query would be affected by row-level security policy for "
           "table \"t\""),
      testing::AllOf(HasSubstr("row_security"), Not(HasSubstr("GRANT"))));
}

TEST(StatementFailure, OfATableThatChangesSaysSo) {
  for (auto [state, says, code] :
       {std::tuple{"0A000", "cached plan must not change result type",
                   "postgres.changed"},
        {"42703", "column \"x\" does not exist", "postgres.changed"},
        {"XX000", "could not open relation with OID 16384",
         "postgres.table_gone"},
        {"42P01", "relation \"t\" does not exist", "postgres.table_gone"}}) {
    Error error = statement_failure(kAbout, state, says);
    EXPECT_EQ(error.parts().code, code);
    EXPECT_THAT(error.parts().next, HasSubstr("another program"));
  }
}

TEST(Failure, FillsInNamesThatLookLikePlacesForNames) {
  About about = kAbout;
  about.user = "ann@user@database";
  about.database = "@database";
  about.table = "@table @user";
  about.place = "postgresql://h:1/@database";
  EXPECT_EQ(statement_failure(about, "42501", "denied").parts().next,
            "as its owner: GRANT SELECT ON @table @user TO "
            "\"ann@user@database\"");
  EXPECT_THAT(connection_failure(about, "no pg_hba.conf entry").parts().next,
              testing::AllOf(HasSubstr("user 'ann@user@database'"),
                             HasSubstr("database '@database'")));
  EXPECT_THAT(connection_failure(about, "something else").parts().next,
              HasSubstr("psql 'postgresql://h:1/@database'"));
  about.user = "";
  EXPECT_THAT(connection_failure(about, "no pg_hba.conf entry").parts().next,
              HasSubstr("user '...'"));
}

TEST(WithoutSecret, HidesThePasswordWhereverItStands) {
  EXPECT_EQ(
      without_secret("user ann, hunter2, and hunter2\n\tagain\n", "hunter2"),
      "user ann, ***, and *** again");
  EXPECT_EQ(without_secret("in postgresql://ann:pw@host/db", ""),
            "in postgresql://ann:***@host/db");
  EXPECT_EQ(without_secret("host=h password=pw user=u", ""),
            "host=h password=*** user=u");
  EXPECT_EQ(without_secret("*", "*"), "***");
}

TEST(WithoutQuotes, EndsWhereSomethingIsQuoted) {
  EXPECT_EQ(without_quotes("invalid percent-encoded token: \"hun\"ter%\""),
            "invalid percent-encoded token: \"...\"");
  EXPECT_EQ(without_quotes("missing \"=\" after \"hunter2"), "missing \"...\"");
  EXPECT_EQ(without_quotes("nothing"), "nothing");
}

}  // namespace
}  // namespace penstock::postgres
