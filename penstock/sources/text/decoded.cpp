#include "penstock/sources/text/decoded.h"

#include <iconv.h>
#include <zlib.h>
#ifdef PENSTOCK_ZSTD
#include <zstd.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "penstock/base/ascii.h"
#include "penstock/base/error.h"

namespace penstock::text {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 18;

[[noreturn]] void damaged(const files::DataFile& file, std::int64_t offset,
                          const std::string& why) {
  throw Error(ErrorKind::source,
              {.code = "files.damaged",
               .what = "cannot decompress the file",
               .where = file.path + ", byte " + std::to_string(offset),
               .why = why,
               .next = "get an intact copy of the file"});
}

/// Reads a file from its start, piece by piece.
class Pieces {
 public:
  explicit Pieces(const files::InputFile& input)
      : input_(input), piece_(kPiece) {}

  /// Empty: the end.
  std::span<const char> next() {
    const std::size_t got = input_.read(offset_, piece_);
    offset_ += static_cast<std::int64_t>(got);
    return std::span(piece_).first(got);
  }
  std::int64_t offset() const { return offset_; }

 private:
  const files::InputFile& input_;
  std::vector<char> piece_;
  std::int64_t offset_ = 0;
};

/// Between two members: whether nothing but padding is left of this input.
/// Tapes and some programs fill up blocks with zeros, which gzip(1) passes
/// over, too.
bool padding_left(z_stream& stream, bool after_member) {
  while (after_member && stream.avail_in > 0 && *stream.next_in == 0) {
    ++stream.next_in;
    --stream.avail_in;
  }
  return stream.avail_in == 0;
}

// A .gz file may hold several streams, one after the other. RFC 1952, section
// 2.2: members simply follow each other, without an index. Nor can inflation
// begin in the middle of one, as a block may refer to the 32 KiB before it. So
// compressed files cannot be read by position: they are unpacked once, from the
// start.
void unpack_gzip(const files::DataFile& file, Pieces& pieces,
                 const ByteSink& sink) {
  z_stream stream{};
  constexpr int kGzip = 15 + 16;  // the largest window, with gzip's header
  if (inflateInit2(&stream, kGzip) != Z_OK) throw std::bad_alloc();
  std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  std::vector<char> out(kPiece);
  int status = Z_STREAM_END;
  bool after_member = false;
  for (std::span<const char> in; !(in = pieces.next()).empty();) {
    stream.next_in =
        const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data()));
    stream.avail_in = static_cast<uInt>(in.size());
    while (stream.avail_in > 0 || stream.avail_out == 0) {
      if (status == Z_STREAM_END) {
        if (padding_left(stream, after_member)) break;
        inflateReset(&stream);
      }
      stream.next_out = reinterpret_cast<Bytef*>(out.data());
      stream.avail_out = static_cast<uInt>(out.size());
      status = inflate(&stream, Z_NO_FLUSH);
      if (status == Z_BUF_ERROR) break;  // it needs more
      if (status != Z_OK && status != Z_STREAM_END)
        damaged(file, pieces.offset() - stream.avail_in,
                stream.msg == nullptr ? "the data are not a gzip stream"
                                      : stream.msg);
      sink(std::span(out).first(out.size() - stream.avail_out));
      after_member = true;
    }
  }
  if (status != Z_STREAM_END)
    damaged(file, pieces.offset(), "the file ends within a gzip stream");
}

