// Members that are unpacked in pieces.
#include "penstock/sources/npy/zip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>

namespace penstock::npy {
namespace {

/// 6 MiB in which no two places are alike, packed.
class Pieces : public testing::Test {
 protected:
  Pieces() : bytes_(std::size_t{6} << 20), packed_(bytes_.size()) {
    for (std::size_t at = 0; at < bytes_.size(); ++at)
      bytes_[at] = static_cast<std::byte>(at * at >> 7);
    z_stream stream{};
    deflateInit2(&stream, 1, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    stream.next_in = reinterpret_cast<Bytef*>(bytes_.data());
    stream.avail_in = static_cast<uInt>(bytes_.size());
    stream.next_out = reinterpret_cast<Bytef*>(packed_.data());
    stream.avail_out = static_cast<uInt>(packed_.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    packed_.resize(stream.total_out);
    deflateEnd(&stream);
    const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes_.data()),
                             bytes_.size());
    member_ = {.name = "x.npy",
               .deflated = true,
               .packed = packed_.size(),
               .bytes = bytes_.size(),
               .crc = static_cast<std::uint32_t>(crc)};
  }
  std::string refused(const std::vector<std::byte>& packed) const {
    return damage_in(
        [&] { (void)unpacked_in_pieces(packed, member_, "a.npz, x"); });
  }

  std::vector<std::byte> bytes_, packed_;
  ZipMember member_;
};

TEST_F(Pieces, AreReadForwardsBackwardsAndAnywhere) {
  const OpenPieces open = unpacked_in_pieces(packed_, member_, "a.npz, x");
  const auto reader = open();
  std::vector<std::byte> piece(300'000);
  auto check = [&](std::size_t begin, std::size_t size) {
    reader->read(begin, std::span(piece).first(size));
    EXPECT_TRUE(std::equal(piece.begin(),
                           piece.begin() + static_cast<std::ptrdiff_t>(size),
                           bytes_.begin() + static_cast<std::ptrdiff_t>(begin)))
        << begin;
  };
  for (std::size_t at = 0; at + piece.size() <= bytes_.size();
       at += piece.size())
    check(at, piece.size());
  for (std::size_t at = bytes_.size(); at >= 100'000; at -= 99'991)
    check(at - 999, 999);
  const std::size_t mark = std::size_t{1} << 20;
  for (std::size_t at : {mark - 1, mark, 5 * mark, std::size_t{0}})
    check(at, 2);
  open()->read(bytes_.size() - 1, std::span(piece).first(1));
  EXPECT_EQ(piece[0], bytes_.back());
}

TEST_F(Pieces, OfAMemberThatIsDamagedAreRefusedBeforeAnyIsRead) {
  EXPECT_EQ(refused(packed_), "");
  std::vector<std::byte> cut(packed_.begin(), packed_.end() - 9);
  member_.packed = cut.size();
  EXPECT_THAT(refused(cut), testing::HasSubstr("cut off"));
  member_.packed = packed_.size();
  member_.crc ^= 1;
  EXPECT_THAT(refused(packed_), testing::HasSubstr("CRC"));
}

}  // namespace
}  // namespace penstock::npy
