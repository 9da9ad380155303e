#include "penstock/transforms/json_set/json_fast.h"

#include <simdjson.h>

#include <algorithm>
#include <cstring>

#include "penstock/transforms/json_set/decimal.h"
#include "penstock/transforms/json_set/json_skip.h"

namespace penstock {
namespace {

// The words of a literal as load_word sees them.
constexpr std::uint64_t kTrue = 0x65757274;
constexpr std::uint64_t kFalse = 0x65736c6166;
constexpr std::uint64_t kNull = 0x6c6c756e;

// The list is level 1, an element level 2.
constexpr int kLevelOfValues = 2;

// true, false or null. Which of the first two it is cannot be predicted, so
// there is no branch on it.
const char* read_literal(const char* p, double& value, Held& held) {
  std::uint64_t word = load_word(p);
  bool is_true = (word & 0xffffffffu) == kTrue;
  bool is_false = (word & 0xffffffffffu) == kFalse;
  if (is_true | is_false) {
    value = is_true ? 1 : 0;
    held = Held::boolean;
    return p + 5 - is_true;
  }
  if ((word & 0xffffffffu) != kNull) return nullptr;
  value = Elements::kMissing;
  held = Held::missing;
  return p + 4;
}

}  // namespace

struct FastJson::Scan {
  const char* p;
  const char* end;
  Met met;

