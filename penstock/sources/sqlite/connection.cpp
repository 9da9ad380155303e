#include "penstock/sources/sqlite/connection.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "penstock/base/file.h"
#include "penstock/base/folder.h"

namespace penstock::sqlite {
namespace {

constexpr int kWaitForLocksMs = 2000;
/// How often SQLite checks for a stop: every fraction of a millisecond.
constexpr int kStopEverySteps = 4000;

Error refusal(ErrorKind kind, std::string code, std::string doing,
              const std::string& path, std::string why, std::string next) {
  return Error(kind, {.code = std::move(code),
                      .what = std::move(doing),
                      .where = path,
                      .why = std::move(why),
                      .next = std::move(next)});
}

/// What a path leads to that is neither a file nor a folder. Opening a pipe
/// would wait for its writer.
const char* odd_kind(std::filesystem::file_type type) {
  switch (type) {
    case std::filesystem::file_type::fifo:
      return "the path is a pipe";
    case std::filesystem::file_type::character:
    case std::filesystem::file_type::block:
      return "the path is a device";
    case std::filesystem::file_type::socket:
      return "the path is a socket";
    case std::filesystem::file_type::unknown:
      return "the path is not a regular file";
    default:
      return nullptr;
  }
}

void refuse_odd(ErrorKind kind, const std::string& path,
                const std::string& doing,
                const std::filesystem::file_status& status) {
  const char* why = path.find('\0') != std::string::npos
                        ? "the name holds a zero byte"
                        : odd_kind(status.type());
  if (why != nullptr)
    throw refusal(kind, "sqlite.no_file", doing, path, why,
                  "name a database file: SQLite needs random access, which a "
                  "pipe or device does not give");
}

void refuse_link_loop(ErrorKind kind, const std::string& path,
                      const std::string& doing, std::error_code failed) {
  if (failed == std::errc::too_many_symbolic_link_levels)
    throw refusal(kind, "sqlite.link_loop", doing, path,
                  "the path is a link that leads back to itself",
                  "point the link at the database file, or name that file");
}

// SQLite says "unable to open database file" to all of these.
void check_readable(const std::string& path, const std::string& doing) {
  std::error_code failed;
  auto status = std::filesystem::status(path, failed);
  refuse_link_loop(ErrorKind::source, path, doing, failed);
  if (status.type() == std::filesystem::file_type::not_found)
    throw refusal(ErrorKind::source, "sqlite.missing", doing, path,
                  "the file does not exist", advice_for_missing(path));
  if (std::filesystem::is_directory(status))
    throw refusal(ErrorKind::source, "sqlite.folder", doing, path,
                  "the path is a folder",
                  "name the database file in this folder");
  refuse_odd(ErrorKind::source, path, doing, status);
  if (::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) != 0)
    throw refusal(ErrorKind::source, "sqlite.unreadable", doing, path,
                  std::strerror(errno), "make the file readable for this user");
}

void check_folder(const std::string& path, const std::string& doing) {
  std::error_code failed;
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder, failed))
    throw refusal(ErrorKind::request, "sqlite.no_folder", doing, path,
                  "there is no folder " + folder.string(),
                  "create the folder, or choose another path");
  if (std::filesystem::is_directory(path, failed))
    throw refusal(ErrorKind::request, "sqlite.folder", doing, path,
                  "the path is a folder", "name a file in this folder");
  auto status = std::filesystem::status(path, failed);
  refuse_link_loop(ErrorKind::request, path, doing, failed);
  refuse_odd(ErrorKind::request, path, doing, status);
}

