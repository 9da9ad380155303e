#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "penstock/transforms/field_kind.h"

namespace penstock {

/// What one document is like.
struct DocumentNote {
  std::int32_t tokens = 0;
  std::int64_t bytes = 0, characters = 0;  ///< of its text; 0 without one
  std::int32_t targets = -1;  ///< tokens that are; -1: nothing is masked
  bool invalid_utf8 = false;  ///< some of it was replaced
  bool cut = false;           ///< it was longer than a row
};

/// How often each id comes in some documents, of which most ids are in none.
/// One thread's.
class TokenUses {
 public:
  struct Use {
    std::uint32_t id, times;
  };
  template <class Token>
  void count(std::span<const Token> ids);
  /// Those since the last call, by id.
  std::vector<Use> take();

 private:
  std::vector<std::uint32_t> times_;  // by id
};

/// What the documents of a data set are like. Their order does not matter. It
/// takes 8 bytes for each document, and 8 for each token of the vocabulary.
class TokenNotes final : public FieldNotes {
 public:
  /// Of ids below `vocab_size`; 0: below any.
  explicit TokenNotes(std::int64_t vocab_size) : vocab_size_(vocab_size) {}

  /// Ids of one width throughout, or documents are not known again.
  template <class Token>
  void add(const DocumentNote& of, std::span<const Token> ids);
  /// How often the documents that were added have each id. Once, and before
  /// others are merged.
  void set_uses(std::vector<TokenUses::Use> uses) { few_ = std::move(uses); }
  void merge(FieldNotes& other) override;
  Bytes saved() const override;
  /// Null for what saved() did not give.
  static std::unique_ptr<TokenNotes> of(std::span<const std::byte> saved);

  /// "lengths": [least number of tokens, documents] of powers of two;
  /// "most_used": [id, how often], the most frequent first; "unused": how many
  /// ids of the vocabulary no document has; "duplicates": documents whose
  /// tokens, two at least, an earlier one has, by a hash of 64 bits.
  Json json();

 private:
  struct Sums {
    std::int64_t documents = 0, tokens = 0, bytes = 0, characters = 0;
    std::int64_t empty = 0, cut = 0, invalid = 0, longest = 0;
    std::int64_t targets = -1;  // -1: nothing is masked
    std::array<std::int64_t, 33> lengths = {};
  };
  void add(const DocumentNote& of);
  void add_targets(std::int64_t targets);
  void add_uses(std::span<const TokenUses::Use> uses);
  void add_few();
  void write_uses(Json& json) const;

  std::int64_t vocab_size_;
  Sums sums_;
  std::vector<TokenUses::Use> few_;       // of one block, until it is merged
  std::vector<std::uint64_t> uses_;       // by id, of all others
  std::vector<std::uint64_t> documents_;  // their hashes
};

/// Shows what the parsers noted: tokens themselves are not fitted.
class TokenFit final : public FieldFit {
 public:
  explicit TokenFit(TokenNotes notes) : found_(notes.json()) {}
  explicit TokenFit(Json found) : found_(std::move(found)) {}

  std::unique_ptr<FieldFit> part() const override {
    return std::make_unique<TokenFit>(found_);
  }
  void add(std::span<const ValueRow>, std::span<const std::uint8_t>) override {}
  void merge(FieldFit&) override {}
  bool again() override { return false; }
  Json statistics() override { return found_; }

 private:
  Json found_;
};

}  // namespace penstock
