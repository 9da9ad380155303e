#include "penstock/cli/command_line.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "penstock/base/base.h"

namespace penstock {
namespace {

/// What is wrong with the arguments, without those that may hold a password: a
/// source in a place where none belongs.
std::string shown_reason(std::string why, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::string_view hidden = argv[i];
    bool pairs = hidden.find('=') != hidden.npos &&
                 hidden.find_first_of(" \t\n") != hidden.npos;
    if (!pairs && hidden.find_first_of(":@") == hidden.npos) continue;
    for (std::size_t at = 0; (at = why.find(hidden, at)) != why.npos; at += 3)
      why.replace(at, hidden.size(), "***");
  }
  return without_password(why);
}

Error argument_error(int argc, char** argv, const BadArguments& error) {
  ErrorParts parts{.code = "cli.arguments",
                   .what = "cannot read the command line",
                   .where = "the arguments",
                   .why = error.what(),
                   .next = "see penstock --help"};
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) names.push_back(verb.name);
  std::string first = argc > 1 ? argv[1] : "-";
  if (!first.starts_with('-') && std::ranges::find(names, first) == names.end())
    parts.why =
        "there is no command '" + first + "'; " + did_you_mean(first, names);
  parts.why = shown_reason(std::move(parts.why), argc, argv);
  return Error(ErrorKind::request, std::move(parts));
}

void add_log(Options& to, Command& command) {
  to.add("--log", command.log_level,
         "debug, info, warning, error or off (or PENSTOCK_LOG)");
}

void describe_program(Options& program, Command& command) {
  program.footer(
      "Examples:\n  penstock demo positions --rows 4030 --seed 1 --to "
      "sqlite:demo.sqlite\n  penstock peek sqlite:demo.sqlite#measurements\n  "
      "penstock train examples/positions/job.json --set "
      "source.path=demo.sqlite\n  penstock batch job.json --epoch 4 --steps "
      "10:12 --out batches\nExit codes: 0 done (or help shown), 2 request, 3 "
      "source, 4 transform, 5 device, 6 out of memory, 70 internal, 128 + the "
      "number of the signal that interrupted it (130 Ctrl-C, 143 SIGTERM; the "
      "state is saved).");
  program.version("penstock " PENSTOCK_VERSION);
  add_log(program, command);
}

/// The options of those alone that the arguments name.
void add_verbs(Options& program, std::span<char*> arguments,
               Invocation& invocation, Command& command) {
  for (const Verb& verb : verbs()) {
    auto run = std::make_shared<RunVerb>();
    Options options =
        program.verb(verb.name, verb.help, [&command, &verb, run] {
          command.verb = &verb;
          command.run = *run;
        });
    if (std::ranges::find(arguments, std::string_view(verb.name)) ==
        arguments.end())
      continue;
    if (!verb.example.empty()) options.footer("Example: " + verb.example);
    *run = verb.add(options, invocation);
    add_log(options, command);  // it may stand behind the verb, too
  }
}

}  // namespace

bool wants_json(int argc, char** argv) {
  return std::any_of(argv, argv + argc, [](const char* argument) {
    return std::string_view(argument) == "--json";
  });
}

std::optional<Command> read_command_line(int argc, char** argv,
                                         Invocation& invocation) {
  Options program("penstock",
                  "Penstock keeps a GPU busy: it reads, prepares and feeds "
                  "training data, and reports the bottleneck.");
  Command command;
  describe_program(program, command);
  add_verbs(program, {argv, static_cast<std::size_t>(argc)}, invocation,
            command);
  try {
    if (!program.read(argc, argv)) return std::nullopt;
  } catch (const BadArguments& error) {
    throw argument_error(argc, argv, error);
  }
  return command;
}

}  // namespace penstock
