#include "penstock/sources/npy/zip.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

#include "penstock/base/error.h"
#ifdef PENSTOCK_ZLIB
#include <zlib.h>
#endif

namespace penstock::npy {
namespace {

constexpr std::uint32_t kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                        kLocator64 = 0x07064b50, kCentral = 0x02014b50,
                        kLocal = 0x04034b50;
constexpr std::uint32_t kIn64 = 0xffffffffU;
constexpr std::size_t kLeastHeader = 12;  // of a .npy file, in bytes

/// Numbers of an archive, little-endian, each checked to lie within it.
class Archive {
 public:
  Archive(std::span<const std::byte> bytes, const std::string& path)
      : bytes_(bytes), path_(path) {}

  template <class Number>
  Number at(std::uint64_t place) const {
    Number number{};
    std::memcpy(&number, part(place, sizeof(number)).data(), sizeof(number));
    return number;
  }
  std::span<const std::byte> part(std::uint64_t place,
                                  std::uint64_t size) const {
    if (place > bytes_.size() || size > bytes_.size() - place)
      fail("the zip directory lists " + std::to_string(size) +
           " bytes from byte " + std::to_string(place) +
           " on, but the file has only " + std::to_string(bytes_.size()) +
           " bytes");
    return bytes_.subspan(static_cast<std::size_t>(place),
                          static_cast<std::size_t>(size));
  }
  std::string text(std::uint64_t place, std::uint64_t size) const {
    const auto found = part(place, size);
    return {reinterpret_cast<const char*>(found.data()), found.size()};
  }
  std::size_t size() const { return bytes_.size(); }
  [[noreturn]] void fail(std::string why) const {
    damaged(path_, std::move(why));
  }

