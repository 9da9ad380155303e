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

TEST(CommandLine, GoesIntoAVerbOfAVerb) {
  Invocation invocation;
  std::optional<Command> command =
      read({"demo", "positions", "--to", "sqlite:x"}, invocation);
  ASSERT_TRUE(command.has_value());
  EXPECT_EQ(command->verb->name, "demo");
  EXPECT_FALSE(invocation.json);
}

TEST(CommandLine, NamesTheNearestVerb) {
  EXPECT_THAT(refusal({"trian", "job.json"}),
              HasSubstr("did you mean 'train'"));
  EXPECT_THAT(refusal({"train", "--sett", "a"}), HasSubstr("--sett"));
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
