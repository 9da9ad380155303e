#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/file.h"
#include "penstock/base/json.h"

namespace penstock {

/// Named arrays of bytes in one sealed file, with a document about them.
///
/// The format, version 1, in the byte order of its machine: the arrays, each at
/// a multiple of 4,096 bytes; the hashes of all blocks of 64 KiB of all arrays
/// in their order, 8 bytes each; the directory, JSON: "about", "arrays" with
/// "name", "offset", "bytes", "hashes"; and 64 bytes that end the file:
/// "PENSTORE", uint32 version, uint32 0x01020304, then as uint64 the file's
/// size, the offset and the size of the directory, its hash, the hash of all
/// hashes, and the hash of the 56 bytes before. Hashes are hash64.
inline constexpr std::uint32_t kStoreVersion = 1;
inline constexpr std::size_t kStoreBlock = std::size_t{64} << 10;  ///< bytes

/// Writes a store. Where it is not sealed, nothing is left. One thread's.
class StoreWriter {
 public:
  /// Throws Error(request) where the file cannot be made.
  StoreWriter(FileSystem& files, const std::filesystem::path& path);
  ~StoreWriter();
  /// The next array. Names differ.
  void begin(std::string name);
  /// Adds to the array that was begun. Throws Error(request).
  void append(std::span<const std::byte> bytes);
  /// Ends the file, which is then there as a whole. Throws Error(request).
  void seal(const Json& about, Lasting lasting = Lasting::now);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A sealed store, mapped: its pages are shared with other processes.
/// Thread-safe.
class Store {
 public:
  /// Makes bytes of an array of the store again, those from `begin` on; what it
  /// throws says why that cannot be. Called by one thread at a time. It may
  /// read other arrays of the store, which are then made again first where they
  /// are damaged.
  using Remake =
      std::function<void(const Store& store, const std::string& array,
                         std::size_t begin, std::span<std::byte> out)>;

  /// Checks all but the arrays' contents. Throws Error(source), code
  /// store.unusable, with what is wrong; the file is never changed.
  Store(FileSystem& files, const std::filesystem::path& path);
  ~Store();

  const std::filesystem::path& path() const;
  const Json& about() const;
  bool has(std::string_view name) const;
  /// Throws Error(source), code store.unusable, if none exists of this
  /// name. What it holds is not checked.
  std::span<const std::byte> array(std::string_view name) const;
  /// Compares the blocks that hold bytes [begin, end) of an array with their
  /// hashes, each once. Throws Error(source), code store.damaged, with the
  /// first byte of the block.
  void check(std::string_view name, std::size_t begin, std::size_t end) const;
  /// The array, checked as a whole.
  std::span<const std::byte> checked(std::string_view name) const;
  /// All arrays, whether they have been checked before or not.
  void check_all() const;
  std::size_t bytes() const;

  /// From here on a damaged block is no error: it is made again, its hash is
  /// compared, and the whole file is written again and renamed over the old
  /// one, whose mappings in other processes stay unchanged. Said once in the
  /// log. If it cannot be made again, or is not what it was, the error of
  /// check() says why, or it is Error(source) files.changed. Before threads
  /// read.
  void repair_with(Remake remake) const;

  /// What a caller compares before and after it has used bytes that were
  /// checked: if the number differs, some of them may have been zeros, since
  /// the file was cut off meanwhile or the drive failed. After a change all
  /// blocks are checked again.
  std::int64_t losses() const;

  /// One array, for a caller that checks often.
  class Array {
   public:
    std::span<const std::byte> bytes() const { return bytes_; }
    /// As Store::check.
    void check(std::size_t begin, std::size_t end) const {
      if (begin >= end || all_checked()) return;
      for (std::size_t block = begin / kStoreBlock;
           block <= (end - 1) / kStoreBlock; ++block)
        if (!is_checked(block)) check_block(block);
    }

    /// Nothing is left to compare. From any thread, and for each batch.
    bool all_checked() const {
      return unchecked_.load(std::memory_order_relaxed) == 0;
    }

   private:
    friend class Store;
    bool is_intact(std::size_t block) const;
    std::span<const std::byte> block_at(std::size_t block) const;
    void forget_checks() const;
    bool is_checked(std::size_t block) const {
      return (checked_[block / 64].load(std::memory_order_relaxed) >>
                  (block % 64) &
              1) != 0;
    }
    void check_block(std::size_t block) const;

    const Store* store_ = nullptr;
    std::string name_;
    std::size_t offset_ = 0;  // in the file
    std::span<const std::byte> bytes_;
    std::vector<std::uint64_t> hashes_;  // apart from what may be damaged
    mutable std::vector<std::atomic<std::uint64_t>> checked_;  // a bit a block
    mutable std::atomic<std::size_t> unchecked_{0};            // blocks
  };
  const Array& find(std::string_view name) const;

 private:
  void repair(const Array& array, std::size_t block) const;
  void remake(const Array& array, std::size_t block) const;
  void write_anew() const;

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock
