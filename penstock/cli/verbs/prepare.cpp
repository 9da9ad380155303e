#include <cstdio>
#include <memory>
#include <utility>

#include "penstock/cli/output.h"
#include "penstock/cli/terminal.h"
#include "penstock/cli/verb.h"
#include "penstock/inspect/inspect.h"
#include "penstock/session/session.h"

namespace penstock {
namespace {

struct PrepareArguments {
  std::vector<std::string> jobs, sets, also;
  std::string part;
  bool commit = false;
};

[[noreturn]] void refuse(std::string what, std::string where, std::string why,
                         std::string next) {
  throw Error(ErrorKind::request, {.code = "cli.arguments",
                                   .what = std::move(what),
                                   .where = std::move(where),
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

/// "2/4".
PartOfScan part_of(const std::string& text) {
  PartOfScan which;
  int length = 0;
  if (std::sscanf(text.c_str(), "%9d/%9d%n", &which.part, &which.of, &length) !=
          2 ||
      static_cast<std::size_t>(length) != text.size())
    refuse("cannot prepare a part of the rows", "--part",
           "found '" + text + "', expected K/N",
           "name one of N parts, from 1 to N: --part 1/4");
  return which;
}

std::string number_of(const Json& json, const char* key) {
  const Json* found = json.find(key);
  return found == nullptr ? "" : found->dump();
}

/// Of the first field that holds documents; null: none.
const Json* tokens_in(const Json& statistics) {
  if (!statistics.is_object()) return nullptr;
  for (const auto& [field, found] : statistics.object())
    if (found.is_object() && found.find("most_used") != nullptr) return &found;
  return nullptr;
}

std::string text_of_tokens(const Json& found) {
  std::string text = "longest document: " + number_of(found, "longest") +
                     " tokens; empty documents: " + number_of(found, "empty") +
                     "; duplicates: " + number_of(found, "duplicates") + "\n";
  if (const Json* per = found.find("characters_per_token");
      per != nullptr && !per->is_null())
    text += "characters per token: " + per->dump() + "\n";
  text += "most used tokens:";
  for (const Json& use : found.find("most_used")->array())
    text += " " + use.array()[0].dump() + " (" + use.array()[1].dump() + ")";
  if (found.find("unused") != nullptr)
    text += "; never used: " + number_of(found, "unused");
  return text + "\n";
}

std::string text_of_prepared(const Json& json) {
  char time[32];
  std::snprintf(time, sizeof(time), "%.1f s", json.find("seconds")->number());
  std::string text = number_of(json, "documents") + " documents";
  if (json.find("tokens") != nullptr)
    text += ", " + number_of(json, "tokens") + " tokens";
  text += std::get<bool>(json.find("already")->value())
              ? " were prepared before"
              : std::string(" prepared in ") + time;
  const Json* bytes = json.find("bytes");
  text += ": " + json.find("store")->string();
  if (!bytes->is_null())
    text += ", " + shown_bytes(static_cast<std::size_t>(bytes->integer()));
  text += "\n";
  if (json.find("invalid_utf8") != nullptr &&
      json.find("invalid_utf8")->integer() > 0)
    text += number_of(json, "invalid_utf8") +
            " documents contain bytes that are not UTF-8\n";
  if (const Json* left_out = json.find("left_out");
      left_out != nullptr && left_out->integer() > 0) {
    const Json* list = json.find("left_out_list");
    text += left_out->dump() + " rows were left out" +
            (list == nullptr ? "" : ", listed in " + list->string()) + "\n";
  }
  if (json.find("resumed")->integer() > 0)
    text += number_of(json, "resumed") +
            " rows were prepared by an earlier, interrupted call\n";
  if (const Json* found = tokens_in(*json.find("statistics")))
    text += text_of_tokens(*found);
  return text;
}

std::string text_of_part(const Json& json) {
  std::string text =
      "part " + number_of(json, "part") + " of " + number_of(json, "of") + ": ";
  if (std::get<bool>(json.find("already")->value()))
    return text +
           "the store is there already: " + json.find("store")->string() + "\n";
  char time[32];
  std::snprintf(time, sizeof(time), "%.1f s", json.find("seconds")->number());
  text += number_of(json, "rows") + " rows scanned in " + time;
  if (json.find("resumed")->integer() > 0)
    text += ", of which " + number_of(json, "resumed") +
            " were there from an earlier call";
  return text + ", for " + json.find("store")->string() + "\n";
}

Json prepare_one(const std::string& path, const PrepareArguments& arguments,
                 Invocation& invocation) {
  Terminal terminal;
  const Nanoseconds begun = wall_clock().now();
  PrepareListener listener{
      .note = [&](const std::string& line) { terminal.note(line); },
      .progress =
          [&](const ScanProgress& progress) {
            terminal.progress(
                scan_line(progress, seconds(wall_clock().now() - begun)));
          }};
  TokenExport also;
  if (arguments.also.size() == 2)
    also = {.format = arguments.also[0], .dir = arguments.also[1]};
  const Job job = load_job(path, arguments.sets);
  const StopFlag stop(invocation.stop);
  Json json;
  if (!arguments.part.empty())
    json = prepare_part(job, part_of(arguments.part), listener, stop);
  else if (arguments.commit)
    json = commit_parts(job, listener, stop, also);
  else
    json = prepare_job(job, listener, stop, also);
  json["job"] = path;
  return json;
}

void run_prepare(const PrepareArguments& arguments, Invocation& invocation) {
  if (arguments.jobs.empty())
    refuse("there is nothing to prepare", "job",
           "the command names no job file", "penstock prepare job.json");
  if (!arguments.also.empty() && arguments.jobs.size() > 1)
    refuse("cannot export the tokens of several jobs", "--export",
           "all would be written to the same files",
           "export one job after the other");
  if (!arguments.part.empty() && (arguments.commit || !arguments.also.empty()))
    refuse("cannot prepare a part of the rows", "--part",
           "--part cannot be combined with --commit or --export, which need "
           "all parts",
           "run 'penstock prepare JOB --part K/N' for each part, then "
           "'penstock prepare JOB --commit'");
  Json all(Json::Array{});
  try {
    for (const std::string& path : arguments.jobs) {
      all.push_back(prepare_one(path, arguments, invocation));
      if (!invocation.json)
        print(arguments.part.empty() ? text_of_prepared(all.array().back())
                                     : text_of_part(all.array().back()));
    }
  } catch (const Error& error) {
    if (!is_stop(error)) throw;
    invocation.interrupted = true;
  }
  if (!invocation.json) return;
  if (arguments.jobs.size() == 1 && all.array().size() == 1)
    return print_document(all.array().front());
  Json json;
  json["jobs"] = std::move(all);
  print_document(json);
}

RunVerb add_prepare(Options& options, Invocation& invocation) {
  auto arguments = std::make_shared<PrepareArguments>();
  options.add("job", arguments->jobs, "The job files");
  options.add_pair("--export", arguments->also,
                   "FORMAT DIR: also write the tokens to DIR, as hf, megatron, "
                   "datatrove, llmc or raw");
  options.add("--part", arguments->part,
              "K/N: scan only part K of N of the rows, for --commit");
  options.flag("--commit", arguments->commit,
               "Make the store of parts that are all there");
  add_sets(options, arguments->sets);
  add_json(options, invocation, "One JSON document");
  return [arguments](Invocation& invoked) { run_prepare(*arguments, invoked); };
}

}  // namespace

Verb prepare_verb() {
  return {.name = "prepare",
          .help = "Prepare the rows of jobs before training",
          .example = "penstock prepare job.json --json",
          .ends_in_order = true,
          .add = add_prepare};
}

}  // namespace penstock
