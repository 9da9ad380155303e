#include "penstock/transforms/tokens/tokens.h"

#include <optional>
#include <utility>
#include <vector>

#include "penstock/base/settings.h"
#include "penstock/transforms/kinds.h"
#include "penstock/transforms/tokens/token_finisher.h"
#include "penstock/transforms/tokens/token_lists.h"
#include "penstock/transforms/tokens/token_notes.h"
#include "penstock/transforms/tokens/token_texts.h"
#include "penstock/transforms/tokens/token_turns.h"

// What is parsed, hashed and stored are the ids of a document, of 2 bytes each
// where the vocabulary allows it. How they are packed is not part of what is
// stored, so that other rows are made of the same store; only Pack::none cuts
// documents before that.
namespace penstock {
namespace {

constexpr std::int64_t kLongestRow = std::int64_t{1} << 24;
constexpr std::int64_t kMostIds = std::int64_t{1} << 31;

void check_packing(Spec& spec, Tokens& of) {
  const bool best_fit = of.pack == Tokens::Pack::best_fit;
  const bool stream = of.pack == Tokens::Pack::stream;
  if (of.repack && !best_fit)
    spec.refuse("repack", "only \"best_fit\" packs anew",
                "leave it out, or set \"pack\": \"best_fit\"");
  if (of.pack_window > 0 && !best_fit && !stream)
    spec.refuse("pack_window",
                "only \"best_fit\" and \"stream\" pack in windows",
                "leave it out, or set \"pack\": \"best_fit\"");
  if (of.vocab_size > 0 && of.pad_id.value_or(0) >= of.vocab_size)
    spec.refuse("pad_id",
                "it is " + std::to_string(*of.pad_id) +
                    ", and the vocabulary has " +
                    std::to_string(of.vocab_size) + " tokens",
                "name a token of the vocabulary");
}

/// Loads the template of chats, once there is a tokenizer.
void check_turns(Spec& spec, Tokens& of) {
  if (of.chat && !of.completion.empty())
    spec.refuse("completion", "a chat has its own answers",
                "leave it out, or leave \"chat\" out");
  if (!of.chat && !of.chat_template.empty())
    spec.refuse("chat_template", "it is of chats",
                "set \"chat\": true, or leave it out");
  if (!of.chat && !of.tools.empty())
    spec.refuse("tools", "they are of chats",
                "set \"chat\": true, or leave it out");
  if (of.chat)
    of.rendered_by = ChatTemplate::load(of.tokenizer, of.chat_template);
}

/// Loads the tokenizer, and fills in what its files say.
void check_tokenizer(Spec& spec, Tokens& of) {
  if (of.tokenizer.empty()) {
    for (auto [key, set] :
         {std::pair("special", of.special), std::pair("eos", of.eos),
          std::pair("invalid_utf8", of.strict_utf8), std::pair("chat", of.chat),
          std::pair("completion", !of.completion.empty())})
      if (set)
        spec.refuse(key, "it is of texts, and no tokenizer is named",
                    "name a tokenizer.json as \"tokenizer\", or leave it out");
    return;
  }
  of.loaded = Tokenizer::load(of.tokenizer);
  const auto size = static_cast<std::int64_t>(of.loaded->vocabulary_size());
  if (of.vocab_size > 0 && of.vocab_size < size)
    spec.refuse("vocab_size",
                "it is " + std::to_string(of.vocab_size) +
                    ", and the tokenizer has ids up to " +
                    std::to_string(size - 1),
                "give the model as many tokens, or use its own tokenizer");
  if (of.vocab_size == 0) of.vocab_size = size;
  if (of.eos && !of.loaded->eos())
    spec.refuse("eos",
                "no tokenizer_config.json beside the tokenizer names an "
                "eos_token",
                "put that file beside it, or leave \"eos\" out");
  if (!of.pad_id)
    if (auto pad = of.loaded->pad() ? of.loaded->pad() : of.loaded->eos())
      of.pad_id = static_cast<std::int32_t>(*pad);
}

/// What is read of a row.
void add_texts(SettingsTable<Tokens>& table) {
  table.text("column", &Tokens::column, "texts, or lists of token ids")
      .required()
      .not_empty()
      .text("tokenizer", &Tokens::tokenizer,
            "the path of a tokenizer.json; without one the column "
            "holds token ids")
      .boolean("chat", &Tokens::chat,
               "the column holds messages, of which the turns of "
               "the assistant are targets")
      .text("chat_template", &Tokens::chat_template,
            "the file of a template; without one that of the "
            "tokenizer")
      .text("tools", &Tokens::tools,
            "the column of what a chat may call, a list as its "
            "template takes it")
      .text("completion", &Tokens::completion,
            "the column of what follows, which alone is a target")
      .boolean("special", &Tokens::special,
               "with the tokens that its template adds")
      .boolean("eos", &Tokens::eos,
               "its end-of-sequence token ends each document")
      .choice("invalid_utf8", &Tokens::strict_utf8,
              {{"replace", false}, {"bad", true}},
              "what text that is not UTF-8 makes of its row");
}

/// What rows of a batch are made of it.
void add_rows(SettingsTable<Tokens>& table) {
  table
      .integer("max_length", &Tokens::max_length, 1, kLongestRow,
               "tokens of a row of a batch")
      .choice("pack", &Tokens::pack,
              {{"best_fit", Tokens::Pack::best_fit},
               {"wrapped", Tokens::Pack::wrapped},
               {"stream", Tokens::Pack::stream},
               {"none", Tokens::Pack::none}},
              "\"best_fit\": whole documents where they fit, cut "
              "only where longer than a row; \"wrapped\": one "
              "after the other, cut at every row; \"stream\": "
              "as \"best_fit\", window by window and without an "
              "end; \"none\": a document a row, padded")
      .integer("vocab_size", &Tokens::vocab_size, 0, kMostIds,
               "of the model: an id that is not below it makes its "
               "row bad; 0: not known")
      .integer("pad_id", &Tokens::pad_id, 0, kMostIds - 1, "what fills rows up")
      .boolean("repack", &Tokens::repack,
               "documents have other neighbours in every epoch")
      .integer("pack_window", &Tokens::pack_window, 0, std::int64_t{1} << 32,
               "documents that are packed together; 0: all, of "
               "\"stream\" 8192");
}

const SettingsTable<Tokens>& tokens_settings() {
  static const SettingsTable<Tokens> table = [] {
    SettingsTable<Tokens> tokens;
    add_texts(tokens);
    add_rows(tokens);
    tokens.check(check_tokenizer).check(check_turns).check(check_packing);
    return SettingsTable<Tokens>()
        .section("tokens", tokens,
                 "A column of texts or token ids -> rows for a language model.")
        .required();
  }();
  return table;
}

class Parser final : public FieldParser {
 public:
  Parser(Tokens tokens, std::vector<std::size_t> columns)
      : tokens_(std::move(tokens)),
        columns_(std::move(columns)),
        narrow_(stored_token_bytes(tokens_) == sizeof(std::uint16_t)),
        lists_(tokens_.vocab_size) {
    if (tokens_.masked())
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
        append(turns_   ? turns_->ids()
               : texts_ ? texts_->ids()
                        : lists_.ids(),
               out, note);
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
    for (std::int64_t row : rows) {
      const auto r = static_cast<std::size_t>(row);
      const std::size_t begin = r == 0 ? 0 : ends_[r - 1];
      notes_->add(found_[r], std::span(ids_).subspan(begin, ends_[r] - begin));
    }
  }
  std::unique_ptr<FieldNotes> take_notes() override {
    return std::move(notes_);
  }

