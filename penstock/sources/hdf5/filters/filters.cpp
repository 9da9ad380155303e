#include "penstock/sources/hdf5/filters/filters.h"

#include <libdeflate.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "penstock/sources/hdf5/filters/steps.h"

namespace penstock::hdf5 {
namespace {

enum Id : int {
  kDeflate = 1,
  kShuffle = 2,
  kFletcher32 = 3,
  kLzf = 32000,
  kBlosc = 32001,
  kLz4 = 32004,
  kBitshuffle = 32008,
  kZstd = 32015,
};

/// Names by the registry of the HDF Group, of those that are met most. Ids
/// below 256 are reserved for libhdf5's own.
constexpr std::pair<int, const char*> kNames[] = {
    {1, "deflate"},   {2, "shuffle"},        {3, "fletcher32"},
    {4, "szip"},      {5, "nbit"},           {6, "scaleoffset"},
    {305, "LZO"},     {307, "bzip2"},        {32000, "lzf"},
    {32001, "blosc"}, {32002, "mafisc"},     {32003, "snappy"},
    {32004, "lz4"},   {32008, "bitshuffle"}, {32013, "zfp"},
    {32015, "zstd"},  {32017, "sz"},         {32018, "fcidecomp"},
    {32019, "jpeg"},  {32024, "sz3"},        {32026, "blosc2"}};

/// The bytes of a value that take_together() knows; 0: it does not.
std::size_t width_apart(const Filter& filter, std::size_t bytes) {
  const std::size_t width =
      filter.id != kShuffle || filter.values.empty() ? 0 : filter.values[0];
  return (width == 2 || width == 4 || width == 8) && bytes % width == 0 ? width
                                                                        : 0;
}

std::string shown(const Filter& filter) {
  std::string name;
  for (const auto& [id, known] : kNames)
    if (id == filter.id) name = known;
  if (name.empty()) name = filter.name;
  return "filter " + std::to_string(filter.id) +
         (name.empty() ? "" : " (" + name + ")");
}

/// The package that a build needs for it; empty: none is missing.
std::string missing_package(const Filter& filter) {
  const std::uint32_t inside =
      filter.id == kBitshuffle && filter.values.size() > 4 ? filter.values[4]
                                                           : 0;
  if ((filter.id == kLz4 || inside == 2) && !has_lz4()) return "liblz4-dev";
  if ((filter.id == kZstd || inside == 3) && !has_zstd()) return "libzstd-dev";
  if (filter.id == kBlosc && !has_blosc()) return "libblosc-dev";
  return {};
}

bool is_known(const Filter& filter) {
  for (int id : {kDeflate, kShuffle, kFletcher32, kLzf, kBlosc, kLz4,
                 kBitshuffle, kZstd})
    if (filter.id == id) return true;
  return false;
}

}  // namespace

FilterFault fault_of(const std::vector<Filter>& filters) {
  for (const Filter& filter : filters) {
    if (!is_known(filter))
      return {"its chunks use " + shown(filter) + ", which is not supported",
              "write the file with another filter: h5repack -f GZIP=4 OLD NEW, "
              "with the plugin of the present filter in HDF5_PLUGIN_PATH (pip "
              "install hdf5plugin has most of them)"};
    if (std::string package = missing_package(filter); !package.empty())
      return {"its chunks use " + shown(filter) +
                  ", but Penstock was built without its library",
              "install " + package + " and build again"};
  }
  return {};
}

struct ChunkDecoder::State {
  struct Free {
    void operator()(libdeflate_decompressor* one) const {
      libdeflate_free_decompressor(one);
    }
  };
  std::unique_ptr<libdeflate_decompressor, Free> inflater;
  Bytes buffers[2];