#ifdef PENSTOCK_ZSTD
// RFC 8878: frames follow each other, too, and skippable ones are passed over
// by the library. ZSTD_decompressStream returns 0 when a frame is complete and
// has been handed out; output that fills the buffer may have more behind it,
// though no input is left.
void unpack_zstd(const files::DataFile& file, Pieces& pieces,
                 const ByteSink& sink) {
  std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(
      ZSTD_createDCtx(), ZSTD_freeDCtx);
  if (context == nullptr) throw std::bad_alloc();
  std::vector<char> out(kPiece);
  std::size_t left = 0;
  for (std::span<const char> in; !(in = pieces.next()).empty();) {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    bool full = false;
    while (from.pos < from.size || full) {
      ZSTD_outBuffer to{out.data(), out.size(), 0};
      left = ZSTD_decompressStream(context.get(), &to, &from);
      if (ZSTD_isError(left))
        damaged(
            file,
            pieces.offset() - static_cast<std::int64_t>(from.size - from.pos),
            ZSTD_getErrorName(left));
      sink(std::span(out).first(to.pos));
      full = to.pos == to.size;
    }
  }
  if (left != 0)
    damaged(file, pieces.offset(), "the file ends within a zstd frame");
}
#else
void unpack_zstd(const files::DataFile& file, Pieces&, const ByteSink&) {
  throw Error(ErrorKind::source,
              {.code = "files.unreadable",
               .what = "cannot decompress the file",
               .where = file.path,
               .why = "this program was built without zstd",
               .next = "install libzstd-dev and build again, or use gzip"});
}
#endif

}  // namespace

bool is_compressed(const files::DataFile& file) {
  std::string name = ascii_lower(file.path);
  return name.ends_with(".gz") || name.ends_with(".zst");
}

void unpack(const files::DataFile& file, const files::InputFile& input,
            const ByteSink& sink) {
  Pieces pieces(input);
  std::string name = ascii_lower(file.path);
  if (name.ends_with(".gz")) return unpack_gzip(file, pieces, sink);
  if (name.ends_with(".zst")) return unpack_zstd(file, pieces, sink);
  for (std::span<const char> in; !(in = pieces.next()).empty();) sink(in);
}

bool is_plain(const std::string& encoding) {
  const std::string name = ascii_lower(encoding);
  return name == "utf-8" || name == "utf8" || name == "ascii" ||
         name == "us-ascii" || name == "utf-8-sig";
}

Transcoder::Transcoder(const files::DataFile& file, const std::string& encoding,
                       ByteSink sink)
    : file_(file),
      encoding_(encoding),
      sink_(std::move(sink)),
      converter_(iconv_open("UTF-8", encoding.c_str())) {
  if (converter_ == reinterpret_cast<void*>(-1))
    throw Error(ErrorKind::request,
                {.code = "source.encoding",
                 .what = "cannot read text in the encoding '" + encoding + "'",
                 .where = "source.encoding",
                 .why = "iconv does not know this encoding",
                 .next = "name an encoding that 'iconv -l' lists, such as "
                         "\"latin1\", \"cp1252\" or \"utf-16\""});
}

Transcoder::~Transcoder() { iconv_close(converter_); }

void Transcoder::refuse(std::size_t at) const {
  throw Error(ErrorKind::source,
              {.code = "files.encoding",
               .what = "cannot read the file as text",
               .where = file_.path + ", byte " + std::to_string(taken_ + at),
               .why = "the bytes are not a character of the encoding '" +
                      encoding_ + "'",
               .next = "name its encoding as source.encoding"});
}

// A piece may end within a character: iconv then stops before it (EINVAL), and
// its bytes stay in `left_` for the next call. EILSEQ is a byte that no further
// input could make right.
void Transcoder::take(std::span<const char> bytes) {
  left_.append(bytes.data(), bytes.size());
  std::vector<char> out(kPiece);
  char* from = left_.data();
  std::size_t size = left_.size();
  for (bool more = true; more;) {
    char* to = out.data();
    std::size_t room = out.size();
    more = iconv(converter_, &from, &size, &to, &room) ==
               static_cast<std::size_t>(-1) &&
           errno == E2BIG;
    const int reason = errno;
    sink_(std::span(out).first(out.size() - room));
    if (!more && size > 0 && reason == EILSEQ)
      refuse(static_cast<std::size_t>(from - left_.data()));
  }
  taken_ += left_.size() - size;
  left_.erase(0, left_.size() - size);
}

void Transcoder::finish() {
  if (!left_.empty()) refuse(0);
}

}  // namespace penstock::text
