#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/sources/postgres/connection.h"
#include "penstock/sources/postgres/types.h"

namespace penstock::postgres {

/// Decodes the stream of COPY ... (FORMAT binary): a header, rows, a trailer.
/// The stream may be cut anywhere; a server cuts it between rows, and then
/// nothing is copied here. Throws Error(source) `postgres.stream` for bytes
/// that are not such a stream.
class CopyDecoder {
 public:
  /// `place` is for messages.
  CopyDecoder(std::size_t fields, std::string place);

  /// The next bytes; they must stay where they are until all rows in them
  /// were taken by `next()`.
  void feed(std::string_view bytes);
  /// True when `row()` holds the next row, false when more must be fed.
  bool next();
  std::span<const Field> row() const { return row_; }
  /// The stream is over: was all of it there?
  void finish() const;

 private:
  bool take_header();
  bool keep_rest();
  [[noreturn]] void refuse(std::string why) const;

  std::string place_;
  std::vector<Field> row_;
  std::string rest_;          // what was fed of a row that is not whole yet
  std::string_view pending_;  // not taken yet; lies in rest_ or in what was fed
  bool in_header_ = true;
  bool ended_ = false;
};

/// A COPY ... TO STDOUT that runs on a connection. Destroyed before its end, it
/// cancels the statement and takes what still comes.
class CopyOut {
 public:
  /// Sends `sql`, one of whose statements is the COPY.
  CopyOut(Connection& connection, const std::string& sql);
  ~CopyOut();
  CopyOut(const CopyOut&) = delete;
  CopyOut& operator=(const CopyOut&) = delete;

  /// The next bytes, which stay until the next call; nullopt at the end, when
  /// all statements have succeeded.
  std::optional<std::string_view> next();

 private:
  struct FreeBytes {
    void operator()(char* bytes) const { PQfreemem(bytes); }
  };

  Connection& connection_;
  std::unique_ptr<char, FreeBytes> bytes_;
  bool running_ = false;
};

}  // namespace penstock::postgres
