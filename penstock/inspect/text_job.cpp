#include "penstock/inspect/text_job.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "penstock/base/error.h"
#include "penstock/inspect/job_text.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostRead = std::size_t{64} << 20;
constexpr double kBytesPerToken = 4;
constexpr std::int64_t kFewDocuments = 10;

/// A column of documents, and what follows its texts, if that is another one.
struct TextColumn {
  std::string name, completion = {};
  bool chat = false;
};

std::optional<TextColumn> text_column(const SourceSpec& spec) {
  const Schema schema = read_schema(spec);
  auto has = [&](const char* name) { return schema.find(name) != nullptr; };
  for (const char* name : {"messages", "conversations"})
    if (has(name)) return TextColumn{.name = name, .chat = true};
  for (const char* completion : {"completion", "response", "answer"})
    for (const char* prompt : {"prompt", "question"})
      if (has(prompt) && has(completion))
        return TextColumn{.name = prompt, .completion = completion};
  for (const char* name : {"text", "content"})
    if (has(name)) return TextColumn{.name = name};
  return std::nullopt;
}

/// Of the documents that were read: all of them, or the first 64 MiB.
struct FirstDocuments {
  std::int64_t count = 0;
  std::size_t bytes = 0;
  bool all = true;
};

FirstDocuments first_documents(const SourceSpec& spec, const TextColumn& column,
                               StopFlag stop) {
  const auto source =
      open_source(spec,
                  {{.column = column.name,
                    .as = column.chat ? ReadAs::json : ReadAs::value,
                    .document = column.chat}},
                  {.stop = stop, .keys = false});
  FirstDocuments read;
  for (const Partition& part : source->partitions(1)) {
    if (!read.all) break;
    source->open_reader()->scan(part, {}, [&](KeyList&, Block& block) {
      end_if_stopped(stop);
      read.count += block.rows;
      read.bytes += block.columns[0].bytes();
      read.all = read.bytes < kMostRead;
      return read.all;
    });
  }
  return read;
}

struct BaseModel {
  std::string setting;  // "path", or "config" where weights are drawn
  std::string tokenizer;
};

BaseModel base_model(const NewJob& job) {
  auto refuse = [&](std::string why) {
    throw Error(ErrorKind::request,
                {.code = "init.base",
                 .what = "cannot write a job that trains a language model",
                 .where = job.base.empty() ? "--base" : job.base,
                 .why = std::move(why),
                 .next = "name the folder of a Hugging Face model with its "
                         "tokenizer.json and config.json: --base FOLDER"});
  };
  if (job.base.empty())
    refuse("no model is named, whose tokenizer makes tokens of the texts");
  const fs::path folder = job.base;
  std::error_code none;
  for (const char* file : {"tokenizer.json", "config.json"})
    if (!fs::exists(folder / file, none))
      refuse(std::string("it has no ") + file);
  bool weights = false;
  for (const auto& entry : fs::directory_iterator(folder, none))
    weights |= entry.path().extension() == ".safetensors";
  return {.setting = weights ? "path" : "config",
          .tokenizer = (folder / "tokenizer.json").string()};
}

/// Tokens of a row: at most 1,024, and short enough for 64 rows.
std::int64_t row_length(double tokens) {
  std::int64_t length = 64;
  while (length < 1024 && tokens / static_cast<double>(2 * length) >= 64)
    length *= 2;
  return length;
}

std::string field_text(const TextColumn& column, const std::string& tokenizer,
                       std::int64_t length) {
  std::string text =
      column.chat
          ? "    // Chats, of which the assistant's answers are learned; the "
            "chat template is\n    // that of the tokenizer.\n"
      : column.completion.empty()
          ? "    // Texts; a token ends each of them.\n"
          : "    // Prompts and what follows them, which alone is learned.\n";
  text += "    \"tokens\": {\"tokens\": {\n      \"column\": " +
          quoted(column.name);
  if (column.chat) text += ", \"chat\": true";
  if (!column.completion.empty())
    text += ", \"completion\": " + quoted(column.completion);
  if (!column.chat) text += ", \"eos\": true";
  return text + ",\n      \"tokenizer\": " + quoted(tokenizer) +
         ",\n      // Documents are packed into rows of so many tokens, "
         "and do not see each other.\n      \"max_length\": " +
         std::to_string(length) + "}}\n  },\n";
}

std::string model_text_of(const NewJob& job, const BaseModel& base) {
  const std::string begin = "  \"model\": {\"kind\": \"causal_lm\", " +
                            quoted(base.setting) + ": " + quoted(job.base);
  if (base.setting == "config")
    return "  // Weights are drawn: the folder has none.\n" + begin + "},\n";
  return "  // Adapters learn, and the weights stay. Without \"lora\" all "
         "weights learn: set\n  // train.lr to 0.00002 then.\n" +
         begin +
         ",\n            \"lora\": {\"r\": 16, \"alpha\": 32, "
         "\"target_modules\": \"all-linear\"}},\n";
}

}  // namespace

bool holds_texts(const SourceSpec& spec) {
  return text_column(spec).has_value();
}

std::string text_job_text(const NewJob& job, StopFlag stop) {
  const TextColumn column = *text_column(job.source);
  const BaseModel base = base_model(job);
  const FirstDocuments read = first_documents(job.source, column, stop);
  std::vector<std::string> settings = settings_of(job.source);
  // One file by itself is no more than a document: its lines are some.
  if (job.source.kind == "text" && read.count < kFewDocuments)
    settings.push_back("\"by\": \"line\"");
  const double tokens = static_cast<double>(read.bytes) / kBytesPerToken;
  const std::int64_t length = row_length(tokens);
  const auto rows = static_cast<std::int64_t>(tokens / double(length));
  const bool drawn = base.setting == "config";
  return begin_of_job(read.all
                          ? "the " + counted(read.count, "document") + " of " +
                                quoted(job.source.path) + " hold"
                          : "the first " + counted(read.count, "document") +
                                " of " + quoted(job.source.path) + " hold",
                      job.name) +
         source_line(settings) + "  \"fields\": {\n" +
         field_text(column, base.tokenizer, length) +
         "  // Which documents are held out follows from their places.\n"
         "  \"split\": {\"train\": 0.9, \"val\": 0.1},\n" +
         comment(
             "About " + shown_count(rows) + " rows, by 4 bytes for each token.",
             "  ") +
         "  \"loader\": {\"batch_size\": " + std::to_string(batch_of(rows, 8)) +
         "},\n" + model_text_of(job, base) +
         train_line(read.count / 10,
                    std::string("\"epochs\": ") + (column.chat ? "3" : "1") +
                        ", \"lr\": " + (drawn ? "0.001" : "0.0002") +
                        ", \"warmup_ratio\": 0.1");
}

}  // namespace penstock
