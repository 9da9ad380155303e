// Each step does what the one of its name does in `tokenizers`.
#include "penstock/tokenizer/splitters.h"

#include <algorithm>
#include <utility>

#include "penstock/tokenizer/byte_level.h"
#include "penstock/tokenizer/character_sets.h"
#include "penstock/tokenizer/matches.h"
#include "penstock/tokenizer/unicode.h"

namespace penstock {
namespace {

using unicode::Character;

/// What becomes of what is found.
enum class Found { removed, isolated, with_previous, with_next, contiguous };

/// What was found in a part, and what lies between, in their order.
struct Cut {
  ByteRange range;
  bool found;
};

/// Appends parts, by what becomes of what was found.
/// The cuts of a part follow each other without a gap. Joining depends only on
/// whether the cut before was a match: of several matches in a row only the
/// first is joined to what precedes it, as SplitDelimiterBehavior of
/// `tokenizers` has it.
void append_parts(const std::vector<Cut>& cuts, Found how,
                  std::vector<ByteRange>& out) {
  const std::size_t first = out.size();
  bool before = false;
  for (const Cut& cut : cuts) {
    const bool joined =
        out.size() > first &&
        ((how == Found::contiguous && cut.found == before) ||
         (how == Found::with_previous && cut.found && !before) ||
         (how == Found::with_next && !cut.found && before));
    if (joined)
      out.back().end = cut.range.end;
    else if (how != Found::removed || !cut.found)
      out.push_back(cut.range);
    before = cut.found;
  }
}

/// Cuts at what is found.
class At : public Splitter {
 public:
  explicit At(Found how, bool invert = false) : how_(how), invert_(invert) {}

  void apply(Pieces& pieces) const final {
    std::vector<ByteRange> parts, matches;
    std::vector<Cut> cuts;
    for (ByteRange part : pieces.parts) {
      matches.clear();
      cuts.clear();
      find(std::string_view(pieces.text.text).substr(part.begin, part.size()),
           matches);
      std::size_t done = 0;
      auto add = [&](std::size_t end, bool found) {
        if (end > done)
          cuts.push_back(
              {{part.begin + done, part.begin + end}, found != invert_});
        done = end;
      };
      for (ByteRange match : matches) {
        add(match.begin, false);
        add(match.end, true);
      }
      add(part.size(), false);
      append_parts(cuts, how_, parts);
    }
    pieces.parts = std::move(parts);
  }

 protected:
  virtual void find(std::string_view text,
                    std::vector<ByteRange>& out) const = 0;

 private:
  const Found how_;
  const bool invert_;
};

class AtMatches final : public At {
 public:
  AtMatches(std::unique_ptr<Matching> what, Found how, bool invert)
      : At(how, invert), what_(std::move(what)) {}

 private:
  void find(std::string_view text, std::vector<ByteRange>& out) const override {
    what_->find(text, out);
  }
  const std::unique_ptr<Matching> what_;
};

/// Cuts at single characters.
template <class Is>
class AtCharacters final : public At {
 public:
  AtCharacters(Is is, Found how) : At(how), is_(is) {}

 private:
  void find(std::string_view text, std::vector<ByteRange>& out) const override {
    const unicode::Text all{text.data(), text.size()};
    for (std::size_t at = 0; at < text.size();) {
      const Character c = all.at(at);
      if (is_(c)) out.push_back({at, at + c.size});
      at += c.size;
    }
  }
  const Is is_;
};

template <class Is>
std::shared_ptr<const Splitter> at_characters(Is is, Found how) {
  return std::make_shared<AtCharacters<Is>>(is, how);
}

bool is_space(const Character& c) { return c.in(unicode::kSpaces); }
auto flagged(unicode::Flag flag) {
  return [flags = unicode::flags(), flag](const Character& c) {
    return (flags[c.code] & flag) != 0;
  };
}

/// \w+|[^\w\s]+ by the classes of Rust.
class Whitespace final : public At {
 public:
  Whitespace() : At(Found::removed, true) {}

