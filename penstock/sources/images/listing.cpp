#include "penstock/sources/images/listing.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <type_traits>

#include "penstock/base/cache_folder.h"
#include "penstock/base/error.h"
#include "penstock/base/file.h"
#include "penstock/base/file_stamp.h"
#include "penstock/base/hash.h"
#include "penstock/base/log.h"

// The file: kMagic, the bytes of the head, a hash64 of it and one of the names,
// each uint64; the head; the names of all pictures, each before a '\0'. The
// head has numbers as the machine has them, and texts as their length, uint32,
// and their bytes:
//   root, version, the warning of what is not read;
//   number of classes (uint64), each a text;
//   number of folders, each a text and its stamp: the inode number (uint64),
//   size, modification and status change time (int64);
//   number of pictures, the class of each (int32), the length of each name
//   (uint32).

namespace penstock::images {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "PENSTLS5";

fs::path file_of(const std::string& root, const Media& media) {
  std::error_code none;
  const fs::path whole = fs::absolute(root, none);
  Sha256 hash;
  hash.add(whole.lexically_normal().string());
  hash.add(media.column);
  return cache_folder() / "listings" / (hash.hex() + ".listing");
}

class Writer {
 public:
  template <class Number>
  void number(Number value) {
    static_assert(std::is_arithmetic_v<Number>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void text(std::string_view text) {
    number(static_cast<std::uint32_t>(text.size()));
    bytes_.append(text);
  }
  template <class Number>
  void numbers(std::span<const Number> all) {
    bytes_.append(reinterpret_cast<const char*>(all.data()), all.size_bytes());
  }
  void count(std::size_t count) { number(static_cast<std::uint64_t>(count)); }
  std::string_view bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// What is read behind the end is 0, and good() is false from then on.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}

  template <class Number>
  Number number() {
    Number value{};
    const std::string_view from = take(sizeof(value));
    if (good_) std::memcpy(&value, from.data(), sizeof(value));
    return value;
  }
  std::string_view text() { return take(number<std::uint32_t>()); }
  template <class Number>
  std::vector<Number> numbers(std::size_t count) {
    const std::string_view from = take(count * sizeof(Number));
    std::vector<Number> all(from.size() / sizeof(Number));
    if (!all.empty()) std::memcpy(all.data(), from.data(), from.size());
    return all;
  }
  /// Of things of `least` bytes each.
  std::size_t count(std::size_t least) {
    const auto count = number<std::uint64_t>();
    if (count > bytes_.size() / least) good_ = false;
    return good_ ? static_cast<std::size_t>(count) : 0;
  }
  bool good() const { return good_; }
  std::string_view rest() const { return bytes_; }
  std::string_view take(std::size_t size) {
    if (size > bytes_.size()) good_ = false;
    if (!good_) return {};
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }

 private:
  std::string_view bytes_;
  bool good_ = true;
};

void add(const FileStamp& stamp, Writer& to) {
  to.number(stamp.inode);
  for (std::int64_t number : {stamp.bytes, stamp.modified_ns, stamp.changed_ns})
    to.number(number);
}

FileStamp next_stamp(Cursor& from) {
  FileStamp stamp;
  stamp.inode = from.number<std::uint64_t>();
  for (std::int64_t FileStamp::*number :
       {&FileStamp::bytes, &FileStamp::modified_ns, &FileStamp::changed_ns})
    stamp.*number = from.number<std::int64_t>();
  return stamp;
}

// A folder's modification time changes when a file is added, removed or renamed
// in it. So one stat() for each folder shows that names are still these;
// contents are not part of a listing.
std::optional<PictureFiles> parsed(std::string_view head,
                                   std::string_view names,
                                   const std::string& root) {
  Cursor from(head);
  PictureFiles files;
  files.root = from.text();
  if (files.root != root) return std::nullopt;
  files.version = from.text();
  files.unread = from.text();
  files.classes.resize(from.count(sizeof(std::uint32_t)));
  for (std::string& name : files.classes) name = from.text();
  for (std::size_t left = from.count(36); left > 0; --left) {
    const std::string folder(from.text());
    if (stamp_of(root + "/" + folder) != next_stamp(from)) return std::nullopt;
  }
  const std::size_t pictures = from.count(8);
  files.of_class = from.numbers<std::int32_t>(pictures);
  const auto sizes = from.numbers<std::uint32_t>(pictures);
  if (!from.good()) return std::nullopt;
  auto parts = std::make_shared<RowParts>();
  parts->add_single(names, sizes);
  files.names = std::move(parts);
  return files;
}

}  // namespace

std::optional<PictureFiles> kept_listing(const std::string& root,
                                         const Media& media) try {
  const fs::path path = file_of(root, media);
  std::error_code none;
  if (!fs::exists(path, none)) return std::nullopt;
  const std::unique_ptr<FileMapping> mapping = real_files().map(path);
  const std::span<const std::byte> all = mapping->bytes();
  const std::string_view bytes(reinterpret_cast<const char*>(all.data()),
                               all.size());
  if (!bytes.starts_with(kMagic)) return std::nullopt;
  Cursor before(bytes.substr(kMagic.size()));
  const std::size_t size = before.count(1);
  const auto hash_of_head = before.number<std::uint64_t>();
  const auto hash_of_names = before.number<std::uint64_t>();
  const std::string_view head = before.take(size);
  if (!before.good()) return std::nullopt;
  const std::string_view names = before.rest();
  if (hash64(head) != hash_of_head || hash64(names) != hash_of_names)
    return std::nullopt;
  std::optional<PictureFiles> files = parsed(head, names, root);
  if (files) files->media = &media;
  return files;
} catch (const Error&) {
  return std::nullopt;
}

void keep_listing(const PictureFiles& files,
                  const std::vector<FoundFolder>& folders,
                  std::int64_t began_ns) try {
  constexpr std::int64_t kSettled = 2'000'000'000;
  const bool settled = std::ranges::all_of(folders, [&](const auto& folder) {
    return folder.stamp.modified_ns < began_ns - kSettled;
  });
  if (!settled) return;
  Writer head;
  head.text(files.root);
  head.text(files.version);
  head.text(files.unread);
  head.count(files.classes.size());
  for (const std::string& name : files.classes) head.text(name);
  head.count(folders.size());
  for (const FoundFolder& folder : folders) {
    head.text(folder.name);
    add(folder.stamp, head);
  }
  head.count(files.size());
  head.numbers<std::int32_t>(files.of_class);
  for (std::size_t at = 0; at < files.size(); ++at)
    head.number(static_cast<std::uint32_t>(files.names->name(at).size()));
  const std::string_view names = files.names->names(0, files.size());
  Writer before;
  before.count(head.bytes().size());
  before.number(hash64(head.bytes()));
  before.number(hash64(names));
  const fs::path path = file_of(files.root, *files.media);
  real_files().make_folders(path.parent_path(), Readers::owner);
  drop_unused(path.parent_path());
  const std::unique_ptr<FileWriter> file =
      real_files().create(path, Readers::owner);
  for (std::string_view part : {kMagic, before.bytes(), head.bytes(), names})
    file->append(std::as_bytes(std::span(part)));
  file->commit(Lasting::later);
} catch (const Error& error) {
  log(LogLevel::info,
      std::string("the list of pictures is not kept: ") + error.what());
}

}  // namespace penstock::images
