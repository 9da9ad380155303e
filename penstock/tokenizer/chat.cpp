#include <algorithm>
#include <filesystem>

#include "penstock/base/error.h"
#include "penstock/base/hash.h"
#include "penstock/base/user_file.h"
#include "penstock/base/utf8.h"
#include "penstock/tokenizer/chat_run.h"
#include "penstock/tokenizer/tokenizer.h"

namespace penstock {
namespace {

using chat::Failure;
using chat::Value;
using chat::Written;

/// Stands for a text of which the place is looked for.
constexpr std::string_view kMark = "\uE000mark\uE001";

Error bad_chat(std::string why, std::string where = "") {
  return Error(ErrorKind::transform,
               {.code = "tokenizer.chat",
                .what = "cannot render a chat",
                .where = std::move(where),
                .why = std::move(why),
                .next = "correct the row or the chat template, or leave the "
                        "row out"});
}

/// A template that a model came with asks for more than it may have.
Error too_much(ErrorKind kind, std::string why, const std::string& origin) {
  return Error(kind, {.code = kind == ErrorKind::request ? "tokenizer.template"
                                                         : "tokenizer.chat",
                      .what = "cannot use this chat template",
                      .where = origin,
                      .why = "the template exceeds a limit: " + std::move(why),
                      .next = "check the template, or render the chats with "
                              "transformers and train on a column of texts"});
}

/// Roles as ShareGPT calls them.
std::string role_of(const std::string& from) {
  if (from == "human") return "user";
  if (from == "gpt" || from == "chatgpt" || from == "model") return "assistant";
  return from;
}

/// A message with a role and a content.
Value message_of(const Json& json, std::size_t number) {
  const std::string where = "message " + std::to_string(number) + " ";
  if (!json.is_object())
    throw bad_chat(where + "is " + std::string(json.type_name()) +
                   ", expected an object");
  Value message = Value::of(json);
  const Json* role = json.find("role");
  if (role == nullptr && json.find("from") != nullptr) {
    const Json *from = json.find("from"), *value = json.find("value");
    if (!from->is_string() || value == nullptr || !value->is_string())
      throw bad_chat(where + "has no texts \"from\" and \"value\"");
    message = std::make_shared<Value::Map>();
    message.map()->set("role", role_of(from->string()));
    message.map()->set("content", value->string());
    return message;
  }
  if (role == nullptr || !role->is_string())
    throw bad_chat(where + "has no text \"role\", nor \"from\"");
  return message;
}

Value::List messages_of(const Json& json) {
  if (!json.is_array())
    throw bad_chat("found " + std::string(json.type_name()) +
                   ", expected a list of messages");
  if (json.array().empty()) throw bad_chat("the list has no messages");
  Value::List messages;
  for (const Json& message : json.array())
    messages.push_back(message_of(message, messages.size()));
  return messages;
}

Value tools_of(const Json& json) {
  if (json.is_null()) return Value::None{};
  if (!json.is_array())
    throw bad_chat("the tools of the chat are " +
                   std::string(json.type_name()) + ", expected a list");
  return Value::of(json);
}

bool is_assistant(const Value& message) {
  const Value* role = message.map()->find("role");
  return *role == Value("assistant");
}

/// How many characters of a text begin before a byte.
std::uint32_t characters_before(std::string_view text, std::size_t byte) {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      text.substr(0, byte),
      [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

void encode_chat(const ChatTemplate::Chat& chat, bool special, Encoder& encoder,
                 std::vector<std::uint32_t>& ids, std::vector<bool>& targets) {
  ids.clear();
  std::vector<TokenOffsets> offsets;
  encoder.encode(chat.text, special, ids, offsets);
  targets.assign(ids.size(), false);
  for (const ChatTemplate::Part& part : chat.assistant) {
    const std::uint32_t begin = characters_before(chat.text, part.begin);
    const std::uint32_t end = characters_before(chat.text, part.end);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const TokenOffsets& of = offsets[i];
      if (of.begin < end && of.end > begin && of.end > of.begin)
        targets[i] = true;
    }
  }
}

struct ChatTemplate::Inside {
  Written render(const Value::List& messages, const Value& tools,
                 bool prompt) const {
    Value::Map variables;
    for (const auto& [name, token] : tokens) variables.set(name, token);
    variables.set("messages", Value::list(messages));
    variables.set("tools", tools);
    variables.set("documents", Value::None{});
    variables.set("add_generation_prompt", prompt);
    try {
      return chat::apply(block, std::move(variables));
    } catch (const Failure& failure) {
      if (failure.limit)
        throw too_much(ErrorKind::transform, failure.why, origin);
      throw bad_chat(failure.why, origin);
    }
  }

  /// The turn of message `at` in `whole`, of all messages.
  Part turn(const Value::List& messages, const Value& tools, std::size_t at,
            const std::string& whole) const;

  chat::Block block;
  std::string origin, fingerprint;
  std::vector<std::pair<std::string, std::string>> tokens;
  bool says_generation = false;
};

namespace {

bool has_generation(const chat::Block& block) {
  return std::ranges::any_of(block, [](const auto& statement) {
    return statement->kind == chat::Statement::Kind::generation ||
           has_generation(statement->body) ||
           has_generation(statement->otherwise) ||
           (statement->macro && has_generation(statement->macro->body));
  });
}

}  // namespace

// A template says nothing of where its messages end up, so it is rendered for
// fewer messages and the texts are compared. Mostly the chat up to this message
// is a beginning of the whole. Where a template treats the last message
// differently, a mark in place of the content shows how far after the content
// the turn ends. What cannot be shown this way is an error and never a guess.
ChatTemplate::Part ChatTemplate::Inside::turn(const Value::List& messages,
                                              const Value& tools,
                                              std::size_t at,
                                              const std::string& whole) const {
  const auto until = [&](std::size_t count) {
    return Value::List(messages.begin(),
                       messages.begin() + static_cast<std::ptrdiff_t>(count));
  };
  auto unknown = [&] {
    return bad_chat("the template does not mark where message " +
                    std::to_string(at) +
                    ", of the assistant, begins and ends; use a template with "
                    "{% generation %}");
  };
  // It begins where the prompt for it ends.
  const std::string before = render(until(at), tools, true).text;
  if (!whole.starts_with(before)) throw unknown();
  const std::string through = render(until(at + 1), tools, false).text;
  if (whole.starts_with(through) && through.starts_with(before))
    return {before.size(), through.size()};
  // It ends as far behind its content as where it is the last message.
  Value::List marked = messages;
  marked[at] = std::make_shared<Value::Map>(*messages[at].map());
  marked[at].map()->set("content", std::string(kMark));
  const std::string all = render(marked, tools, false).text;
  marked.resize(at + 1);
  const std::string last = render(marked, tools, false).text;
  const std::size_t mark = all.find(kMark), mark_last = last.find(kMark);
  if (mark == all.npos || mark_last == last.npos) throw unknown();
  const std::string_view tail =
      std::string_view(last).substr(mark_last + kMark.size());
  const std::string_view rest =
      std::string_view(all).substr(mark + kMark.size());
  if (!rest.starts_with(tail) || !whole.ends_with(rest) ||
      whole.size() - rest.size() < before.size())
    throw unknown();
  return {before.size(), whole.size() - rest.size() + tail.size()};
}

ChatTemplate::ChatTemplate(
    std::string_view text, std::string origin,
    std::vector<std::pair<std::string, std::string>> tokens) {
  auto inside = std::make_unique<Inside>();
  inside->origin = std::move(origin);
  inside->tokens = std::move(tokens);
  try {
    inside->block = chat::read_template(text);
  } catch (const Failure& failure) {
    if (failure.limit)
      throw too_much(ErrorKind::request, failure.why, inside->origin);
    throw Error(ErrorKind::request,
                {.code = "tokenizer.template",
                 .what = "cannot use this chat template",
                 .where = inside->origin,
                 .why = failure.why + " is not supported",
                 .next = "render the chats with transformers and train on a "
                         "column of texts"});
  }
  Sha256 hash;
  hash.add("1");
  hash.add(text);
  for (const auto& [name, token] : inside->tokens)
    hash.add(Json(name).dump() + Json(token).dump());
  inside->fingerprint = hash.hex();
  inside->says_generation = has_generation(inside->block);
  inside_ = std::move(inside);
}
ChatTemplate::~ChatTemplate() = default;

std::shared_ptr<const ChatTemplate> ChatTemplate::of_config(
    std::string_view config, std::string_view beside, std::string origin) {
  const Json json =
      config.empty() ? Json(Json::Object()) : Json::parse(config, origin);
  std::string text(beside);
  std::vector<std::pair<std::string, std::string>> tokens;
  if (json.is_object()) {
    for (const auto& [key, value] : json.object()) {
      const Json* token = value.is_object() ? value.find("content") : &value;
      if (key.ends_with("_token") && token != nullptr && token->is_string())
        tokens.emplace_back(key, token->string());
    }
    const Json* given = json.find("chat_template");
    if (text.empty() && given != nullptr && given->is_string())
      text = given->string();
    if (text.empty() && given != nullptr && given->is_array())
      for (const Json& one : given->array()) {
        const Json* name = one.is_object() ? one.find("name") : nullptr;
        const Json* body = one.is_object() ? one.find("template") : nullptr;
        if (name != nullptr && name->is_string() &&
            name->string() == "default" && body != nullptr && body->is_string())
          text = body->string();
      }
  }
  if (text.empty()) return nullptr;
  return std::make_shared<const ChatTemplate>(text, std::move(origin),
                                              std::move(tokens));
}

std::shared_ptr<const ChatTemplate> ChatTemplate::load(
    const std::string& tokenizer, const std::string& file) {
  const std::filesystem::path folder =
      std::filesystem::path(tokenizer).parent_path();
  auto beside = [&](const char* name) {
    const std::filesystem::path path = folder / name;
    std::error_code none;
    if (!std::filesystem::exists(path, none)) return std::string();
    return read_user_file(path.string(), "cannot read the chat template");
  };
  const std::string config = (folder / "tokenizer_config.json").string();
  const std::string text =
      file.empty() ? beside("chat_template.jinja")
                   : read_user_file(file, "cannot read the chat template");
  auto found = of_config(beside("tokenizer_config.json"), text,
                         file.empty() ? config : file);
  if (found == nullptr)
    throw Error(
        ErrorKind::request,
        {.code = "tokenizer.template",
         .what = "cannot render chats",
         .where = config,
         .why = "the tokenizer has no \"chat_template\", and its folder has no "
                "chat_template.jinja",
         .next = "copy the model's chat_template.jinja into the tokenizer's "
                 "folder, or name a file as \"chat_template\""});
  return found;
}

ChatTemplate::Chat ChatTemplate::render(const Json& json,
                                        const Json& tools) const {
  const Value::List messages = messages_of(json);
  const Value called = tools_of(tools);
  Written written = inside_->render(messages, called, false);
  Chat chat{.text = std::move(written.text), .assistant = {}};
  if (inside_->says_generation) {
    for (ByteRange part : written.generated)
      chat.assistant.push_back({part.begin, part.end});
    return chat;
  }
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (is_assistant(messages[i]))
      chat.assistant.push_back(inside_->turn(messages, called, i, chat.text));
  return chat;
}

const std::string& ChatTemplate::fingerprint() const {
  return inside_->fingerprint;
}

std::string ChatTemplate::text(const Json& json, bool prompt,
                               const Json& tools) const {
  return inside_->render(messages_of(json), tools_of(tools), prompt).text;
}

}  // namespace penstock
