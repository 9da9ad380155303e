// Each step does what the one of its name does in `tokenizers`.
#include "penstock/tokenizer/normalizers.h"

#include <algorithm>
#include <functional>

#include "penstock/tokenizer/byte_level.h"
#include "penstock/tokenizer/character_sets.h"
#include "penstock/tokenizer/composition.h"
#include "penstock/tokenizer/matches.h"
#include "penstock/tokenizer/unicode.h"

namespace penstock {
namespace {

class Normal final : public Normalizer {
 public:
  explicit Normal(unicode::Form form) : form_(form) {}
  void apply(Aligned& text) const override { unicode::normalise(text, form_); }

 private:
  const unicode::Form form_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string with) : with_(std::move(with)) {}
  void apply(Aligned& text) const override {
    if (text.text.empty() || with_.empty()) return;
    Rewrite rewrite(text);
    rewrite.prepend(with_);
    rewrite.keep(text.text.size());
    rewrite.finish();
  }

 private:
  const std::string with_;
};

class Replace final : public Normalizer {
 public:
  Replace(std::unique_ptr<Matching> what, std::string with)
      : what_(std::move(what)), with_(std::move(with)) {}
  void apply(Aligned& text) const override {
    std::vector<ByteRange> matches;
    what_->find(text.text, matches);
    if (matches.empty()) return;
    Rewrite rewrite(text);
    std::size_t done = 0;
    for (ByteRange match : matches) {
      rewrite.keep(match.begin - done);
      rewrite.drop(match.size());
      rewrite.insert(with_);
      done = match.end;
    }
    rewrite.keep(text.text.size() - done);
    rewrite.finish();
  }

 private:
  const std::unique_ptr<Matching> what_;
  const std::string with_;
};

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  void apply(Aligned& text) const override {
    const unicode::Text all{text.text.data(), text.text.size()};
    const std::size_t begin = left_ ? all.skip(unicode::kSpaces, 0) : 0;
    std::size_t end = right_ ? begin : all.size;
    for (std::size_t at = begin; right_ && at < all.size;) {
      const unicode::Character c = all.at(at);
      at += c.size;
      if (!c.in(unicode::kSpaces)) end = at;
    }
    Rewrite rewrite(text);
    rewrite.drop(begin);
    rewrite.keep(end - begin);
    rewrite.finish();
  }

 private:
  const bool left_, right_;
};

/// Changes characters one by one.
class EachCharacter final : public Normalizer {
 public:
  using Change = std::function<void(std::uint32_t, std::uint32_t, Rewrite&)>;
  explicit EachCharacter(Change change) : change_(std::move(change)) {}
  void apply(Aligned& text) const override {
    Rewrite rewrite(text);
    std::uint32_t size;
    while (!rewrite.at_end()) {
      const std::uint32_t code = rewrite.peek(size);
      change_(code, size, rewrite);
    }
    rewrite.finish();
  }

 private:
  const Change change_;
};

void lower(std::uint32_t code, std::uint32_t size, Rewrite& rewrite) {
  const std::uint32_t to = unicode::lowered(code);
  if (to == code) return rewrite.keep(size);
  rewrite.put(to, 0);
  if (code == 0x130) rewrite.insert("\u0307");
}

void strip_accents(std::uint32_t code, std::uint32_t size, Rewrite& rewrite) {
  if ((unicode::flags()[code] & unicode::kStrippedMark) != 0)
    rewrite.drop(size);
  else
    rewrite.keep(size);
}

void nmt(std::uint32_t code, std::uint32_t size, Rewrite& rewrite) {
  const bool gone = (code >= 1 && code <= 8) || code == 0xB ||
                    (code >= 0xE && code <= 0x1F) || code == 0x7F ||
                    code == 0x8F || code == 0x9F;
  const bool blank = code == 9 || code == 0xA || code == 0xC || code == 0xD ||
                     code == 0x1680 || (code >= 0x200B && code <= 0x200F) ||
                     code == 0x2028 || code == 0x2029 || code == 0x2581 ||
                     code == 0xFEFF || code == 0xFFFD;
  if (gone)
    rewrite.drop(size);
  else if (blank)
    rewrite.replace(size, " ");
  else
    rewrite.keep(size);
}

void bytes(std::uint32_t, std::uint32_t size, Rewrite& rewrite) {
  const std::string_view from = rewrite.rest().substr(0, size);
  std::string all;
  for (char c : from) all += character_of_byte(static_cast<unsigned char>(c));
  rewrite.replace(size, all);
}

std::shared_ptr<const Normalizer> read_one(const FileValue& part) {
  using unicode::Form;
  const std::string& type = part.type();
  for (auto [name, form] :
       {std::pair("NFC", Form::nfc), std::pair("NFD", Form::nfd),
        std::pair("NFKC", Form::nfkc), std::pair("NFKD", Form::nfkd)})
    if (type == name) return std::make_shared<Normal>(form);
  for (auto [name, change] :
       {std::pair("Lowercase", &lower),
        std::pair("StripAccents", &strip_accents), std::pair("Nmt", &nmt),
        std::pair("ByteLevel", &bytes)})
    if (type == name) return std::make_shared<EachCharacter>(change);
  if (type == "Prepend")
    return std::make_shared<Prepend>(part.at("prepend").text());
  if (type == "Strip")
    return std::make_shared<Strip>(part.at("strip_left").flag(false),
                                   part.at("strip_right").flag(false));
  if (type == "Replace")
    return std::make_shared<Replace>(read_matching(part.at("pattern")),
                                     part.at("content").text());
  if (type == "BertNormalizer") return read_bert_normalizer(part);
  if (type == "Precompiled") return read_precompiled(part);
  part.unknown("the normalizer '" + type + "'");
}

}  // namespace

Normalizers read_normalizers(const FileValue& part) {
  if (part.is_null()) return {};
  if (part.type() != "Sequence") return {read_one(part)};
  Normalizers all;
  const FileValue list = part.at("normalizers");
  for (std::size_t i = 0; i < list.size(); ++i)
    for (auto& one : read_normalizers(list.item(i)))
      all.push_back(std::move(one));
  return all;
}

}  // namespace penstock
