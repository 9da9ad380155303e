#include "penstock/cache/store.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/hash.h"
#include "penstock/base/held_memory.h"
#include "penstock/base/log.h"

// A store is written from front to end under another name and gets its own when
// it is sealed, so that a file of that name is whole. It is read through a
// mapping. What is small (footer, directory, hashes, the gaps between arrays)
// is checked when it is opened; of the arrays each block is compared with its
// hash when it is first used.
//
// Thread-safe without a lock: a block's bit in `checked_` is set after its hash
// was right, `unchecked_` counts those that are not set. Threads that meet at
// one block may both compare it; the one that sets the bit counts it. Relaxed
// order is enough, because the bytes themselves never change, but for blocks
// that are repaired: these are not checked until they are.
//
// A repair patches the mapping in place, so that pointers into it stay good,
// and then writes a file with the same arrays. Its lock is recursive: making
// rows again may find that the keys, which it needs, are damaged, too.

namespace penstock {
namespace {

constexpr std::size_t kAlign = 4096;
constexpr std::string_view kMagic = "PENSTORE";
constexpr std::uint32_t kByteOrder = 0x01020304;

/// The end of the file. Numbers have the byte order of the machine that wrote
/// them, which `byte_order` shows, and the parts of a store are:
///   arrays     each from a multiple of 4096 on, zeros in the gaps
///   hashes     u64 for each block of kStoreBlock bytes, array by array
///   directory  JSON: what it is about; each array's name, place and hashes
///   footer     64 bytes, written last
/// The footer's own hash covers its other 56 bytes, and it holds the hashes of
/// the directory and of all hashes: no part is read before what checks it.
struct Footer {
  char magic[8];
  std::uint32_t version;
  std::uint32_t byte_order;
  std::uint64_t size;
  std::uint64_t directory;
  std::uint64_t directory_bytes;
  std::uint64_t directory_hash;
  std::uint64_t hashes_hash;
  std::uint64_t hash;

  std::uint64_t own_hash() const {
    return hash64(std::as_bytes(std::span(this, 1)).first(56));
  }
};
static_assert(sizeof(Footer) == 64);

std::size_t blocks_in(std::size_t bytes) {
  return (bytes + kStoreBlock - 1) / kStoreBlock;
}

[[noreturn]] void refuse(const std::filesystem::path& path, std::string why) {
  throw Error(
      ErrorKind::source,
      {.code = "store.unusable",
       .what = "cannot use the store",
       .where = path.string(),
       .why = std::move(why),
       .next =
           "remove the file: the store is then made again from the source"});
}

}  // namespace

namespace {

/// How mapped bytes will be read. Of other memory the system refuses it, which
/// does no harm.
void advise(std::span<const std::byte> bytes, int advice) {
  ::madvise(const_cast<std::byte*>(bytes.data()), bytes.size(), advice);
}

}  // namespace

struct StoreWriter::State {
  std::unique_ptr<FileWriter> file;
  std::uint64_t size = 0;
  struct Array {
    std::string name;
    std::uint64_t offset, bytes, hashes;  // hashes: those before its own
  };
  std::vector<Array> arrays;
  std::vector<std::uint64_t> hashes;
  std::vector<std::byte> block;  // of the array at hand, not yet written

