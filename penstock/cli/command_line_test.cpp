#include "penstock/cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/base/base.h"

namespace penstock {
namespace {

using testing::HasSubstr;

std::optional<Command> read(std::vector<std::string> words,
                            Invocation& invocation) {
  words.insert(words.begin(), "penstock");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  return read_command_line(static_cast<int>(arguments.size()), arguments.data(),
                           invocation);
}

void read(Options& options, std::vector<std::string> words) {
  words.insert(words.begin(), "test");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  options.read(static_cast<int>(arguments.size()), arguments.data());
}

std::string refusal(const std::vector<std::string>& words) {
  Invocation invocation;
  try {
    read(words, invocation);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_EQ(error.parts().code, "cli.arguments");
    return error.what();
  }
  return "no error";
}

TEST(CommandLine, NamesAVerbWithItsOptions) {
  Invocation invocation;
  std::optional<Command> command =
      read({"--log", "info", "train", "job.json", "--json"}, invocation);
  ASSERT_TRUE(command.has_value());
  EXPECT_EQ(command->verb->name, "train");
  EXPECT_TRUE(command->verb->ends_in_order);
  EXPECT_EQ(command->log_level, "info");
  EXPECT_TRUE(invocation.json);
  EXPECT_TRUE(command->run);
}

TEST(CommandLine, TheLogLevelMayStandBehindTheVerb) {
  Invocation invocation;
  std::optional<Command> command =
      read({"train", "job.json", "--log", "debug"}, invocation);
  ASSERT_TRUE(command.has_value());
  EXPECT_EQ(command->log_level, "debug");
}

TEST(CommandLine, GoesIntoAVerbOfAVerb) {
  Invocation invocation;
  std::optional<Command> command =
      read({"demo", "positions", "--to", "sqlite:x"}, invocation);
  ASSERT_TRUE(command.has_value());
  EXPECT_EQ(command->verb->name, "demo");
  EXPECT_FALSE(invocation.json);
}

TEST(CommandLine, EachOptionThatMayBeRepeatedTakesOneValue) {
  std::string job;
  std::vector<std::string> sets;
  auto read_sets = [&](std::vector<std::string> words) {
    Options options("test", "Sets");
    options.add("job", job, "", {.required = true});
    options.add("--set", sets, "");
    read(options, std::move(words));
  };
  read_sets({"--set", "a=1", "job.json", "--set", "b=2", "--set=c=-3"});
  EXPECT_EQ(job, "job.json");
  EXPECT_THAT(sets, testing::ElementsAre("a=1", "b=2", "c=-3"));
  EXPECT_THROW(read_sets({"job.json", "--set", "a=1", "b=2"}), BadArguments);
  EXPECT_THROW(read_sets({"job.json", "--set"}), BadArguments);
}

TEST(CommandLine, NamesTheNearestVerb) {
  EXPECT_THAT(refusal({"trian", "job.json"}),
              HasSubstr("did you mean 'train'"));
  EXPECT_THAT(refusal({"train", "--sett", "a"}), HasSubstr("--sett"));
}

TEST(CommandLine, ReadsNumbersInDecimalWithZerosInFrontToo) {
  std::int64_t steps = 0;
  std::uint64_t seed = 0;
  int rank = 0;
  double ms = 0;
  auto read_numbers = [&](std::vector<std::string> words) {
    Options options("test", "Numbers");
    options.add("--steps", steps, "", {.least = -100});
    options.add("--seed", seed, "", {});
    options.add("--rank", rank, "", {.most = 64});
    options.add("--ms", ms, "", {.most = 1000});
    read(options, std::move(words));
  };
  read_numbers({"--steps=010", "--seed", "0017", "--rank", "08", "--ms=02.5"});
  EXPECT_EQ(steps, 10);
  EXPECT_EQ(seed, 17u);
  EXPECT_EQ(rank, 8);
  EXPECT_EQ(ms, 2.5);
  read_numbers({"--steps", "-010"});
  EXPECT_EQ(steps, -10);
  for (const char* wrong :
       {"--steps=0x2", "--steps=", "--steps= 1", "--steps=-101", "--rank=",
        "--rank=0x2", "--rank=65", "--rank=1.0", "--rank=-1", "--ms=nan",
        "--ms=inf", "--ms=1e999", "--ms=-1", "--ms=1001", "--ms=", "--ms=5s"})
    EXPECT_THROW(read_numbers({wrong}), BadArguments) << wrong;
}

TEST(CommandLine, HelpShowsBothBoundsOfANumber) {
  Invocation invocation;
  testing::internal::CaptureStdout();
  read({"verify-resume", "--help"}, invocation);
  const std::string help = testing::internal::GetCapturedStdout();
  EXPECT_THAT(help, HasSubstr("--ranks INT:1 to 64=4"));
  EXPECT_THAT(help, HasSubstr("--points INT:>= -1=100"));
}

TEST(CommandLine, ShowsNoPassword) {
  EXPECT_THAT(refusal({"doctor", "postgresql://u:SECRET@h/b"}),
              testing::Not(HasSubstr("SECRET")));
}

TEST(Verbs, HaveOneLineOfHelpAndTakeJson) {
  EXPECT_GE(verbs().size(), 7u);
  for (const Verb& verb : verbs()) {
    EXPECT_FALSE(verb.help.empty()) << verb.name;
    EXPECT_THAT(verb.help, testing::Not(HasSubstr("\n"))) << verb.name;
    std::vector<std::string> words = {verb.name, "--help"};
    if (verb.name == "demo") words.insert(words.begin() + 1, "positions");
    if (verb.name == "cache") words.insert(words.begin() + 1, "ls");
    Invocation invocation;
    testing::internal::CaptureStdout();
    EXPECT_FALSE(read(words, invocation)) << verb.name;
    EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("--json"));
  }
}

}  // namespace
}  // namespace penstock
