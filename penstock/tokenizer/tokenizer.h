#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/base/json.h"

namespace penstock {

struct Recipe;  // what a tokenizer.json says, ready to be applied

/// Text becomes numbers as the `tokenizers` library makes them of the same
/// tokenizer.json, id for id; a file that asks for what is not known is refused
/// with the name of that part.
///
/// Tokenizer: immutable and thread-safe. Encoder and Decoder: one per thread.
///
///     auto tokenizer = Tokenizer::parse(json, "tokenizer.json");
///     Encoder encoder(tokenizer);
///     std::vector<std::uint32_t> ids;
///     encoder.encode("ab abc", false, ids);
///     std::string text = tokenizer->decode(ids, true);
class Tokenizer {
 public:
  /// Reads a tokenizer.json, and the tokenizer_config.json beside it where
  /// there is one. Throws Error(request): `tokenizer.file` for what is no such
  /// file, `tokenizer.part` for a part that is not known, `tokenizer.size` for
  /// one that is too large.
  static std::shared_ptr<const Tokenizer> load(const std::string& path);
  /// From the text of a tokenizer.json and of a tokenizer_config.json, which
  /// may be empty. `origin` is what errors call it.
  static std::shared_ptr<const Tokenizer> parse(std::string_view json,
                                                std::string_view origin,
                                                std::string_view config = {});
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  /// The largest id and one: what an embedding needs.
  std::size_t vocabulary_size() const;
  /// The id of a token as written in the file; added ones too.
  std::optional<std::uint32_t> id_of(std::string_view token) const;
  /// The token as written in the file, nothing for an id without one.
  std::optional<std::string> token_of(std::uint32_t id) const;

  /// What tokenizer_config.json names as such.
  std::optional<std::uint32_t> bos() const;
  std::optional<std::uint32_t> eos() const;
  std::optional<std::uint32_t> pad() const;

  /// SHA-256 of the file and of the version of what makes ids of it: equal ones
  /// give equal ids.
  const std::string& fingerprint() const;

  /// The text of ids; those without a token are left out, as are special ones
  /// where asked. Bytes that are no UTF-8 become U+FFFD.
  std::string decode(const std::vector<std::uint32_t>& ids,
                     bool skip_special) const;

  const Recipe& recipe() const { return *recipe_; }

 private:
  explicit Tokenizer(Recipe recipe);

  std::unique_ptr<const Recipe> recipe_;
};

/// Which characters of a document a token was made of: from `begin` up to, but
/// not including, `end`, counted in code points. 0 and 0 for what a template
/// adds.
struct TokenOffsets {
  std::uint32_t begin = 0, end = 0;

  friend bool operator==(const TokenOffsets&, const TokenOffsets&) = default;
};

/// Encodes documents and remembers the words it has seen. For one thread.
class Encoder {
 public:
  explicit Encoder(std::shared_ptr<const Tokenizer> tokenizer);
  ~Encoder();
  Encoder(Encoder&&) noexcept;
  Encoder& operator=(Encoder&&) noexcept;

  /// Appends the ids of one document; with `special`, those too that the
  /// template of the file puts around it. Each maximal part that is no UTF-8
  /// counts as U+FFFD. Special tokens in the text become their ids. Throws
  /// Error(transform) `tokenizer.document` for more than 2 GiB.
  void encode(std::string_view text, bool special,
              std::vector<std::uint32_t>& out);

  /// The same, with as many offsets as ids, equal to those of the library.
  /// Slow: it remembers no words.
  void encode(std::string_view text, bool special,
              std::vector<std::uint32_t>& out,
              std::vector<TokenOffsets>& offsets);

  /// How many parts of all documents were no UTF-8.
  std::size_t invalid_utf8() const;

 private:
  struct Inside;
  void encode(std::string_view text, bool special,
              std::vector<std::uint32_t>& out,
              std::vector<TokenOffsets>* offsets);

  std::unique_ptr<Inside> inside_;
};

/// Decodes ids one after the other. For one thread.
class Decoder {
 public:
  Decoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special);
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;
  /// The text that `id` completes; the bytes of a character that is not whole
  /// yet are kept for the next one. All texts together are what
  /// Tokenizer::decode gives.
  std::string add(std::uint32_t id);
  /// What is left: U+FFFD for a character that was never completed.
  std::string finish();

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

/// Messages become the text that a model was trained on, as the chat template
/// of its tokenizer_config.json says: what `apply_chat_template` of
/// transformers renders, by the part of Jinja that real templates use. Of what
/// depends on the day nothing is known: `strftime_now` is not defined.
///
/// Immutable and thread-safe.
class ChatTemplate {
 public:
  /// From the text of a template and the special tokens that it may name
  /// ("bos_token", "<s>"). `origin` is what errors call it. Throws
  /// Error(request) `tokenizer.template`, which names what is not known.
  ChatTemplate(std::string_view text, std::string origin,
               std::vector<std::pair<std::string, std::string>> tokens);
  /// From a tokenizer_config.json and the chat_template.jinja beside it, which
  /// may be empty; null where neither has one.
  static std::shared_ptr<const ChatTemplate> of_config(std::string_view config,
                                                       std::string_view beside,
                                                       std::string origin);
  /// That of a tokenizer.json, from the files beside it, or from `file`, which
  /// may be empty, with their tokens. Throws Error(request)
  /// `tokenizer.template` if none exists.
  static std::shared_ptr<const ChatTemplate> load(const std::string& tokenizer,
                                                  const std::string& file);
  ~ChatTemplate();
  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;

  /// Bytes of a rendered text.
  struct Part {
    std::size_t begin, end;

    friend bool operator==(const Part&, const Part&) = default;
  };
  struct Chat {
    std::string text;
    std::vector<Part> assistant;  ///< what a model is to write
  };
  /// Renders a list of messages, mappings with a "role" and a "content", or
  /// those of ShareGPT, with "from" and "value". What a model is to write is
  /// what stands within {% generation %}, or, in a template without that, each
  /// turn of the assistant, from behind the prompt for it to its end. `tools`
  /// is a list of what the model may call, as the template takes it; null:
  /// nothing. Throws Error(transform) `tokenizer.chat` for what are no such
  /// messages or no list of tools, or what the template refuses.
  Chat render(const Json& messages, const Json& tools = {}) const;
  /// The text alone; with `prompt`, ready for the next turn of the assistant.
  std::string text(const Json& messages, bool prompt,
                   const Json& tools = {}) const;
  /// SHA-256 of what it makes texts of: equal ones render alike.
  const std::string& fingerprint() const;

 private:
  struct Inside;
  std::unique_ptr<const Inside> inside_;
};

/// The ids of a chat, and of each whether a part that a model is to write has
/// some of its characters: it is a target of the loss then. Both begin again.
void encode_chat(const ChatTemplate::Chat& chat, bool special, Encoder& encoder,
                 std::vector<std::uint32_t>& ids, std::vector<bool>& targets);

}  // namespace penstock
