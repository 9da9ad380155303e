#include "penstock/transforms/tokens/tokens.h"

#include <optional>
#include <utility>
#include <vector>

#include "penstock/transforms/kinds.h"
#include "penstock/transforms/tokens/token_finisher.h"
#include "penstock/transforms/tokens/token_labels.h"
#include "penstock/transforms/tokens/token_lists.h"
#include "penstock/transforms/tokens/token_notes.h"
#include "penstock/transforms/tokens/token_texts.h"
#include "penstock/transforms/tokens/token_turns.h"
#include "penstock/transforms/tokens/tokens_settings.h"

// What is parsed, hashed and stored are the ids of a document, of 2 bytes each
// where the vocabulary allows it. How they are packed is not part of what is
// stored, so that other rows are made of the same store; only Pack::none cuts
// documents before that.
namespace penstock {
namespace {

class Parser final : public FieldParser {
 public:
  Parser(Tokens tokens, std::vector<std::size_t> columns)
      : tokens_(std::move(tokens)),
        columns_(std::move(columns)),
        narrow_(stored_token_bytes(tokens_) == sizeof(std::uint16_t)),
        lists_(most_token(tokens_)) {
    if (!tokens_.labels.empty())
      labels_.emplace(tokens_);
    else if (tokens_.masked())
      turns_.emplace(tokens_);
    else if (tokens_.loaded != nullptr)
      texts_.emplace(tokens_);
  }

  void parse(const Block& block, Values& out, Faults& faults) override {
    found_.assign(static_cast<std::size_t>(block.rows), {});
    ids_.clear();
    ends_.clear();
    for (std::int64_t row = 0; row < block.rows; ++row) {
      DocumentNote& note = found_[static_cast<std::size_t>(row)];
      std::string why = read(block, row, note);
      if (why.empty())
        append(out, note);
      else
        faults.reject(
            {.row = row, .place = tokens_.column, .why = std::move(why)});
      out.end_row();
      ends_.push_back(ids_.size());
    }
  }

  void keep(std::span<const std::int64_t> rows, const KeyList&) override {
    if (notes_ == nullptr)
      notes_ = std::make_unique<TokenNotes>(tokens_.vocab_size);
    if (narrow_)
      note<std::uint16_t>(rows);
    else
      note<std::uint32_t>(rows);
  }
  std::unique_ptr<FieldNotes> take_notes() override {
    if (notes_ != nullptr) notes_->set_uses(uses_.take());
    return std::move(notes_);
  }

 private:
  /// What is wrong with the row; empty: nothing.
  std::string read(const Block& block, std::int64_t row, DocumentNote& note) {
    const Column& column = block.columns[columns_[0]];
    const Column* more =
        columns_.size() > 1 ? &block.columns[columns_[1]] : nullptr;
    if (labels_) return labels_->read(column, *more, row, note);
    if (turns_) {
      if (!column.valid(row) ||
          (more != nullptr && !tokens_.chat && !more->valid(row)))
        return "is NULL, expected texts";
      return turns_->read(column, more, row, note);
    }
    if (!column.valid(row))
      return texts_ ? "is NULL, expected a text"
                    : "is NULL, expected a list of token ids";
    return texts_ ? texts_->read(column, row, note) : lists_.read(column, row);
  }

  void append(Values& out, DocumentNote& note) {
    std::span<const std::uint32_t> ids = labels_  ? labels_->ids()
                                         : turns_ ? turns_->ids()
                                         : texts_ ? texts_->ids()
                                                  : lists_.ids();
    const auto most = static_cast<std::size_t>(tokens_.max_length);
    if (tokens_.pack == Tokens::Pack::none && ids.size() > most) {
      ids = ids.first(most);
      note.cut = true;
    }
    note.tokens = static_cast<std::int32_t>(ids.size());
    if (narrow_)
      append_as<std::uint16_t>(ids, out);
    else
      append_as<std::uint32_t>(ids, out);
  }

