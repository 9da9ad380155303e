#include "penstock/tokenizer/added_tokens.h"

#include <algorithm>
#include <cstring>

#include "penstock/tokenizer/unicode.h"

namespace penstock {
namespace {

using unicode::Character;
using unicode::Text;

Character last_character(std::string_view text) {
  std::size_t at = text.size();
  while (at > 0 && (static_cast<unsigned char>(text[--at]) & 0xC0) == 0x80) {
  }
  return Text{text.data(), text.size()}.at(at);
}

/// Where the white space begins that a text ends with.
std::size_t space_before(std::string_view text) {
  while (!text.empty()) {
    Character last = last_character(text);
    if (!last.in(unicode::kSpaces)) break;
    text.remove_suffix(last.size);
  }
  return text.size();
}

bool is_apart(std::string_view text, std::size_t begin, std::size_t end) {
  bool before = begin > 0 && is_word(last_character(text.substr(0, begin)));
  bool behind =
      end < text.size() && is_word(Text{text.data(), text.size()}.at(end));
  return !before && !behind;
}

}  // namespace

void TokenSearch::add(const AddedToken& token, const std::string& as_searched) {
  if (as_searched.empty()) return;
  std::uint32_t node = 0;
  for (char c : as_searched) {
    std::uint64_t step =
        std::uint64_t{node} << 8 | static_cast<unsigned char>(c);
    auto [place, is_new] =
        steps_.try_emplace(step, static_cast<std::uint32_t>(ends_.size()));
    if (is_new) ends_.push_back(kNone);
    node = place->second;
  }
  ends_[node] = static_cast<std::uint32_t>(tokens_.size());
  tokens_.push_back(token);
  auto first = static_cast<unsigned char>(as_searched[0]);
  if (!firsts_[first]) only_first_ += as_searched[0];
  firsts_[first] = true;
}

TokenSearch::Found TokenSearch::at(std::string_view text) const {
  Found found;
  std::uint32_t node = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto step = steps_.find(std::uint64_t{node} << 8 |
                            static_cast<unsigned char>(text[i]));
    if (step == steps_.end()) break;
    node = step->second;
    if (ends_[node] != kNone) found = {i + 1, ends_[node]};
  }
  return found;
}

std::size_t TokenSearch::candidate(std::string_view text,
                                   std::size_t from) const {
  if (only_first_.size() == 1) {
    const void* found =
        std::memchr(text.data() + from, only_first_[0], text.size() - from);
    return found == nullptr
               ? text.size()
               : static_cast<std::size_t>(static_cast<const char*>(found) -
                                          text.data());
  }
  while (from < text.size() && !firsts_[static_cast<unsigned char>(text[from])])
    ++from;
  return from;
}

// Invariant: everything before `done` is in `parts`, and the search continues
// at `at`, after the last token without its white space. lstrip widens a token
// no further than to `done`. rstrip moves `done` but not `at`: the next token
// may begin in the white space that was taken, as in `tokenizers`; then parts
// overlap.
void TokenSearch::cut(std::string_view text, std::vector<Part>& parts) const {
  std::size_t done = 0, at = 0;
  while (!tokens_.empty() && at < text.size() &&
         (at = candidate(text, at)) < text.size()) {
    Found found = this->at(text.substr(at));
    if (found.size == 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[found.token];
    std::size_t begin = at, end = at + found.size;
    at = end;
    if (token.single_word && !is_apart(text, begin, end)) continue;
    if (token.lstrip)
      begin = std::max(space_before(text.substr(0, begin)), done);
    if (token.rstrip)
      end = Text{text.data(), text.size()}.skip(unicode::kSpaces, end);
    if (done < begin) parts.push_back({done, begin, kNone});
    parts.push_back({begin, end, token.id});
    done = end;
  }
  if (done != text.size()) parts.push_back({done, text.size(), kNone});
}

}  // namespace penstock
