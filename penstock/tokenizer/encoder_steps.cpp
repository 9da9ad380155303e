// Text that goes through steps: normalisers, splitters, words. With offsets
// each byte knows where it came from.
#include <algorithm>

#include "penstock/tokenizer/encoder_inside.h"

namespace penstock {
namespace {

/// The part of a text that lies between added tokens.
/// Even an empty part keeps its `begin`, from which the offsets of tokens
/// without text are made.
Aligned slice(const Aligned& of, ByteRange part) {
  Aligned made;
  made.text = of.text.substr(part.begin, part.size());
  made.tracked = of.tracked;
  made.begin = of.begin + part.begin;
  made.most = of.most;
  if (!of.tracked) return made;
  auto first = of.from.begin();
  made.from.assign(first + static_cast<std::ptrdiff_t>(part.begin),
                   first + static_cast<std::ptrdiff_t>(part.end));
  if (!made.from.empty()) made.begin = made.from.front().begin;
  return made;
}

/// Of which bytes of the document a part of a text was made.
TokenOffsets made_of(const Aligned& text, ByteRange part) {
  if (part.size() == 0) {
    const auto at = static_cast<std::uint32_t>(text.begin);
    return {at, at};
  }
  return {static_cast<std::uint32_t>(text.from[part.begin].begin),
          static_cast<std::uint32_t>(text.from[part.end - 1].end)};
}

}  // namespace

void Encoder::Inside::steps(std::string_view text, std::size_t begin,
                            std::vector<std::uint32_t>& out,
                            std::vector<TokenOffsets>* offsets) {
  Aligned& whole = pieces.text;
  whole.assign(text, begin, offsets != nullptr || recipe.asks_where);
  for (const auto& step : recipe.normalizers) step->apply(whole);
  if (recipe.normalized.empty()) return pieces_to_ids(out, offsets);
  parts.clear();
  recipe.normalized.cut(whole.text, parts);
  if (parts.size() == 1 && parts[0].id == TokenSearch::kNone)
    return pieces_to_ids(out, offsets);
  const Aligned all = std::move(pieces.text);
  for (const TokenSearch::Part& part : parts) {
    const ByteRange range{part.begin, part.end};
    if (part.id == TokenSearch::kNone) {
      pieces.text = slice(all, range);
      pieces_to_ids(out, offsets);
    } else {
      out.push_back(part.id);
      if (offsets != nullptr) offsets->push_back(made_of(all, range));
    }
  }
}

void Encoder::Inside::cut_pieces() {
  pieces.parts.clear();
  if (pieces.text.text.empty()) return;
  pieces.parts.push_back({0, pieces.text.text.size()});
  for (const auto& step : recipe.splitters) step->apply(pieces);
  if (!recipe.cuts) return;
  cut_parts.clear();
  for (ByteRange part : pieces.parts)
    recipe.cuts->cut(pieces.text.text, part, cut_parts);
  pieces.parts.swap(cut_parts);
}

void Encoder::Inside::pieces_to_ids(std::vector<std::uint32_t>& out,
                                    std::vector<TokenOffsets>* offsets) {
  cut_pieces();
  const std::vector<ByteRange>& all = pieces.parts;
  if (offsets != nullptr) {
    for (ByteRange part : all) add_with_offsets(part, out, *offsets);
    return;
  }
  const std::string& text = pieces.text.text;
  document_end = reinterpret_cast<std::uintptr_t>(text.data()) + text.size();
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t base = all[at].begin;
    std::size_t count = 0;
    for (; count < kRoom && at < all.size(); ++count, ++at) {
      if (count > 0 && all[at].end - base > UINT32_MAX) break;
      begins[count] = static_cast<std::uint32_t>(all[at].begin - base);
      ends[count] = static_cast<std::uint32_t>(all[at].end - base);
    }
    look_up({text.data() + base, begins.data(), ends.data(), count}, out);
  }
}

void Encoder::Inside::add_with_offsets(ByteRange part,
                                       std::vector<std::uint32_t>& out,
                                       std::vector<TokenOffsets>& offsets) {
  const std::string_view text = pieces.text.text;
  tokens.measured = true;
  model->encode(text.substr(part.begin, part.size()), tokens);
  std::size_t begin = part.begin;
  std::size_t waiting = 0;  // tokens that share the place of the next one
  for (std::size_t i = 0; i < tokens.ids.size(); ++i) {
    out.push_back(tokens.ids[i]);
    ++waiting;
    if (tokens.sizes[i] == 0) continue;
    // What a token is written as may be longer than what it stands for, where a
    // file contradicts itself.
    const ByteRange range{begin, std::min(begin + tokens.sizes[i], part.end)};
    offsets.insert(offsets.end(), waiting, made_of(pieces.text, range));
    begin = range.end;
    waiting = 0;
  }
  offsets.insert(offsets.end(), waiting,
                 made_of(pieces.text, {part.end, part.end}));
}

}  // namespace penstock