  void write(std::span<const std::byte> bytes) {
    file->append(bytes);
    size += bytes.size();
  }
  void end_block() {
    if (block.empty()) return;
    hashes.push_back(hash64(block));
    write(block);
    block.clear();
  }
  void align() {
    static constexpr std::byte kZeros[kAlign] = {};
    write(std::span(kZeros).first((kAlign - size % kAlign) % kAlign));
  }
};

StoreWriter::StoreWriter(FileSystem& files, const std::filesystem::path& path)
    : state_(std::make_unique<State>()) {
  state_->file = files.create(path, Readers::owner);
  state_->block.reserve(kStoreBlock);
}
StoreWriter::~StoreWriter() = default;

void StoreWriter::begin(std::string name) {
  State& s = *state_;
  s.end_block();
  s.align();
  s.arrays.push_back({std::move(name), s.size, 0, s.hashes.size()});
}

void StoreWriter::append(std::span<const std::byte> bytes) {
  State& s = *state_;
  PENSTOCK_ASSERT(!s.arrays.empty(), "an array has been begun");
  s.arrays.back().bytes += bytes.size();
  while (!bytes.empty()) {
    if (s.block.empty() && bytes.size() >= kStoreBlock) {
      const std::size_t whole = bytes.size() / kStoreBlock * kStoreBlock;
      for (std::size_t at = 0; at < whole; at += kStoreBlock)
        s.hashes.push_back(hash64(bytes.subspan(at, kStoreBlock)));
      s.write(bytes.first(whole));
      bytes = bytes.subspan(whole);
      continue;
    }
    std::size_t part = std::min(bytes.size(), kStoreBlock - s.block.size());
    s.block.insert(s.block.end(), bytes.begin(),
                   bytes.begin() + static_cast<std::ptrdiff_t>(part));
    bytes = bytes.subspan(part);
    if (s.block.size() == kStoreBlock) s.end_block();
  }
}

void StoreWriter::seal(const Json& about, Lasting lasting) {
  State& s = *state_;
  s.end_block();
  s.align();
  const std::span<const std::byte> hashes = std::as_bytes(std::span(s.hashes));
  Json directory;
  directory["about"] = about;
  directory["arrays"] = Json(Json::Array{});
  for (const State::Array& array : s.arrays) {
    Json entry;
    entry["name"] = array.name;
    entry["offset"] = array.offset;
    entry["bytes"] = array.bytes;
    entry["hashes"] = s.size + array.hashes * sizeof(std::uint64_t);
    directory["arrays"].push_back(std::move(entry));
  }
  s.write(hashes);
  const std::string text = directory.dump();
  Footer footer{.magic = {},
                .version = kStoreVersion,
                .byte_order = kByteOrder,
                .size = s.size + text.size() + sizeof(Footer),
                .directory = s.size,
                .directory_bytes = text.size(),
                .directory_hash = hash64(text),
                .hashes_hash = hash64(hashes),
                .hash = 0};
  std::ranges::copy(kMagic, footer.magic);
  footer.hash = footer.own_hash();
  s.write(std::as_bytes(std::span(text)));
  s.write(std::as_bytes(std::span(&footer, 1)));
  s.file->commit(lasting);
}

struct Store::State {
  FileSystem& files;
  std::filesystem::path path;
  std::unique_ptr<FileMapping> file = nullptr;
  MemoryCharge charge = {};
  Json about = {};
  std::vector<std::unique_ptr<Array>> arrays = {};

