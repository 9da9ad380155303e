#include "penstock/sources/zarr/codecs.h"

#include <algorithm>
#include <cstring>
#include <memory>
#ifdef PENSTOCK_ZLIB
#include <zlib.h>
#endif
#ifdef PENSTOCK_ZSTD
#include <zstd.h>
#endif
#ifdef PENSTOCK_LZ4
#include <lz4.h>
#endif
#ifdef PENSTOCK_BLOSC
#include <blosc.h>
#endif

#include "penstock/base/crc32c.h"
#include "penstock/base/error.h"

namespace penstock::zarr {
namespace {

using Data = std::vector<std::byte>;

/// Between codecs there may be a checksum more than the chunk has bytes.
constexpr std::size_t kMore = 1024;
/// Of what may have any number of bytes.
constexpr std::size_t kMostUnknown = std::size_t{256} << 20;

/// What a codec may make.
struct Room {
  std::size_t most = 0;
  bool known = false;  ///< about so much is made
};

[[noreturn]] void fail(const std::string& place, const std::string& codec,
                       const std::string& why) {
  npy::damaged(place,
               "the chunk cannot be decompressed (" + codec + "): " + why);
}

[[noreturn]] [[maybe_unused]] void lack(const std::string& place,
                                        const std::string& codec,
                                        const std::string& package) {
  throw Error(ErrorKind::source,
              {.code = "arrays.type",
               .what = "cannot decompress a chunk of the array",
               .where = place,
               .why = "the chunk is compressed with " + codec +
                      ", and Penstock was built without its library",
               .next = "install the package " + package +
                       " and build Penstock again, or write the array with "
                       "another codec"});
}

#ifdef PENSTOCK_ZLIB
Data inflated(const Data& in, Room room, const std::string& place) {
  z_stream stream{};
  constexpr int kEither = 15 + 32;  // the headers of zlib and of gzip
  if (inflateInit2(&stream, kEither) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  Data out(room.known ? room.most : std::min(room.most, 4 * in.size() + kMore));
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  int state = inflate(&stream, Z_NO_FLUSH);
  while (state == Z_OK && stream.avail_out == 0 && out.size() < room.most) {
    const std::size_t made = out.size();
    out.resize(std::min(room.most, 2 * made));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + made);
    stream.avail_out = static_cast<uInt>(out.size() - made);
    state = inflate(&stream, Z_NO_FLUSH);
  }
  if (state != Z_STREAM_END)
    fail(place, "deflate",
         stream.avail_out == 0   ? "the data have more bytes than the chunk"
         : stream.msg != nullptr ? stream.msg
                                 : "the data are cut off");
  out.resize(out.size() - stream.avail_out);
  return out;
}
#else
Data inflated(const Data&, Room, const std::string& place) {
  lack(place, "deflate", "zlib1g-dev");
}
#endif

#ifdef PENSTOCK_ZSTD
/// What a frame says of its size may be missing, or damaged.
Data unzstd_piecewise(const Data& in, Room room, const std::string& place) {
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(
      ZSTD_createDCtx(), ZSTD_freeDCtx);
  if (context == nullptr) throw std::bad_alloc();
  Data out(std::min(room.most, 4 * in.size() + kMore));
  ZSTD_inBuffer from{in.data(), in.size(), 0};
  ZSTD_outBuffer to{out.data(), out.size(), 0};
  for (;;) {
    const std::size_t left = ZSTD_decompressStream(context.get(), &to, &from);
    if (ZSTD_isError(left) != 0) fail(place, "zstd", ZSTD_getErrorName(left));
    if (left == 0 && from.pos == from.size) break;
    if (to.pos < to.size) {
      if (from.pos == from.size) fail(place, "zstd", "the data are cut off");
      continue;
    }
    if (out.size() == room.most)
      fail(place, "zstd",
           "the data have more than " + std::to_string(room.most) + " bytes");
    out.resize(std::min(room.most, 2 * out.size()));
    to.dst = out.data();
    to.size = out.size();
  }
  out.resize(to.pos);
  return out;
}

Data unzstd(const Data& in, Room room, const std::string& place) {
  if (!room.known) return unzstd_piecewise(in, room, place);
  Data out(room.most);
  const std::size_t made =
      ZSTD_decompress(out.data(), out.size(), in.data(), in.size());
  if (ZSTD_isError(made) != 0) fail(place, "zstd", ZSTD_getErrorName(made));
  out.resize(made);
  return out;
}
#else
Data unzstd(const Data&, Room, const std::string& place) {
  lack(place, "zstd", "libzstd-dev");
}
#endif

#ifdef PENSTOCK_LZ4
/// numcodecs: the size, then one block.
Data unlz4(const Data& in, Room room, const std::string& place) {
  std::uint32_t size = 0;
  if (in.size() < sizeof(size)) fail(place, "lz4", "the data have no size");
  std::memcpy(&size, in.data(), sizeof(size));
  if (size > room.most)
    fail(place, "lz4", "the data have more bytes than the chunk");
  Data out(size);
  const int made = LZ4_decompress_safe(
      reinterpret_cast<const char*>(in.data()) + sizeof(size),
      reinterpret_cast<char*>(out.data()),
      static_cast<int>(in.size() - sizeof(size)), static_cast<int>(size));
  if (made != static_cast<int>(size))
    fail(place, "lz4", "the data are damaged");
  return out;
}
#else
Data unlz4(const Data&, Room, const std::string& place) {
  lack(place, "lz4", "liblz4-dev");
}
#endif

#ifdef PENSTOCK_BLOSC
Data unblosc(const Data& in, Room room, const std::string& place) {
  std::size_t size = 0;
  if (in.size() < BLOSC_MIN_HEADER_LENGTH ||
      blosc_cbuffer_validate(in.data(), in.size(), &size) < 0 ||
      size > room.most)
    fail(place, "blosc", "the header is damaged");
  Data out(size);
  const int made = blosc_decompress_ctx(in.data(), out.data(), out.size(), 1);
  if (made < 0 || static_cast<std::size_t>(made) != size)
    fail(place, "blosc", "the data are damaged");
  return out;
}
#else
Data unblosc(const Data&, Room, const std::string& place) {
  lack(place, "blosc", "libblosc-dev");
}
#endif

/// First the first bytes of all elements, then the second ones.
Data unshuffled(const Data& in, std::size_t element) {
  const std::size_t count = in.size() / element;
  Data out(in.size());
  for (std::size_t b = 0; b < element; ++b)
    for (std::size_t i = 0; i < count; ++i)
      out[i * element + b] = in[b * count + i];
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(count * element), in.end(),
            out.begin() + static_cast<std::ptrdiff_t>(count * element));
  return out;
}

// Zarr V3, codec "crc32c": four bytes, little-endian, behind those that they
// check.
Data checked_crc(Data in, const std::string& place) {
  std::uint32_t expected = 0;
  if (in.size() < sizeof(expected))
    fail(place, "crc32c", "the data are cut off");
  const std::size_t size = in.size() - sizeof(expected);
  std::memcpy(&expected, in.data() + size, sizeof(expected));
  in.resize(size);
  if (crc32c(in) != expected)
    fail(place, "crc32c", "the bytes do not match their checksum");
  return in;
}

// Codecs come in the order of decoding, the last one that encoded first. `room`
// bounds each of them: a few bytes may claim to be gigabytes.
Data undone(Data packed, const std::vector<Codec>& codecs, Room room,
            const std::string& place) {
  for (const Codec& codec : codecs) switch (codec.kind) {
      case Codec::Kind::gzip:
      case Codec::Kind::zlib:
        packed = inflated(packed, room, place);
        break;
      case Codec::Kind::zstd:
        packed = unzstd(packed, room, place);
        break;
      case Codec::Kind::lz4:
        packed = unlz4(packed, room, place);
        break;
      case Codec::Kind::blosc:
        packed = unblosc(packed, room, place);
        break;
      case Codec::Kind::crc32c:
        packed = checked_crc(std::move(packed), place);
        break;
      case Codec::Kind::shuffle:
        packed = unshuffled(packed, codec.element);
        break;
    }
  return packed;
}

}  // namespace

std::vector<std::byte> unpack(std::vector<std::byte> packed,
                              const std::vector<Codec>& codecs,
                              std::size_t bytes, const std::string& place) {
  packed = undone(std::move(packed), codecs,
                  {.most = bytes + kMore, .known = true}, place);
  if (packed.size() != bytes)
    npy::damaged(place, "a chunk has " + std::to_string(packed.size()) +
                            " bytes, expected " + std::to_string(bytes));
  return packed;
}

std::vector<std::byte> unpack_any(std::vector<std::byte> packed,
                                  const std::vector<Codec>& codecs,
                                  const std::string& place) {
  return undone(std::move(packed), codecs, {.most = kMostUnknown}, place);
}

}  // namespace penstock::zarr
