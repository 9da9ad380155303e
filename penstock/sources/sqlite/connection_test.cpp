#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <fstream>

#include "penstock/sources/sqlite/test_database.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kRows =
    "CREATE TABLE t(id INTEGER PRIMARY KEY, x REAL);"
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < "
    "3000) INSERT INTO t SELECT i, i FROM n;";

Error opening(const SourceSpec& spec) {
  return error_of([&] { open_source(spec, {{"x", ReadAs::number}}); });
}

TEST(SqliteConnection, DoesNotMakeAMissingFile) {
  TestDatabase database;
  Error error = opening(database.spec());
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "sqlite.missing");
  EXPECT_EQ(error.parts().where, database.path());
  EXPECT_FALSE(std::filesystem::exists(database.path()));
}

TEST(SqliteConnection, SaysThatAFolderIsOne) {
  TestDatabase database;
  SourceSpec spec = database.spec();
  spec.path = database.folder();
  EXPECT_EQ(opening(spec).parts().code, "sqlite.folder");
}

TEST(SqliteConnection, OpensNeitherPipeNorDeviceNorSocket) {
  TestDatabase database;
  SourceSpec spec = database.spec();
  auto expect = [&](const std::string& path, const char* why) {
    spec.path = path;
    Error error = opening(spec);
    EXPECT_EQ(error.kind(), ErrorKind::source);
    EXPECT_EQ(error.parts().code, "sqlite.no_file");
    EXPECT_EQ(error.parts().where, path);
    EXPECT_EQ(error.parts().why, why);
    Error writing =
        error_of([&] { create_table(spec, {{.name = "x"}}, true); });
    EXPECT_EQ(writing.kind(), ErrorKind::request);
    EXPECT_EQ(writing.parts().code, "sqlite.no_file");
  };
  std::string pipe = database.folder() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect(pipe, "the path is a pipe");
  std::filesystem::create_symlink(pipe, database.folder() + "/link");
  expect(database.folder() + "/link", "the path is a pipe");
  expect("/dev/null", "the path is a device");
  std::string path = database.folder() + "/socket";
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strcpy(address.sun_path, path.c_str());
  int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(
      ::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)),
      0);
  expect(path, "the path is a socket");
  ::close(socket);
}

TEST(SqliteConnection, IsNotFooledByAZeroByteInTheName) {
  TestDatabase database(kRows);
  SourceSpec spec = database.spec();
  spec.path += std::string("\0x", 2);
  EXPECT_EQ(opening(spec).parts().code, "sqlite.no_file");
}

TEST(SqliteConnection, SaysThatAFileCannotBeRead) {
  TestDatabase database(kRows);
  opening(database.spec());  // loads the part while it can be read
  std::filesystem::permissions(database.path(), std::filesystem::perms(0));
  AsOrdinaryUser nobody;
  Error error = opening(database.spec());
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "sqlite.unreadable");
  EXPECT_THAT(error.what(), HasSubstr("Permission denied"));
}

TEST(SqliteConnection, SaysThatAFileIsNoDatabase) {
  TestDatabase database;
  std::ofstream(database.path()) << std::string(5000, 'x');
  Error error = opening(database.spec());
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "sqlite.not_a_database");
}

TEST(SqliteConnection, SaysThatAnEmptyFileHoldsNoTable) {
  TestDatabase database;
  std::ofstream(database.path());
  EXPECT_THAT(opening(database.spec()).what(), HasSubstr("holds no table"));
}

TEST(SqliteConnection, WaitsForALockAndThenSaysWhoHoldsIt) {
  TestDatabase database(kRows);
  database.execute("BEGIN EXCLUSIVE");
  Error error = opening(database.spec());
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "sqlite.locked");
  EXPECT_THAT(error.what(), AllOf(HasSubstr("table 't'"),
                                  HasSubstr("another program is writing")));
}

TEST(SqliteConnection, SaysThatADatabaseIsDamaged) {
  TestDatabase database(kRows);
  auto source = open_source(database.spec(), {{"x", ReadAs::number}});
  database.disconnect();
  {
    std::fstream file(database.path(),
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(2 * 4096);
    file << std::string(4096, '\xee');
  }
  Error error = error_of([&] { scan_all(*source); });
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "sqlite.corrupt");
  EXPECT_THAT(error.what(), HasSubstr(".recover"));
}

TEST(SqliteConnection, ReadsAWriteAheadLogThatOthersWrite) {
  TestDatabase database("PRAGMA journal_mode = WAL;");
  database.execute(kRows);
  database.execute("BEGIN IMMEDIATE; INSERT INTO t VALUES (9999, 1);");
  auto source = open_source(database.spec(), {{"x", ReadAs::number}});
  EXPECT_EQ(scan_all(*source).rows, 3000);
}