  std::recursive_mutex repairing = {};
  Remake remake = nullptr;
  bool at_work = false;  // in repair(), which may come to call itself
  std::atomic<std::int64_t> known_losses{0};
};

namespace {

/// The end of the file, which says that the rest is there. What is wrong is
/// found from what it says first: another version is not damage.
Footer footer_of(std::span<const std::byte> file,
                 const std::filesystem::path& path) {
  Footer footer;
  if (file.size() < sizeof(footer))
    refuse(path, "the file has " + std::to_string(file.size()) +
                     " bytes, fewer than the shortest store");
  std::memcpy(&footer, file.last(sizeof(footer)).data(), sizeof(footer));
  if (std::string_view(footer.magic, kMagic.size()) != kMagic)
    refuse(path, "the last 64 bytes are not those of a store");
  if (footer.byte_order == __builtin_bswap32(kByteOrder))
    refuse(path, "the file was written on a machine with another byte order");
  if (footer.hash == footer.own_hash() && footer.version != kStoreVersion)
    refuse(path, "found format version " + std::to_string(footer.version) +
                     ", expected " + std::to_string(kStoreVersion));
  if (footer.hash != footer.own_hash())
    refuse(path, "the last 64 bytes are damaged");
  if (footer.size != file.size())
    refuse(path, "found " + std::to_string(file.size()) + " bytes, expected " +
                     std::to_string(footer.size));
  return footer;
}

}  // namespace

Store::Store(FileSystem& files, const std::filesystem::path& path)
    : state_(new State{files, path}) {
  State& s = *state_;
  s.file = files.map(path);
  const std::span<const std::byte> file = s.file->bytes();
  s.charge = MemoryCharge(HeldFor::rows, HeldIn::files, file.size());
  // Rows are read in random order: pages around them would push others out.
  advise(file, MADV_RANDOM);
  const Footer footer = footer_of(file, path);
  // The footer is whole, so its numbers are those that were written.
  const std::span<const std::byte> text =
      file.subspan(footer.directory, footer.directory_bytes);
  if (hash64(text) != footer.directory_hash)
    refuse(path, "the index of the store is damaged");
  Json directory = Json::parse(
      {reinterpret_cast<const char*>(text.data()), text.size()}, path.string());
  s.about = directory["about"];
  std::size_t first_hash = footer.directory, end = 0;
  auto check_gap = [&](std::size_t next) {
    if (next < end || next > footer.directory)
      refuse(path,
             "the arrays of the store are not where its index places them");
    auto gap = file.subspan(end, next - end);
    if (std::ranges::count(gap, std::byte(0)) != std::ssize(gap))
      refuse(path,
             "the bytes before byte " + std::to_string(next) + " are damaged");
  };
  for (const Json& entry : directory["arrays"].array()) {
    auto number = [&](const char* key) {
      return static_cast<std::size_t>(entry.find(key)->integer());
    };
    auto array = std::make_unique<Array>();
    array->name_ = entry.find("name")->string();
    array->store_ = this;
    array->offset_ = number("offset");
    check_gap(array->offset_);
    end = array->offset_ + number("bytes");
    array->bytes_ = file.subspan(array->offset_, number("bytes"));
    std::size_t blocks = blocks_in(array->bytes_.size());
    array->hashes_.resize(blocks);
    if (blocks > 0)
      std::memcpy(array->hashes_.data(), file.data() + number("hashes"),
                  blocks * sizeof(std::uint64_t));
    array->checked_ =
        std::vector<std::atomic<std::uint64_t>>((blocks + 63) / 64);
    array->unchecked_ = blocks;
    first_hash = std::min(first_hash, number("hashes"));
    s.arrays.push_back(std::move(array));
  }
  check_gap(first_hash);
  if (hash64(file.subspan(first_hash, footer.directory - first_hash)) !=
      footer.hashes_hash)
    refuse(path, "the hashes of the store are damaged");
}

Store::~Store() = default;

const std::filesystem::path& Store::path() const { return state_->path; }
const Json& Store::about() const { return state_->about; }
std::size_t Store::bytes() const { return state_->file->bytes().size(); }

bool Store::has(std::string_view name) const {
  return std::ranges::any_of(
      state_->arrays, [&](const auto& array) { return array->name_ == name; });
}

const Store::Array& Store::find(std::string_view name) const {
  for (const std::unique_ptr<Array>& array : state_->arrays)
    if (array->name_ == name) return *array;
  refuse(state_->path, "the store has no array '" + std::string(name) + "'");
}

std::span<const std::byte> Store::array(std::string_view name) const {
  return find(name).bytes();
}

void Store::check(std::string_view name, std::size_t begin,
                  std::size_t end) const {
  find(name).check(begin, end);
}

std::span<const std::byte> Store::checked(std::string_view name) const {
  const Array& array = find(name);
  array.check(0, array.bytes().size());
  return array.bytes();
}

void Store::repair_with(Remake remake) const {
  state_->remake = std::move(remake);
}

// A page that was lost reads as zeros, so blocks that were checked before may
// be wrong now: all checks are forgotten, and then the new count is published.
// A thread that sees the new count therefore checks again.
std::int64_t Store::losses() const {
  State& s = *state_;
  const std::int64_t lost = s.file->lost_pages();
  if (lost == s.known_losses.load(std::memory_order_acquire)) return lost;
  const std::lock_guard lock(s.repairing);
  for (const std::unique_ptr<Array>& array : s.arrays) array->forget_checks();
  s.known_losses.store(lost, std::memory_order_release);
  return lost;
}

namespace {

Error damage(const std::filesystem::path& path, const std::string& array,
             std::size_t at, std::size_t bytes, const std::string& why_not) {
  return Error(
      ErrorKind::source,
      {.code = "store.damaged",
       .what = "a store is damaged",
       .where = path.string() + ":" + std::to_string(at),
       .why = "these " + std::to_string(bytes) + " bytes of '" + array +
              "' do not have the hash that was written" +
              (why_not.empty() ? std::string()
                               : ", and cannot be made again: " + why_not),
       .next = "remove the file, so that the store is made again from the "
               "source; and check the disk"});
}

}  // namespace

void Store::repair(const Array& array, std::size_t block) const {
  State& s = *state_;
  const std::lock_guard lock(s.repairing);
  if (array.is_intact(block)) return;  // another thread has repaired it
  if (s.at_work) return remake(array, block);
  s.at_work = true;
  const std::shared_ptr<void> done(nullptr, [&s](void*) { s.at_work = false; });
  remake(array, block);
  log(LogLevel::warning,
      "the store " + s.path.string() + " is damaged at byte " +
          std::to_string(array.offset_ + block * kStoreBlock) +
          ": it is repaired from the source and the run continues; check the "
          "disk");
  write_anew();
}

void Store::remake(const Array& array, std::size_t block) const {
  State& s = *state_;
  const std::size_t begin = block * kStoreBlock;
  std::vector<std::byte> made(array.block_at(block).size());
  auto damaged = [&](const std::string& why_not) {
    return damage(s.path, array.name_, array.offset_ + begin, made.size(),
                  why_not);
  };
  if (s.remake == nullptr) throw damaged({});
  try {
    s.remake(*this, array.name_, begin, made);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::source ||
        error.parts().code == "files.changed")
      throw;
    throw damaged(error.what());
  }
  if (hash64(made) != array.hashes_[block])
    throw Error(
        ErrorKind::source,
        {.code = "files.changed",
         .what = "cannot repair a damaged store",
         .where = s.path.string() + ":" + std::to_string(array.offset_ + begin),
         .why = "the rows of the source are not those that were stored",
         .next = "start again, which prepares the rows again"});
  s.file->patch(array.offset_ + begin, made);
}

