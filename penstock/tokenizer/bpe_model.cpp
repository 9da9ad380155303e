#include "penstock/tokenizer/bpe_model.h"

#include "penstock/base/error.h"
#include "penstock/tokenizer/unicode.h"

namespace penstock {
namespace {

class Bytes final : public WordModel {
 public:
  explicit Bytes(const BytePairs& pairs)
      : pairs_(pairs), merger_(pairs.merges) {}

  void encode(std::string_view word, WordTokens& out) override {
    out.clear();
    if (pairs_.ignore_merges) {
      auto whole = pairs_.whole_words.find(std::string(word));
      if (whole != pairs_.whole_words.end())
        return out.add(whole->second, word.size());
    }
    for (char c : word) {
      const std::uint32_t id = pairs_.byte_ids[static_cast<unsigned char>(c)];
      if (id != BytePairs::kNone) out.add(id, 1);
    }
    const std::size_t count = merger_.merge(out.ids, out.sizes.data());
    out.ids.resize(count);
    out.sizes.resize(count);
  }

 private:
  const BytePairs& pairs_;
  Merger merger_;
};

class Characters final : public WordModel {
 public:
  explicit Characters(const BytePairs& pairs)
      : pairs_(pairs), merger_(pairs.merges) {}

  void encode(std::string_view word, WordTokens& out) override {
    out.clear();
    if (pairs_.ignore_merges) {
      auto whole = pairs_.ids.find(std::string(word));
      if (whole != pairs_.ids.end()) return out.add(whole->second, word.size());
    }
    unknown_ = 0;
    std::uint32_t size;
    for (std::size_t at = 0; at < word.size(); at += size) {
      unicode::code_at(word.data() + at, size);
      character(word, at, size, out);
    }
    flush(out);
    const std::size_t count = merger_.merge(out.ids, out.sizes.data());
    out.ids.resize(count);
    out.sizes.resize(count);
  }

 private:
  void character(std::string_view word, std::size_t at, std::size_t size,
                 WordTokens& out) {
    symbol_.assign(at == 0 ? "" : pairs_.prefix);
    symbol_ += word.substr(at, size);
    if (at + size == word.size()) symbol_ += pairs_.suffix;
    if (auto found = pairs_.ids.find(symbol_); found != pairs_.ids.end()) {
      flush(out);
      return out.add(found->second, size);
    }
    if (pairs_.falls_back && fall_back(out)) return;
    if (!pairs_.unknown) return;  // is left out
    if (unknown_ > 0 && !pairs_.fuse_unknown) flush(out);
    unknown_ += size;
  }

  bool fall_back(WordTokens& out) const {
    for (char c : symbol_)
      if (pairs_.fallback_ids[static_cast<unsigned char>(c)] ==
          BytePairs::kNone)
        return false;
    for (char c : symbol_)
      out.add(pairs_.fallback_ids[static_cast<unsigned char>(c)], 1);
    return true;
  }

  void flush(WordTokens& out) {
    if (unknown_ > 0) out.add(*pairs_.unknown, unknown_);
    unknown_ = 0;
  }

  const BytePairs& pairs_;
  Merger merger_;
  std::string symbol_;
  std::size_t unknown_ = 0;  // bytes that no token has yet
};

constexpr std::size_t kPlaces = std::size_t{1} << 20;

}  // namespace

std::unique_ptr<WordModel> byte_model(const BytePairs& pairs) {
  return std::make_unique<Bytes>(pairs);
}

std::unique_ptr<WordModel> character_model(const BytePairs& pairs) {
  return std::make_unique<Characters>(pairs);
}

std::size_t MergeCuts::place(std::uint32_t first, std::uint32_t second) {
  return (std::uint64_t{first} << 21 | second) * 0x9E3779B97F4A7C15 >> 44;
}

MergeCuts::MergeCuts(const Pairs& merges) : joined_(kPlaces / 64) {
  for (const auto& [first, second] : merges) {
    std::size_t last = first.size() - 1;
    while ((static_cast<unsigned char>(first[last]) & 0xC0) == 0x80) --last;
    std::uint32_t size;
    const std::size_t at = place(unicode::code_at(first.data() + last, size),
                                 unicode::code_at(second.data(), size));
    joined_[at >> 6] |= std::uint64_t{1} << (at & 63);
  }
}

void MergeCuts::cut(std::string_view text, ByteRange part,
                    std::vector<ByteRange>& out) const {
  std::size_t begin = part.begin;
  std::uint32_t size;
  std::uint32_t before = unicode::code_at(text.data() + begin, size);
  for (std::size_t at = begin + size; at < part.end; at += size) {
    const std::uint32_t code = unicode::code_at(text.data() + at, size);
    const std::size_t bit = place(before, code);
    before = code;
    if ((joined_[bit >> 6] >> (bit & 63) & 1) != 0) continue;
    out.push_back({begin, at});
    begin = at;
  }
  out.push_back({begin, part.end});
}

}  // namespace penstock