TEST(SqliteConnection, SaysThatAWriteAheadLogNeedsItsFolder) {
  TestDatabase database("PRAGMA journal_mode = WAL;");
  database.execute(kRows);
  opening(database.spec());
  database.disconnect();  // takes the log and its index away
  std::filesystem::permissions(database.folder(), std::filesystem::perms(0555));
  Error error = [&] {
    AsOrdinaryUser nobody;
    return opening(database.spec());
  }();
  std::filesystem::permissions(database.folder(), std::filesystem::perms(0755));
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "sqlite.wal_folder");
  EXPECT_THAT(error.what(), HasSubstr("write access to the folder"));
}

TEST(SqliteConnection, SaysThatAWriterDiedHalfWay) {
  TestDatabase database(kRows);
  database.execute("PRAGMA cache_size = 1; BEGIN; UPDATE t SET x = -x;");
  TestDatabase copy;  // what a power cut would leave
  for (const char* end : {"", "-journal"})
    std::filesystem::copy_file(database.path() + end, copy.path() + end);
  database.execute("ROLLBACK");
  Error error = opening(copy.spec());
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "sqlite.unfinished_write");
  EXPECT_EQ(copy.ask("SELECT sum(x) > 0 FROM t"), "1");
  EXPECT_EQ(opening(copy.spec()).what(), std::string("nothing was thrown"));
}

TEST(SqliteConnection, NamesTheCommandThatEndsAnUnfinishedWrite) {
  if (std::system("sqlite3 -version > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "there is no program sqlite3";
  TestDatabase database(kRows);
  database.execute("PRAGMA cache_size = 1; BEGIN; UPDATE t SET x = -x;");
  TestDatabase copy;
  SourceSpec spec = copy.spec();
  spec.path = copy.folder() + "/it's one.sqlite";
  for (const char* end : {"", "-journal"})
    std::filesystem::copy_file(database.path() + end, spec.path + end);
  database.execute("ROLLBACK");
  std::string next = opening(spec).parts().next;
  std::string command = next.substr(next.find("sqlite3 "));
  EXPECT_EQ(std::system((command + " > /dev/null").c_str()), 0) << command;
  EXPECT_FALSE(std::filesystem::exists(spec.path + "-journal"));
  EXPECT_EQ(opening(spec).what(), std::string("nothing was thrown"));
}

TEST(SqliteConnection, PassesOnWhatTheDiskSays) {
  TestDatabase database(kRows);
  auto source = open_source(database.spec(), {{"x", ReadAs::number}});
  auto parts = source->partitions(1);
  FailingCalls reading({"read", "pread", "pread64"}, ESTALE);
  // SQLite itself takes EIO for a damaged database.
  Error error = error_of([&] {
    source->open_reader()->scan(parts[0], {.rows = 10},
                                [](KeyList&, Block&) { return true; });
  });
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "sqlite.io");
  EXPECT_THAT(error.parts().why, HasSubstr("Stale file handle"));
  EXPECT_THAT(error.parts().next, HasSubstr("disk or network share"));
}

TEST(SqliteConnection, TellsMissingMemoryApart) {
  TestDatabase database(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, x REAL, s TEXT);"
      "INSERT INTO t VALUES (1, 2, hex(zeroblob(2000000)))");
  SourceSpec spec = database.spec();
  spec.where = "length(upper(s)) > 0";
  auto source = open_source(spec, {{"x", ReadAs::number}});
  auto parts = source->partitions(1);
  sqlite3_hard_heap_limit64(sqlite3_memory_used() + 3'000'000);
  Error error = error_of([&] {
    source->open_reader()->scan(parts[0], {.rows = 10},
                                [](KeyList&, Block&) { return true; });
  });
  sqlite3_hard_heap_limit64(0);
  EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
  EXPECT_EQ(error.parts().code, "sqlite.out_of_memory");
  EXPECT_FALSE(error.parts().next.empty());
}

TEST(SqliteConnection, TakesNoTextThatCannotBeConvertedForAnEmptyOne) {
  TestDatabase database("PRAGMA encoding = 'UTF-16le';");
  database.execute(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, x REAL, s TEXT);"
      "INSERT INTO t VALUES (1, 2, hex(zeroblob(2000000)))");
  auto source = open_source(database.spec(), {{"s", ReadAs::json}});
  auto parts = source->partitions(1);
  sqlite3_hard_heap_limit64(sqlite3_memory_used() + 9'000'000);
  Error error = error_of([&] {
    source->open_reader()->scan(parts[0], {.rows = 10},
                                [](KeyList&, Block&) { return true; });
  });
  sqlite3_hard_heap_limit64(0);
  EXPECT_EQ(error.kind(), ErrorKind::out_of_memory) << error.what();
}

TEST(SqliteConnection, TakesNoPathForAUri) {
  TestDatabase database;
  SourceSpec spec = database.spec();
  for (const char* path : {":memory:", "file::memory:"}) {
    spec.path = path;
    EXPECT_EQ(opening(spec).parts().code, "sqlite.missing") << path;
  }
}

}  // namespace
}  // namespace penstock
