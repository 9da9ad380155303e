#include <fstream>
#include <iostream>
#include <memory>

#include "penstock/cli/output.h"
#include "penstock/cli/verb.h"
#include "penstock/tokenizer/tokenizer.h"

namespace penstock {
namespace {

struct TokenizeArguments {
  std::string tokenizer, file = "-", field = "text";
  bool special = false;
};

[[noreturn]] void refuse(const TokenizeArguments& arguments, std::int64_t line,
                         std::string why) {
  throw Error(
      ErrorKind::transform,
      {.code = "tokenizer.line",
       .what = "cannot tokenise a document",
       .where = (arguments.file == "-" ? "standard input" : arguments.file) +
                ", line " + std::to_string(line),
       .why = std::move(why),
       .next = "correct the line, or name its field with --field"});
}

/// The text of a line; `line` counts from 1.
std::string document_of(const std::string& text,
                        const TokenizeArguments& arguments, std::int64_t line) {
  Json json;
  try {
    json = Json::parse(text, "this line");
  } catch (const Error& error) {
    refuse(arguments, line,
           error.parts().why + " (" + error.parts().where + " of its own)");
  }
  if (!json.is_object())
    refuse(arguments, line,
           "found " + std::string(json.type_name()) + ", expected an object");
  const Json* found = json.find(arguments.field);
  if (found == nullptr || !found->is_string())
    refuse(
        arguments, line,
        "field '" + arguments.field + "': found " +
            (found == nullptr ? "nothing" : std::string(found->type_name())) +
            ", expected a text");
  return found->string();
}

std::string list_of(const std::vector<std::uint32_t>& ids) {
  std::string text = "[";
  for (std::uint32_t id : ids) {
    if (text.size() > 1) text += ',';
    text += std::to_string(id);
  }
  return text + "]\n";
}

void tokenize(const TokenizeArguments& arguments, std::istream& lines,
              const Invocation& invocation) {
  Encoder encoder(Tokenizer::load(arguments.tokenizer));
  std::vector<std::uint32_t> ids;
  std::int64_t documents = 0, tokens = 0, bytes = 0;
  for (std::string line; std::getline(lines, line);) {
    std::string text = document_of(line, arguments, ++documents);
    ids.clear();
    encoder.encode(text, arguments.special, ids);
    tokens += static_cast<std::int64_t>(ids.size());
    bytes += static_cast<std::int64_t>(text.size());
    if (invocation.json) print(list_of(ids));
  }
  if (invocation.json) return;
  print(std::to_string(documents) + " documents, " + std::to_string(tokens) +
        " tokens, " + std::to_string(bytes) + " bytes of text\n");
}

void run_tokenize(const TokenizeArguments& arguments,
                  const Invocation& invocation) {
  if (arguments.file == "-") return tokenize(arguments, std::cin, invocation);
  std::ifstream file(arguments.file);
  // A folder can be opened, and fails when it is read.
  if (!file || file.peek() == std::ifstream::traits_type::eof())
    if (file.bad() || !file.is_open())
      throw Error(ErrorKind::source,
                  {.code = "tokenizer.unreadable",
                   .what = "cannot read the documents",
                   .where = arguments.file,
                   .why = "there is no file that can be read",
                   .next = "name a file of JSON lines, or - for standard "
                           "input"});
  tokenize(arguments, file, invocation);
}

}  // namespace

Verb tokenize_verb() {
  return {
      .name = "tokenize",
      .help = "Turn the texts of JSON lines into the ids of a tokenizer",
      .example = "penstock tokenize tokenizer.json texts.jsonl --json",
      .add = [](Options& options, Invocation& invocation) -> RunVerb {
        auto arguments = std::make_shared<TokenizeArguments>();
        options.add("tokenizer", arguments->tokenizer,
                    "The tokenizer.json of a model", {.required = true});
        options.add("file", arguments->file, "JSON lines; - is standard input");
        options.add("--field", arguments->field,
                    "The member that holds the text");
        options.flag("--special", arguments->special,
                     "With what the template adds, such as <s>");
        add_json(options, invocation, "One list of ids for each document");
        return [arguments](Invocation& of) { run_tokenize(*arguments, of); };
      }};
}

}  // namespace penstock
