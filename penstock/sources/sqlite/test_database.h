#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "penstock/sources/test_reading.h"

namespace penstock {

/// A folder of its own with a SQLite file in it, for tests; removed again.
class TestDatabase {
 public:
  TestDatabase() {
    std::string made = "/tmp/penstock-sqlite-XXXXXX";
    if (::mkdtemp(made.data()) == nullptr) throw std::runtime_error("mkdtemp");
    folder_ = made;
    std::filesystem::permissions(folder_, std::filesystem::perms(0755));
  }
  explicit TestDatabase(const std::string& sql) : TestDatabase() {
    execute(sql);
  }
  ~TestDatabase() {
    connection_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  TestDatabase(const TestDatabase&) = delete;
  TestDatabase& operator=(const TestDatabase&) = delete;

  std::string folder() const { return folder_.string(); }
  std::string path() const { return (folder_ / "test.sqlite").string(); }
  SourceSpec spec(const std::string& table = "t") const {
    SourceSpec spec;
    spec.kind = "sqlite";
    spec.path = path();
    spec.table = table;
    return spec;
  }
  SourceSpec query(const std::string& sql) const {
    SourceSpec spec = this->spec("");
    spec.query = sql;
    return spec;
  }

  /// The test's own connection, made with its first use.
  sqlite3* connection() {
    if (connection_ == nullptr) {
      sqlite3* opened = nullptr;
      sqlite3_open(path().c_str(), &opened);
      connection_.reset(opened);
      try_execute("PRAGMA synchronous = OFF");  // tests survive no power cut
    }
    return connection_.get();
  }
  void disconnect() { connection_.reset(); }
  int try_execute(const std::string& sql) {
    return sqlite3_exec(connection(), sql.c_str(), nullptr, nullptr, nullptr);
  }
  void execute(const std::string& sql) {
    ASSERT_EQ(try_execute(sql), SQLITE_OK) << sqlite3_errmsg(connection());
  }
  /// The first column of the first row, as text.
  std::string ask(const std::string& sql) {
    std::string answer = "nothing";
    auto take = [](void* to, int, char** values, char**) {
      *static_cast<std::string*>(to) = values[0] ? values[0] : "NULL";
      return 0;
    };
    sqlite3_exec(connection(), sql.c_str(), take, &answer, nullptr);
    return answer;
  }

 private:
  struct Close {
    void operator()(sqlite3* c) const { sqlite3_close_v2(c); }
  };
  std::filesystem::path folder_;
  std::unique_ptr<sqlite3, Close> connection_;
};

/// Root may read everything: tests of rights act as nobody meanwhile.
class AsOrdinaryUser {
 public:
  AsOrdinaryUser() {
    if (::geteuid() == 0) dropped_ = ::seteuid(65534) == 0;
  }
  ~AsOrdinaryUser() {
    if (dropped_ && ::seteuid(0) != 0) std::abort();
  }

 private:
  bool dropped_ = false;
};

/// Lets SQLite's system calls of these names fail with `number` meanwhile.
class FailingCalls {
 public:
  FailingCalls(std::vector<const char*> names, int number)
      : names_(std::move(names)) {
    number_ = number;
    set(reinterpret_cast<sqlite3_syscall_ptr>(&fail));
  }
  ~FailingCalls() { set(nullptr); }  // back to the real ones
  FailingCalls(const FailingCalls&) = delete;
  FailingCalls& operator=(const FailingCalls&) = delete;

 private:
  static ssize_t fail(int, void*, std::size_t, off_t) {
    errno = number_;
    return -1;
  }
  void set(sqlite3_syscall_ptr call) const {
    sqlite3_vfs* files = sqlite3_vfs_find(nullptr);
    for (const char* name : names_) files->xSetSystemCall(files, name, call);
  }
  inline static int number_ = 0;
  std::vector<const char*> names_;
};

}  // namespace penstock