  /// How many bytes came out; nullopt: `in` is damaged, or holds more.
  std::optional<std::size_t> inflate(In in, std::byte* out, std::size_t most) {
    if (inflater == nullptr) {
      inflater.reset(libdeflate_alloc_decompressor());
      if (inflater == nullptr) throw std::bad_alloc();
    }
    std::size_t got = 0;
    if (libdeflate_zlib_decompress(inflater.get(), in.data(), in.size(), out,
                                   most, &got) != LIBDEFLATE_SUCCESS)
      return std::nullopt;
    return got;
  }

  /// The last step, where it can write the chunk in its place.
  bool undo_into(const Filter& filter, In in, std::span<std::byte> out) {
    if (filter.id == kShuffle && in.size() == out.size()) {
      undo_shuffle(in, filter, out.data());
      return true;
    }
    return filter.id == kDeflate &&
           inflate(in, out.data(), out.size()) == out.size();
  }

  std::string undo(const Filter& filter, In in, std::size_t most, Bytes& out) {
    switch (filter.id) {
      case kDeflate: {
        out.resize(most);
        const std::optional<std::size_t> got =
            inflate(in, out.mutable_data<std::byte>(), most);
        if (!got) return "its bytes are not valid deflate data";
        out.resize(*got);
        return {};
      }
      case kShuffle:
        out.resize(in.size());
        undo_shuffle(in, filter, out.mutable_data<std::byte>());
        return {};
      case kFletcher32:
        return undo_fletcher32(in, out);
      case kLzf:
        return undo_lzf(in, most, out);
      case kBlosc:
        return undo_blosc(in, most, out);
      case kLz4:
        return undo_lz4(in, most, out);
      case kBitshuffle:
        return undo_bitshuffle(in, filter, most, out);
      case kZstd:
        return undo_zstd(in, most, out);
      default:
        return "its " + shown(filter) + " is not supported";
    }
  }
};

ChunkDecoder::ChunkDecoder() : state_(std::make_unique<State>()) {}
ChunkDecoder::~ChunkDecoder() = default;

// Filters are undone from the last one to the first (HDF5 File Format
// Specification 3.0, IV.A.2.l). `last` is the index of the filter that is
// undone last, the first one that was applied: it writes straight into `out`
// where it can, and all others alternate between two buffers, so that a filter
// never reads the buffer that it writes. With `apart` a shuffle in that place
// is left to the caller, and `last` moves on to the next filter in the list.
//
// `most` bounds the output of each step, whatever the stream claims: a step
// that wants more is damaged, or meant to exhaust memory.
std::string ChunkDecoder::decode(const std::vector<Filter>& filters,
                                 std::uint32_t skipped, In stored,
                                 std::span<std::byte> out, std::size_t* apart) {
  // Between two filters there may be a checksum of four bytes more, each.
  const std::size_t most = out.size() + 4 * filters.size();
  In now = stored;
  std::size_t buffer = 0;
  auto is_skipped = [&](std::size_t at) {
    return at < 32 && (skipped >> at & 1) != 0;
  };
  std::size_t last = 0;
  auto find_last = [&] {
    while (last < filters.size() && is_skipped(last)) ++last;
  };
  find_last();
  if (apart != nullptr) {
    *apart = last < filters.size() ? width_apart(filters[last], out.size()) : 0;
    if (*apart > 0) {
      ++last;
      find_last();
    }
  }
  for (std::size_t at = filters.size(); at-- > last;) {
    if (is_skipped(at)) continue;
    if (at == last && state_->undo_into(filters[at], now, out)) return {};
    Bytes& to = state_->buffers[buffer];
    std::string why = state_->undo(filters[at], now, most, to);
    if (!why.empty()) return why;
    now = to.span();
    buffer = 1 - buffer;
  }
  if (now.size() != out.size())
    return "the chunk has " + std::to_string(now.size()) + " bytes, but " +
           std::to_string(out.size()) + " are expected";
  if (!out.empty()) std::memcpy(out.data(), now.data(), out.size());
  return {};
}

}  // namespace penstock::hdf5
