#include "penstock/tokenizer/character_sets.h"
#include "penstock/tokenizer/composition.h"
#include "penstock/tokenizer/normalizers.h"
#include "penstock/tokenizer/unicode.h"

namespace penstock {
namespace {

/// BertNormalizer: cleans, sets Chinese characters apart, strips accents and
/// lowers, in this order. Each step looks at one character, but stripping,
/// which takes them apart first.
/// For ASCII text a table replaces all steps: no character of it is Chinese,
/// decomposes or is a mark. The text can only become shorter, so it is
/// rewritten in place; `to` never passes the character that is read.
class Bert final : public Normalizer {
 public:
  Bert(bool clean, bool chinese, bool strip, bool lower)
      : clean_(clean), chinese_(chinese), strip_(strip), lower_(lower) {
    for (std::uint32_t c = 0; c < 128; ++c) {
      ascii_[c] = static_cast<char>(lower_ ? unicode::lowered(c) : c);
      if (clean_ && (unicode::flags()[c] & unicode::kControl) != 0)
        ascii_[c] = -1;
      if (clean_ && (c == '\t' || c == '\n' || c == '\r')) ascii_[c] = ' ';
    }
  }

  void apply(Aligned& text) const override {
    if (unicode::is_ascii(text.text) && !text.tracked)
      return apply_to_ascii(text.text);
    if (clean_ || chinese_) clean(text);
    if (strip_) {
      unicode::normalise(text, unicode::Form::nfd);
      leave_out(text);
    }
    if (lower_) lower(text);
  }

 private:
  void apply_to_ascii(std::string& text) const {
    char* to = text.data();
    for (char c : text) {
      *to = ascii_[static_cast<unsigned char>(c)];
      to += *to >= 0 ? 1 : 0;
    }
    text.resize(static_cast<std::size_t>(to - text.data()));
  }

  void clean(Aligned& text) const {
    Rewrite rewrite(text);
    const std::uint8_t* flags = unicode::flags();
    const std::uint8_t* kinds = unicode::classes();
    std::uint32_t size;
    while (!rewrite.at_end()) {
      const std::uint32_t code = rewrite.peek(size);
      const bool gone = clean_ && (flags[code] & unicode::kControl) != 0;
      const bool blank = clean_ && kinds[code] == unicode::kSpace;
      if (gone) {
        rewrite.drop(size);
      } else if (chinese_ && (flags[code] & unicode::kChinese) != 0) {
        rewrite.prepend(" ");
        rewrite.keep(size);
        rewrite.insert(" ");
      } else if (blank && code != ' ') {
        rewrite.replace(size, " ");
      } else {
        rewrite.keep(size);
      }
    }
    rewrite.finish();
  }

  void leave_out(Aligned& text) const {
    Rewrite rewrite(text);
    std::uint32_t size;
    while (!rewrite.at_end()) {
      const std::uint32_t code = rewrite.peek(size);
      if ((unicode::flags()[code] & unicode::kBertMark) != 0)
        rewrite.drop(size);
      else
        rewrite.keep(size);
    }
    rewrite.finish();
  }

  void lower(Aligned& text) const {
    Rewrite rewrite(text);
    std::uint32_t size;
    while (!rewrite.at_end()) {
      const std::uint32_t code = rewrite.peek(size);
      const std::uint32_t to = unicode::lowered(code);
      if (to == code) {
        rewrite.keep(size);
      } else {
        rewrite.put(to, 0);
        if (code == 0x130) rewrite.insert("\u0307");
      }
    }
    rewrite.finish();
  }

  const bool clean_, chinese_, strip_, lower_;
  signed char ascii_[128];  // -1: left out
};

}  // namespace

std::shared_ptr<const Normalizer> read_bert_normalizer(const FileValue& part) {
  const bool lower = part.at("lowercase").flag(true);
  return std::make_shared<Bert>(part.at("clean_text").flag(true),
                                part.at("handle_chinese_chars").flag(true),
                                part.at("strip_accents").flag(lower), lower);
}

}  // namespace penstock
