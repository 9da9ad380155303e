#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>

#include "penstock/base/utf8.h"
#include "penstock/cli/output.h"
#include "penstock/cli/verb.h"
#include "penstock/sources/sources.h"
#include "penstock/tokenizer/tokenizer.h"

namespace penstock {
namespace {

struct TokenizeArguments {
  std::string tokenizer, file = "-", field = "text";
  bool special = false;
};

constexpr const char* kNameField =
    "correct the line, or name the field of the text with --field";

[[noreturn]] void refuse_line(std::string where, std::string why,
                              const char* next = kNameField) {
  throw Error(ErrorKind::transform, {.code = "tokenizer.line",
                                     .what = "cannot tokenise a document",
                                     .where = std::move(where),
                                     .why = std::move(why),
                                     .next = next});
}

constexpr const char* kOneObject =
    "correct the line: each line must be one JSON object";

using TakeDocument = std::function<void(std::string_view text)>;

/// The member of a member, "a.b", or one whose name is all of it.
const Json* member_at(const Json& json, std::string_view path) {
  if (!json.is_object()) return nullptr;
  if (const Json* found = json.find(std::string(path))) return found;
  const std::size_t dot = path.find('.');
  if (dot == path.npos) return nullptr;
  const Json* inner = json.find(std::string(path.substr(0, dot)));
  return inner == nullptr ? nullptr : member_at(*inner, path.substr(dot + 1));
}

/// Of standard input or a pipe, line by line as they come.
void read_stream(std::istream& from, const std::string& name,
                 const std::string& field, const TakeDocument& take) {
  std::int64_t at = 0;
  for (std::string line; std::getline(from, line);) {
    const std::string place = name + ":" + std::to_string(++at);
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    Json json;
    try {
      json = Json::parse(line, "this line");
    } catch (const Error& error) {
      const std::string& where = error.parts().where;  // "line 1, column 7"
      refuse_line(place + ":" + where.substr(where.rfind(' ') + 1),
                  error.parts().why, kOneObject);
    }
    if (!json.is_object())
      refuse_line(
          place + ":1",
          "found " + std::string(json.type_name()) + ", expected an object",
          kOneObject);
    const Json* found = member_at(json, field);
    if (found == nullptr || !found->is_string())
      refuse_line(
          place,
          "field '" + field + "': found " +
              (found == nullptr ? "nothing" : std::string(found->type_name())) +
              ", expected a text");
    take(found->string());
  }
}

/// The text of a row; empty: it has none. JSON stands in quotation marks.
std::optional<std::string> document_in(const Column& column, std::int64_t row) {
  if (!column.valid(row)) return std::nullopt;
  const std::string_view text = column.text(row);
  if (column.type != ColumnType::json) return std::string(text);
  if (!text.starts_with('"')) return std::nullopt;
  return Json::parse(text, "the text").string();
}

/// All rows of a source of one column, in their order.
void read_rows(const Source& source, Reader& reader, const Partition& partition,
               const std::string& field, const TakeDocument& take) {
  reader.scan(partition, {}, [&](KeyList& keys, Block& block) {
    const Column& column = block.columns[0];
    for (std::int64_t row = 0; row < block.rows; ++row) {
      const auto problem =
          std::ranges::find(block.problems, row, &RowProblem::row);
      std::optional<std::string> text;
      if (problem == block.problems.end()) text = document_in(column, row);
      if (text) {
        take(*text);
        continue;
      }
      const std::string found =
          problem != block.problems.end() ? problem->why
          : column.valid(row)
              ? "holds " + beginning(column.text(row)) + ", expected a text"
              : "the text is missing";
      refuse_line(source.place_of(keys.integer(row)),
                  "field '" + field + "': " + found);
    }
    return true;
  });
}

/// Of files, which may be compressed, and of all that a pattern names.
void read_files(const TokenizeArguments& from, const TakeDocument& take) {
  Json section;
  section["kind"] = "jsonl";
  section["path"] = from.file;
  const std::unique_ptr<Source> source =
      open_source(parse_source_spec(section, "source"), {{.column = from.field,
                                                          .as = ReadAs::value,
                                                          .setting = "--field",
                                                          .document = true}});
  if (!source->types()[0].is_text())
    refuse_line(source->place_of(0),
                "field '" + from.field + "' holds " +
                    std::string(name_of(source->types()[0])) +
                    ", expected texts");
  const std::unique_ptr<Reader> reader = source->open_reader();
  for (const Partition& partition : source->partitions(1))
    read_rows(*source, *reader, partition, from.field, take);
}

/// A pipe, or a file without anything in it, of which no source knows a column.
/// A source opens its file more than once, which a pipe does not survive.
bool is_stream(const std::string& file) {
  std::error_code none;
  return std::filesystem::is_fifo(file, none) ||
         std::filesystem::is_character_file(file, none) ||
         (std::filesystem::is_regular_file(file, none) &&
          std::filesystem::file_size(file, none) == 0);
}

std::string list_of(const std::vector<std::uint32_t>& ids) {
  std::string text = "[";
  for (std::uint32_t id : ids) {
    if (text.size() > 1) text += ',';
    text += std::to_string(id);
  }
  return text + "]\n";
}

void run_tokenize(const TokenizeArguments& arguments,
                  const Invocation& invocation) {
  Encoder encoder(Tokenizer::load(arguments.tokenizer));
  std::vector<std::uint32_t> ids;
  std::int64_t documents = 0, tokens = 0, bytes = 0;
  auto take = [&](std::string_view text) {
    ids.clear();
    encoder.encode(text, arguments.special, ids);
    ++documents;
    tokens += std::ssize(ids);
    bytes += std::ssize(text);
    if (invocation.json) print(list_of(ids));
  };
  if (arguments.file == "-") {
    read_stream(std::cin, "standard input", arguments.field, take);
  } else if (is_stream(arguments.file)) {
    std::ifstream from(arguments.file);
    read_stream(from, arguments.file, arguments.field, take);
  } else {
    read_files(arguments, take);
  }
  if (invocation.json) return;
  print(std::to_string(documents) + " documents, " + std::to_string(tokens) +
        " tokens, " + std::to_string(bytes) + " bytes of text\n");
}

}  // namespace

Verb tokenize_verb() {
  return {
      .name = "tokenize",
      .help = "Turn the texts of JSON lines into token ids",
      .example = "penstock tokenize tokenizer.json texts.jsonl --json",
      .add = [](Options& options, Invocation& invocation) -> RunVerb {
        auto arguments = std::make_shared<TokenizeArguments>();
        options.add("tokenizer", arguments->tokenizer,
                    "The tokenizer.json of a model", {.required = true});
        options.add("file", arguments->file,
                    "JSON lines files (.gz and .zst too), or a pattern of "
                    "them. -: standard input");
        options.add(
            "--field", arguments->field,
            "Key of the text in each line. a.b: key b of the object at a");
        options.flag("--special", arguments->special,
                     "Add the special tokens of the template, such as <s>");
        add_json(options, invocation, "Print a list of ids for each document");
        return [arguments](Invocation& of) { run_tokenize(*arguments, of); };
      }};
}

}  // namespace penstock
