#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/sources/hdf5/raw_rows.h"

namespace penstock::hdf5 {

/// Values of variable length, which lie in heaps of the file ("Global Heap
/// Collection", HDF5 File Format Specification 3.0, III.E). Belongs to one
/// thread at a time.
class GlobalHeap {
 public:
  explicit GlobalHeap(RawReader& reader) : reader_(reader) {}

  /// What a reference of 16 bytes refers to: its length in elements of `width`
  /// bytes, an address, a number there. What is wrong; empty: nothing. The
  /// bytes are valid until the next call.
  std::string find(const IndexedFile& file, const std::byte* reference,
                   std::int64_t width, std::span<const char>& out);

 private:
  struct Collection {
    const IndexedFile* file;
    std::uint64_t address;
    std::string bytes;
    /// By number: where it begins, and how long it is.
    std::vector<std::pair<std::size_t, std::size_t>> objects;
  };
  std::string load(const IndexedFile& file, std::uint64_t address,
                   Collection& to);

  RawReader& reader_;
  std::list<Collection> kept_;  // the last one used first
};

}  // namespace penstock::hdf5
