#include "penstock/transforms/tokens/tokens_settings.h"

#include <algorithm>
#include <string>
#include <utility>

#include "penstock/tokenizer/tokenizer.h"

namespace penstock {
namespace {

constexpr std::int64_t kLongestRow = std::int64_t{1} << 24;
constexpr std::int64_t kMostIds = std::int64_t{1} << 31;

void check_packing(Spec& spec, Tokens& of) {
  const bool best_fit = of.pack == Tokens::Pack::best_fit;
  const bool stream = of.pack == Tokens::Pack::stream;
  if (of.repack && !best_fit)
    spec.refuse("repack", "only \"best_fit\" can pack again in each epoch",
                "leave it out, or set \"pack\": \"best_fit\"");
  if (of.pack_window > 0 && !best_fit && !stream)
    spec.refuse("pack_window",
                "only \"best_fit\" and \"stream\" pack in windows",
                "leave it out, or set \"pack\": \"best_fit\"");
  if (of.vocab_size > 0 && of.pad_id.value_or(0) >= of.vocab_size)
    spec.refuse("pad_id",
                "the value is " + std::to_string(*of.pad_id) +
                    ", but the vocabulary has " +
                    std::to_string(of.vocab_size) + " tokens",
                "name a token of the vocabulary");
}

/// Loads the template of chats, once there is a tokenizer.
void check_turns(Spec& spec, Tokens& of) {
  if (of.chat && !of.completion.empty())
    spec.refuse("completion", "a chat already contains the answers",
                "leave either \"completion\" or \"chat\" out");
  if (!of.chat && !of.chat_template.empty())
    spec.refuse("chat_template", "the key applies only to chats",
                "set \"chat\": true, or leave it out");
  if (!of.chat && !of.tools.empty())
    spec.refuse("tools", "tools apply only to chats",
                "set \"chat\": true, or leave it out");
  if (of.chat)
    of.rendered_by = ChatTemplate::load(of.tokenizer, of.chat_template);
}

/// Finds the token that ends documents.
void check_end(Spec& spec, Tokens& of) {
  if (!of.eos) return;
  of.end =
      of.eos_token.empty() ? of.loaded->eos() : of.loaded->id_of(of.eos_token);
  if (of.end) return;
  if (of.eos_token.empty())
    spec.refuse("eos",
                "the tokenizer's folder has no tokenizer_config.json that "
                "names an eos_token",
                "copy that file into the folder, or write the token itself: "
                "\"eos\": \"<|endoftext|>\"");
  spec.refuse("eos", "the tokenizer has no token '" + of.eos_token + "'",
              "write a token of the tokenizer.json, or true for the token that "
              "tokenizer_config.json names");
}

/// Loads the tokenizer, and fills in what its files say.
void check_tokenizer(Spec& spec, Tokens& of) {
  if (of.tokenizer.empty()) {
    for (auto [key, set] :
         {std::pair("special", of.special), std::pair("eos", of.eos),
          std::pair("invalid_utf8", of.strict_utf8), std::pair("chat", of.chat),
          std::pair("completion", !of.completion.empty())})
      if (set)
        spec.refuse(key, "the key applies to texts, and no tokenizer is named",
                    "name a tokenizer.json as \"tokenizer\", or leave it out");
    return;
  }
  if (!of.labels.empty())
    spec.refuse("labels", "labels apply to token ids, but a tokenizer is named",
                "leave \"tokenizer\" out, or name the column of the answers as "
                "\"completion\"");
  of.loaded = Tokenizer::load(of.tokenizer);
  const auto size = static_cast<std::int64_t>(of.loaded->vocabulary_size());
  if (of.vocab_size > 0 && of.vocab_size < size)
    spec.refuse("vocab_size",
                "the value is " + std::to_string(of.vocab_size) +
                    ", but the tokenizer has ids up to " +
                    std::to_string(size - 1),
                "use a model with more tokens, or the model's own tokenizer");
  if (of.vocab_size == 0) of.vocab_size = size;
  check_end(spec, of);
  if (!of.pad_id)
    for (auto pad : {of.loaded->pad(), of.loaded->eos(), of.end})
      if (pad && !of.pad_id) of.pad_id = static_cast<std::int32_t>(*pad);
}

Json end_rule() {
  Json rule{Json::Object{}};
  rule["description"] =
      "Token that ends each document. true: the eos_token of the tokenizer's "
      "files; a text: that token. Default: false, documents get no such token";
  for (const char* type : {"boolean", "string"}) {
    Json one{Json::Object{}};
    one["type"] = type;
    rule["oneOf"].push_back(std::move(one));
  }
  return rule;
}

void read_end(Spec& spec, const SettingSchema& setting, Tokens& to) {
  const Json* given = spec.raw(setting.key);
  if (given == nullptr) return;
  const bool text = given->is_string() && !given->string().empty();
  if (!text && *given != Json(true) && *given != Json(false))
    spec.refuse(setting.key,
                "found " + given->dump() +
                    ", expected true, false or a token such as \"</s>\"",
                "write true, or the token that ends documents");
  to.eos = text || *given == Json(true);
  to.eos_token = text ? given->string() : "";
}

/// By what ends documents, whoever names it: ids are those of the tokenizer.
Json shown_end(const Tokens& from) {
  return from.end ? Json(static_cast<std::int64_t>(*from.end)) : Json(from.eos);
}

/// What is read of a row.
void add_texts(SettingsTable<Tokens>& table) {
  table
      .text("column", &Tokens::column,
            "Column of texts or of lists of token ids")
      .required()
      .not_empty()
      .text("tokenizer", &Tokens::tokenizer,
            "Path of a tokenizer.json. Default: the column already holds token "
            "ids")
      .boolean("chat", &Tokens::chat,
               "Whether the column holds chats: lists of messages, in which "
               "the turns of the assistant are the targets")
      .text(
          "chat_template", &Tokens::chat_template,
          "File with the chat template. Default: the template of the tokenizer")
      .text("tools", &Tokens::tools,
            "Column with the list of tools that a chat may call, as its "
            "template expects it")
      .text("completion", &Tokens::completion,
            "Column with the text that follows `column`. Only its tokens are "
            "targets")
      .text("labels", &Tokens::labels,
            "Column with the target of each token id, as lists of the same "
            "length. -100 marks a token that is not a target")
      .boolean(
          "special", &Tokens::special,
          "Whether to add the tokenizer's special tokens, as its template does")
      .setting("eos", end_rule(), read_end, shown_end)
      .choice("invalid_utf8", &Tokens::strict_utf8,
              {{"replace", false}, {"bad", true}},
              "What to do with text that is not UTF-8. replace: bad bytes "
              "become U+FFFD; bad: the row is bad");
}

/// What rows of a batch are made of it.
void add_rows(SettingsTable<Tokens>& table) {
  table
      .integer("max_length", &Tokens::max_length, 1, kLongestRow,
               "Tokens in a row of a batch")
      .choice("pack", &Tokens::pack,
              {{"best_fit", Tokens::Pack::best_fit},
               {"wrapped", Tokens::Pack::wrapped},
               {"stream", Tokens::Pack::stream},
               {"none", Tokens::Pack::none}},
              "How documents fill rows. best_fit: whole documents, and only "
              "those longer than a row are cut; wrapped: one after the other, "
              "cut at the end of each row; stream: as best_fit, in windows of "
              "documents and without epochs, which starts at once; none: one "
              "document per row, padded")
      .integer("vocab_size", &Tokens::vocab_size, 0, kMostIds,
               "Size of the model's vocabulary. A row with an id that is not "
               "below it is bad. 0: unknown, not checked")
      .integer("pad_id", &Tokens::pad_id, 0, kMostIds - 1,
               "Token id that fills rows up")
      .boolean("repack", &Tokens::repack,
               "Whether documents are packed again with other neighbours in "
               "every epoch")
      .integer("pack_window", &Tokens::pack_window, 0, std::int64_t{1} << 32,
               "Documents that are packed together. 0: all documents, or 8192 "
               "for the packing \"stream\"");
}

}  // namespace

const SettingsTable<Tokens>& tokens_settings() {
  static const SettingsTable<Tokens> table = [] {
    SettingsTable<Tokens> tokens;
    add_texts(tokens);
    add_rows(tokens);
    tokens.check(check_tokenizer).check(check_turns).check(check_packing);
    return SettingsTable<Tokens>()
        .section("tokens", tokens,
                 "Turns a column of texts or token ids into rows for a "
                 "language model.")
        .required();
  }();
  return table;
}

namespace {

/// As it was before there were such settings: stores stay valid.
Json without_unused(const Json& settings, bool masked) {
  Json::Object kept;
  for (const auto& [key, value] : settings.object()) {
    const bool turns =
        key == "chat" || key == "chat_template" || key == "completion";
    const bool later = key == "tools" || key == "labels";
    if ((masked || !turns) && !(later && value == Json("")))
      kept.emplace_back(key, value);
  }
  return kept;
}

}  // namespace

Json recipe_of(const Tokens& tokens) {
  Json recipe = tokens_settings().shown(tokens);
  recipe["tokens"] = without_unused(recipe["tokens"], tokens.masked());
  if (tokens.loaded != nullptr)
    recipe["tokens"]["tokenizer"] = tokens.loaded->fingerprint();
  if (tokens.rendered_by != nullptr)
    recipe["tokens"]["chat_template"] = tokens.rendered_by->fingerprint();
  return recipe;
}

}  // namespace penstock
