#include "penstock/tokenizer/word_models.h"

#include <algorithm>

#include "penstock/base/error.h"
#include "penstock/base/utf8.h"
#include "penstock/tokenizer/unicode.h"

namespace penstock {
namespace {

[[noreturn]] void refuse(std::string_view word) {
  throw Error(ErrorKind::transform,
              {.code = "tokenizer.unknown",
               .what = "cannot tokenise a document",
               .why = "the model has no token for " + beginning(word) +
                      ", and none for unknown texts",
               .next = "leave the document out, or use a tokenizer that has "
                       "an unk_token"});
}

// Greedy, longest match first, as BERT's WordpieceTokenizer does it: either all
// of a word is made of pieces or the whole word is unknown. At most the bytes
// of a word times the longest piece.
class WordPiece final : public WordModel {
 public:
  explicit WordPiece(const WordPieces& pieces) : pieces_(pieces) {}

  void encode(std::string_view word, WordTokens& out) override {
    out.clear();
    if (is_too_long(word)) return unknown(word, out);
    for (std::size_t at = 0; at < word.size();) {
      const TokenTrie& trie = at == 0 ? pieces_.first : pieces_.later;
      std::uint32_t node = 0, best = TokenTrie::kNone;
      std::size_t end = at;
      for (std::size_t i = at; i < word.size(); ++i) {
        node = trie.next(node, word[i]);
        if (node == TokenTrie::kNone) break;
        if (trie.number(node) == TokenTrie::kNone) continue;
        best = trie.number(node);
        end = i + 1;
      }
      if (best == TokenTrie::kNone) return unknown(word, out);
      out.add(best, end - at);
      at = end;
    }
  }

 private:
  bool is_too_long(std::string_view word) const {
    if (word.size() <= pieces_.longest) return false;
    const auto characters = std::ranges::count_if(word, [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    });
    return static_cast<std::size_t>(characters) > pieces_.longest;
  }
  void unknown(std::string_view word, WordTokens& out) const {
    if (!pieces_.unknown) refuse(word);
    out.clear();
    out.add(*pieces_.unknown, word.size());
  }

  const WordPieces& pieces_;
};

class WordLevel final : public WordModel {
 public:
  explicit WordLevel(const WholeWords& words) : words_(words) {}

  void encode(std::string_view word, WordTokens& out) override {
    out.clear();
    if (const auto found = words_.ids.find(word))
      return out.add(*found, word.size());
    if (!words_.unknown) refuse(word);
    out.add(*words_.unknown, word.size());
  }

 private:
  const WholeWords& words_;
};

// The segmentation of the highest sum of log probabilities (Kudo 2018, "Subword
// Regularization", section 3.2), by Viterbi's algorithm over byte positions:
// 1. Before position `at` is expanded, nodes_[at] holds the best score of all
//    segmentations of the bytes before it and where its last piece begins.
// 2. Every character boundary has a node: a character that is not a token by
//    itself can always be taken as unknown, or encode() refuses the word.
// 3. Of equal scores the one found first stays, which is the one whose last
//    piece begins first. `tokenizers` decides the same way, so the sums are
//    doubles that are added in its order.
// The time is the bytes of the word times the longest token.
class Unigram final : public WordModel {
 public:
  explicit Unigram(const Unigrams& of) : of_(of) {}

  void encode(std::string_view word, WordTokens& out) override {
    out.clear();
    find_best(word);
    // From the end to the beginning; what is unknown is joined.
    ends_.clear();
    bool before = false;
    for (std::size_t end = word.size(); end > 0; end = nodes_[end].begin) {
      const bool unknown = of_.unknown && nodes_[end].id == *of_.unknown;
      if (!(unknown && before)) ends_.push_back(end);
      before = unknown;
    }
    std::size_t begin = 0;
    for (auto end = ends_.rbegin(); end != ends_.rend(); ++end) {
      add(word, begin, *end, out);
      begin = *end;
    }
  }

 private:
  struct Node {
    double score;
    std::size_t begin;  // kNone: nothing ends here
    std::uint32_t id;
  };
  static constexpr std::size_t kNone = SIZE_MAX;

  void find_best(std::string_view word) {
    nodes_.assign(word.size() + 1, {0, kNone, 0});
    std::uint32_t size;
    for (std::size_t at = 0; at < word.size(); at += size) {
      unicode::code_at(word.data() + at, size);
      const double till_here = nodes_[at].score;
      bool single = false;
      std::uint32_t node = 0;
      for (std::size_t i = at; i < word.size(); ++i) {
        node = of_.tokens.next(node, word[i]);
        if (node == TokenTrie::kNone) break;
        const std::uint32_t id = of_.tokens.number(node);
        if (id == TokenTrie::kNone) continue;
        better(i + 1, of_.scores[id] + till_here, at, id);
        single = single || i + 1 - at == size;
      }
      if (single) continue;
      if (!of_.unknown) refuse(word.substr(at, size));
      better(at + size, of_.unknown_score + till_here, at, *of_.unknown);
    }
  }

  void better(std::size_t end, double score, std::size_t begin,
              std::uint32_t id) {
    Node& node = nodes_[end];
    if (node.begin == kNone || score > node.score) node = {score, begin, id};
  }

  void add(std::string_view word, std::size_t begin, std::size_t end,
           WordTokens& out) const {
    const std::string_view text = word.substr(begin, end - begin);
    std::uint32_t node = 0;
    for (char c : text)
      if ((node = of_.tokens.next(node, c)) == TokenTrie::kNone) break;
    const std::uint32_t id =
        node == TokenTrie::kNone ? node : of_.tokens.number(node);
    if (id != TokenTrie::kNone) return out.add(id, text.size());
    if (of_.falls_back && fall_back(text, out)) return;
    if (!of_.unknown) refuse(text);
    out.add(*of_.unknown, text.size());
  }

  /// Each of the bytes has the place of them all: the last has the size.
  bool fall_back(std::string_view text, WordTokens& out) const {
    for (char c : text)
      if (of_.fallback_ids[static_cast<unsigned char>(c)] == TokenTrie::kNone)
        return false;
    for (std::size_t i = 0; i < text.size(); ++i)
      out.add(of_.fallback_ids[static_cast<unsigned char>(text[i])],
              i + 1 == text.size() ? text.size() : 0);
    return true;
  }

  const Unigrams& of_;
  std::vector<Node> nodes_;
  std::vector<std::size_t> ends_;
};

}  // namespace

std::unique_ptr<WordModel> word_piece_model(const WordPieces& pieces) {
  return std::make_unique<WordPiece>(pieces);
}
std::unique_ptr<WordModel> word_level_model(const WholeWords& words) {
  return std::make_unique<WordLevel>(words);
}
std::unique_ptr<WordModel> unigram_model(const Unigrams& unigrams) {
  return std::make_unique<Unigram>(unigrams);
}

}  // namespace penstock
