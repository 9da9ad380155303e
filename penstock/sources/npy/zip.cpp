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
      fail("it ends before byte " + std::to_string(place) + " + " +
           std::to_string(size) + ", where it says that something stands");
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
/// remark of at most 64 KiB.
std::uint64_t find_end(const Archive& archive) {
  constexpr std::size_t kRecord = 22, kRemark = 65535;
  if (archive.size() < kRecord) archive.fail("it is not a .zip file");
  const std::size_t last = archive.size() - kRecord;
  for (std::size_t back = 0; back <= std::min(last, kRemark); ++back)
    if (archive.at<std::uint32_t>(last - back) == kEnd) return last - back;
  archive.fail("its directory is missing; it may be cut off");
}

/// What the extra field of a member says in 64 bits, in the order in which the
/// record says that it does not know.
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
                 " has characters that no name has");
  std::uint64_t* fields[3] = {&bytes, &packed, &local};
  read_extra64(archive, at + 46 + name, extra, fields);
  if ((flags & 1U) != 0)
    files::refuse_array(path, member.name, "this member is encrypted");
  if (method != 0 && method != 8)
    files::refuse_array(path, member.name,
                        "this member is packed by method " +
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
    archive.fail("member '" + member.name + "' says that it has " +
                 std::to_string(bytes) + " bytes, packed as " +
                 std::to_string(packed));
  member.begin = static_cast<std::size_t>(begin);
  member.packed = static_cast<std::size_t>(packed);
  member.bytes = static_cast<std::size_t>(bytes);
  return member;
}

#ifdef PENSTOCK_ZLIB
/// Fills `out`; how many bytes came, and why no more.
std::size_t inflate_into(std::span<const std::byte> packed, std::byte* out,
                         std::size_t size, const std::string&,
                         std::string& why) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
  std::size_t in = 0, made = 0;
  for (int status = Z_OK; status == Z_OK && made < size;) {
    const std::size_t give = std::min(packed.size() - in, kMost);
    const std::size_t room = std::min(size - made, kMost);
    stream.next_in =
        reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + in));
    stream.avail_in = static_cast<uInt>(give);
    stream.next_out = reinterpret_cast<Bytef*>(out + made);
    stream.avail_out = static_cast<uInt>(room);
    status = inflate(&stream, Z_NO_FLUSH);
    in += give - stream.avail_in;
    made += room - stream.avail_out;
    if (status != Z_OK && status != Z_STREAM_END)
      why = std::string("it cannot be unpacked: ") +
            (stream.msg == nullptr ? "it is cut off" : stream.msg);
  }
  return made;
}
#else
std::size_t inflate_into(std::span<const std::byte>, std::byte*, std::size_t,
                         const std::string& place, std::string&) {
  files::refuse_array(place, place,
                      "it is compressed, and this build has no zlib "
                      "(zlib1g-dev)");
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
      archive.fail("its directory of 64 bits is missing");
    count = archive.at<std::uint64_t>(end64 + 32);
    at = archive.at<std::uint64_t>(end64 + 48);
  }
  std::vector<ZipMember> members;
  for (std::uint64_t m = 0; m < count; ++m) {
    if (archive.at<std::uint32_t>(at) != kCentral)
      archive.fail("its directory is damaged at byte " + std::to_string(at));
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
  if (!why.empty()) damaged(place, std::move(why));
  if (made != member.bytes)
    damaged(place, "it has " + std::to_string(made) + " bytes, expected " +
                       std::to_string(member.bytes));
#ifdef PENSTOCK_ZLIB
  const auto crc =
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes->data()), bytes->size());
  if (crc != member.crc)
    damaged(place, "its bytes are not those that were written (CRC)");
#endif
  return {.bytes = bytes->span(), .owner = bytes};
}

}  // namespace penstock::npy
