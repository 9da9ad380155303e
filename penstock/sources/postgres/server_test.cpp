#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "penstock/sources/postgres/test_server.h"

namespace penstock {
namespace {

constexpr const char* kRows =
    "CREATE TABLE t(id int PRIMARY KEY, x text); INSERT INTO t SELECT i, "
    "repeat('x', 1000) FROM generate_series(1, 30000) i";

const std::vector<ColumnRequest> kX = {{"x", ReadAs::json}};

/// The code of what a scan dies of when `act` happens after its first block.
std::string code_of_scan(Source& source, const std::function<void()>& act) {
  auto parts = source.partitions(1);
  Error error = error_of([&] {
    bool first = true;
    source.open_reader()->scan(parts[0], {.rows = 100}, [&](KeyList&, Block&) {
      if (std::exchange(first, false)) act();
      return true;
    });
  });
  EXPECT_EQ(error.kind(), ErrorKind::source) << error.what();
  EXPECT_FALSE(error.parts().next.empty());
  return error.parts().code;
}

class PostgresTrouble : public testing::Test {
 protected:
  PostgresTrouble() {
    if (test_postgres().empty()) return;
    SourceSpec spec = schema_.spec();
    spec.uri += "&application_name=" + schema_.name();
    source_ = open_source(spec, kX);
  }
  /// Ends our connections, but not those of other tests.
  void end_connections() {
    schema_.ask(
        "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity "
        "WHERE application_name = '" +
        schema_.name() + "'");
  }

  TestSchema schema_{kRows};
  std::unique_ptr<Source> source_;
};

TEST_F(PostgresTrouble, InTheMiddleOfAScanIsHeardOf) {
  // A server that is writing does not say why it ends.
  EXPECT_THAT(code_of_scan(*source_, [&] { end_connections(); }),
              testing::AnyOf("postgres.killed", "postgres.lost"));
}

TEST_F(PostgresTrouble, OfACancelledStatementIsHeardOf) {
  EXPECT_EQ(code_of_scan(*source_,
                         [&] {
                           schema_.ask(
                               "SELECT pg_cancel_backend(pid) FROM "
                               "pg_stat_activity WHERE application_name = '" +
                               schema_.name() + "'");
                         }),
            "postgres.cancelled");
}

TEST_F(PostgresTrouble, OfATimeLimitIsHeardOf) {
  SourceSpec spec = schema_.spec();
  spec.uri += "&options=-c%20statement_timeout%3D50";
  auto source = open_source(spec, kX);
  EXPECT_EQ(
      code_of_scan(
          *source,
          [] { std::this_thread::sleep_for(std::chrono::milliseconds(100)); }),
      "postgres.statement_timeout");
}

TEST_F(PostgresTrouble, OfASnapshotThatHasEndedIsHeardOf) {
  auto parts = source_->partitions(2);
  ASSERT_EQ(parts.size(), 2u);
  std::string code;
  auto outer = source_->open_reader();
  // The outer scan holds the snapshot's own connection.
  auto end_and_scan_again = [&](KeyList&, Block&) {
    end_connections();
    code =
        error_of([&] {
          source_->open_reader()->scan(parts[1], {.rows = 100},
                                       [](KeyList&, Block&) { return true; });
        })
            .parts()
            .code;
    return true;
  };
  EXPECT_THAT(error_of([&] {
                outer->scan(parts[0], {.rows = 100}, end_and_scan_again);
              })
                  .parts()
                  .code,
              testing::AnyOf("postgres.killed", "postgres.lost"));
  EXPECT_EQ(code, "postgres.snapshot_gone");
}

TEST_F(PostgresTrouble, IsOverWithANewConnection) {
  auto reader = source_->open_reader();
  Block block;
  reader->read(integer_keys({1}), block);
  end_connections();
  EXPECT_EQ(
      error_of([&] { reader->read(integer_keys({1}), block); }).parts().code,
      "postgres.killed");
  reader->read(integer_keys({1}), block);
  EXPECT_EQ(block.rows, 1);
}

/// A server of the test's own, which may be ended. Removed with the object.
class OwnServer {
 public:
  OwnServer() {
    std::string made = "/tmp/penstock-own-server-XXXXXX";
    if (::mkdtemp(made.data()) == nullptr) throw std::runtime_error("mkdtemp");
    folder_ = made;
    std::string told = made + "/told";
    // The tool removes its server when its command ends, and that waits for
    // the end of our pipe.
    std::string command =
        std::string(std::getenv("PENSTOCK_TEST_POSTGRES_TOOL")) +
        " sh -c 'echo \"$PENSTOCK_TEST_POSTGRES\" > " + told +
        ".part; echo \"$PENSTOCK_TEST_POSTGRES_DATA\" >> " + told +
        ".part; mv " + told + ".part " + told + "; cat > /dev/null'";
    pipe_ = ::popen(command.c_str(), "we");
    for (int i = 0; i < 3000 && !std::filesystem::exists(told); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::ifstream file(told);
    std::getline(file, uri_);
    std::getline(file, data_);
    EXPECT_FALSE(data_.empty()) << "the server did not start";
  }
  ~OwnServer() {
    ::pclose(pipe_);
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
    EXPECT_FALSE(std::filesystem::exists(data_));
  }
  OwnServer(const OwnServer&) = delete;
  OwnServer& operator=(const OwnServer&) = delete;

  const std::string& uri() const { return uri_; }
  void end(int signal) {
    pid_t pid = 0;
    std::ifstream(data_ + "/postmaster.pid") >> pid;
    ASSERT_GT(pid, 1);
    ASSERT_EQ(::kill(pid, signal), 0);
  }
  /// The server takes its file away when all its processes have ended: one may
  /// answer a little longer than another.
  void wait_for_the_end() const {
    for (int i = 0; i < 3000 && is_there(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_FALSE(is_there());
  }

 private:
  bool is_there() const {
    return std::filesystem::exists(data_ + "/postmaster.pid");
  }

  std::filesystem::path folder_;
  std::string uri_, data_;
  FILE* pipe_ = nullptr;
};

TEST(PostgresServer, ThatEndsInTheMiddleOfAScanIsHeardOf) {
  need_postgres();
  if (IsSkipped() || HasFatalFailure()) return;
  OwnServer server;
  TestSession(server.uri()).execute(kRows);
  SourceSpec spec;
  spec.kind = "postgres";
  spec.uri = server.uri();
  spec.table = "t";
  auto source = open_source(spec, kX);
  auto reader = source->open_reader();
  Block block;
  reader->read(integer_keys({1}), block);
  // At once and without a checkpoint, as a crash would.
  EXPECT_THAT(code_of_scan(*source, [&] { server.end(SIGQUIT); }),
              testing::AnyOf("postgres.killed", "postgres.lost"));
  server.wait_for_the_end();
  EXPECT_THAT(
      error_of([&] { reader->read(integer_keys({1}), block); }).parts().code,
      testing::AnyOf("postgres.killed", "postgres.lost"));
  EXPECT_THAT(error_of([&] { open_source(spec, kX); }).parts().code,
              testing::AnyOf("postgres.refused", "postgres.not_ready",
                             "postgres.lost"));
}

}  // namespace
}  // namespace penstock