 private:
  void find(std::string_view text, std::vector<ByteRange>& out) const override {
    const unicode::Text all{text.data(), text.size()};
    for (std::size_t at = 0; at < text.size();) {
      const Character first = all.at(at);
      const std::size_t begin = at;
      at += first.size;
      if (is_space(first)) continue;
      const bool word = is_word(first);
      for (; at < text.size(); at += all.at(at).size) {
        const Character next = all.at(at);
        if (is_space(next) || is_word(next) != word) break;
      }
      out.push_back({begin, at});
    }
  }
};

/// Writes the parts of a text again, each by `write(rewrite, part)`; what lies
/// between them is left out.
template <class Write>
void rewrite_parts(Pieces& pieces, const Write& write) {
  Rewrite rewrite(pieces.text);
  std::size_t done = 0;
  for (ByteRange& part : pieces.parts) {
    rewrite.drop(part.begin - done);
    done = part.end;
    const std::size_t begin = rewrite.size();
    write(rewrite, part);
    part = {begin, rewrite.size()};
  }
  rewrite.finish();
}

class Metaspace final : public Splitter {
 public:
  enum class Prepend { always, first, never };
  Metaspace(std::string mark, Prepend prepend, bool split)
      : mark_(std::move(mark)), prepend_(prepend), split_(split) {}

  bool asks_where() const override { return prepend_ == Prepend::first; }

  void apply(Pieces& pieces) const override {
    const std::string whole = pieces.text.text;
    rewrite_parts(pieces, [&](Rewrite& rewrite, ByteRange part) {
      const std::string_view text =
          std::string_view(whole).substr(part.begin, part.size());
      if (begins_anew(pieces.text, part, text)) rewrite.prepend(mark_);
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t space = std::min(text.find(' ', at), text.size());
        rewrite.keep(space - at);
        at = space;
        if (at < text.size()) rewrite.replace(1, mark_);
        at += at < text.size() ? 1 : 0;
      }
    });
    for (ByteRange part : std::exchange(pieces.parts, {})) cut(pieces, part);
  }

 private:
  bool begins_anew(const Aligned& text, ByteRange part,
                   std::string_view of) const {
    if (of.starts_with(mark_) || of.starts_with(' ')) return false;
    if (prepend_ != Prepend::first) return prepend_ == Prepend::always;
    return text.tracked ? text.from[part.begin].begin == 0
                        : text.begin + part.begin == 0;
  }

  /// Before each mark.
  void cut(Pieces& pieces, ByteRange part) const {
    const std::string& text = pieces.text.text;
    std::size_t begin = part.begin;
    while (split_) {
      const std::size_t next = text.find(mark_, begin + mark_.size());
      const bool starts = text.compare(begin, mark_.size(), mark_) == 0;
      std::size_t end = starts ? next : text.find(mark_, begin);
      if (end >= part.end) break;
      pieces.parts.push_back({begin, end});
      begin = end;
    }
    if (begin < part.end) pieces.parts.push_back({begin, part.end});
  }

  const std::string mark_;
  const Prepend prepend_;
  const bool split_;
};

class ByteLevel final : public Splitter {
 public:
  ByteLevel(bool prefix, bool pattern, bool stay)
      : prefix_(prefix), pattern_(pattern), stay_(stay) {}

  void apply(Pieces& pieces) const override {
    if (prefix_) prefix(pieces);
    if (pattern_) cut(pieces);
    if (!stay_) write(pieces);
  }

 private:
  static void prefix(Pieces& pieces) {
    const std::string whole = pieces.text.text;
    rewrite_parts(pieces, [&](Rewrite& rewrite, ByteRange part) {
      if (whole[part.begin] != ' ') rewrite.prepend(" ");
      rewrite.keep(part.size());
    });
  }

  static void cut(Pieces& pieces) {
    std::vector<ByteRange> parts;
    for (ByteRange part : pieces.parts)
      find_words(Family::gpt2, pieces.text.text, part, parts);
    pieces.parts = std::move(parts);
  }

  static void write(Pieces& pieces) {
    rewrite_parts(pieces, [](Rewrite& rewrite, ByteRange part) {
      for (std::size_t i = 0; i < part.size(); ++i)
        rewrite.replace(1, character_of_byte(
                               static_cast<unsigned char>(rewrite.rest()[0])));
    });
  }

