#include "penstock/tokenizer/character_sets.h"

#include <unordered_map>
#include <vector>

#include "penstock/tokenizer/unicode.h"

namespace penstock::unicode {
namespace {

constexpr std::size_t kCodes = 0x110000;

/// Of differences of code point << bits | value.
std::vector<std::uint8_t> spread(const std::uint32_t* steps, std::size_t count,
                                 int bits) {
  std::vector<std::uint8_t> values(kCodes);
  std::uint32_t now = 0;
  for (std::size_t i = 0; i < count; ++i) {
    now += steps[i];
    const std::size_t end =
        i + 1 == count ? kCodes : (now + steps[i + 1]) >> bits;
    for (std::size_t c = now >> bits; c < end; ++c)
      values[c] = static_cast<std::uint8_t>(now & ((1u << bits) - 1));
  }
  return values;
}

std::unordered_map<std::uint32_t, std::uint32_t> lowered_codes() {
  std::unordered_map<std::uint32_t, std::uint32_t> codes;
  std::uint32_t code = 0;
  for (std::size_t i = 0; i < kLoweredSize; i += 2) {
    code += kLowered[i];
    codes[code] = code + unzigzag(kLowered[i + 1]);
  }
  codes[0x130] = 'i';
  return codes;
}

bool is_control(Grapheme kind, std::uint32_t code) {
  return kind == Grapheme::control || code == '\r' || code == '\n';
}

bool joins_hangul(Grapheme before, Grapheme next) {
  switch (before) {
    case Grapheme::lead:
      return next == Grapheme::lead || next == Grapheme::vowel ||
             next == Grapheme::syllable || next == Grapheme::syllable_with_tail;
    case Grapheme::syllable:
    case Grapheme::vowel:
      return next == Grapheme::vowel || next == Grapheme::tail;
    case Grapheme::syllable_with_tail:
    case Grapheme::tail:
      return next == Grapheme::tail;
    default:
      return false;
  }
}

bool is_extend(Grapheme kind) {
  return kind == Grapheme::extend || kind == Grapheme::conjunct_extend ||
         kind == Grapheme::conjunct_linker;
}

/// What of a cluster decides whether it goes on.
/// It applies the rules for extended grapheme clusters of Unicode Standard
/// Annex #29, section 3.1.1; goes_on() tries GB3, then GB4 and GB5, GB6 to GB8,
/// GB9 with GB9a and GB9b, GB9c, GB11, and GB12 with GB13, in this order. The
/// last four depend on more than the character before:
/// conjunct_    GB9c: a consonant came, and then only what extends it;
///              `linked_` says that a linker is among that
/// pictograph_  GB11: a pictograph came, and then only what extends it
/// regionals_   GB12, GB13: how many regional indicators the cluster ends with
class Cluster {
 public:
  Cluster(Grapheme first, std::uint32_t code) : code_(code) { take(first); }

  bool goes_on(Grapheme next, std::uint32_t code) const {
    if (code_ == '\r' && code == '\n') return true;
    if (is_control(last_, code_) || is_control(next, code)) return false;
    if (joins_hangul(last_, next)) return true;
    if (is_extend(next) || next == Grapheme::joiner ||
        next == Grapheme::spacing || last_ == Grapheme::prepend)
      return true;
    if (conjunct_ && linked_ && next == Grapheme::conjunct_consonant)
      return true;
    if (pictograph_ && last_ == Grapheme::joiner &&
        next == Grapheme::pictograph)
      return true;
    return last_ == Grapheme::regional && next == Grapheme::regional &&
           regionals_ % 2 == 1;
  }

  void add(Grapheme next, std::uint32_t code) {
    code_ = code;
    take(next);
  }

 private:
  void take(Grapheme next) {
    const bool extends = is_extend(next);
    if (next == Grapheme::conjunct_consonant) {
      conjunct_ = true;
      linked_ = false;
    } else if (next == Grapheme::conjunct_linker) {
      linked_ = conjunct_;
    } else if (next != Grapheme::conjunct_extend && next != Grapheme::joiner) {
      conjunct_ = false;
    }
    if (next == Grapheme::pictograph)
      pictograph_ = true;
    else if (!extends && next != Grapheme::joiner)
      pictograph_ = false;
    regionals_ = next == Grapheme::regional ? regionals_ + 1 : 0;
    last_ = next;
  }

  Grapheme last_ = Grapheme::other;
  std::uint32_t code_;
  bool conjunct_ = false, linked_ = false, pictograph_ = false;
  int regionals_ = 0;
};

}  // namespace

const std::uint8_t* flags() {
  static const std::vector<std::uint8_t> made =
      spread(kFlagSteps, kFlagStepsSize, 7);
  return made.data();
}

Grapheme grapheme_of(std::uint32_t code) {
  static const std::vector<std::uint8_t> made =
      spread(kGraphemeSteps, kGraphemeStepsSize, 4);
  if (code - 0xAC00 < 11172)
    return (code - 0xAC00) % 28 == 0 ? Grapheme::syllable
                                     : Grapheme::syllable_with_tail;
  return static_cast<Grapheme>(made[code]);
}

bool is_ideograph(std::uint32_t code) {
  static const std::vector<std::uint8_t> made =
      spread(kHanSteps, kHanStepsSize, 1);
  return made[code] != 0;
}

std::uint32_t lowered(std::uint32_t code) {
  if (code < 0x80) return code - 'A' < 26u ? code + 32 : code;
  static const std::unordered_map<std::uint32_t, std::uint32_t> made =
      lowered_codes();
  auto found = made.find(code);
  return found == made.end() ? code : found->second;
}

std::size_t grapheme_end(const char* text, std::size_t size, std::size_t at) {
  std::uint32_t taken;
  std::uint32_t code = code_at(text + at, taken);
  Cluster cluster(grapheme_of(code), code);
  for (at += taken; at < size; at += taken) {
    code = code_at(text + at, taken);
    const Grapheme next = grapheme_of(code);
    if (!cluster.goes_on(next, code)) break;
    cluster.add(next, code);
  }
  return at;
}

}  // namespace penstock::unicode
