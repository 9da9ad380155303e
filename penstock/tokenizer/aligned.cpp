#include "penstock/tokenizer/aligned.h"

#include <algorithm>

#include "penstock/base/error.h"
#include "penstock/tokenizer/unicode.h"

namespace penstock {
namespace {

// The most that a step of Unicode makes of a character is 18 times its size.
constexpr std::size_t kMostGrowth = 32, kFreeGrowth = std::size_t{16} << 20;

[[noreturn]] void refuse_growth(std::size_t most) {
  throw Error(
      ErrorKind::transform,
      {.code = "tokenizer.growth",
       .what = "cannot tokenise a document",
       .where = "the normalizer of the tokenizer.json",
       .why = "the normalizer makes more than " + std::to_string(most) +
              " bytes of one document; the limit is 32 times its size plus "
              "16 MiB",
       .next = "check what its Replace, Prepend and Precompiled steps insert"});
}

}  // namespace

void Aligned::assign(std::string_view part, std::size_t begins, bool tracks) {
  text.assign(part);
  tracked = tracks;
  begin = begins;
  most = kMostGrowth * part.size() + kFreeGrowth;
  from.clear();
  if (!tracked) return;
  std::uint32_t size;
  for (std::size_t at = 0; at < part.size(); at += size) {
    unicode::code_at(part.data() + at, size);
    from.insert(from.end(), size, {begin + at, begin + at + size});
  }
}

std::uint32_t Rewrite::peek(std::uint32_t& size) const {
  return unicode::code_at(of_->text.data() + at_, size);
}

void Rewrite::keep(std::size_t bytes) {
  text_.append(of_->text, at_, bytes);
  if (of_->tracked) {
    auto first = of_->from.begin() + static_cast<std::ptrdiff_t>(at_);
    from_.insert(from_.end(), first,
                 first + static_cast<std::ptrdiff_t>(bytes));
  }
  at_ += bytes;
}

void Rewrite::write(std::string_view text, ByteRange from) {
  if (text.size() > of_->most - std::min(of_->most, text_.size()))
    refuse_growth(of_->most);
  text_.append(text);
  if (of_->tracked) from_.insert(from_.end(), text.size(), from);
}

void Rewrite::drop_characters(std::size_t count) {
  for (std::uint32_t size; count > 0 && !at_end(); --count) {
    peek(size);
    at_ += size;
  }
}

// `change` is that of NormalizedString::transform() in `tokenizers`: 1 is a
// character that is added, 0 one that replaces another, -n one that replaces n
// + 1. An added one is attributed to the character before it, the others to the
// first they replace.
void Rewrite::put(std::uint32_t code, int change) {
  std::string character;
  unicode::append(code, character);
  if (change > 0 || at_end()) return insert(character);
  write(character, of_->tracked ? of_->from[at_] : ByteRange());
  drop_characters(static_cast<std::size_t>(1 - change));
}

void Rewrite::replace(std::size_t bytes, std::string_view with) {
  write(with, of_->tracked ? of_->from[at_] : ByteRange());
  at_ += bytes;
}

void Rewrite::prepend(std::string_view with) {
  write(with, of_->tracked ? of_->from[at_] : ByteRange());
}

void Rewrite::insert(std::string_view more) {
  if (!of_->tracked) return write(more, {});
  write(more,
        at_ == 0 ? ByteRange{of_->begin, of_->begin} : of_->from[at_ - 1]);
}

void Rewrite::finish() {
  of_->text = std::move(text_);
  if (of_->tracked) of_->from = std::move(from_);
  text_.clear();
  from_.clear();
}

}  // namespace penstock
