#include "penstock/sources/hdf5/global_heap.h"

#include <algorithm>
#include <cstring>

// A collection, by "HDF5 File Format Specification 3.0", III.E. Numbers are
// little-endian; of files with addresses that are not of 8 bytes the index
// program refuses values of variable length.
//
//   0   "GCOL"   4   version   5   three reserved bytes
//   8   size of the collection with this head, 8 bytes
//   16  objects, one after the other, each of them
//         0  number, 2 bytes     2  reference count, 2 bytes
//         4  reserved            8  size of the data without this head, 8 bytes
//         16 the data, filled up to a multiple of 8 bytes
//
// Object 0 is the free space at the end. Its size includes its own head, unlike
// that of all others, so the walk must stop there and not skip over it.
//
// A value of variable length is 16 bytes in the rows of a data set: the number
// of elements (4), the address of the collection (8), the number of the object
// (4). Addresses count from the base address of the superblock, not from the
// first byte of the file.
namespace penstock::hdf5 {
namespace {

constexpr std::size_t kHeapsKept = 32;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
constexpr std::size_t kHead = 16;  // of a collection, and of an object

std::uint64_t little_endian(const char* at, int bytes) {
  std::uint64_t number = 0;
  for (int i = bytes; i-- > 0;)
    number = number << 8 | static_cast<unsigned char>(at[i]);
  return number;
}

}  // namespace

// Checks each number before it is used as an offset, so that a damaged heap is
// a message and never a read outside `to.bytes`. `objects` stays sparse: an
// object that was deleted leaves its number unused, and its entry is of 0
// bytes.
std::string GlobalHeap::load(const IndexedFile& file, std::uint64_t address,
                             Collection& to) {
  const auto end = static_cast<std::uint64_t>(file.data.bytes);
  const std::uint64_t base = static_cast<std::uint64_t>(file.index.base);
  const std::string fault =
      "the heap at byte " + std::to_string(address) + " is damaged";
  if (address > end || address + base + kHead > end) return fault;
  const auto at = static_cast<std::int64_t>(address + base);
  char head[kHead];
  std::string why = reader_.read_bytes(file, at, head);
  if (!why.empty()) return why;
  const std::uint64_t size = little_endian(head + 8, 8);
  if (std::memcmp(head, "GCOL", 4) != 0 || size < kHead || size > kMostBytes ||
      size > end - address - base)
    return fault;
  to.bytes.resize(static_cast<std::size_t>(size));
  why = reader_.read_bytes(file, at, to.bytes);
  if (!why.empty()) return why;
  for (std::size_t place = kHead; to.bytes.size() - place >= kHead;) {
    const auto number =
        static_cast<std::size_t>(little_endian(to.bytes.data() + place, 2));
    const std::uint64_t length = little_endian(to.bytes.data() + place + 8, 8);
    place += kHead;
    if (number == 0) break;  // what is left is free
    if (length > to.bytes.size() - place) return fault;
    if (to.objects.size() <= number) to.objects.resize(number + 1);
    to.objects[number] = {place, static_cast<std::size_t>(length)};
    place += std::min(static_cast<std::size_t>((length + 7) / 8 * 8),
                      to.bytes.size() - place);
  }
  return {};
}

std::string GlobalHeap::find(const IndexedFile& file,
                             const std::byte* reference, std::int64_t width,
                             std::span<const char>& out) {
  const char* at = reinterpret_cast<const char*>(reference);
  const std::uint64_t length = little_endian(at, 4);
  const std::uint64_t address = little_endian(at + 4, 8);
  const auto number = static_cast<std::size_t>(little_endian(at + 12, 4));
  out = {};
  if (length == 0 || address == 0) return {};
  auto found = std::ranges::find_if(kept_, [&](const Collection& one) {
    return one.file == &file && one.address == address;
  });
  if (found == kept_.end()) {
    Collection loaded{
        .file = &file, .address = address, .bytes = {}, .objects = {}};
    std::string why = load(file, address, loaded);
    if (!why.empty()) return why;
    if (kept_.size() == kHeapsKept) kept_.pop_back();
    kept_.push_front(std::move(loaded));
    found = kept_.begin();
  } else if (found != kept_.begin()) {
    kept_.splice(kept_.begin(), kept_, found);
  }
  const std::uint64_t bytes = length * static_cast<std::uint64_t>(width);
  if (number >= found->objects.size() || number == 0 ||
      found->objects[number].second < bytes)
    return "the heap at byte " + std::to_string(address) + " has no value " +
           std::to_string(number) + " of " + std::to_string(bytes) + " bytes";
  out = {found->bytes.data() + found->objects[number].first,
         static_cast<std::size_t>(bytes)};
  return {};
}

}  // namespace penstock::hdf5