/// A text as one word of a shell's command line.
std::string shell_word(const std::string& text) {
  std::string word = "'";
  for (char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

/// Bytes 18 and 19 of the header say 2 for a write-ahead log. Read through the
/// connection: opening and closing the file would end this process's locks.
bool keeps_wal(sqlite3* connection) {
  sqlite3_file* file = nullptr;
  sqlite3_file_control(connection, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  if (file == nullptr || file->pMethods == nullptr) return false;
  char header[20] = {};
  return file->pMethods->xRead(file, header, sizeof(header), 0) == SQLITE_OK &&
         header[18] == 2 && header[19] == 2;
}

/// What SQLite says of a call that failed.
struct Failure {
  int status;  // the extended code
  int system;  // errno; 0 where it plays no part
  std::string says;

  int code() const { return status & 0xff; }
  void add_system_error() {
    says += std::string(" (the system says: ") + std::strerror(system) + ")";
  }
};

/// The code of an error, and what to do about it.
struct Advice {
  std::string code, next;
};

/// Where another program has changed the file or the table since it was opened.
std::optional<Advice> advice_on_change(Failure& failed,
                                       const std::string& path) {
  bool gone = failed.status == SQLITE_ERROR &&
              (failed.says.starts_with("no such table: ") ||
               failed.says.starts_with("no such column: "));
  std::error_code unknown;
  if ((gone || failed.code() == SQLITE_NOTADB) &&
      std::filesystem::file_size(path, unknown) == 0) {
    failed.says = "the file has 0 bytes";
    return Advice{"sqlite.emptied",
                  "another program has emptied the file, maybe while it was "
                  "read: restore it from a copy"};
  }
  if (!gone) return std::nullopt;
  return Advice{"source.table_changed",
                "another program has dropped or renamed the table, maybe while "
                "it was read; list the tables with: sqlite3 " +
                    shell_word(path) + " .schema"};
}

Advice advice_on_io(Failure& failed) {
  if (failed.system != 0) failed.add_system_error();
  if (failed.system == EFBIG)
    return {"sqlite.file_limit",
            "raise the limit on the size of files (ulimit -f)"};
  return {"sqlite.io",
          "check its disk or network share, or point source.path at a copy on "
          "another one"};
}

Advice advice_on_opening(Failure& failed, const std::string& path,
                         sqlite3* connection) {
  if (failed.status == SQLITE_READONLY_ROLLBACK)
    return {"sqlite.unfinished_write",
            "a program died while writing; a user with write access can roll "
            "its transaction back with: sqlite3 " +
                shell_word(path) + " 'PRAGMA user_version'"};
  if (failed.system == EMFILE || failed.system == ENFILE) {
    failed.add_system_error();
    return {"sqlite.too_many_files",
            "raise the limit on open files (ulimit -n), or lower "
            "loader.workers or loader.readers: each one opens the database"};
  }
  if (keeps_wal(connection))
    return {"sqlite.wal_folder",
            "the database uses a write-ahead log, whose -shm file needs write "
            "access to the folder: grant it, or run on a copy: PRAGMA "
            "journal_mode=DELETE"};
  return {"sqlite.access", "check the permissions of the file and folder"};
}

Advice advice_on(Failure& failed, const std::string& path,
                 const std::string& where, sqlite3* connection) {
  if (auto changed = advice_on_change(failed, path)) return *changed;
  switch (failed.code()) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {"sqlite.locked",
              "another program is writing: try again when that program is "
              "done, or point source.path at a copy"};
    case SQLITE_NOTADB:
      return {"sqlite.not_a_database",
              "check source.path: the file is not an SQLite database, or is "
              "encrypted"};
    case SQLITE_CORRUPT:
      return {"sqlite.corrupt",
              "the file or its disk is damaged; see what can be recovered "
              "with: sqlite3 " +
                  shell_word(path) + " .recover"};
    case SQLITE_FULL:
      return {"sqlite.disk_full",
              "free some space on that disk and where temporary files go, or "
              "set SQLITE_TMPDIR to a folder with more space"};
    case SQLITE_IOERR:
      return advice_on_io(failed);
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
      return advice_on_opening(failed, path, connection);
    default:
      if (failed.status == SQLITE_ERROR && !where.empty())
        return {"sqlite.failed",
                "check " + where +
                    ", which may fail on single rows, as json_extract does for "
                    "text that is not JSON (test json_valid first)"};
      return {"sqlite.failed", "inspect the table with: sqlite3 " +
                                   shell_word(path) + " .schema"};
  }
}

/// SQLite ends the statement when this is not 0.
int stop_asked(void* stop) {
  return static_cast<const StopFlag*>(stop)->is_set() ? 1 : 0;
}

std::string path_of(sqlite3* connection) {
  const char* path = sqlite3_db_filename(connection, "main");
  return path == nullptr ? "" : path;
}

}  // namespace

// SQLITE_OPEN_NOMUTEX is safe because a connection is used by one thread at a
// time (Snapshot::mutex, or the reader that owns it); SQLite's global state
// keeps its own locks.
Connection::Connection(const SourceSpec& spec, Open how, StopFlag stop)
    : path_(spec.path),
      where_(!spec.query.empty()   ? "source.query"
             : !spec.where.empty() ? "source.where"
                                   : ""),
      doing_((how == Open::to_read ? "cannot read " : "cannot write ") +
             (!spec.query.empty()  ? "the query"
              : spec.table.empty() ? "the database"
                                   : "table '" + spec.table + "'")),
      round_trip_(from_seconds(1e-3 * spec.round_trip_ms)),
      stop_(stop) {
  check_current_folder(path_, doing_);
  if (how == Open::to_read)
    check_readable(path_, doing_);
  else
    check_folder(path_, doing_);
  int flags = how == Open::to_read ? SQLITE_OPEN_READONLY
                                   : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  // An absolute path is never taken for "file:..." or ":memory:".
  std::string absolute = std::filesystem::absolute(path_).string();
  sqlite3* opened = nullptr;
  int status = sqlite3_open_v2(absolute.c_str(), &opened,
                               flags | SQLITE_OPEN_NOMUTEX, nullptr);
  connection_.reset(opened);
  if (status != SQLITE_OK) throw error();
  sqlite3_extended_result_codes(opened, 1);
  sqlite3_busy_timeout(opened, kWaitForLocksMs);
  if (stop_.possible())
    sqlite3_progress_handler(opened, kStopEverySteps, stop_asked, &stop_);
  // A name in double quotes is a column, never a text: a typing error in
  // `where` is an error instead of a comparison with a constant.
  sqlite3_db_config(opened, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
}

Statement Connection::prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(get(), sql.c_str(), static_cast<int>(sql.size() + 1),
                         &statement, nullptr) != SQLITE_OK)
    throw error();
  return Statement(statement);
}