  char next() const { return p < end ? *p : '\0'; }
  void space() { p = skip_space(p, end); }
};

FastJson::FastJson(const KeySlots& slots) : slots_(slots) {
  // No text holds these bytes where a key may begin.
  for (Between& none : expected_) {
    none.words[0] = ~std::uint64_t{0};
    none.masks[0] = ~std::uint64_t{0};
  }
}

// Compares 24 bytes at once, each word under a mask of the bytes that the text
// has; only longer texts are compared again. Bytes past the end of the text may
// take part, but a match that reaches there leaves scan.p beyond `end`, which
// the caller sees.
inline bool FastJson::same(const Between& known, const Scan& scan) const {
  std::uint64_t difference = 0;
  for (std::size_t i = 0; i < Between::kWords; ++i)
    difference |= (load_word(scan.p + 8 * i) ^ known.words[i]) & known.masks[i];
  if (difference != 0) return false;
  return known.length <= 8 * Between::kWords ||
         std::string_view(scan.p, scan.end)
             .starts_with(std::string_view(known.text, known.length));
}

std::size_t FastJson::learn(std::string_view text, std::size_t at,
                            std::size_t slot, std::uint64_t high_bits) {
  for (std::size_t i = 0; i < known_; ++i)
    if (std::string_view(expected_[i].text, expected_[i].length) == text)
      return i + 1;
  if (known_ == kMost || text.size() > Between::kLongest) return at;
  Between seen;
  seen.length = text.size();
  seen.slot = slot;
  seen.high_bits = high_bits;
  std::copy(text.begin(), text.end(), seen.text);
  for (std::size_t i = 0; i < Between::kWords; ++i) {
    std::size_t bytes =
        std::min<std::size_t>(8, text.size() - std::min(text.size(), 8 * i));
    std::memset(&seen.masks[i], 0xff, bytes);
    seen.words[i] = load_word(seen.text + 8 * i) & seen.masks[i];
  }
  auto first = expected_.begin();
  auto place = static_cast<std::ptrdiff_t>(at);
  auto last = static_cast<std::ptrdiff_t>(known_);
  std::copy_backward(first + place, first + last, first + last + 1);
  expected_[at] = seen;
  ++known_;
  return at + 1;
}

// The text from `scan.p` (after a value, or at the opening brace) to the next
// value, when it is not the one that was expected at `at`: another one of the
// next few, or a new one, which is learnt.
bool FastJson::find_key(Scan& scan, std::size_t& at, std::size_t& slot) {
  for (std::size_t ahead = 1; ahead < kAhead; ++ahead) {
    const Between& known = expected_[at + ahead];
    if (!same(known, scan)) continue;
    at += ahead + 1;
    slot = known.slot;
    scan.p += known.length;
    scan.met.high_bits |= known.high_bits;
    return true;
  }
  const char* start = scan.p;
  ++scan.p;  // the brace or comma, which the caller has seen
  scan.space();
  if (scan.next() != '"') return false;
  const char* key = ++scan.p;
  Met met;
  scan.p = skip_text(scan.p, scan.end, met);
  if (scan.p == nullptr || met.escape) return false;
  scan.met.high_bits |= met.high_bits;
  slot = slots_.find(std::string_view(key, scan.p - 1));
  scan.space();
  if (scan.next() != ':') return false;
  ++scan.p;
  scan.space();
  at = learn(std::string_view(start, scan.p), at, slot, met.high_bits);
  return true;
}

// One object; scan.p is at its opening brace, and ends after the closing one.
// Invariants of the loop:
// 1. scan.p is at the brace or comma that begins the text before a value.
// 2. expected_[at] is what came at this point in the element before; from
//    `known_` on its words match nothing, so `at` needs no bound of its own.
// 3. Whatever is accepted here is valid JSON up to scan.p, but for UTF-8, of
//    which `met` collects whether there is anything to check at the end.
// A key that occurs twice overwrites its value: the last one counts, as in
// ReferenceJson.
inline bool FastJson::parse_element(Scan& scan, Elements& out) {
  std::size_t first = out.add();
  double* values = out.values.data() + first;
  Held* held = out.held.data() + first;
  std::size_t at = 0;
  for (;;) {
    const Between& guess = expected_[at];
    std::size_t slot = guess.slot;
    if (same(guess, scan)) [[likely]] {
      scan.p += guess.length;
      scan.met.high_bits |= guess.high_bits;
      ++at;
    } else {
      if (at == 0 && scan.next() == '{') {
        const char* after = skip_space(scan.p + 1, scan.end);
        if (after < scan.end && *after == '}') {
          scan.p = after + 1;
          return true;
        }
      }
      if (!find_key(scan, at, slot)) return false;
    }
    if (scan.p >= scan.end) return false;
    if (*scan.p <= ' ') [[unlikely]] {
      scan.space();
      if (scan.p >= scan.end) return false;
    }
    if (slot < slots_.numeric) {
      if (*scan.p <= '9') {
        scan.p = read_number(scan.p, scan.end, values[slot]);
        held[slot] = Held::number;
      } else {
        scan.p = read_literal(scan.p, values[slot], held[slot]);
      }
    } else {
      if (slot != KeySlots::kNone)
        held[slot] = *scan.p == 'n' ? Held::missing : Held::other;
      scan.p = *scan.p == '"'
                   ? skip_text(scan.p + 1, scan.end, scan.met)
                   : skip_value(scan.p, scan.end, kLevelOfValues, scan.met);
    }
    if (scan.p == nullptr || scan.p >= scan.end) return false;
    if (*scan.p == '}') {
      ++scan.p;
      return true;
    }
    if (*scan.p != ',') {
      const char* after = skip_space(scan.p, scan.end);
      if (after >= scan.end) return false;
      if (*after == '}') {
        scan.p = after + 1;
        return true;
      }
      // White space before a comma: the text between values begins with it.
      if (*after != ',') return false;
      scan.p = after;
    }
  }
}

bool FastJson::parse(std::string_view text, Elements& out) {
  Scan scan{text.data(), text.data() + text.size(), {}};
  out.clear();
  scan.space();
  if (scan.next() != '[') return false;
  ++scan.p;
  scan.space();
  bool more = scan.next() != ']';
  while (more) {
    if (scan.next() != '{' || !parse_element(scan, out)) return false;
    scan.space();
    more = scan.next() == ',';
    if (!more) break;
    ++scan.p;
    scan.space();
  }
  if (scan.next() != ']') return false;
  ++scan.p;
  scan.space();
  if (scan.p != scan.end) return false;
  return scan.met.high_bits == 0 ||
         simdjson::validate_utf8(text.data(), text.size());
}

}  // namespace penstock
