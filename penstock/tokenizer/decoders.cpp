// Each step does what the one of its name does in `tokenizers`.
#include "penstock/tokenizer/decoders.h"

#include <functional>

#include "penstock/base/error.h"
#include "penstock/tokenizer/byte_level.h"
#include "penstock/tokenizer/matches.h"
#include "penstock/tokenizer/unicode.h"

namespace penstock {

/// Makes the step of a text.
class DecodeKind {
 public:
  explicit DecodeKind(std::function<std::unique_ptr<DecodeStep>()> make)
      : make(std::move(make)) {}
  const std::function<std::unique_ptr<DecodeStep>()> make;
};

namespace {

void replace_all(std::string& text, std::string_view what,
                 std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos;
       at += with.size())
    text.replace(at, what.size(), with);
}

constexpr std::size_t kMostOfToken = std::size_t{16} << 20;

[[noreturn]] void refuse_growth() {
  throw Error(ErrorKind::transform,
              {.code = "tokenizer.growth",
               .what = "cannot write ids as text",
               .where = "the decoder of the tokenizer.json",
               .why = "the decoder produces more than 16 MiB from one token",
               .next = "check what its Replace steps insert"});
}

/// Tokens of byte-level characters become the bytes they stand for.
class ByteLevel final : public DecodeStep {
 public:
  void add(std::string token, Out& out) override {
    kept_ += bytes_of_token(token, bytes_) ? bytes_ : token;
    const std::size_t whole = kept_.size() - unicode::unfinished(kept_);
    give(whole, out);
  }
  void finish(Out& out) override { give(kept_.size(), out); }

 private:
  void give(std::size_t size, Out& out) {
    std::string text;
    unicode::append_valid(std::string_view(kept_).substr(0, size), text);
    kept_.erase(0, size);
    out.push_back(std::move(text));
  }
  std::string bytes_;  // of a token
  std::string kept_;
};

class WordPiece final : public DecodeStep {
 public:
  WordPiece(std::string prefix, bool cleanup)
      : prefix_(std::move(prefix)), cleanup_(cleanup) {}
  void add(std::string token, Out& out) override {
    if (!first_) {
      if (token.starts_with(prefix_))
        token.erase(0, prefix_.size());
      else
        token.insert(0, " ");
    }
    first_ = false;
    if (cleanup_) clean(token);
    out.push_back(std::move(token));
  }

 private:
  static void clean(std::string& text) {
    constexpr std::pair<std::string_view, std::string_view> changes[] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (auto [what, with] : changes) replace_all(text, what, with);
  }
  const std::string prefix_;
  const bool cleanup_;
  bool first_ = true;
};

class Metaspace final : public DecodeStep {
 public:
  Metaspace(std::string mark, bool prepended)
      : mark_(std::move(mark)), leaves_out_(prepended) {}
  void add(std::string token, Out& out) override {
    replace_all(token, mark_, leaves_out_ ? "" : " ");
    leaves_out_ = false;
    out.push_back(std::move(token));
  }

 private:
  const std::string mark_;
  bool leaves_out_;  // of the first token
};

class ByteFallback final : public DecodeStep {
 public:
  void add(std::string token, Out& out) override {
    if (token.size() == 6 && token.starts_with("<0x") && token[5] == '>') {
      const int high = digit(token[3]), low = digit(token[4]);
      // A sign is a digit to the library.
      if (low >= 0 && (high >= 0 || token[3] == '+')) {
        bytes_ += static_cast<char>((high < 0 ? 0 : high) * 16 + low);
        return;
      }
    }
    finish(out);
    out.push_back(std::move(token));
  }
  void finish(Out& out) override {
    if (bytes_.empty()) return;
    if (unicode::first_invalid(bytes_) == bytes_.size())
      out.push_back(bytes_);
    else
      out.insert(out.end(), bytes_.size(), "\uFFFD");
    bytes_.clear();
  }

 private:
  static int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const int lower = c | 32;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
  }
  std::string bytes_;
};

/// What follows sees one token.
class Fuse final : public DecodeStep {
 public:
  void add(std::string token, Out&) override { text_ += token; }
  void finish(Out& out) override { out.push_back(std::move(text_)); }

 private:
  std::string text_;
};

/// Fuse and then Strip of the beginning alone, which hold nothing back.
class FuseAndStrip final : public DecodeStep {
 public:
  FuseAndStrip(std::string content, std::int64_t most)
      : content_(std::move(content)), left_(most) {}
  void add(std::string token, Out& out) override {
    std::size_t at = 0;
    for (; left_ > 0 && at < token.size(); --left_) {
      if (token.compare(at, content_.size(), content_) != 0) {
        left_ = 0;
        break;
      }
      at += content_.size();
    }
    out.push_back(token.substr(at));
  }

 private:
  const std::string content_;
  std::int64_t left_;
};

class StripEnds final : public DecodeStep {
 public:
  StripEnds(std::string content, std::int64_t start, std::int64_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  void add(std::string token, Out& out) override {
    std::string_view text = token;
    for (std::int64_t i = 0; i < start_ && text.starts_with(content_); ++i)
      text.remove_prefix(content_.size());
    for (std::int64_t i = 0; i < stop_ && text.ends_with(content_); ++i)
      text.remove_suffix(content_.size());
    out.emplace_back(text);
  }

 private:
  const std::string content_;
  const std::int64_t start_, stop_;
};

class ReplaceAll final : public DecodeStep {
 public:
  ReplaceAll(std::shared_ptr<const Matching> what, std::string with)
      : what_(std::move(what)), with_(std::move(with)) {}
  void add(std::string token, Out& out) override {
    std::vector<ByteRange> matches;
    what_->find(token, matches);
    std::string text;
    std::size_t done = 0;
    for (ByteRange match : matches) {
      text.append(token, done, match.begin - done).append(with_);
      if (text.size() > kMostOfToken) refuse_growth();
      done = match.end;
    }
    out.push_back(text.append(token, done));
  }

