#include "penstock/transforms/tokens/token_turns.h"

#include <algorithm>

#include "penstock/base/utf8.h"
#include "penstock/transforms/tokens/token_texts.h"

namespace penstock {
TokenTurns::TokenTurns(const Tokens& tokens)
    : special_(tokens.special),
      eos_(tokens.end ? std::int64_t{*tokens.end} : -1),
      template_(tokens.rendered_by),
      encoder_(tokens.loaded) {}

bool TokenTurns::reads(const ColumnType& type) {
  return type.is_text() || type.kind == ColumnKind::dictionary;
}

std::string TokenTurns::read(const Column& column, const Column* more,
                             std::int64_t row, DocumentNote& note) {
  const std::optional<std::string_view> found =
      template_ != nullptr ? text_in(column, row)
                           : document_in(column, row, prompt_);
  const std::string_view first = found ? *found : text_in(column, row);
  if (!found) return "holds " + beginning(first) + ", expected a text";
  if (!is_utf8(first)) return "holds " + shown_text(first) + ", expected UTF-8";
  if (template_ != nullptr) {
    const bool tools = more != nullptr && more->valid(row);
    std::string why = read_chat(first, tools ? text_in(*more, row) : "null");
    if (!why.empty()) return why;
  } else {
    const std::optional<std::string_view> answer =
        document_in(*more, row, answer_);
    if (!answer)
      return "is completed by " + beginning(text_in(*more, row)) +
             ", expected a text";
    const std::string_view second = *answer;
    if (!is_utf8(second))
      return "is completed by " + shown_text(second) + ", expected UTF-8";
    chat_.text = first;
    chat_.text += second;
    chat_.assistant = {{first.size(), chat_.text.size()}};
  }
  try {
    tokenize();
  } catch (const Error& error) {
    return "holds " + beginning(first) + ": " + error.parts().why;
  }
  note.bytes = static_cast<std::int64_t>(chat_.text.size());
  note.characters = characters_in(chat_.text);
  note.targets = static_cast<std::int32_t>(std::ranges::count(targets_, true));
  return {};
}

std::string TokenTurns::read_chat(std::string_view json,
                                  std::string_view tools) {
  try {
    chat_ = template_->render(Json::parse(json, "the chat"),
                              Json::parse(tools, "the tools of the chat"));
    return {};
  } catch (const Error& error) {
    return "holds " + beginning(json) + ": " + error.parts().why;
  }
}

void TokenTurns::tokenize() {
  encode_chat(chat_, special_, encoder_, ids_, targets_);
  if (eos_ < 0) return;
  ids_.push_back(static_cast<std::uint32_t>(eos_));
  targets_.push_back(!chat_.assistant.empty() &&
                     chat_.assistant.back().end == chat_.text.size());
}

}  // namespace penstock
