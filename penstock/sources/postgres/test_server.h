#pragma once

#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "penstock/sources/test_reading.h"

namespace penstock {

/// "" without a server to test with: see tools/with_postgres.
inline std::string test_postgres() {
  const char* uri = std::getenv("PENSTOCK_TEST_POSTGRES");
  return uri == nullptr ? "" : uri;
}

/// To be called where a test begins: without a server it is skipped, or fails
/// where a server is required.
inline void need_postgres() {
  if (!test_postgres().empty()) return;
  const char* required = std::getenv("PENSTOCK_REQUIRE_POSTGRES");
  if (required != nullptr && std::string_view(required) == "1")
    FAIL() << "PENSTOCK_REQUIRE_POSTGRES=1, and there is no server: run this "
              "through tools/with_postgres";
  GTEST_SKIP() << "no PostgreSQL server: run this through tools/with_postgres";
}

/// A session of the test's own, as the superuser.
class TestSession {
 public:
  explicit TestSession(const std::string& uri = test_postgres())
      : connection_(PQconnectdb(uri.c_str())) {
    try_execute(
        "SET client_min_messages = warning; SET client_encoding = "
        "UTF8");
  }
  /// True when all statements succeeded.
  bool try_execute(const std::string& sql) {
    PGresult* result = PQexec(connection_.get(), sql.c_str());
    ExecStatusType status = PQresultStatus(result);
    PQclear(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
  }
  void execute(const std::string& sql) {
    ASSERT_TRUE(try_execute(sql)) << PQerrorMessage(connection_.get());
  }
  /// The first column of the first row, as text.
  std::string ask(const std::string& sql) {
    PGresult* result = PQexec(connection_.get(), sql.c_str());
    std::string answer = PQntuples(result) == 0      ? "nothing"
                         : PQgetisnull(result, 0, 0) ? "NULL"
                                                     : PQgetvalue(result, 0, 0);
    PQclear(result);
    return answer;
  }
  PGconn* get() const { return connection_.get(); }

 private:
  struct Close {
    void operator()(PGconn* c) const { PQfinish(c); }
  };
  std::unique_ptr<PGconn, Close> connection_;
};

/// A schema of its own, removed with everything in it. Without a server the
/// test is skipped and nothing here may be used.
class TestSchema {
 public:
  TestSchema() {
    need_postgres();
    if (test_postgres().empty()) return;
    session_ = std::make_unique<TestSession>();
    static int made = 0;  // tests of one process run one after another
    name_ = "s" + std::to_string(::getpid()) + "_" + std::to_string(++made);
    session_->execute("CREATE SCHEMA " + name_ +
                      "; SET search_path = " + name_);
  }
  explicit TestSchema(const std::string& sql) : TestSchema() {
    if (session_) session_->execute(sql);
  }
  ~TestSchema() {
    if (session_) session_->try_execute("DROP SCHEMA " + name_ + " CASCADE");
  }
  TestSchema(const TestSchema&) = delete;
  TestSchema& operator=(const TestSchema&) = delete;

  const std::string& name() const { return name_; }
  TestSession& session() { return *session_; }
  void execute(const std::string& sql) { session_->execute(sql); }
  std::string ask(const std::string& sql) { return session_->ask(sql); }

  SourceSpec spec(const std::string& table = "t") const {
    SourceSpec spec;
    spec.kind = "postgres";
    spec.uri = test_postgres();
    spec.table = name_ + "." + table;
    return spec;
  }
  /// In which tables are found without the name of the schema.
  SourceSpec query(const std::string& sql) const {
    SourceSpec spec;
    spec.kind = "postgres";
    const std::string uri = test_postgres();
    spec.uri = uri + (uri.find('?') == uri.npos ? "?" : "&") +
               "options=-csearch_path%3D" + name_;
    spec.query = sql;
    return spec;
  }
  /// The same database as another role, over TCP.
  std::string uri_of(const std::string& role_and_password) const {
    return "postgresql://" + role_and_password +
           "@127.0.0.1:" + std::getenv("PENSTOCK_TEST_POSTGRES_PORT") +
           "/postgres";
  }

 private:
  std::string name_;
  std::unique_ptr<TestSession> session_;
};

}  // namespace penstock
