#include "penstock/base/error.h"

#include <gtest/gtest.h>

#include <memory>

#include "penstock/base/json.h"

namespace penstock {
namespace {

TEST(Error, SaysWhatWhereWhyAndWhatNext) {
  Error error(ErrorKind::source, {.code = "sqlite.locked",
                                  .what = "cannot read 'recordings'",
                                  .where = "train.sqlite",
                                  .why = "database is locked",
                                  .next = "try again"});
  EXPECT_STREQ(error.what(),
               "cannot read 'recordings' at train.sqlite: database is locked; "
               "try again");
}

TEST(Error, IsOneJsonDocument) {
  Error error(ErrorKind::out_of_memory, {.code = "a.b", .what = "say \"x\""});
  Json document = Json::parse(error.json(), "test");
  const Json& parts = *document.find("error");
  EXPECT_EQ(parts.find("kind")->string(), "out_of_memory");
  EXPECT_EQ(parts.find("what")->string(), "say \"x\"");
  EXPECT_EQ(parts.find("next")->string(), "");
}

TEST(Error, EveryKindHasANameAndAnExitCode) {
  EXPECT_EQ(exit_code_of(ErrorKind::request), 2);
  EXPECT_EQ(exit_code_of(ErrorKind::source), 3);
  EXPECT_EQ(exit_code_of(ErrorKind::transform), 4);
  EXPECT_EQ(exit_code_of(ErrorKind::device), 5);
  EXPECT_EQ(exit_code_of(ErrorKind::out_of_memory), 6);
  EXPECT_EQ(exit_code_of(ErrorKind::internal), 70);
  EXPECT_EQ(name_of(ErrorKind::transform), "transform");
  EXPECT_EQ(name_of(ErrorKind::device), "device");
  EXPECT_EQ(name_of(ErrorKind::internal), "internal");
}

TEST(Error, CarriesTheNameOfItsStage) {
  Error error = Error(ErrorKind::source, {.what = "no rows"}).in_stage("read");
  EXPECT_EQ(error.parts().what, "read: no rows");
  EXPECT_EQ(error.kind(), ErrorKind::source);
}

TEST(Error, KeepsItsCauseThroughStagesAndCopies) {
  auto cause = std::make_shared<int>(7);
  std::weak_ptr<int> kept = cause;
  {
    Error plain(ErrorKind::transform, {.what = "fn failed"});
    EXPECT_EQ(plain.cause(), nullptr);
    Error copy = plain.caused_by(std::move(cause)).in_stage("loader");
    EXPECT_EQ(copy.cause(), kept.lock());
    EXPECT_EQ(copy.parts().what, "loader: fn failed");
  }
  EXPECT_TRUE(kept.expired());
}

TEST(Error, AnAssertionThatFailsIsAnInternalError) {
  try {
    PENSTOCK_ASSERT(1 + 1 == 3, "arithmetic");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::internal);
  }
}

TEST(Nearest, FindsATypingErrorAndRefusesToGuessWildly) {
  std::vector<std::string> known = {"batch_size", "seed"};
  EXPECT_EQ(nearest("batchsize", known), "batch_size");
  EXPECT_EQ(nearest("sede", known), "seed");
  EXPECT_EQ(nearest("quantisation", known), "");
  EXPECT_EQ(nearest("lr_scheduler_type",
                    std::vector<std::string>{"encoder_type", "epochs"}),
            "");
  EXPECT_EQ(did_you_mean("sed", known), "did you mean 'seed'?");
  EXPECT_EQ(did_you_mean("quantisation", known),
            "choose one of: batch_size, seed");
  EXPECT_EQ(did_you_mean("seed", {}), "nothing can be chosen here");
}

}  // namespace
}  // namespace penstock