  const bool prefix_, pattern_, stay_;
};

/// Everything with another word for what becomes of what is found.
Found found_of(const FileValue& value, Found otherwise) {
  if (value.is_null()) return otherwise;
  const std::string& name = value.text();
  if (name == "Removed") return Found::removed;
  if (name == "Isolated") return Found::isolated;
  if (name == "MergedWithPrevious") return Found::with_previous;
  if (name == "MergedWithNext") return Found::with_next;
  if (name == "Contiguous") return Found::contiguous;
  value.unknown("'" + name + "'");
}

/// The code point of a text that is one character.
std::uint32_t one_character(const FileValue& value) {
  const std::string& text = value.text();
  std::uint32_t size = 0;
  const std::uint32_t code =
      text.empty() ? 0 : unicode::code_at(text.data(), size);
  if (size != text.size() || size == 0) value.wrong("one character");
  return code;
}

std::shared_ptr<const Splitter> read_metaspace(const FileValue& part) {
  using Prepend = Metaspace::Prepend;
  Prepend prepend = Prepend::always;
  if (FileValue scheme = part.at("prepend_scheme"); !scheme.is_null()) {
    if (scheme.text() == "first")
      prepend = Prepend::first;
    else if (scheme.text() == "never")
      prepend = Prepend::never;
    else if (scheme.text() != "always")
      scheme.unknown("'" + scheme.text() + "'");
    if (!part.at("add_prefix_space").flag(true) && prepend != Prepend::never)
      part.wrong("\"add_prefix_space\" and \"prepend_scheme\" differ",
                 "compare this file with the one that the model came with");
  } else if (!part.at("add_prefix_space").flag(true)) {
    part.at("add_prefix_space").unknown("it without \"prepend_scheme\"");
  }
  const FileValue mark = part.at("replacement");
  one_character(mark);  // or an error
  return std::make_shared<Metaspace>(mark.text(), prepend,
                                     part.at("split").flag(true));
}

void read_into(const FileValue& part, bool bytes_last, Splitters& all) {
  const std::string& type = part.type();
  if (type == "Sequence") {
    const FileValue list = part.at("pretokenizers");
    for (std::size_t i = 0; i < list.size(); ++i)
      read_into(list.item(i), bytes_last && i + 1 == list.size(), all);
  } else if (type == "BertPreTokenizer") {
    all.push_back(at_characters(is_space, Found::removed));
    all.push_back(at_characters(flagged(unicode::kCutMark), Found::isolated));
  } else if (type == "Whitespace") {
    all.push_back(std::make_shared<Whitespace>());
  } else if (type == "WhitespaceSplit") {
    all.push_back(at_characters(is_space, Found::removed));
  } else if (type == "Punctuation") {
    all.push_back(
        at_characters(flagged(unicode::kCutMark),
                      found_of(part.at("behavior"), Found::isolated)));
  } else if (type == "Digits") {
    all.push_back(at_characters(flagged(unicode::kDigit),
                                part.at("individual_digits").flag(false)
                                    ? Found::isolated
                                    : Found::contiguous));
  } else if (type == "CharDelimiterSplit") {
    const std::uint32_t code = one_character(part.at("delimiter"));
    all.push_back(at_characters(
        [code](const Character& c) { return c.code == code; }, Found::removed));
  } else if (type == "Split") {
    const FileValue how = part.at("behavior");
    if (how.is_null()) how.wrong("a text");
    all.push_back(std::make_shared<AtMatches>(read_matching(part.at("pattern")),
                                              found_of(how, Found::isolated),
                                              part.at("invert").flag(false)));
  } else if (type == "Metaspace") {
    all.push_back(read_metaspace(part));
  } else if (type == "ByteLevel") {
    all.push_back(std::make_shared<ByteLevel>(
        part.at("add_prefix_space").flag(true), part.at("use_regex").flag(true),
        bytes_last));
  } else {
    part.unknown("the pre-tokenizer '" + type + "'");
  }
}

}  // namespace

Splitters read_splitters(const FileValue& part, bool bytes_last) {
  Splitters all;
  if (!part.is_null()) read_into(part, bytes_last, all);
  return all;
}

bool ends_in_bytes(const FileValue& part) {
  if (part.is_null()) return false;
  if (part.type() != "Sequence") return part.type() == "ByteLevel";
  const FileValue list = part.at("pretokenizers");
  return list.size() > 0 && ends_in_bytes(list.item(list.size() - 1));
}

}  // namespace penstock