 private:
  const std::span<const std::byte> bytes_;
  const std::string& path_;
};

/// Where the record stands that ends an archive: behind it there is only a
/// remark of at most 64 KiB. Found from the end backwards, as the comment
/// behind the record has any length.
std::uint64_t find_end(const Archive& archive) {
  constexpr std::size_t kRecord = 22, kRemark = 65535;
  if (archive.size() < kRecord) archive.fail("the file is not a .zip file");
  const std::size_t last = archive.size() - kRecord;
  for (std::size_t back = 0; back <= std::min(last, kRemark); ++back)
    if (archive.at<std::uint32_t>(last - back) == kEnd) return last - back;
  archive.fail(
      "the directory of the .zip file is missing; the file may be cut off");
}

/// What the extra field of a member says in 64 bits, in the order in which the
/// record says that it does not know. APPNOTE.TXT, 4.5.3 (header id 1): size,
/// packed size and offset, in this order, each only if the record has
/// 0xffffffff in its place.
void read_extra64(const Archive& archive, std::uint64_t extra,
                  std::uint64_t size, std::uint64_t* fields[3]) {
  for (std::uint64_t at = extra; at + 4 <= extra + size;) {
    const auto id = archive.at<std::uint16_t>(at);
    const auto length = archive.at<std::uint16_t>(at + 2);
    if (id == 1) {
      std::uint64_t place = at + 4;
      for (int f = 0; f < 3; ++f)
        if (*fields[f] == kIn64 && place + 8 <= at + 4 + length) {
          *fields[f] = archive.at<std::uint64_t>(place);
          place += 8;
        }
      return;
    }
    at += 4U + length;
  }
}

// A record of the central directory (APPNOTE.TXT, 4.3.12), by offset:
//   8   flags (bit 0: encrypted)     10  method (0: stored, 8: deflate)
//   16  CRC-32                       20  packed size      24  size
//   28  length of the name           30  of the extra field
//   32  of the comment               42  offset of the local header
//   46  name, extra field, comment
// Sizes are taken from here and not from the local header (4.3.7), where they
// are zero if the writer did not know them yet. The lengths of name and extra
// field may differ in the local header, so the data's begin is computed by
// those.
ZipMember read_member(const Archive& archive, std::uint64_t at,
                      const std::string& path) {
  ZipMember member;
  const auto flags = archive.at<std::uint16_t>(at + 8);
  const auto method = archive.at<std::uint16_t>(at + 10);
  member.crc = archive.at<std::uint32_t>(at + 16);
  std::uint64_t packed = archive.at<std::uint32_t>(at + 20);
  std::uint64_t bytes = archive.at<std::uint32_t>(at + 24);
  const auto name = archive.at<std::uint16_t>(at + 28);
  const auto extra = archive.at<std::uint16_t>(at + 30);
  std::uint64_t local = archive.at<std::uint32_t>(at + 42);
  member.name = archive.text(at + 46, name);
  if (std::ranges::any_of(member.name,
                          [](char c) { return c >= 0 && c < ' '; }))
    archive.fail("the name of a member at byte " + std::to_string(at) +
                 " has invalid characters");
  std::uint64_t* fields[3] = {&bytes, &packed, &local};
  read_extra64(archive, at + 46 + name, extra, fields);
  if ((flags & 1U) != 0)
    files::refuse_array(path, member.name, "this member is encrypted");
  if (method != 0 && method != 8)
    files::refuse_array(path, member.name,
                        "this member is compressed by method " +
                            std::to_string(method) + ", expected deflate");
  if (archive.at<std::uint32_t>(local) != kLocal)
    archive.fail("there is no member at byte " + std::to_string(local));
  const std::uint64_t begin = local + 30 +
                              archive.at<std::uint16_t>(local + 26) +
                              archive.at<std::uint16_t>(local + 28);
  archive.part(begin, packed);
  member.deflated = method == 8;
  // Deflate makes at most 1032 bytes of one.
  const bool possible =
      member.deflated ? bytes / 1032 <= packed + 1 : bytes == packed;
  if (!possible)
    archive.fail("member '" + member.name + "' declares " +
                 std::to_string(bytes) + " bytes, compressed to " +
                 std::to_string(packed));
  member.begin = static_cast<std::size_t>(begin);
  member.packed = static_cast<std::size_t>(packed);
  member.bytes = static_cast<std::size_t>(bytes);
  return member;
}

#ifdef PENSTOCK_ZLIB
/// Refuses a member of which other bytes came than were written.
void check_whole(std::size_t made, uLong crc, const std::string& why,
                 const ZipMember& member, const std::string& place) {
  if (!why.empty()) damaged(place, why);
  if (made != member.bytes)
    damaged(place, "the member has " + std::to_string(made) +
                       " bytes, expected " + std::to_string(member.bytes));
  if (crc != member.crc)
    damaged(place, "the bytes of the member do not match their checksum (CRC)");
}

/// A state of unpacking, and how many bytes came before it. Deflate has no
/// index, but the state of inflation is a window of 32 KiB and a few numbers:
/// inflateCopy() saves it, and inflation may later begin there. A mark costs
/// about 40 KiB, which bounds all of them by some ten megabytes.
class Inflation {
 public:
  explicit Inflation(std::span<const std::byte> packed) : packed_(packed) {
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  Inflation(const Inflation& other)
      : packed_(other.packed_), in_(other.in_), made_(other.made_) {
    auto* from = const_cast<z_stream*>(&other.stream_);
    if (inflateCopy(&stream_, from) != Z_OK) throw std::bad_alloc();
  }
  Inflation& operator=(const Inflation&) = delete;
  ~Inflation() { inflateEnd(&stream_); }

  std::size_t made() const { return made_; }
  /// Why no more bytes come than have come; empty: they may.
  const std::string& why() const { return why_; }

  /// The next bytes; how many of them came.
  std::size_t next(std::span<std::byte> to) {
    constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
    std::size_t came = 0;
    while (came < to.size() && !ended_ && why_.empty()) {
      const std::size_t give = std::min(packed_.size() - in_, kMost);
      const std::size_t room = std::min(to.size() - came, kMost);
      stream_.next_in = reinterpret_cast<Bytef*>(
          const_cast<std::byte*>(packed_.data() + in_));
      stream_.avail_in = static_cast<uInt>(give);
      stream_.next_out = reinterpret_cast<Bytef*>(to.data() + came);
      stream_.avail_out = static_cast<uInt>(room);
      const int status = inflate(&stream_, Z_NO_FLUSH);
      in_ += give - stream_.avail_in;
      came += room - stream_.avail_out;
      ended_ = status == Z_STREAM_END;
      if (status != Z_OK && !ended_)
        why_ = std::string("the member cannot be decompressed: ") +
               (stream_.msg == nullptr ? "the data are cut off" : stream_.msg);
    }
    made_ += came;
    return came;
  }

 private:
  std::span<const std::byte> packed_;
  std::size_t in_ = 0, made_ = 0;
  bool ended_ = false;
  std::string why_;
  z_stream stream_{};
};

/// Fills `out`; how many bytes came, and why no more.
std::size_t inflate_into(std::span<const std::byte> packed, std::byte* out,
                         std::size_t size, const std::string&,
                         std::string& why) {
  Inflation inflation(packed);
  const std::size_t made = inflation.next({out, size});
  why = inflation.why();
  return made;
}

constexpr std::size_t kLeastApart = std::size_t{1} << 20, kMostMarks = 256;
constexpr std::size_t kPiece = std::size_t{256} << 10;

/// States of unpacking a member, evenly apart.
struct Marks {
  std::size_t apart = 0;
  std::vector<std::unique_ptr<const Inflation>> at;
};

/// Unpacks all of a member to find its marks. Invariant: at[i] is the state
/// after just i * apart bytes, so the pieces that are unpacked end at each
/// mark. A mark is made before its piece, hence one for 0.
Marks find_marks(std::span<const std::byte> packed, const ZipMember& member,
                 const std::string& place) {
  Marks marks{.apart = std::max(kLeastApart, member.bytes / kMostMarks + 1)};
  Inflation inflation(packed);
  std::vector<std::byte> piece(kPiece);
  uLong crc = crc32_z(0, nullptr, 0);
  for (std::size_t came = 1; came > 0 && inflation.made() < member.bytes;) {
    if (inflation.made() == marks.apart * marks.at.size())
      marks.at.push_back(std::make_unique<const Inflation>(inflation));
    const std::size_t most =
        std::min({kPiece, member.bytes - inflation.made(),
                  marks.apart * marks.at.size() - inflation.made()});
    came = inflation.next(std::span(piece).first(most));
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(piece.data()), came);
  }
  check_whole(inflation.made(), crc, inflation.why(), member, place);
  return marks;
}

class MarkedReader final : public PieceReader {
 public:
  MarkedReader(std::shared_ptr<const Marks> marks, std::string place)
      : marks_(std::move(marks)), place_(std::move(place)) {}