 private:
  const std::shared_ptr<const Matching> what_;
  const std::string with_;
};

/// What ends a word becomes a space, but at the end of the text.
class EndOfWord final : public DecodeStep {
 public:
  explicit EndOfWord(std::string suffix) : suffix_(std::move(suffix)) {}
  void add(std::string token, Out& out) override {
    if (held_) give(" ", out);
    held_ = std::move(token);
  }
  void finish(Out& out) override {
    if (held_) give("", out);
  }

 private:
  void give(std::string_view with, Out& out) {
    replace_all(*held_, suffix_, with);
    out.push_back(std::move(*held_));
  }
  const std::string suffix_;
  std::optional<std::string> held_;
};

/// A file without a decoder: tokens with spaces between.
class Joined final : public DecodeStep {
 public:
  void add(std::string token, Out& out) override {
    out.push_back(first_ ? std::move(token) : " " + token);
    first_ = false;
  }

 private:
  bool first_ = true;
};

template <class Step, class... Settings>
std::shared_ptr<const DecodeKind> kind(Settings... settings) {
  return std::make_shared<DecodeKind>(
      [settings...] { return std::make_unique<Step>(settings...); });
}

using Kinds = std::vector<std::shared_ptr<const DecodeKind>>;

std::string text_or(const FileValue& value, std::string otherwise) {
  return value.is_null() ? otherwise : value.text();
}

/// Of a Strip: its character, and how many at the beginning and the end.
struct Stripped {
  explicit Stripped(const FileValue& part)
      : content(part.at("content").text()),
        start(part.at("start").whole(0, INT32_MAX)),
        stop(part.at("stop").whole(0, INT32_MAX)) {
    if (content.empty()) part.at("content").wrong("one character");
  }
  std::string content;
  std::int64_t start, stop;
};

std::shared_ptr<const DecodeKind> read_one(const FileValue& part) {
  const std::string& type = part.type();
  if (type == "ByteLevel") return kind<ByteLevel>();
  if (type == "WordPiece")
    return kind<WordPiece>(text_or(part.at("prefix"), "##"),
                           part.at("cleanup").flag(true));
  if (type == "Metaspace") {
    const bool prepended =
        text_or(part.at("prepend_scheme"), "always") != "never" &&
        part.at("add_prefix_space").flag(true);
    const FileValue mark = part.at("replacement");
    if (mark.text().empty()) mark.wrong("one character");
    return kind<Metaspace>(mark.text(), prepended);
  }
  if (type == "ByteFallback") return kind<ByteFallback>();
  if (type == "Fuse") return kind<Fuse>();
  if (type == "Strip") {
    const Stripped strip(part);
    return kind<StripEnds>(strip.content, strip.start, strip.stop);
  }
  if (type == "Replace")
    return kind<ReplaceAll>(
        std::shared_ptr<const Matching>(read_matching(part.at("pattern"))),
        part.at("content").text());
  if (type == "BPEDecoder") {
    const std::string suffix = text_or(part.at("suffix"), "</w>");
    if (suffix.empty()) part.at("suffix").unknown("an empty suffix");
    return kind<EndOfWord>(suffix);
  }
  part.unknown("the decoder '" + type + "'");
}

void flatten(const FileValue& part, std::vector<FileValue>& out) {
  if (part.type() != "Sequence") return out.push_back(part);
  const FileValue list = part.at("decoders");
  for (std::size_t i = 0; i < list.size(); ++i) flatten(list.item(i), out);
}

}  // namespace

Decoding::Decoding(const FileValue& part) {
  if (part.is_null()) {
    kinds_.push_back(kind<Joined>());
    return;
  }
  std::vector<FileValue> parts;
  flatten(part, parts);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool last_two = i + 2 == parts.size() && parts[i].type() == "Fuse" &&
                          parts[i + 1].type() == "Strip";
    if (last_two) {
      const Stripped strip(parts[i + 1]);
      if (strip.stop == 0) {
        kinds_.push_back(kind<FuseAndStrip>(strip.content, strip.start));
        return;
      }
    }
    // There all tokens are one text for what follows.
    if (i > 0 && parts[i - 1].type() == "ByteLevel" &&
        parts[i].type() != "Fuse")
      parts[i].unknown("a decoder after ByteLevel");
    // At the end all is joined anyway.
    if (parts[i].type() != "Fuse" || i + 1 < parts.size())
      kinds_.push_back(read_one(parts[i]));
  }
}

Decoding::Run Decoding::begin() const {
  Run run;
  for (const auto& kind : kinds_) run.steps_.push_back(kind->make());
  return run;
}

std::string Decoding::Run::through(std::size_t step, DecodeStep::Out tokens) {
  for (; step < steps_.size(); ++step) {
    DecodeStep::Out next;
    for (std::string& token : tokens) steps_[step]->add(std::move(token), next);
    tokens = std::move(next);
  }
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

std::string Decoding::Run::add(std::string token) {
  DecodeStep::Out tokens;
  tokens.push_back(std::move(token));
  return through(0, std::move(tokens));
}

// What a step held back is a token for the steps after it, so it passes through
// them before they are asked for what they hold themselves.
std::string Decoding::Run::finish() {
  std::string text;
  for (std::size_t step = 0; step < steps_.size(); ++step) {
    DecodeStep::Out held;
    steps_[step]->finish(held);
    text += through(step + 1, std::move(held));
  }
  return text;
}

}  // namespace penstock
