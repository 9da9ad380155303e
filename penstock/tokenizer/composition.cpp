#include "penstock/tokenizer/composition.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "penstock/tokenizer/aligned.h"
#include "penstock/tokenizer/byte_masks.h"
#include "penstock/tokenizer/unicode.h"

namespace penstock::unicode {
namespace {

// Hangul syllables are composed by arithmetic (Unicode, section 3.12).
constexpr std::uint32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161,
                        kTails = 0x11A7;
constexpr std::uint32_t kVowelCount = 21, kTailCount = 28;
constexpr std::uint32_t kSyllableCount = 19 * kVowelCount * kTailCount;

struct Mark {
  std::uint32_t code;
  std::uint8_t rank;  ///< its combining class
  int change = 0;     ///< as Rewrite::put has it
};

constexpr unsigned bit(Form form) { return 1u << static_cast<int>(form); }

class Data {
 public:
  Data() : suspicious_(0x110000) {
    for (std::size_t i = 0; i < kCombiningSize; ++i) {
      ranks_[kCombining[i] >> 8] = kCombining[i] & 255;
      suspect(kCombining[i] >> 8, 15);
    }
    for (std::size_t i = 0; i < kPartsSize; i += 3) {
      parts_[kParts[i]] = {kParts[i + 1], kParts[i + 2]};
      suspect(kParts[i], kApart);
    }
    std::unordered_set<std::uint32_t> composed(kComposed,
                                               kComposed + kComposedSize);
    for (const auto& [whole, pair] : parts_) {
      if (composed.count(whole) == 0) {
        suspect(whole, kTogether);
      } else if (pair.second != 0) {
        pairs_[pair_key(pair.first, pair.second)] = whole;
        suspect(pair.second, kTogether);
      }
    }
    for (std::uint32_t c = kVowels; c < kVowels + kVowelCount; ++c)
      suspect(c, kTogether);
    for (std::uint32_t c = kTails; c < kTails + kTailCount; ++c)
      suspect(c, kTogether);
    for (std::uint32_t c = 0; c < kSyllableCount; ++c)
      suspect(kSyllables + c, kApart);
    read_compatible();
  }

  /// Whether a text with this character may not be in a form.
  bool suspicious(std::uint32_t code, Form form) const {
    return (suspicious_[code] >> static_cast<int>(form) & 1) != 0;
  }

  void take_apart(std::uint32_t code, bool compatible,
                  std::vector<Mark>& out) const {
    if (compatible) {
      auto all = compatible_.find(code);
      if (all != compatible_.end()) {
        for (std::uint32_t part : all->second) take_apart(part, false, out);
        return;
      }
    }
    if (code - kSyllables < kSyllableCount) {
      std::uint32_t index = code - kSyllables, tail = index % kTailCount;
      std::uint32_t vowel = index / kTailCount % kVowelCount;
      out.push_back({kLeads + index / kTailCount / kVowelCount, 0, 0});
      out.push_back({kVowels + vowel, 0, 0});
      if (tail != 0) out.push_back({kTails + tail, 0, 0});
      return;
    }
    auto found = parts_.find(code);
    if (found == parts_.end()) {
      auto rank = ranks_.find(code);
      out.push_back(
          {code, rank == ranks_.end() ? std::uint8_t{0} : rank->second, 0});
      return;
    }
    take_apart(found->second.first, compatible, out);
    if (found->second.second != 0)
      take_apart(found->second.second, compatible, out);
  }

  /// 0 when they stay two.
  std::uint32_t composed(std::uint32_t first, std::uint32_t second) const {
    if (first - kLeads < 19 && second - kVowels < kVowelCount)
      return kSyllables +
             ((first - kLeads) * kVowelCount + second - kVowels) * kTailCount;
    std::uint32_t index = first - kSyllables;
    if (index < kSyllableCount && index % kTailCount == 0 &&
        second - kTails - 1 < kTailCount - 1)
      return first + (second - kTails);
    auto found = pairs_.find(pair_key(first, second));
    return found == pairs_.end() ? 0 : found->second;
  }