/// Blocks that nobody has read yet are repaired on the way. Where the file
/// cannot be written, this process continues with what it has repaired in
/// memory.
void Store::write_anew() const {
  State& s = *state_;
  try {
    StoreWriter writer(s.files, s.path);
    for (const std::unique_ptr<Array>& array : s.arrays) {
      writer.begin(array->name_);
      for (std::size_t block = 0; block < array->hashes_.size(); ++block) {
        if (!array->is_intact(block)) remake(*array, block);
        writer.append(array->block_at(block));
      }
    }
    writer.seal(s.about);
  } catch (const Error& error) {
    log(LogLevel::warning,
        "the repaired store cannot be written: " + std::string(error.what()));
  }
}

void Store::check_all() const {
  for (const std::unique_ptr<Array>& array : state_->arrays)
    for (std::size_t block = 0; block < array->hashes_.size(); ++block)
      array->check_block(block);
}

std::span<const std::byte> Store::Array::block_at(std::size_t block) const {
  const std::size_t begin = block * kStoreBlock;
  return bytes_.subspan(begin, std::min(kStoreBlock, bytes_.size() - begin));
}

bool Store::Array::is_intact(std::size_t block) const {
  // Arrays and blocks begin at a page. The whole is read at once.
  advise(block_at(block), MADV_WILLNEED);
  return hash64(block_at(block)) == hashes_[block];
}

void Store::Array::forget_checks() const {
  for (std::atomic<std::uint64_t>& bits : checked_) {
    const std::uint64_t known = bits.exchange(0, std::memory_order_relaxed);
    unchecked_.fetch_add(static_cast<std::size_t>(std::popcount(known)),
                         std::memory_order_relaxed);
  }
}

void Store::Array::check_block(std::size_t block) const {
  if (!is_intact(block)) store_->repair(*this, block);
  const std::uint64_t bit = std::uint64_t{1} << (block % 64);
  if ((checked_[block / 64].fetch_or(bit, std::memory_order_relaxed) & bit) ==
      0)
    unchecked_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace penstock
