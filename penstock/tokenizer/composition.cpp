#include "penstock/tokenizer/composition.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

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
};

class Data {
 public:
  Data() : suspicious_(0x110000) {
    for (std::size_t i = 0; i < kCombiningSize; ++i) {
      ranks_[kCombining[i] >> 8] = kCombining[i] & 255;
      suspicious_[kCombining[i] >> 8] = true;
    }
    for (std::size_t i = 0; i < kPartsSize; i += 3)
      parts_[kParts[i]] = {kParts[i + 1], kParts[i + 2]};
    std::unordered_set<std::uint32_t> composed(kComposed,
                                               kComposed + kComposedSize);
    for (const auto& [whole, pair] : parts_) {
      if (composed.count(whole) == 0) {
        suspicious_[whole] = true;
      } else if (pair.second != 0) {
        pairs_[pair_key(pair.first, pair.second)] = whole;
        suspicious_[pair.second] = true;
      }
    }
    for (std::uint32_t c = kVowels; c < kVowels + kVowelCount; ++c)
      suspicious_[c] = true;
    for (std::uint32_t c = kTails; c < kTails + kTailCount; ++c)
      suspicious_[c] = true;
  }

  /// Whether a text with this character may not be in composed form.
  bool suspicious(std::uint32_t code) const { return suspicious_[code]; }

  void take_apart(std::uint32_t code, std::vector<Mark>& out) const {
    if (code - kSyllables < kSyllableCount) {
      std::uint32_t index = code - kSyllables, tail = index % kTailCount;
      std::uint32_t vowel = index / kTailCount % kVowelCount;
      out.push_back({kLeads + index / kTailCount / kVowelCount, 0});
      out.push_back({kVowels + vowel, 0});
      if (tail != 0) out.push_back({kTails + tail, 0});
      return;
    }
    auto found = parts_.find(code);
    if (found == parts_.end()) {
      auto rank = ranks_.find(code);
      out.push_back(
          {code, rank == ranks_.end() ? std::uint8_t{0} : rank->second});
      return;
    }
    take_apart(found->second.first, out);
    if (found->second.second != 0) take_apart(found->second.second, out);
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

  std::unordered_map<std::uint32_t, std::uint8_t> ranks_;
  std::unordered_map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>>
      parts_;
  std::unordered_map<std::uint64_t, std::uint32_t> pairs_;
  std::vector<bool> suspicious_;
};

const Data& data() {
  static const Data made;
  return made;
}

/// Marks behind one starter, in the order of their classes.
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

void compose(std::vector<Mark>& marks) {
  std::size_t kept = 0, starter = marks.size();
  int last = -1;  // the class of what was kept behind the starter, if any
  for (const Mark mark : marks) {
    if (starter < kept && last < static_cast<int>(mark.rank)) {
      std::uint32_t whole = data().composed(marks[starter].code, mark.code);
      if (whole != 0) {
        marks[starter].code = whole;
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

/// From `begin` to the next character that starts anew.
void append_span(std::string_view span, std::string& out) {
  static thread_local std::vector<Mark> marks;
  marks.clear();
  std::uint32_t size;
  for (std::size_t at = 0; at < span.size(); at += size)
    data().take_apart(code_at(span.data() + at, size), marks);
  sort_marks(marks);
  compose(marks);
  for (const Mark& mark : marks) append(mark.code, out);
}

}  // namespace

void append_composed(std::string_view text, std::string& out) {
  // A span ends where two characters meet that nothing can pass: the second is
  // not suspicious. It begins at the one before the first suspicious.
  const Data& known = data();
  std::size_t done = 0, before = 0, at = 0;
  while (at < text.size()) {
    std::uint32_t size = 1;
    if (static_cast<unsigned char>(text[at]) < 0x80 ||
        !known.suspicious(code_at(text.data() + at, size))) {
      before = at;
      at += size;
      continue;
    }
    out.append(text.substr(done, before - done));
    while (at < text.size() &&
           known.suspicious(code_at(text.data() + at, size)))
      at += size;
    append_span(text.substr(before, at - before), out);
    done = before = at;
  }
  out.append(text.substr(done));
}

}  // namespace penstock::unicode
