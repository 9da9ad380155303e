#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
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
  /// Checks all but the arrays' contents. Throws Error(source), code
  /// store.unusable, with what is wrong; the file is never changed.
  Store(FileSystem& files, const std::filesystem::path& path);
  ~Store();

  const std::filesystem::path& path() const;
  const Json& about() const;
  bool has(std::string_view name) const;
  /// Throws Error(source), code store.unusable, where there is none of this
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
    bool is_checked(std::size_t block) const {
      return (checked_[block / 64].load(std::memory_order_relaxed) >>
                  (block % 64) &
              1) != 0;
    }
    void check_block(std::size_t block) const;

    std::string name_;
    std::string path_;
    std::size_t offset_ = 0;  // in the file
    std::span<const std::byte> bytes_;
    std::span<const std::uint64_t> hashes_;
    mutable std::vector<std::atomic<std::uint64_t>> checked_;  // a bit a block
    mutable std::atomic<std::size_t> unchecked_{0};            // blocks
  };
  const Array& find(std::string_view name) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock
