#include "penstock/sources/images/listing.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <type_traits>

#include "penstock/base/cache_folder.h"
#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/base/file.h"
#include "penstock/base/hash.h"
#include "penstock/base/log.h"

// The file: kMagic, a hash64 of all that follows, then numbers as the machine
// has them, and texts as their length, uint32, and their bytes:
//   root, version, bytes of all pictures (int64);
//   number of classes (uint64), each a text;
//   number of folders, each a text and its time (int64);
//   number of pictures, each a text, class (int32), bytes and time (int64).

namespace penstock::images {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "PENSTLS1";
constexpr std::size_t kHead = kMagic.size() + sizeof(std::uint64_t);

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
  void count(std::size_t count) { number(static_cast<std::uint64_t>(count)); }
  const std::string& bytes() const { return bytes_; }

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
  /// Of things of `least` bytes each.
  std::size_t count(std::size_t least) {
    const auto count = number<std::uint64_t>();
    if (count > bytes_.size() / least) good_ = false;
    return good_ ? static_cast<std::size_t>(count) : 0;
  }
  bool good() const { return good_; }

 private:
  std::string_view take(std::size_t size) {
    if (size > bytes_.size()) good_ = false;
    if (!good_) return {};
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }

  std::string_view bytes_;
  bool good_ = true;
};

bool unchanged(const std::string& path, std::int64_t changed_ns) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
         nanoseconds_of(found.st_mtim) == changed_ns;
}

std::optional<PictureFiles> parsed(std::string_view bytes,
                                   const std::string& root) {
  Cursor from(bytes);
  PictureFiles files;
  files.kept = true;
  files.root = from.text();
  if (files.root != root) return std::nullopt;
  files.version = from.text();
  files.bytes = from.number<std::int64_t>();
  files.classes.resize(from.count(sizeof(std::uint32_t)));
  for (std::string& name : files.classes) name = from.text();
  for (std::size_t left = from.count(12); left > 0; --left) {
    const std::string folder(from.text());
    if (!unchanged(root + "/" + folder, from.number<std::int64_t>()))
      return std::nullopt;
  }
  const std::size_t pictures = from.count(24);
  files.names.resize(pictures);
  files.places.resize(pictures);
  for (std::size_t at = 0; at < pictures; ++at) {
    files.names[at] = {.name = std::string(from.text()),
                       .end = static_cast<std::int64_t>(at) + 1};
    PicturePlace& place = files.places[at];
    place.of_class = from.number<std::int32_t>();
    place.bytes = from.number<std::int64_t>();
    place.changed_ns = from.number<std::int64_t>();
  }
  if (!from.good()) return std::nullopt;
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
  if (bytes.size() < kHead || !bytes.starts_with(kMagic)) return std::nullopt;
  std::uint64_t hash = 0;
  std::memcpy(&hash, bytes.data() + kMagic.size(), sizeof(hash));
  const std::string_view rest = bytes.substr(kHead);
  if (hash64(rest) != hash) return std::nullopt;
  std::optional<PictureFiles> files = parsed(rest, root);
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
    return folder.changed_ns < began_ns - kSettled;
  });
  if (!settled) return;
  Writer to;
  to.text(files.root);
  to.text(files.version);
  to.number(files.bytes);
  to.count(files.classes.size());
  for (const std::string& name : files.classes) to.text(name);
  to.count(folders.size());
  for (const FoundFolder& folder : folders) {
    to.text(folder.name);
    to.number(folder.changed_ns);
  }
  to.count(files.names.size());
  for (std::size_t at = 0; at < files.names.size(); ++at) {
    const PicturePlace& place = files.places[at];
    to.text(files.names[at].name);
    to.number(place.of_class);
    to.number(place.bytes);
    to.number(place.changed_ns);
  }
  Writer head;
  head.number(hash64(to.bytes()));
  const fs::path path = file_of(files.root, *files.media);
  real_files().make_folders(path.parent_path());
  real_files().write_atomic(path,
                            std::string(kMagic) + head.bytes() + to.bytes());
} catch (const Error& error) {
  log(LogLevel::info,
      std::string("the list of pictures is not kept: ") + error.what());
}

void forget_listing(const std::string& root, const Media& media) {
  std::error_code none;
  fs::remove(file_of(root, media), none);
}

}  // namespace penstock::images