 private:
  /// What is wrong with the row; empty: nothing.
  std::string read(const Block& block, std::int64_t row, DocumentNote& note) {
    const Column& column = block.columns[columns_[0]];
    if (turns_) {
      const Column* more =
          columns_.size() > 1 ? &block.columns[columns_[1]] : nullptr;
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

  void append(std::span<const std::uint32_t> ids, Values& out,
              DocumentNote& note) {
    const auto most = static_cast<std::size_t>(tokens_.max_length);
    if (tokens_.pack == Tokens::Pack::none && ids.size() > most) {
      ids = ids.first(most);
      note.cut = true;
    }
    note.tokens = static_cast<std::int32_t>(ids.size());
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    if (narrow_)
      append_as<std::uint16_t>(ids, out);
    else if (turns_)
      append_as<std::uint32_t>(ids, out);
    else
      out.bytes.append(ids.data(), ids.size_bytes());
  }

  template <class Token>
  void append_as(std::span<const std::uint32_t> ids, Values& out) const {
    const std::size_t begin = out.bytes.size();
    out.bytes.resize(begin + ids.size() * sizeof(Token));
    auto* to =
        reinterpret_cast<Token*>(out.bytes.mutable_data<std::byte>() + begin);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      to[i] = static_cast<Token>(ids[i]);
      if (turns_ && !turns_->targets()[i])
        to[i] = static_cast<Token>(to[i] | kNoTarget<Token>);
    }
  }

  const Tokens tokens_;
  const std::vector<std::size_t> columns_;
  const bool narrow_;
  TokenLists lists_;
  std::optional<TokenTexts> texts_;  // where there is a tokenizer
  std::optional<TokenTurns> turns_;  // where tokens are masked
  std::vector<DocumentNote> found_;  // of the block, by row
  std::vector<std::uint32_t> ids_;   // of all its rows
  std::vector<std::size_t> ends_;    // of each row in `ids_`
  std::unique_ptr<TokenNotes> notes_;
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

class TokensKind final : public FieldKind {
 public:
  TokensKind(std::string name, Tokens tokens, bool alone)
      : name_(std::move(name)), tokens_(std::move(tokens)), alone_(alone) {}

  std::vector<ColumnRequest> columns() const override {
    std::vector<ColumnRequest> asked = {
        {.column = tokens_.column,
         .as = ReadAs::value,
         .setting = "fields." + name_ + ".tokens.column"}};
    if (const std::string& more = tokens_.second(); !more.empty())
      asked.push_back({.column = more,
                       .as = ReadAs::value,
                       .setting = "fields." + name_ + second_setting()});
    return asked;
  }
  StoredForm stored() const override {
    return {.element_bytes = stored_token_bytes(tokens_)};
  }
  std::vector<Output> outputs() const override {
    return token_outputs(alone_ || name_ == "tokens" ? "" : name_ + "_",
                         tokens_);
  }
  std::optional<Packing> packing() const override {
    if (tokens_.pack == Tokens::Pack::none) return std::nullopt;
    Packing packing{.size = tokens_.max_length,
                    .repack = tokens_.repack,
                    .window = tokens_.pack_window};
    if (tokens_.pack == Tokens::Pack::wrapped)
      packing.how = Packing::How::wrapped;
    if (tokens_.pack == Tokens::Pack::stream) {
      packing.how = Packing::How::stream;
      if (packing.window == 0) packing.window = Tokens::kStreamWindow;
    }
    return packing;
  }
  std::unique_ptr<FieldFinisher> finisher(bool) const override {
    return token_finisher(tokens_);
  }
  Json recipe() const override { return recipe_of(tokens_); }
  Json stored_recipe() const override {
    Tokens stored{.column = tokens_.column,
                  .tokenizer = tokens_.tokenizer,
                  .chat = tokens_.chat,
                  .chat_template = tokens_.chat_template,
                  .tools = tokens_.tools,
                  .completion = tokens_.completion,
                  .special = tokens_.special,
                  .eos = tokens_.eos,
                  .strict_utf8 = tokens_.strict_utf8,
                  .vocab_size = tokens_.vocab_size,
                  .loaded = tokens_.loaded,
                  .rendered_by = tokens_.rendered_by};
    stored.pack = tokens_.pack == Tokens::Pack::none ? Tokens::Pack::none
                                                     : Tokens::Pack::best_fit;
    if (stored.pack == Tokens::Pack::none)
      stored.max_length = tokens_.max_length;
    return recipe_of(stored);
  }
  std::shared_ptr<const FieldKind> alone() const override {
    return std::make_shared<TokensKind>(name_, tokens_, true);
  }
  std::shared_ptr<const BoundField> bind(FieldColumns columns) const override {
    const bool texts = tokens_.loaded != nullptr;
    std::size_t wrong = 0;
    auto reads = [&](const ColumnType& type) {
      return tokens_.masked() ? TokenTurns::reads(type)
             : texts          ? TokenTexts::reads(type)
                              : TokenLists::reads(type);
    };
    while (wrong < columns.types.size() && reads(columns.types[wrong])) ++wrong;
    if (wrong == columns.types.size())
      return std::make_shared<BoundTokens>(
          tokens_,
          std::vector<std::size_t>(columns.at.begin(), columns.at.end()));
    const ColumnType& type = columns.types[wrong];
    throw column_error(
        "fields.tokens",
        "fields." + name_ + (wrong == 0 ? ".tokens.column" : second_setting()),
        columns.info[wrong], type,
        texts ? "expected texts" : "expected lists of token ids",
        texts && TokenLists::reads(type)
            ? "leave \"tokenizer\" out: the column holds token ids"
        : TokenTexts::reads(type)
            ? "name the model's tokenizer.json as \"tokenizer\""
            : "name the column that holds them");
  }

 private:
  /// A tokenizer is what is in its file, wherever that is.
  static Json recipe_of(const Tokens& tokens) {
    Json recipe = tokens_settings().shown(tokens);
    recipe["tokens"] = without_unused(recipe["tokens"], tokens.masked());
    if (tokens.loaded != nullptr)
      recipe["tokens"]["tokenizer"] = tokens.loaded->fingerprint();
    if (tokens.rendered_by != nullptr)
      recipe["tokens"]["chat_template"] = tokens.rendered_by->fingerprint();
    return recipe;
  }

  /// As it was before there were such settings: stores stay valid.
  static Json without_unused(const Json& settings, bool masked) {
    Json::Object kept;
    for (const auto& [key, value] : settings.object()) {
      const bool turns =
          key == "chat" || key == "chat_template" || key == "completion";
      const bool no_tools = key == "tools" && value == Json("");
      if ((masked || !turns) && !no_tools) kept.emplace_back(key, value);
    }
    return kept;
  }
  const char* second_setting() const {
    return tokens_.chat ? ".tokens.tools" : ".tokens.completion";
  }

  const std::string name_;
  const Tokens tokens_;
  const bool alone_;  // the only field
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
