#pragma once

#include <arrow/io/interfaces.h>

#include <exception>
#include <memory>
#include <string>

#include "penstock/sources/files/input_file.h"

namespace penstock::arrow_files {

/// What was thrown while Arrow read a file of ours; fail() throws it again.
class ThrownDetail final : public arrow::StatusDetail {
 public:
  explicit ThrownDetail(std::exception_ptr thrown)
      : thrown_(std::move(thrown)) {}
  const char* type_id() const override { return kType; }
  std::string ToString() const override { return "thrown by penstock"; }
  [[noreturn]] void rethrow() const { std::rethrow_exception(thrown_); }

  static constexpr const char* kType = "penstock.thrown";

 private:
  const std::exception_ptr thrown_;
};

/// A data file that is open for reading, wherever it lies, for Arrow.
/// `file` must outlive it.
std::shared_ptr<arrow::io::RandomAccessFile> stored_input(
    const files::DataFile& file);

/// A file that is not empty, mapped as FileMapping maps it: a page that it
/// loses is zeros, and no signal. One of an object store is copied to a
/// temporary file first.
std::shared_ptr<arrow::Buffer> mapped_buffer(const files::DataFile& file,
                                             StopFlag stop);

}  // namespace penstock::arrow_files