  // Rows mostly come in order: the state continues from where it is, unless
  // `begin` lies before it or a mark lies between both. So a read inflates at
  // most `apart` bytes that are not wanted.
  void read(std::size_t begin, std::span<std::byte> to) override {
    if (to.empty()) return;
    const std::size_t mark = begin / marks_->apart;
    if (inflation_ == nullptr || begin < inflation_->made() ||
        inflation_->made() < mark * marks_->apart)
      inflation_ = std::make_unique<Inflation>(*marks_->at.at(mark));
    std::vector<std::byte> skipped(
        std::min(kPiece, begin - inflation_->made()));
    while (inflation_->made() < begin)
      take(std::span(skipped).first(
          std::min(skipped.size(), begin - inflation_->made())));
    take(to);
  }

 private:
  void take(std::span<std::byte> to) {
    if (inflation_->next(to) == to.size()) return;
    inflation_.reset();
    damaged(place_, "the file has changed since it was opened");
  }

  const std::shared_ptr<const Marks> marks_;
  const std::string place_;
  std::unique_ptr<Inflation> inflation_;
};
#else
std::size_t inflate_into(std::span<const std::byte>, std::byte*, std::size_t,
                         const std::string& place, std::string&) {
  files::refuse_array(
      place, place,
      "the member is compressed, but this build has no zlib (zlib1g-dev)");
}
#endif

}  // namespace

std::vector<ZipMember> zip_members(std::span<const std::byte> bytes,
                                   const std::string& path) {
  const Archive archive(bytes, path);
  const std::uint64_t end = find_end(archive);
  std::uint64_t count = archive.at<std::uint16_t>(end + 10);
  std::uint64_t at = archive.at<std::uint32_t>(end + 16);
  if (end >= 20 && archive.at<std::uint32_t>(end - 20) == kLocator64) {
    const auto end64 = archive.at<std::uint64_t>(end - 12);
    if (archive.at<std::uint32_t>(end64) != kEnd64)
      archive.fail("the 64-bit directory is missing");
    count = archive.at<std::uint64_t>(end64 + 32);
    at = archive.at<std::uint64_t>(end64 + 48);
  }
  std::vector<ZipMember> members;
  for (std::uint64_t m = 0; m < count; ++m) {
    if (archive.at<std::uint32_t>(at) != kCentral)
      archive.fail("the directory is damaged at byte " + std::to_string(at));
    members.push_back(read_member(archive, at, path));
    at += 46U + archive.at<std::uint16_t>(at + 28) +
          archive.at<std::uint16_t>(at + 30) +
          archive.at<std::uint16_t>(at + 32);
  }
  return members;
}

std::string beginning_of(std::span<const std::byte> archive,
                         const ZipMember& member, std::size_t most,
                         const std::string& place) {
  std::string text(std::min(most, member.bytes), '\0');
  std::string why;
  text.resize(inflate_into(archive.subspan(member.begin, member.packed),
                           reinterpret_cast<std::byte*>(text.data()),
                           text.size(), place, why));
  // What is damaged behind an array's header are rows of it.
  if (text.size() < kLeastHeader && !why.empty())
    damaged(place, std::move(why));
  return text;
}

HeldBytes unpacked(std::span<const std::byte> archive, const ZipMember& member,
                   const std::string& place) {
  auto bytes = std::make_shared<Bytes>();
  bytes->resize(member.bytes);
  std::string why;
  const std::size_t made =
      inflate_into(archive.subspan(member.begin, member.packed),
                   bytes->mutable_data<std::byte>(), member.bytes, place, why);
#ifdef PENSTOCK_ZLIB
  check_whole(
      made,
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes->data()), bytes->size()),
      why, member, place);
#endif
  return {.bytes = bytes->span(), .owner = bytes};
}

OpenPieces unpacked_in_pieces(std::span<const std::byte> archive,
                              const ZipMember& member,
                              const std::string& place) {
#ifdef PENSTOCK_ZLIB
  const auto marks = std::make_shared<const Marks>(
      find_marks(archive.subspan(member.begin, member.packed), member, place));
  return
      [marks, place] { return std::make_unique<MarkedReader>(marks, place); };
#else
  std::string why;
  inflate_into(archive, nullptr, member.bytes, place, why);
  return {};
#endif
}

}  // namespace penstock::npy
