#include "penstock/sources/hdf5/kept_index.h"

#include <sys/file.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <span>
#include <string_view>

#include "penstock/base/cache_folder.h"
#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/base/file.h"
#include "penstock/base/hash.h"
#include "penstock/base/log.h"
#include "penstock/sources/files/open_file.h"

// The file: a Head; the number of chunks of each data set that has some,
// uint64; all chunks; which version of which file it is; the JSON. An index is
// kept in the user's cache folder, so that a start over thousands of files asks
// no process. It is only ever used for the very file that it was made of: the
// name of the cache file is the hash of the path, and the text inside repeats
// the version of Penstock, the path, and the stamp of the file (made of its
// inode, size and times). A hash over all of it turns a torn write into a miss.

namespace penstock::hdf5 {
namespace {

namespace fs = std::filesystem;

/// Another one where what the index program sends means something else.
constexpr std::uint64_t kMagic = 0x3349'3548'534e'4550;  // "PENSH5I3"
constexpr std::size_t kLeastKept = 64 << 10;

struct Head {
  std::uint64_t magic;
  std::uint64_t hash;  ///< of all that follows this number
  std::uint64_t sets, version_bytes;
};
static_assert(sizeof(Head) == 32);

std::string whole_path(const files::DataFile& file) {
  std::error_code none;
  return fs::absolute(file.path, none).lexically_normal().string();
}

fs::path place_of(const files::DataFile& file) {
  Sha256 hash;
  hash.add(whole_path(file));
  return cache_folder() / "indexes" / (hash.hex() + ".hdf5");
}

std::string version_of(const files::DataFile& file) {
  FileStamps stamp;
  stamp.add(file.stamp);
  return PENSTOCK_VERSION "\n" + whole_path(file) + '\n' + stamp.hex();
}

/// libhdf5 locks what it writes.
bool can_be_read(const files::DataFile& file) {
  const Descriptor opened = files::open_file(file.path);
  return opened && (::flock(opened.number(), LOCK_SH | LOCK_NB) == 0 ||
                    errno != EWOULDBLOCK);
}

// Times of files have the granularity of the kernel's clock tick, or worse on
// network disks. A file that was written within the last two seconds may be
// written once more and keep the same stamp, so its index is not kept yet (Git
// calls such an entry "racily clean").
bool settled(const files::DataFile& file) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return file.changed_ns < nanoseconds_of(now) - 2'000'000'000;
}

template <class Value>
std::string_view characters_of(std::span<const Value> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

/// Takes values from the front of `bytes`; none where there are fewer.
template <class Value>
std::vector<Value> take(std::string_view& bytes, std::uint64_t count) {
  if (count > bytes.size() / sizeof(Value)) return {};
  std::vector<Value> values(count);
  if (count > 0)
    std::memcpy(values.data(), bytes.data(), count * sizeof(Value));
  bytes.remove_prefix(count * sizeof(Value));
  return values;
}

std::optional<SentIndex> parsed(std::string_view bytes,
                                const std::string& version) {
  constexpr std::size_t kHashed = offsetof(Head, sets);
  Head head{};
  if (bytes.size() < sizeof(head)) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof(head));
  if (head.magic != kMagic || head.hash != hash64(bytes.substr(kHashed)))
    return std::nullopt;
  bytes.remove_prefix(sizeof(head));
  SentIndex sent;
  for (std::uint64_t count : take<std::uint64_t>(bytes, head.sets))
    sent.chunks.emplace_back(count);
  for (std::vector<ChunkPlace>& places : sent.chunks)
    places = take<ChunkPlace>(bytes, places.size());
  if (bytes.substr(0, head.version_bytes) != version) return std::nullopt;
  sent.json = bytes.substr(version.size());
  return sent;
}

}  // namespace

std::optional<SentIndex> kept_index(const files::DataFile& file) try {
  const fs::path path = place_of(file);
  std::error_code none;
  if (!fs::exists(path, none) || !can_be_read(file)) return std::nullopt;
  const std::unique_ptr<FileMapping> mapping = real_files().map(path);
  const std::span<const std::byte> bytes = mapping->bytes();
  return parsed(characters_of(bytes), version_of(file));
} catch (const Error&) {
  return std::nullopt;
}

void keep_index(const files::DataFile& file, const SentIndex& sent) try {
  std::vector<std::uint64_t> numbers = {sent.chunks.size(), 0};
  std::size_t bytes = sent.json.size();
  for (const std::vector<ChunkPlace>& places : sent.chunks) {
    numbers.push_back(places.size());
    bytes += places.size() * sizeof(ChunkPlace);
  }
  if (bytes < kLeastKept || !settled(file)) return;
  const std::string version = version_of(file);
  numbers[1] = version.size();
  std::string hashed(characters_of(std::span<const std::uint64_t>(numbers)));
  for (const std::vector<ChunkPlace>& places : sent.chunks)
    hashed += characters_of(std::span<const ChunkPlace>(places));
  hashed += version + sent.json;
  const std::uint64_t front[] = {kMagic, hash64(hashed)};
  const fs::path path = place_of(file);
  real_files().make_folders(path.parent_path(), Readers::owner);
  drop_unused(path.parent_path());
  real_files().write(
      path,
      std::string(characters_of(std::span<const std::uint64_t>(front))) +
          hashed,
      Lasting::later, Readers::owner);
} catch (const Error& error) {
  log(LogLevel::info,
      std::string("the index of a file is not kept: ") + error.what());
}

}  // namespace penstock::hdf5