  /// Of each id of the row whether it is one; null: all are.
  const std::vector<bool>* targets() const {
    return labels_  ? &labels_->targets()
           : turns_ ? &turns_->targets()
                    : nullptr;
  }
  template <class Token>
  void append_as(std::span<const std::uint32_t> ids, Values& out) {
    const std::size_t first = ids_.size();
    ids_.resize(first + ids.size() * sizeof(Token));
    auto* stored =
        reinterpret_cast<Token*>(ids_.mutable_data<std::byte>() + first);
    for (std::size_t i = 0; i < ids.size(); ++i)
      stored[i] = static_cast<Token>(ids[i]);
    const std::size_t begin = out.bytes.size();
    out.bytes.append(stored, ids.size() * sizeof(Token));
    const std::vector<bool>* targets = this->targets();
    if (targets == nullptr) return;
    auto* to =
        reinterpret_cast<Token*>(out.bytes.mutable_data<std::byte>() + begin);
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (!(*targets)[i]) to[i] = static_cast<Token>(to[i] | kNoTarget<Token>);
  }

  template <class Token>
  void note(std::span<const std::int64_t> rows) {
    const std::span<const Token> ids = ids_.as<Token>();
    for (std::int64_t row : rows) {
      const auto r = static_cast<std::size_t>(row);
      const std::size_t begin = r == 0 ? 0 : ends_[r - 1];
      const std::span<const Token> own = ids.subspan(
          begin / sizeof(Token), (ends_[r] - begin) / sizeof(Token));
      notes_->add(found_[r], own);
      uses_.count(own);
    }
  }

  const Tokens tokens_;
  const std::vector<std::size_t> columns_;
  const bool narrow_;
  TokenLists lists_;
  std::optional<TokenTexts> texts_;    // where there is a tokenizer
  std::optional<TokenTurns> turns_;    // where it masks what it makes
  std::optional<TokenLabels> labels_;  // where a column masks them
  std::vector<DocumentNote> found_;    // of the block, by row
  Bytes ids_;                          // of all its rows, as stored
  std::vector<std::size_t> ends_;      // of each row in `ids_`
  std::unique_ptr<TokenNotes> notes_;
  TokenUses uses_;
};

class BoundTokens final : public BoundField {
 public:
  BoundTokens(Tokens tokens, std::vector<std::size_t> columns)
      : tokens_(std::move(tokens)), columns_(std::move(columns)) {}
  std::unique_ptr<FieldParser> parser() const override {
    return std::make_unique<Parser>(tokens_, columns_);
  }
  std::unique_ptr<FieldFit> fit(const FieldNotes* notes) const override {
    const auto* found = static_cast<const TokenNotes*>(notes);
    return std::make_unique<TokenFit>(
        found == nullptr ? TokenNotes(tokens_.vocab_size) : *found);
  }
  std::unique_ptr<FieldNotes> notes_of(
      std::span<const std::byte> saved) const override {
    return TokenNotes::of(saved);
  }
  std::optional<Json> unfitted() const override { return Json(); }

