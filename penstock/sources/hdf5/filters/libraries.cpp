#include <algorithm>
#include <cstring>

#include "penstock/sources/hdf5/filters/steps.h"
#ifdef PENSTOCK_LZ4
#include <lz4.h>
#endif
#ifdef PENSTOCK_BLOSC
#include <blosc.h>
#endif
#ifdef PENSTOCK_ZSTD
#include <zstd.h>
#endif

// What other libraries undo. A plugin that was built without one of them has
// refused such chunks when the source was opened.
namespace penstock::hdf5 {

#ifdef PENSTOCK_LZ4
bool has_lz4() { return true; }
bool block_of_lz4(In in, std::span<std::byte> out) {
  constexpr std::size_t kMost = LZ4_MAX_INPUT_SIZE;
  if (in.size() > kMost || out.size() > kMost) return false;
  return LZ4_decompress_safe(
             reinterpret_cast<const char*>(in.data()),
             reinterpret_cast<char*>(out.data()), static_cast<int>(in.size()),
             static_cast<int>(out.size())) == static_cast<int>(out.size());
}
#else
bool has_lz4() { return false; }
bool block_of_lz4(In, std::span<std::byte>) { return false; }
#endif

#ifdef PENSTOCK_ZSTD
bool has_zstd() { return true; }
bool frame_of_zstd(In in, std::span<std::byte> out) {
  return ZSTD_decompress(out.data(), out.size(), in.data(), in.size()) ==
         out.size();
}
std::string undo_zstd(In in, std::size_t most, Bytes& out) {
  const unsigned long long size =
      ZSTD_getFrameContentSize(in.data(), in.size());
  constexpr const char* kFault = "its bytes are not valid Zstandard data";
  if (size == ZSTD_CONTENTSIZE_ERROR ||
      (size != ZSTD_CONTENTSIZE_UNKNOWN && size > most))
    return kFault;
  out.resize(size == ZSTD_CONTENTSIZE_UNKNOWN ? most
                                              : static_cast<std::size_t>(size));
  const std::size_t got = ZSTD_decompress(out.mutable_data<std::byte>(),
                                          out.size(), in.data(), in.size());
  if (ZSTD_isError(got)) return kFault;
  out.resize(got);
  return {};
}
#else
bool has_zstd() { return false; }
bool frame_of_zstd(In, std::span<std::byte>) { return false; }
std::string undo_zstd(In, std::size_t, Bytes&) { return "no Zstandard"; }
#endif

#ifdef PENSTOCK_BLOSC
bool has_blosc() { return true; }
// A Blosc buffer describes itself in its first 16 bytes (width, block size,
// inner codec, sizes), so the client values of the filter are not needed.
std::string undo_blosc(In in, std::size_t most, Bytes& out) {
  constexpr const char* kFault = "its bytes are not valid Blosc data";
  std::size_t size = 0;
  if (in.size() < BLOSC_MIN_HEADER_LENGTH ||
      blosc_cbuffer_validate(in.data(), in.size(), &size) < 0 || size > most)
    return kFault;
  out.resize(size);
  // With a context of its own: the other functions take one lock.
  if (blosc_decompress_ctx(in.data(), out.mutable_data<std::byte>(), size, 1) !=
      static_cast<int>(size))
    return kFault;
  return {};
}
#else
bool has_blosc() { return false; }
std::string undo_blosc(In, std::size_t, Bytes&) { return "no Blosc"; }
#endif

// The filter's own frame (id 32004; not that of the lz4 tool): the size of the
// chunk (8 bytes) and of a block (4), then for each block its stored size (4)
// and its bytes. All numbers are big-endian, and the last block is shorter.
std::string undo_lz4(In in, std::size_t most, Bytes& out) {
  constexpr const char* kFault = "its bytes are not valid LZ4 data";
  if (in.size() < 12) return kFault;
  const std::uint64_t size = big_endian(in.data(), 8);
  const auto block = static_cast<std::size_t>(big_endian(in.data() + 8, 4));
  if (size > most || block == 0) return kFault;
  out.resize(static_cast<std::size_t>(size));
  auto* to = out.mutable_data<std::byte>();
  std::size_t at = 12;
  for (std::size_t filled = 0; filled < size;) {
    if (in.size() - at < 4) return kFault;
    const auto stored = static_cast<std::size_t>(big_endian(in.data() + at, 4));
    at += 4;
    const std::size_t bytes =
        std::min(block, static_cast<std::size_t>(size) - filled);
    if (stored > in.size() - at) return kFault;
    // A block that did not become smaller is stored unchanged.
    if (stored == bytes)
      std::memcpy(to + filled, in.data() + at, bytes);
    else if (!block_of_lz4(in.subspan(at, stored), {to + filled, bytes}))
      return kFault;
    at += stored;
    filled += bytes;
  }
  return {};
}

}  // namespace penstock::hdf5
