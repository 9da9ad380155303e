#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "penstock/base/file.h"
#include "penstock/sources/files/data_files.h"
#include "penstock/sources/stop.h"
#include "penstock/sources/text/line_ends.h"

namespace penstock::text {

/// The bytes of a text file in UTF-8, to be read anywhere. What is compressed
/// (.gz, .zst), in another encoding or in an object store is written, once, to
/// a temporary file without a name, and so is text whose lines end with "\r",
/// which it holds with "\n" instead; else the file is open only while it is
/// read, so that there may be many. Thread-safe.
class PlainText {
 public:
  /// Throws Error(source): files.unreadable, files.damaged, and Error(request)
  /// for an encoding that is unknown. `lines`: it is read line by line, and
  /// these marks hold ends of lines that end no row.
  PlainText(files::DataFile file, const std::string& encoding, StopFlag stop,
            std::optional<QuotationMarks> lines);

  const files::DataFile& file() const { return file_; }
  std::int64_t size() const { return size_; }
  /// Reads `size` bytes from `offset` on. Throws Error(source): files.changed,
  /// files.unreadable.
  void read(std::int64_t offset, char* to, std::size_t size) const;
  /// "train.csv:12": a line counts from 1.
  std::string place(std::int64_t line) const;

 private:
  void unpack_to_scratch(const std::string& encoding, StopFlag stop);
  void end_lines(const QuotationMarks& marks, StopFlag stop);

  const files::DataFile file_;
  std::unique_ptr<FileMapping> plain_;
  std::int64_t size_ = 0;
};

}  // namespace penstock::text
