#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>

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

/// What the documents of a data set are like: sums, so that their order does
/// not matter.
class TokenNotes final : public FieldNotes {
 public:
  void add(const DocumentNote& of) {
    ++documents_;
    tokens_ += of.tokens;
    bytes_ += of.bytes;
    characters_ += of.characters;
    empty_ += of.tokens == 0 ? 1 : 0;
    cut_ += of.cut ? 1 : 0;
    if (of.targets >= 0)
      targets_ = std::max<std::int64_t>(targets_, 0) + of.targets;
    invalid_ += of.invalid_utf8 ? 1 : 0;
    longest_ = std::max<std::int64_t>(longest_, of.tokens);
    ++lengths_[std::bit_width(static_cast<std::uint32_t>(of.tokens))];
  }

  void merge(FieldNotes& other) override {
    const auto& more = static_cast<TokenNotes&>(other);
    documents_ += more.documents_;
    tokens_ += more.tokens_;
    bytes_ += more.bytes_;
    characters_ += more.characters_;
    empty_ += more.empty_;
    cut_ += more.cut_;
    if (more.targets_ >= 0)
      targets_ = std::max<std::int64_t>(targets_, 0) + more.targets_;
    invalid_ += more.invalid_;
    longest_ = std::max(longest_, more.longest_);
    for (std::size_t i = 0; i < lengths_.size(); ++i)
      lengths_[i] += more.lengths_[i];
  }

  /// "lengths": [least number of tokens, documents] of powers of two.
  Json json() const {
    Json json;
    json["documents"] = documents_;
    json["tokens"] = tokens_;
    json["longest"] = longest_;
    if (targets_ >= 0) json["targets"] = targets_;
    json["empty"] = empty_;
    json["cut"] = cut_;
    json["invalid_utf8"] = invalid_;
    if (bytes_ > 0) {
      json["text_bytes"] = bytes_;
      json["characters"] = characters_;
    }
    json["lengths"] = Json(Json::Array{});
    for (std::size_t i = 0; i < lengths_.size(); ++i) {
      if (lengths_[i] == 0) continue;
      Json bucket(Json::Array{});
      bucket.push_back(i == 0 ? std::int64_t{0} : std::int64_t{1} << (i - 1));
      bucket.push_back(lengths_[i]);
      json["lengths"].push_back(std::move(bucket));
    }
    return json;
  }

 private:
  std::int64_t documents_ = 0, tokens_ = 0, bytes_ = 0, characters_ = 0;
  std::int64_t empty_ = 0, cut_ = 0, invalid_ = 0, longest_ = 0;
  std::int64_t targets_ = -1;
  std::array<std::int64_t, 33> lengths_ = {};
};

/// Shows what the parsers noted: tokens themselves are not fitted.
class TokenFit final : public FieldFit {
 public:
  explicit TokenFit(const TokenNotes* notes)
      : found_(notes == nullptr ? TokenNotes().json() : notes->json()) {}
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