bool Connection::send(sqlite3_stmt* statement) {
  if (round_trip_.count() > 0)
    wall_clock().sleep_until(wall_clock().now() + round_trip_);
  end_if_stopped(stop_);
  return next(statement);
}

bool Connection::next(sqlite3_stmt* statement) {
  int status = sqlite3_step(statement);
  if (status == SQLITE_ROW) return true;
  if (status != SQLITE_DONE) throw error();
  return false;
}

void Connection::execute(const std::string& sql) { send(prepare(sql).get()); }

std::int64_t Connection::number(const std::string& sql) {
  Statement statement = prepare(sql);
  return send(statement.get()) ? sqlite3_column_int64(statement.get(), 0) : 0;
}

bool Connection::keeps_nothing() const { return !keeps_wal(get()); }

Error Connection::error() const {
  Failure failed{.status = sqlite3_extended_errcode(get()),
                 .system = sqlite3_system_errno(get()),
                 .says = sqlite3_errmsg(get())};
  // The statement was ended, or `stop` was set while it waited for a lock.
  if (failed.code() == SQLITE_INTERRUPT || failed.code() == SQLITE_BUSY)
    end_if_stopped(stop_);
  if (failed.code() == SQLITE_NOMEM || failed.status == SQLITE_IOERR_NOMEM)
    return refusal(ErrorKind::out_of_memory, "sqlite.out_of_memory", doing_,
                   path_, failed.says,
                   "free some memory, or give the program more memory");
  Advice advice = advice_on(failed, path_, where_, get());
  return refusal(ErrorKind::source, std::move(advice.code), doing_, path_,
                 std::move(failed.says), std::move(advice.next));
}

std::string_view text_at(sqlite3_stmt* row, int at, bool utf8) {
  // As a blob, text is handed out in place; as text it would first be copied to
  // append a zero.
  sqlite3_value* value = sqlite3_column_value(row, at);
  const void* text =
      utf8 ? sqlite3_value_blob(value)
           : static_cast<const void*>(sqlite3_column_text(row, at));
  if (text == nullptr &&  // an empty BLOB, or:
      sqlite3_errcode(sqlite3_db_handle(row)) == SQLITE_NOMEM)
    throw Error(ErrorKind::out_of_memory,
                {.code = "sqlite.out_of_memory",
                 .what = "cannot read a text of a SQLite database",
                 .where = path_of(sqlite3_db_handle(row)),
                 .why = "there is no memory to convert the text to UTF-8",
                 .next = "free some memory, or give the program more memory"});
  auto bytes = static_cast<std::size_t>(sqlite3_value_bytes(value));
  return {static_cast<const char*>(text), bytes};
}

std::string identifier(std::string_view name) {
  std::string text = "\"";
  for (char c : name) text.append(c == '"' ? 2 : 1, c);
  return text + '"';
}

}  // namespace penstock::sqlite
