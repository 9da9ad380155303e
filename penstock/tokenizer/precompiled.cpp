#include <algorithm>
#include <cstring>
#include <optional>

#include "penstock/base/base64.h"
#include "penstock/tokenizer/character_sets.h"
#include "penstock/tokenizer/normalizers.h"
#include "penstock/tokenizer/unicode.h"

namespace penstock {
namespace {

/// SentencePiece's map of characters: a double array of Darts-clone and, one
/// after the other with a zero between them, what they become.
/// The layout of the decoded blob, as EncodePrecompiledCharsMap() in
/// SentencePiece's src/normalizer.cc writes it, all little-endian:
///   u32             bytes of the double array, a multiple of 4
///   u32[]           its units
///   char[]          the replacements, each ended by a zero byte
/// A unit of Darts-clone (struct DoubleArrayUnit of darts.h) has these bits:
///   0..7    the byte that leads to this unit
///   8       set: a key ends here, its value is in the unit at `offset`
///   9       set: the offset is multiplied by 256
///   10..30  the offset, to be XORed with the place of the unit
///   31      set: this unit is a value, the place of a replacement
/// The array comes from a file: every place is checked before it is read, and
/// `texts_` ends in a zero of std::string, so a replacement always ends.
class Precompiled final : public Normalizer {
 public:
  Precompiled(std::vector<std::uint32_t> units, std::string texts)
      : units_(std::move(units)), texts_(std::move(texts)) {
    for (int c = 1; c < 128; ++c) {
      const char character = static_cast<char>(c);
      plain_[c] = !replaced({&character, 1});
    }
  }

  void apply(Aligned& text) const override {
    const std::string_view whole = text.text;
    Written out{.tracked = text.tracked};
    for (std::size_t at = 0; at < whole.size();) {
      // Of two plain characters the first is by itself.
      // A character that is not an entry can only change as part of a cluster.
      // Two characters of ASCII form no cluster, other than CR LF, but the last
      // of a run may be joined by what follows it.
      std::size_t plain = at;
      while (plain + 1 < whole.size() && is_plain(whole[plain]) &&
             is_plain(whole[plain + 1]))
        ++plain;
      out.keep(whole.substr(at, plain - at));
      at = plain;
      const std::size_t end =
          unicode::grapheme_end(whole.data(), whole.size(), at);
      cluster(whole.substr(at, end - at), out);
      at = end;
    }
    if (!text.tracked) {
      text.text = std::move(out.text);
      return;
    }
    Rewrite rewrite(text);
    for (auto [code, change] : out.changes) rewrite.put(code, change);
    rewrite.finish();
  }

 private:
  /// The new text, or, where it is tracked, its characters with their changes
  /// as the library counts them.
  struct Written {
    void keep(std::string_view of) {
      if (!tracked)
        text += of;
      else
        add(of);
    }

    /// Characters stand for each other one by one; what there are more of the
    /// one or the other belongs to the last, of whatever came before.
    void replace(std::string_view old, std::string_view with) {
      if (!tracked) {
        text += with;
        return;
      }
      const int more = characters_in(with) - characters_in(old);
      add(with);
      for (int i = 0; i < more; ++i)
        changes[changes.size() - 1 - static_cast<std::size_t>(i)].second = 1;
      if (more < 0 && !changes.empty()) changes.back().second += more;
    }

    void add(std::string_view of) {
      std::uint32_t size;
      for (std::size_t at = 0; at < of.size(); at += size)
        changes.emplace_back(unicode::code_at(of.data() + at, size), 0);
    }

    bool tracked;
    std::string text = {};
    std::vector<std::pair<std::uint32_t, int>> changes = {};
  };

  bool is_plain(char c) const { return c > 0 && plain_[static_cast<int>(c)]; }

  // The library asks for a grapheme cluster as a whole only below 6 bytes. The
  // answer is for the shortest entry the cluster begins with, yet it replaces
  // all of the cluster: part of the meaning of these files, so it is kept.
  void cluster(std::string_view cluster, Written& out) const {
    if (cluster.size() < 6) {
      if (auto with = replaced(cluster)) return out.replace(cluster, *with);
    }
    std::uint32_t size;
    for (std::size_t at = 0; at < cluster.size(); at += size) {
      unicode::code_at(cluster.data() + at, size);
      const std::string_view character = cluster.substr(at, size);
      if (auto with = replaced(character))
        out.replace(character, *with);
      else
        out.keep(character);
    }
  }

  static int characters_in(std::string_view text) {
    int count = 0;
    for (char c : text)
      count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
    return count;
  }

  /// What the shortest entry that a text begins with becomes.
  std::optional<std::string_view> replaced(std::string_view text) const {
    std::size_t node = offset(units_[0]);
    for (char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      node ^= byte;
      if (byte == 0 || node >= units_.size()) return std::nullopt;
      const std::uint32_t unit = units_[node];
      if ((unit & (1u << 31 | 255)) != byte) return std::nullopt;
      node ^= offset(unit);
      if ((unit >> 8 & 1) == 0) continue;
      if (node >= units_.size()) return std::nullopt;
      const std::size_t at = units_[node] & ~(1u << 31);
      if (at >= texts_.size()) return std::nullopt;
      return std::string_view(texts_.c_str() + at);
    }
    return std::nullopt;
  }

  std::size_t offset(std::uint32_t unit) const {
    return std::size_t{unit >> 10} << ((unit & 1u << 9) >> 6);
  }

  const std::vector<std::uint32_t> units_;
  const std::string texts_;
  bool plain_[128] = {};
};

}  // namespace

std::shared_ptr<const Normalizer> read_precompiled(const FileValue& part) {
  const FileValue map = part.at("precompiled_charsmap");
  if (map.is_null()) map.wrong("a text");
  const std::optional<std::string> bytes = from_base64(map.text());
  std::uint32_t size = 0;
  if (bytes && bytes->size() >= 4) std::memcpy(&size, bytes->data(), 4);
  if (!bytes || size == 0 || size % 4 != 0 || size > bytes->size() - 4)
    map.wrong("the value is not a character map",
              "compare this file with the one that the model came with");
  std::vector<std::uint32_t> units(size / 4);
  std::memcpy(units.data(), bytes->data() + 4, size);
  std::string texts = bytes->substr(4 + size);
  if (unicode::first_invalid(texts) != texts.size())
    map.wrong("the character map produces bytes that are not UTF-8",
              "compare this file with the one that the model came with");
  return std::make_shared<Precompiled>(std::move(units), std::move(texts));
}

}  // namespace penstock
