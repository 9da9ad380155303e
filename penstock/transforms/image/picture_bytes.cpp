#include "penstock/transforms/image/picture_bytes.h"

#include <filesystem>

#include "penstock/base/error.h"
#include "penstock/base/file.h"
#include "penstock/base/utf8.h"

namespace penstock {
namespace {

// As the source of pictures has it.
constexpr std::uintmax_t kMostFileBytes = std::uintmax_t{1} << 30;

}  // namespace

std::string PictureBytes::read(const Column& column, std::int64_t row,
                               std::string_view& bytes) {
  if (!column.valid(row))
    return folder_.empty() ? "is NULL, expected the bytes of a picture"
                           : "is NULL, expected the path of a picture";
  bytes = column.text(row);
  if (folder_.empty()) return {};
  std::string why = read_file(bytes);
  if (!why.empty()) return "names " + shown_text(bytes) + ": " + why;
  bytes = file_;
  return {};
}

std::string PictureBytes::read_file(std::string_view path) {
  if (path.empty()) return "the path names no file";
  // An absolute path replaces the folder.
  const std::filesystem::path whole = std::filesystem::path(folder_) / path;
  std::error_code none;
  const std::uintmax_t size = std::filesystem::file_size(whole, none);
  if (none) {
    check_unchanged_since(opened_ns_, std::nullopt, whole.string());
    notes_.add(whole.string(), std::nullopt);
    return none.message() + ", in folder '" + folder_ + "'";
  }
  if (size > kMostFileBytes)
    return "the file has " + std::to_string(size) + " bytes, and " +
           std::to_string(kMostFileBytes) + " are the limit";
  std::string why = read_all(whole);
  const std::optional<FileStamp> read = stamp_of(whole.string());
  check_unchanged_since(opened_ns_, read, whole.string());
  notes_.add(whole.string(), read);
  return why;
}

std::string PictureBytes::read_all(const std::filesystem::path& path) try {
  file_ = real_files().read(path);
  return {};
} catch (const Error& error) {
  return error.parts().why;
}

std::unique_ptr<FieldNotes> PictureBytes::take_notes() {
  if (notes_.empty()) return nullptr;
  return std::make_unique<FileNotes>(std::exchange(notes_, {}));
}

}  // namespace penstock
