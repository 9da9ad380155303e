// A recursive descent over the expression, which writes the program as it goes.
#include <array>
#include <map>

#include "penstock/tokenizer/character_sets.h"
#include "penstock/tokenizer/pattern.h"
#include "penstock/tokenizer/unicode.h"

namespace penstock {
namespace {

using Step = Pattern::Step;
using Kind = Step::Kind;
using Set = Pattern::Set;

constexpr std::uint32_t kCodes = 0x110000;
constexpr std::size_t kMostSteps = 20000;
constexpr std::size_t kMostSets = 256;
constexpr int kMostNested = 64;
constexpr std::uint32_t kForever = UINT32_MAX;

/// What is not known, for the reader of the file.
struct Refused {
  std::string why;
};

template <class Has>
Set set_where(const Has& has) {
  Set set{std::vector<std::uint64_t>(kCodes / 64)};
  for (std::uint32_t c = 0; c < kCodes; ++c)
    if (has(c)) set.bits[c >> 6] |= std::uint64_t{1} << (c & 63);
  return set;
}

Set set_of_classes(unicode::Classes classes) {
  const std::uint8_t* kinds = unicode::classes();
  return set_where(
      [&](std::uint32_t c) { return (classes >> kinds[c] & 1) != 0; });
}

Set range(std::uint32_t low, std::uint32_t high) {
  Set set{std::vector<std::uint64_t>(kCodes / 64)};
  for (std::uint32_t c = low; c <= high; ++c)
    set.bits[c >> 6] |= std::uint64_t{1} << (c & 63);
  return set;
}

Set inverted(Set set) {
  for (std::uint64_t& bits : set.bits) bits = ~bits;
  return set;
}

void add(Set& to, const Set& more) {
  for (std::size_t i = 0; i < to.bits.size(); ++i) to.bits[i] |= more.bits[i];
}

void meet(Set& to, const Set& other) {
  for (std::size_t i = 0; i < to.bits.size(); ++i) to.bits[i] &= other.bits[i];
}

Set spaces() { return set_of_classes(unicode::kSpaces); }

/// \w of Oniguruma: not that of Rust, and within brackets another one.
Set words(bool in_brackets) {
  const std::uint8_t* kinds = unicode::classes();
  return set_where([&](std::uint32_t c) {
    if (c == 0xB2 || c == 0xB3 || c == 0xB9 || (c >= 0xBC && c <= 0xBE))
      return !in_brackets;
    if (c == 0x200C || c == 0x200D) return false;
    return unicode::is_word({c, static_cast<unicode::Class>(kinds[c]), 1});
  });
}

Set decimals() {
  return set_where([flags = unicode::flags()](std::uint32_t c) {
    return (flags[c] & unicode::kDecimal) != 0;
  });
}

Set property(const std::string& name) {
  using unicode::set_of;
  static const std::map<std::string, unicode::Classes> known = {
      {"L", unicode::kLetters},
      {"Letter", unicode::kLetters},
      {"N", unicode::kNumbers},
      {"M", set_of(unicode::kMark)},
      {"P", unicode::kPunctuations},
      {"S", set_of(unicode::kSymbol)},
      {"Lu", set_of(unicode::kUpper)},
      {"Ll", set_of(unicode::kLower)},
      {"Lt", set_of(unicode::kTitle)},
      {"Lm", set_of(unicode::kModifier)},
      {"Lo", set_of(unicode::kOtherLetter)},
      {"No", set_of(unicode::kOtherNumber)},
      {"Pc", set_of(unicode::kConnector)}};
  if (auto found = known.find(name); found != known.end())
    return set_of_classes(found->second);
  if (name == "Nd") return decimals();
  if (name == "Han") return set_where(unicode::is_ideograph);
  throw Refused{"\\p{" + name + "}"};
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Pattern::Program parse() {
    const bool may_be_empty = alternatives(false);
    if (!at_end()) throw Refused{"a ')' without its '('"};
    // What matches nothing cuts there, too, for the library that defines it.
    if (may_be_empty) throw Refused{"a pattern that may match no character"};
    emit({.kind = Kind::end});
    return std::move(program_);
  }

 private:
  // The text.

  bool at_end() const { return at_ >= text_.size(); }
  bool next_is(std::string_view what) const {
    return text_.substr(at_).starts_with(what);
  }
  bool take(std::string_view what) {
    if (!next_is(what)) return false;
    at_ += what.size();
    return true;
  }
  std::uint32_t character() {
    if (at_end()) throw Refused{"an end in the middle"};
    std::uint32_t size;
    const std::uint32_t code = unicode::code_at(text_.data() + at_, size);
    at_ += size;
    return code;
  }

  // The program.

  std::uint32_t here() const {
    return static_cast<std::uint32_t>(program_.steps.size());
  }
  std::uint32_t emit(Step step) {
    if (program_.steps.size() >= kMostSteps)
      throw Refused{"a pattern of so many steps"};
    program_.steps.push_back(step);
    return here() - 1;
  }
  std::uint32_t keep(Set set) {
    for (std::size_t i = 0; i < program_.sets.size(); ++i)
      if (program_.sets[i].bits == set.bits)
        return static_cast<std::uint32_t>(i);
    if (program_.sets.size() >= kMostSets)
      throw Refused{"a pattern of so many sets"};
    program_.sets.push_back(std::move(set));
    return static_cast<std::uint32_t>(program_.sets.size() - 1);
  }

  // The grammar. Behind (?i) the rest of its group is caseless. Each returns
  // whether what it read may be empty.

  // `a|b|c` becomes split(a, split(b, c)), where a and b end in a jump past the
  // whole. That a branch needs a split before it is known only at its '|', so
  // the split is inserted then.
  bool alternatives(bool caseless) {
    if (++nested_ > kMostNested) throw Refused{"groups nested so deeply"};
    const std::uint32_t begin = here();
    bool empty = sequence(caseless);
    std::vector<std::uint32_t> jumps;
    for (std::uint32_t first = begin; take("|");) {
      insert(first, {.kind = Kind::split, .to = first + 1});
      jumps.push_back(emit({.kind = Kind::jump}));
      program_.steps[first].other = here();
      first = here();
      empty = sequence(caseless) || empty;
    }
    for (std::uint32_t jump : jumps) program_.steps[jump].to = here();
    --nested_;
    return empty;
  }

  bool sequence(bool& caseless) {
    bool empty = true;
    folded_ = 0;
    while (!at_end() && !next_is("|") && !next_is(")")) {
      if (take("(?i)")) {
        caseless = true;
        continue;
      }
      const std::uint32_t begin = here();
      bool may_be_empty = item(caseless);
      while (repeat(begin, may_be_empty)) {
      }
      empty = empty && may_be_empty;
    }
    return empty;
  }

  bool item(bool caseless) {
    if (take("(")) return group(caseless);
    if (take("^")) return emit({.kind = Kind::line_begin}), true;
    if (take("$")) return emit({.kind = Kind::line_end}), true;
    if (take("\\A")) return emit({.kind = Kind::text_begin}), true;
    if (take("\\z")) return emit({.kind = Kind::text_end}), true;
    emit({.kind = Kind::one, .set = keep(one(caseless))});
    return false;
  }

  bool group(bool caseless) {
    if (take("?<!") || take("?<=")) {
      const bool not_there = text_[at_ - 1] == '!';
      Set set = one(caseless);
      if (!take(")")) throw Refused{"more than one character in (?<"};
      emit({.kind = not_there ? Kind::no_behind : Kind::behind,
            .set = keep(std::move(set))});
      return true;
    }
    Kind kind = Kind::end;
    if (take("?i:"))
      caseless = true;
    else if (take("?!"))
      kind = Kind::no_ahead;
    else if (take("?="))
      kind = Kind::ahead;
    else if (take("?>"))
      kind = Kind::atomic;
    else if (!take("?:") && next_is("?"))
      throw Refused{"the group (" + std::string(text_.substr(at_, 3))};
    const std::uint32_t begin = here();
    if (kind != Kind::end) emit({.kind = kind});
    const bool empty = alternatives(caseless);
    if (!take(")")) throw Refused{"a '(' without its ')'"};
    if (kind == Kind::end) return empty;
    emit({.kind = Kind::end});
    program_.steps[begin].to = here();
    return kind == Kind::atomic ? empty : true;
  }

  /// A repeat of what was written from `begin` on.
  bool repeat(std::uint32_t begin, bool& empty) {
    std::uint32_t least, most = kForever;
    bool by_number = false;
    if (take("*")) {
      least = 0;
    } else if (take("+")) {
      least = 1;
    } else if (take("?")) {
      least = 0;
      most = 1;
    } else if (next_is("{")) {
      by_number = true;
      numbers(least, most);
    } else {
      return false;
    }
    if (empty) throw Refused{"a repeat of what may be empty"};
    const bool lazy = take("?");
    // Behind {n,m} a '+' repeats once more, as Oniguruma has it.
    const bool all = !lazy && !by_number && take("+");
    repeated(begin, least, most, lazy, all);
    empty = least == 0;
    folded_ = 0;
    return true;
  }

  void numbers(std::uint32_t& least, std::uint32_t& most) {
    ++at_;
    least = number(0);
    most = least;
    if (take(",")) most = next_is("}") ? kForever : number(0);
    if (!take("}") || most < least || most == 0)
      throw Refused{"a repeat like {" + std::to_string(least) + ","};
  }

  std::uint32_t number(std::uint32_t otherwise) {
    std::uint32_t found = 0;
    bool any = false;
    for (; !at_end() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      found = found * 10 + static_cast<std::uint32_t>(text_[at_] - '0');
      any = true;
      if (found > 1000) throw Refused{"a repeat of more than 1000"};
    }
    return any ? found : otherwise;
  }

  void repeated(std::uint32_t begin, std::uint32_t least, std::uint32_t most,
                bool lazy, bool all) {
    const std::vector<Step> body(program_.steps.begin() + begin,
                                 program_.steps.end());
    program_.steps.resize(begin);
    if (body.size() == 1 && body[0].kind == Kind::one && most == kForever &&
        !lazy) {
      emit({.kind = all ? Kind::all : Kind::run,
            .set = body[0].set,
            .least = least});
      return;
    }
    if (all) emit({.kind = Kind::atomic});
    for (std::uint32_t i = 0; i < least; ++i) write(body, begin);
    if (most == kForever) {
      const std::uint32_t split = choice(lazy);
      write(body, begin);
      emit({.kind = Kind::jump, .to = split});
      leave(split, lazy);
    } else {
      std::vector<std::uint32_t> splits;
      for (std::uint32_t i = least; i < most; ++i) {
        splits.push_back(choice(lazy));
        write(body, begin);
      }
      for (std::uint32_t split : splits) leave(split, lazy);
    }
    if (!all) return;
    emit({.kind = Kind::end});
    program_.steps[begin].to = here();
  }

  std::uint32_t choice(bool lazy) {
    const std::uint32_t at = emit({.kind = Kind::split});
    (lazy ? program_.steps[at].other : program_.steps[at].to) = at + 1;
    return at;
  }
  void leave(std::uint32_t split, bool lazy) {
    (lazy ? program_.steps[split].to : program_.steps[split].other) = here();
  }

  /// Writes steps that were written from `from` on once more.
  void write(const std::vector<Step>& body, std::uint32_t from) {
    const std::uint32_t moved = here() - from;
    for (Step step : body) {
      step.to += moved;
      step.other += moved;
      emit(step);
    }
  }

  // The targets of all steps from `place` on are at `place` or after it, since
  // a branch only points into itself. So each is raised by one, without a look
  // at where it points; the jumps of earlier branches are set when all are
  // written.
  void insert(std::uint32_t place, Step step) {
    emit({});
    for (std::size_t i = place; i + 1 < program_.steps.size(); ++i) {
      ++program_.steps[i].to;
      ++program_.steps[i].other;
    }
    program_.steps.insert(program_.steps.begin() + place, step);
    program_.steps.pop_back();
  }

  // Sets.

  /// What one character of the text may be.
  Set one(bool caseless) {
    if (take("[")) {
      folded_ = 0;
      return brackets(caseless);
    }
    if (take(".")) return inverted(range('\n', '\n'));
    if (next_is("\\")) {
      ++at_;
      std::uint32_t code;
      Set set = escaped(code, false);
      if (code == kForever) {
        folded_ = 0;
        return set;
      }
      return folded(code, caseless);
    }
    const std::uint32_t code = character();
    if (code < 128 && std::string_view("*+?{}").find(static_cast<char>(code)) !=
                          std::string_view::npos)
      throw Refused{"a repeat of nothing"};
    return folded(code, caseless);
  }

  /// A character, and where case does not count its others.
  Set folded(std::uint32_t code, bool caseless) {
    Set set = range(code, code);
    const std::uint32_t lower = code - 'A' < 26u ? code + 32 : code;
    if (!caseless) return set;
    if (code >= 0x80) throw Refused{"(?i) of what is not ASCII"};
    // These two are one character, too.
    const std::string pair = {static_cast<char>(folded_),
                              static_cast<char>(lower)};
    for (const char* joined : {"ss", "st", "ff", "fi", "fl"})
      if (pair == joined) throw Refused{"(?i) of '" + pair + "'"};
    folded_ = lower;
    if (lower - 'a' >= 26u) return set;
    add(set, range(lower, lower));
    add(set, range(lower - 32, lower - 32));
    if (lower == 's') add(set, range(0x17F, 0x17F));
    if (lower == 'k') add(set, range(0x212A, 0x212A));
    return set;
  }

  /// Behind a backslash; `code`: the character that it is, or kForever.
  Set escaped(std::uint32_t& code, bool in_brackets) {
    code = character();
    const std::uint32_t letter = code;
    if (letter < 128 && (letter | 32) - 'a' >= 26u && letter - '0' >= 10u)
      return range(code, code);
    switch (letter) {
      case 'n':
        return range(code = '\n', '\n');
      case 'r':
        return range(code = '\r', '\r');
      case 't':
        return range(code = '\t', '\t');
      case 'f':
        return range(code = '\f', '\f');
      case 'v':
        return range(code = '\v', '\v');
      case 'x':
      case 'u':
        code = hexadecimal(letter == 'u');
        return range(code, code);
      default:
        code = kForever;
    }
    switch (letter) {
      case 's':
        return spaces();
      case 'S':
        return inverted(spaces());
      case 'w':
        return words(in_brackets);
      case 'W':
        return inverted(words(in_brackets));
      case 'd':
        return decimals();
      case 'D':
        return inverted(decimals());
      case 'p':
      case 'P':
        return named(letter == 'P');
      default:
        throw Refused{std::string("\\") + static_cast<char>(letter)};
    }
  }

  std::uint32_t hexadecimal(bool four) {
    std::uint32_t code = 0;
    const bool braces = !four && take("{");
    const std::size_t digits = four ? 4 : braces ? 6 : 2;
    std::size_t count = 0;
    for (; count < digits && !at_end(); ++count) {
      const char c = text_[at_];
      const auto lower = static_cast<unsigned char>(c | 32);
      if (c >= '0' && c <= '9')
        code = code * 16 + static_cast<std::uint32_t>(c - '0');
      else if (lower >= 'a' && lower <= 'f')
        code = code * 16 + (lower - 'a' + 10u);
      else
        break;
      ++at_;
    }
    if (count == 0 || (braces && !take("}")) || code >= kCodes ||
        (!braces && (count != digits || (!four && code >= 0x80))))
      throw Refused{"a character by such a number"};
    return code;
  }

  Set named(bool invert) {
    std::string name;
    if (take("{")) {
      if (take("^")) invert = !invert;
      while (!at_end() && !next_is("}")) name += text_[at_++];
      if (!take("}")) throw Refused{"a '{' without its '}'"};
    } else {
      throw Refused{"\\p without '{'"};
    }
    Set set = property(name);
    return invert ? inverted(std::move(set)) : set;
  }

  // && binds less than juxtaposition, as in Oniguruma: [ab&&bc] meets the union
  // on its left with the union on its right. `others` is the meeting of all
  // that came before the last &&.
  Set brackets(bool caseless) {
    if (++nested_ > kMostNested) throw Refused{"sets nested so deeply"};
    const bool invert = take("^");
    Set set{std::vector<std::uint64_t>(kCodes / 64)};
    std::optional<Set> others;
    bool first = true;
    while (first || !next_is("]")) {
      if (at_end()) throw Refused{"a '[' without its ']'"};
      if (first && next_is("]")) throw Refused{"an empty set"};
      first = false;
      if (take("&&")) {
        if (others)
          meet(*others, set);
        else
          others = set;
        set.bits.assign(set.bits.size(), 0);
      } else {
        part_of_set(set, caseless);
      }
    }
    ++at_;
    --nested_;
    if (others) meet(set, *others);
    return invert ? inverted(std::move(set)) : set;
  }

  void part_of_set(Set& set, bool caseless) {
    if (next_is("[:")) throw Refused{"a set like [:alpha:]"};
    if (take("[")) return add(set, brackets(caseless));
    std::uint32_t low;
    if (take("\\")) {
      Set more = escaped(low, true);
      if (low == kForever) return add(set, more);
    } else {
      low = character();
    }
    std::uint32_t high = low;
    if (next_is("-") && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
      ++at_;
      if (next_is("[")) throw Refused{"a range up to a set"};
      high = take("\\") ? (escaped(high, true), high) : character();
      if (high == kForever || high < low) throw Refused{"a range like that"};
    }
    if (!caseless) return add(set, range(low, high));
    for (std::uint32_t c = low; c <= high; ++c) {
      folded_ = 0;
      add(set, folded(c, true));
    }
    folded_ = 0;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Pattern::Program program_;
  int nested_ = 0;
  std::uint32_t folded_ = 0;  // the character before, where case is ignored
};

}  // namespace

std::optional<Pattern> Pattern::parse(std::string_view text, std::string& why) {
  try {
    if (unicode::first_invalid(text) != text.size())
      throw Refused{"bytes that are not UTF-8"};
    Pattern pattern;
    pattern.program_ = std::make_shared<Program>(Parser(text).parse());
    return pattern;
  } catch (const Refused& refused) {
    why = refused.why;
    return std::nullopt;
  }
}

}  // namespace penstock
