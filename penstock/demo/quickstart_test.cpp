#include "penstock/demo/quickstart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "penstock/demo/fake/positions_run.h"

namespace penstock {
namespace {

using testing::HasSubstr;

/// With a trainer that is there and fails whatever it is asked.
class FailedTraining : public testing::Test {
 protected:
  FailedTraining() {
    std::string trainer = PENSTOCK_TEST_PARTS "/good";
    ::setenv("PENSTOCK_PARTS", trainer.c_str(), 1);
    options_.job = PENSTOCK_TEST_DATA "/../../examples/positions/job.json";
    options_.database = positions_.path("quick.sqlite");
    options_.output = positions_.path("runs");
    options_.rows = 600;
    options_.step_ms = 1;
    options_.round_trip_ms = 0.01;
    options_.epochs = 1;
    options_.failed = [this](const Error& error) {
      failed_.push_back(error.parts().code);
    };
  }
  ~FailedTraining() override { ::unsetenv("PENSTOCK_PARTS"); }

  PositionsRun positions_{1};
  QuickstartOptions options_;
  std::vector<std::string> failed_;
};

TEST_F(FailedTraining, LosesNoneOfTheNumbersThatWereMeasuredBeforeIt) {
  Json result = quickstart(options_);
  EXPECT_EQ(result.find("runs")->array().size(), 4u);
  EXPECT_TRUE(result.find("model")->is_null());
  const std::string& table = result.find("table")->string();
  EXPECT_THAT(table, HasSubstr("a query per sample"));
  EXPECT_THAT(table, HasSubstr("the network was not trained: a test part was "
                               "used"));
}

TEST_F(FailedTraining, IsToldToTheCallerAndStandsInTheDocument) {
  Json result = quickstart(options_);
  EXPECT_THAT(failed_, testing::ElementsAre("test.thrown"));
  EXPECT_EQ(result.find("error")->find("code")->string(), "test.thrown");
  EXPECT_EQ(result.find("error")->find("kind")->string(), "request");
  EXPECT_THAT(result.find("why_no_model")->string(),
              HasSubstr("a test part was used"));
}

}  // namespace
}  // namespace penstock