 private:
  static std::uint64_t pair_key(std::uint64_t first, std::uint64_t second) {
    return first << 32 | second;
  }
  static constexpr unsigned kApart = bit(Form::nfd) | bit(Form::nfkd);
  static constexpr unsigned kTogether = bit(Form::nfc) | bit(Form::nfkc);

  void suspect(std::uint32_t code, unsigned forms) {
    suspicious_[code] = static_cast<std::uint8_t>(suspicious_[code] | forms);
  }

  void read_compatible() {
    std::uint32_t code = 0, first = 0;
    for (std::size_t i = 0; i < kCompatibleSize;) {
      code += kCompatible[i] >> 5;
      const std::size_t end = i + 1 + (kCompatible[i] & 31);
      std::vector<std::uint32_t>& parts = compatible_[code];
      std::uint32_t part = first;
      for (++i; i < end; ++i) parts.push_back(part += unzigzag(kCompatible[i]));
      first = parts[0];
      suspect(code, bit(Form::nfkc) | bit(Form::nfkd));
    }
  }

  std::unordered_map<std::uint32_t, std::uint8_t> ranks_;
  std::unordered_map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>>
      parts_;
  std::unordered_map<std::uint64_t, std::uint32_t> pairs_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> compatible_;
  std::vector<std::uint8_t> suspicious_;  // a bit for each form
};

const Data& data() {
  static const Data made;
  return made;
}

/// Marks behind one starter, in the order of their classes.
/// This is the Canonical Ordering Algorithm of the Unicode Standard (section
/// 3.11, D109). The sort must be stable: marks of one class keep their order,
/// which carries meaning.
void sort_marks(std::vector<Mark>& marks) {
  auto begin = marks.begin();
  while (begin != marks.end()) {
    if (begin->rank == 0) {
      ++begin;
      continue;
    }
    auto end = std::find_if(begin, marks.end(),
                            [](const Mark& mark) { return mark.rank == 0; });
    std::stable_sort(begin, end, [](const Mark& a, const Mark& b) {
      return a.rank < b.rank;
    });
    begin = end;
  }
}

// The Canonical Composition Algorithm (section 3.11, D117). A mark is blocked
// when a mark of the same class or a higher one is between it and its starter.
// Since marks are sorted, the class of the last one that was kept decides; -1
// says that nothing is between, in which case even another starter may join.
void compose(std::vector<Mark>& marks) {
  std::size_t kept = 0, starter = marks.size();
  int last = -1;  // the class of what was kept behind the starter, if any
  for (const Mark mark : marks) {
    if (starter < kept && last < static_cast<int>(mark.rank)) {
      std::uint32_t whole = data().composed(marks[starter].code, mark.code);
      if (whole != 0) {
        marks[starter].code = whole;
        marks[starter].change += mark.change - 1;
        continue;
      }
    }
    if (mark.rank == 0) {
      starter = kept;
      last = -1;
    } else {
      last = mark.rank;
    }
    marks[kept++] = mark;
  }
  marks.resize(kept);
}

/// The characters of a span in a form, which nothing outside it changes. They
/// lie in `marks`.
const std::vector<Mark>& formed(std::string_view span, Form form,
                                std::vector<Mark>& marks) {
  marks.clear();
  const bool compatible = form == Form::nfkc || form == Form::nfkd;
  std::uint32_t size;
  for (std::size_t at = 0; at < span.size(); at += size) {
    std::size_t first = marks.size();
    data().take_apart(code_at(span.data() + at, size), compatible, marks);
    while (++first < marks.size()) marks[first].change = 1;
  }
  sort_marks(marks);
  if (form == Form::nfc || form == Form::nfkc) compose(marks);
  return marks;
}

constexpr std::size_t kBlock = 64;

/// How many of the bytes of a block are whole characters that are in a form
/// whatever is beside them: ASCII and what Chinese is written with. `last` is
/// where the last one begins. 0 where others are among them.
std::size_t unchanged(const char* block, Form form, std::size_t& last) {
#if defined(__SSE2__)
  // The text is known to be UTF-8 and the block begins at a character, so the
  // lead bytes decide alone. A lead of three bytes at place 62 or 63 reaches
  // beyond the block: `sure` ends before it.
  const ByteMasks bytes(block);
  last = kBlock - 1;
  if (bytes.is_ascii()) return kBlock;
  const std::uint64_t goes_on = bytes.goes_on();
  const std::uint64_t three = bytes.within(0xE3, 0xEF);
  std::uint64_t plain = bytes.within(0xE4, 0xE9);  // U+4000 to U+9FFF
  if (form == Form::nfc ||
      form == Form::nfd)  // U+3000 to U+3029, U+FF00 to U+FF3F
    plain |= (bytes.equal(0xE3) & bytes.equal(0x80) >> 1 &
              bytes.within(0x80, 0xA9) >> 2) |
             (bytes.equal(0xEF) & bytes.equal(0xBC) >> 1);
  const auto whole = static_cast<unsigned>(std::countr_zero(three >> 62 << 62));
  const std::uint64_t sure = bits_below(whole);
  if (((bytes.high() ^ goes_on ^ plain) & sure) != 0) return 0;
  last = 63 - static_cast<std::size_t>(std::countl_zero(~goes_on & sure));
  return whole;
#else
  static_cast<void>(form);
  last = kBlock - 1;
  return is_ascii({block, kBlock}) ? kBlock : 0;
#endif
}

/// Finds what of a text may not be in a form. Calls keep(bytes), which may be
/// 0, and span(text) in turn.
template <class Keep, class Span>
void each_span(std::string_view text, Form form, const Keep& keep,
               const Span& span) {
  // A span ends where two characters meet that nothing can pass: the second is
  // not suspicious. It begins at the one before the first suspicious.
  // This is a quick check as in Unicode Standard Annex #15, section 9, with one
  // answer for "no" and "maybe". A character that is not suspicious is a
  // starter that no form changes and that never joins what is before it. It may
  // still be the first half of a composition, which is why a span begins one
  // character early.
  const Data& known = data();
  std::size_t done = 0, before = 0, at = 0, next_block = 0;
  while (at < text.size()) {
    if (at >= next_block && text.size() - at >= kBlock) {
      std::size_t last = 0;
      if (const std::size_t plain = unchanged(text.data() + at, form, last)) {
        before = at + last;
        at += plain;
        continue;
      }
      next_block = at + kBlock;
    }
    std::uint32_t size = 1;
    if (static_cast<unsigned char>(text[at]) < 0x80 ||
        !known.suspicious(code_at(text.data() + at, size), form)) {
      before = at;
      at += size;
      continue;
    }
    keep(before - done);
    while (at < text.size() &&
           known.suspicious(code_at(text.data() + at, size), form))
      at += size;
    span(text.substr(before, at - before));
    done = before = at;
  }
  keep(text.size() - done);
}

}  // namespace

void append_composed(std::string_view text, std::string& out) {
  std::vector<Mark> marks;
  std::size_t at = 0;
  each_span(
      text, Form::nfc,
      [&](std::size_t bytes) {
        out.append(text.substr(at, bytes));
        at += bytes;
      },
      [&](std::string_view span) {
        for (const Mark& mark : formed(span, Form::nfc, marks))
          append(mark.code, out);
        at += span.size();
      });
}

void normalise(Aligned& text, Form form) {
  Rewrite rewrite(text);
  const std::string whole = text.text;
  std::vector<Mark> marks;
  each_span(
      whole, form, [&](std::size_t bytes) { rewrite.keep(bytes); },
      [&](std::string_view span) {
        for (const Mark& mark : formed(span, form, marks))
          rewrite.put(mark.code, mark.change);
      });
  rewrite.finish();
}

}  // namespace penstock::unicode