 private:
  const Tokens tokens_;
  const std::vector<std::size_t> columns_;
};

const char* second_setting(const Tokens& tokens) {
  return tokens.chat             ? ".tokens.tools"
         : tokens.labels.empty() ? ".tokens.completion"
                                 : ".tokens.labels";
}

std::vector<ColumnRequest> columns_of(const std::string& name,
                                      const Tokens& tokens) {
  std::vector<ColumnRequest> asked = {
      {.column = tokens.column,
       .as = ReadAs::value,
       .setting = "fields." + name + ".tokens.column",
       .document = true}};
  if (const std::string& more = tokens.second(); !more.empty())
    asked.push_back({.column = more,
                     .as = ReadAs::value,
                     .setting = "fields." + name + second_setting(tokens),
                     .document = tokens.labels.empty()});
  return asked;
}

std::optional<Packing> packing_of(const Tokens& tokens) {
  if (tokens.pack == Tokens::Pack::none) return std::nullopt;
  Packing packing{.size = tokens.max_length,
                  .repack = tokens.repack,
                  .window = tokens.pack_window,
                  .pads = true};
  if (tokens.pack == Tokens::Pack::wrapped) packing.how = Packing::How::wrapped;
  if (tokens.pack == Tokens::Pack::stream) {
    packing.how = Packing::How::stream;
    if (packing.window == 0) packing.window = Tokens::kStreamWindow;
  }
  return packing;
}

Json stored_recipe_of(const Tokens& tokens) {
  Tokens stored{.column = tokens.column,
                .tokenizer = tokens.tokenizer,
                .chat = tokens.chat,
                .chat_template = tokens.chat_template,
                .tools = tokens.tools,
                .completion = tokens.completion,
                .labels = tokens.labels,
                .special = tokens.special,
                .end = tokens.end,
                .strict_utf8 = tokens.strict_utf8,
                .vocab_size = tokens.vocab_size,
                .loaded = tokens.loaded,
                .rendered_by = tokens.rendered_by};
  stored.pack = tokens.pack == Tokens::Pack::none ? Tokens::Pack::none
                                                  : Tokens::Pack::best_fit;
  if (stored.pack == Tokens::Pack::none) stored.max_length = tokens.max_length;
  return recipe_of(stored);
}

/// `alone`: it is the only field.
FieldFacts facts_of(const std::string& name, const Tokens& tokens, bool alone) {
  const bool tokenized = tokens.loaded != nullptr;
  return {.columns = columns_of(name, tokens),
          .stored = {.element_bytes = stored_token_bytes(tokens)},
          .outputs = token_outputs(alone || name == "tokens" ? "" : name + "_",
                                   tokens),
          .packing = packing_of(tokens),
          .work = {.parsing = tokenized ? "tokenize" : ""},
          .recipe = recipe_of(tokens),
          .stored_recipe = stored_recipe_of(tokens),
          .built_in = true,
          .tokens = TokenFacts{.column = tokens.column,
                               .tokenized = tokenized,
                               .labelled = !tokens.labels.empty(),
                               .max_length = tokens.max_length,
                               .vocab_size = tokens.vocab_size}};
}

class TokensKind final : public FieldKind {
 public:
  TokensKind(std::string name, Tokens tokens, bool alone)
      : FieldKind(facts_of(name, tokens, alone)),
        name_(std::move(name)),
        tokens_(std::move(tokens)) {}

  std::unique_ptr<FieldFinisher> finisher(bool) const override {
    return token_finisher(tokens_);
  }
  std::shared_ptr<const FieldKind> alone() const override {
    return std::make_shared<TokensKind>(name_, tokens_, true);
  }
  std::shared_ptr<const BoundField> bind(FieldColumns columns) const override {
    const bool texts = tokens_.loaded != nullptr;
    std::size_t wrong = 0;
    auto reads = [&](const ColumnType& type) {
      return !texts             ? TokenLists::reads(type)
             : tokens_.masked() ? TokenTurns::reads(type)
                                : TokenTexts::reads(type);
    };
    while (wrong < columns.types.size() && reads(columns.types[wrong])) ++wrong;
    if (wrong == columns.types.size())
      return std::make_shared<BoundTokens>(
          tokens_,
          std::vector<std::size_t>(columns.at.begin(), columns.at.end()));
    const ColumnType& type = columns.types[wrong];
    throw column_error(
        "fields.tokens",
        "fields." + name_ +
            (wrong == 0 ? ".tokens.column" : second_setting(tokens_)),
        columns.info[wrong], type,
        texts ? "expected texts" : "expected lists of token ids",
        texts && TokenLists::reads(type)
            ? "leave \"tokenizer\" out: the column holds token ids"
        : TokenTexts::reads(type)
            ? "name the model's tokenizer.json as \"tokenizer\""
            : "name the column that holds them");
  }

 private:
  const std::string name_;
  const Tokens tokens_;
};

}  // namespace

std::shared_ptr<const FieldKind> make_tokens(std::string name, Tokens tokens) {
  return std::make_shared<TokensKind>(std::move(name), std::move(tokens),
                                      false);
}

FieldDescriptor tokens_field() {
  return describe_field<Tokens, tokens_settings, make_tokens>("tokens");
}

}  // namespace penstock
