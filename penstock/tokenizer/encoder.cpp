#include <algorithm>

#include "penstock/base/error.h"
#include "penstock/tokenizer/composition.h"
#include "penstock/tokenizer/encoder_inside.h"
#include "penstock/tokenizer/offsets.h"
#include "penstock/tokenizer/unicode.h"

namespace penstock {
namespace {

constexpr std::size_t kLongest = std::size_t{1} << 31;
/// Documents up to here are copied, so that reading may pass their end.
constexpr std::size_t kCopied = std::size_t{1} << 20;

}  // namespace

std::string_view Encoder::Inside::copied(std::string_view text, bool& padded) {
  padded = true;
  if (unicode::first_invalid(text) != text.size()) {
    std::string fixed;
    invalid += unicode::append_valid(text, fixed);
    copy.clear();
    copy.append(fixed.data(), fixed.size());
    return {copy.mutable_data<char>(), copy.size()};
  }
  if (text.size() > kCopied) {
    padded = false;
    return text;
  }
  copy.clear();
  copy.append(text.data(), text.size());
  return {copy.mutable_data<char>(), text.size()};
}

void Encoder::Inside::normalise(std::string_view text,
                                std::vector<std::uint32_t>& out, bool padded) {
  if (recipe.composes && !unicode::is_ascii(text)) {
    normalised.clear();
    unicode::append_composed(text, normalised);
    std::size_t size = normalised.size();
    normalised.append(64, '\0');
    return cut_normalised({normalised.data(), size}, out, true);
  }
  cut_normalised(text, out, padded);
}

void Encoder::Inside::cut_normalised(std::string_view text,
                                     std::vector<std::uint32_t>& out,
                                     bool padded) {
  if (recipe.normalized.empty()) return words(text, out, padded);
  parts.clear();
  recipe.normalized.cut(text, parts);
  for (const TokenSearch::Part& part : parts) {
    if (part.id != TokenSearch::kNone)
      out.push_back(part.id);
    else
      words(text.substr(part.begin, part.end - part.begin), out, padded);
  }
}

void Encoder::Inside::words(std::string_view text,
                            std::vector<std::uint32_t>& out, bool padded) {
  if (recipe.prefix_space && (text.empty() || text[0] != ' ')) {
    prefixed.assign(1, ' ');
    prefixed += text;
    std::size_t size = prefixed.size();
    prefixed.append(64, '\0');
    text = {prefixed.data(), size};
    padded = true;
  }
  document_end =
      padded ? SIZE_MAX
             : reinterpret_cast<std::uintptr_t>(text.data()) + text.size();
  Scanner scanner(*recipe.family, text, padded);
  begins[0] = 0;
  while (std::size_t count = scanner.next(&begins[1], kRoom)) {
    look_up({text.data(), &begins[0], &begins[1], count}, out);
    begins[0] = begins[count];
  }
}

void Encoder::Inside::document(std::string_view text, bool padded,
                               std::vector<std::uint32_t>& out,
                               std::vector<TokenOffsets>* offsets) {
  raw_parts.clear();
  if (recipe.raw.empty())
    raw_parts.push_back({0, text.size(), TokenSearch::kNone});
  else
    recipe.raw.cut(text, raw_parts);
  for (const TokenSearch::Part& part : raw_parts) {
    const std::string_view between =
        text.substr(part.begin, part.end - part.begin);
    if (part.id != TokenSearch::kNone) {
      out.push_back(part.id);
      if (offsets != nullptr)
        offsets->push_back({static_cast<std::uint32_t>(part.begin),
                            static_cast<std::uint32_t>(part.end)});
    } else if (recipe.family && offsets == nullptr) {
      normalise(between, out, padded);
    } else {
      steps(between, part.begin, out, offsets);
    }
  }
}

Encoder::Encoder(std::shared_ptr<const Tokenizer> tokenizer)
    : inside_(std::make_unique<Inside>(std::move(tokenizer))) {}
Encoder::~Encoder() = default;
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;

void Encoder::encode(std::string_view text, bool special,
                     std::vector<std::uint32_t>& out) {
  encode(text, special, out, nullptr);
}

void Encoder::encode(std::string_view text, bool special,
                     std::vector<std::uint32_t>& out,
                     std::vector<TokenOffsets>& offsets) {
  encode(text, special, out, &offsets);
}

void Encoder::encode(std::string_view text, bool special,
                     std::vector<std::uint32_t>& out,
                     std::vector<TokenOffsets>* offsets) {
  Inside& in = *inside_;
  const Recipe& recipe = in.recipe;
  if (text.size() > kLongest)
    throw Error(ErrorKind::transform,
                {.code = "tokenizer.document",
                 .what = "cannot tokenise a document",
                 .why = "the document has " + std::to_string(text.size()) +
                        " bytes, but at most 2147483648 can be tokenised",
                 .next = "split the document into several"});
  if (special)
    out.insert(out.end(), recipe.before.begin(), recipe.before.end());
  const std::size_t first = out.size();
  bool padded;
  const std::string_view document = in.copied(text, padded);
  if (offsets == nullptr) {
    in.document(document, padded, out, nullptr);
  } else {
    if (special) offsets->resize(offsets->size() + recipe.before.size());
    const std::size_t begin = offsets->size();
    in.document(document, padded, out, offsets);
    count_characters(document, std::span(*offsets).subspan(begin));
  }
  if (offsets != nullptr) {
    if (recipe.trims_offsets)
      trim_offsets(recipe, std::span(out).subspan(first),
                   std::span(*offsets).last(out.size() - first));
    if (special) offsets->resize(offsets->size() + recipe.behind.size());
  }
  if (special)
    out.insert(out.end(), recipe.behind.begin(), recipe.behind.end());
}

std::size_t Encoder::invalid_utf8() const { return inside_->invalid; }

}  // namespace penstock
