#include "penstock/sources/tfrecord/unpacked.h"

#include <algorithm>
#include <memory>
#ifdef PENSTOCK_ZLIB
#include <zlib.h>
#endif

#include "penstock/base/error.h"

namespace penstock::tfrecord {
namespace {

[[noreturn]] void refuse(const std::string& path, std::string why,
                         std::string next) {
  throw Error(ErrorKind::source, {.code = "tfrecord.packed",
                                  .what = "cannot unpack the file",
                                  .where = path,
                                  .why = std::move(why),
                                  .next = std::move(next)});
}

}  // namespace

// RFC 1952, 2.3.1: gzip begins with 1F 8B. RFC 1950, 2.2: zlib begins with 78
// and a byte that makes both, read big-endian, a multiple of 31. No record is
// taken for either, since its CRC is looked at first.
bool is_packed(std::span<const std::byte> file) {
  if (file.size() < 2) return false;
  const auto first = std::to_integer<unsigned>(file[0]);
  const auto second = std::to_integer<unsigned>(file[1]);
  const bool gzip = first == 0x1F && second == 0x8B;
  const bool zlib = first == 0x78 && (first << 8 | second) % 31 == 0;
  return gzip || zlib;
}

#ifdef PENSTOCK_ZLIB
namespace {

constexpr std::size_t kMost = std::size_t{1} << 30;
constexpr std::size_t kStep = std::size_t{4} << 20;  // between looks at `stop`

[[noreturn]] void damaged(const std::string& path, std::size_t at,
                          const std::string& why) {
  throw Error(ErrorKind::source,
              {.code = "files.damaged",
               .what = "cannot unpack the file",
               .where = path + ", byte " + std::to_string(at),
               .why = why,
               .next = "get an intact copy of the file"});
}

}  // namespace

// A file may hold several streams of gzip, one after the other.
std::vector<std::byte> unpacked(std::span<const std::byte> file,
                                const std::string& path, StopFlag stop) {
  z_stream stream{};
  constexpr int kEither = 15 + 32;  // the headers of zlib and of gzip
  if (inflateInit2(&stream, kEither) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> ended(&stream,
                                                            inflateEnd);
  std::vector<std::byte> out;
  std::size_t taken = 0, made = 0;
  for (bool done = false; !done;) {
    end_if_stopped(stop);
    if (made == out.size()) {
      if (made == kMost)
        refuse(
            path, "the unpacked data have more than 1 GiB",
            "write the file without compression, or as several smaller files");
      out.resize(std::min(kMost, std::max(kStep, 2 * made)));
    }
    const std::size_t in = std::min(file.size() - taken, kStep);
    const std::size_t room = std::min(out.size() - made, kStep);
    stream.next_in =
        reinterpret_cast<Bytef*>(const_cast<std::byte*>(file.data() + taken));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + made);
    stream.avail_out = static_cast<uInt>(room);
    const int state = inflate(&stream, Z_NO_FLUSH);
    taken += in - stream.avail_in;
    made += room - stream.avail_out;
    if (state == Z_STREAM_END) {
      // Zeros may fill up a block of what it was kept on, as of tapes.
      done = std::ranges::all_of(file.subspan(taken), [](std::byte byte) {
        return byte == std::byte{0};
      });
      if (!done) inflateReset(&stream);
    } else if (state != Z_OK && state != Z_BUF_ERROR) {
      damaged(
          path, taken,
          std::string("the file is not a gzip stream: ") +
              (stream.msg == nullptr ? "the data are damaged" : stream.msg));
    } else if (taken == file.size() && stream.avail_out > 0) {
      damaged(path, taken, "the file ends within a gzip stream");
    }
  }
  out.resize(made);
  return out;
}
#else
std::vector<std::byte> unpacked(std::span<const std::byte>,
                                const std::string& path, StopFlag) {
  refuse(path, "the file is compressed, but this build has no zlib",
         "install zlib1g-dev and build Penstock again, or write the file "
         "without compression");
}
#endif

}  // namespace penstock::tfrecord
