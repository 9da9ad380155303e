#include "penstock/inspect/verify_resume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "penstock/demo/fake/positions_run.h"
#include "penstock/sources/fake/fake_store.h"
#include "penstock/transforms/fake/letters.h"

namespace penstock {
namespace {

using testing::HasSubstr;

std::int64_t number(const Json& json, const char* key) {
  return json.find(key)->integer();
}

class VerifyResume : public testing::Test {
 protected:
  PositionsRun positions_{200};
};

TEST_F(VerifyResume, FindsEveryBatchTheSameAtEveryStepAndInChains) {
  Json json = verify_resume(positions_.job({"train.epochs=2"}), {.points = -1});
  EXPECT_EQ(number(json, "steps"), 8) << "two epochs of four";
  EXPECT_EQ(number(json, "points"), 8);
  EXPECT_EQ(number(json, "chains"), 3);
  EXPECT_GE(number(json, "restarts"), 6);
  EXPECT_EQ(number(json, "most_ranks"), 4);
  EXPECT_TRUE(json.find("why_one_rank")->is_null());
  EXPECT_EQ(number(json, "divergences"), 0) << json.dump(2);
  EXPECT_LE(number(json, "state_bytes"), 128);
  EXPECT_GT(json.find("resume_ms")->find("median")->number(), 0);
  EXPECT_GT(json.find("in_place_ms")->find("max")->number(), 0);
}

TEST_F(VerifyResume, HoldsForAllTailsTiersAndDevices) {
  for (const char* tail : {"drop", "pad", "exact"})
    for (const char* cache : {"ram", "none"})
      for (const char* device : {"cpu", "sim"}) {
        Json json = verify_resume(
            positions_.job({std::string("loader.tail=") + tail,
                            std::string("loader.cache=") + cache,
                            std::string("device=") + device,
                            "loader.batch_size=50", "train.epochs=3"}),
            {.points = 4, .chains = 2, .most_ranks = 3});
        EXPECT_EQ(number(json, "divergences"), 0)
            << tail << cache << device << json.dump(2);
      }
}

TEST_F(VerifyResume, LooksAtTheFirstStepsOnlyWhereThatIsAskedFor) {
  Json json = verify_resume(positions_.job({"train.epochs=100"}),
                            {.steps = 7, .points = 2, .chains = 0});
  EXPECT_EQ(number(json, "steps"), 7);
  EXPECT_EQ(number(json, "points"), 2);
  EXPECT_EQ(number(json, "restarts"), 0);
  EXPECT_TRUE(json.find("resume_ms")->find("median")->is_null());
  EXPECT_EQ(number(verify_resume(positions_.job({"train.epochs=100"}),
                                 {.points = 1, .chains = 0}),
                   "steps"),
            8);
}

TEST_F(VerifyResume, KeepsToOneRankWhereRowsOfABatchAreMixed) {
  Json json = verify_resume(
      positions_.job(
          {R"(loader.operations=[{"mixup": ["receivers", "target"]}])"}),
      {});
  EXPECT_EQ(number(json, "most_ranks"), 1);
  EXPECT_THAT(json.find("why_one_rank")->string(), HasSubstr("operations"));
  EXPECT_EQ(number(json, "divergences"), 0) << json.dump(2);
}

/// Rows of one number that say how often their data set has made rows.
RowsMaker counting_rows(std::shared_ptr<std::atomic<int>> made) {
  return [made](const Job&, Device&, StopFlag) {
    RowFunction function{
        .layout = layout_of_tensors({{.name = "x", .dtype = Dtype::int32}}),
        .fingerprint = "counting",
        .call = [made](const RowCall& call) {
          for (std::size_t i = 0; i < call.ids.size(); ++i) {
            std::int32_t value = call.ids[i] == 17 ? made->fetch_add(1) : 0;
            std::memcpy(call.out[0].data + 4 * i, &value, sizeof(value));
          }
        }};
    return std::make_shared<const FunctionDataset>(40, std::move(function));
  };
}

TEST(VerifyResumeOfOwnRows, NamesTheRowThatDiffers) {
  Job job = parse_job_of_rows(Json::parse(
      R"({"loader": {"batch_size": 10}, "device": "cpu"})", "test"));
  Json json = verify_resume(
      job, {.points = -1,
            .chains = 1,
            .rows = counting_rows(std::make_shared<std::atomic<int>>(0))});
  EXPECT_EQ(number(json, "divergences"), 2) << "the batch of row 17, twice";
  const Json& first = json.find("first_divergences")->array().at(0);
  EXPECT_EQ(first.find("where")->string(), "restart in place");
  EXPECT_EQ(first.find("key")->dump(), "17");
  EXPECT_EQ(first.find("expected_key")->dump(), "17");
  EXPECT_EQ(first.find("differs")->string(), "the bytes");
  EXPECT_THAT(
      json.find("first_divergences")->array().at(1).find("where")->string(),
      HasSubstr("chain 1, restart"));
}

TEST(VerifyResumeOfOwnRows, OpensRowsOnceAtATimeAlsoWhereTheyDiffer) {
  Job job = parse_job_of_rows(Json::parse(
      R"({"loader": {"batch_size": 10}, "device": "cpu"})", "test"));
  RowsMaker counting = counting_rows(std::make_shared<std::atomic<int>>(0));
  auto last = std::make_shared<std::weak_ptr<const Dataset>>();
  int opened = 0;
  Json json = verify_resume(
      job,
      {.points = 0, .rows = [&](const Job& of, Device& device, StopFlag stop) {
         EXPECT_TRUE(last->expired()) << "opening " << opened;
         ++opened;
         std::shared_ptr<const Dataset> rows = counting(of, device, stop);
         *last = rows;
         return rows;
       }});
  EXPECT_EQ(number(json, "divergences"), 3) << "row 17, in three chains";
  EXPECT_EQ(json.find("first_divergences")->array().size(), 3u);
  EXPECT_EQ(opened, 1 + 3 + number(json, "restarts") + 1);
}

// A batch of packed samples has one hash: which of them it is, only the samples
// could tell, and they are the same.
TEST(VerifyResumeOfOwnRows, NamesNoneOfPackedSamplesWhoseBytesDiffer) {
  Job job = parse_job_of_rows(Json::parse(
      R"({"loader": {"batch_size": 10}, "device": "cpu"})", "test"));
  RowsMaker rows = [](const Job&, Device&, StopFlag) {
    IndexedOptions options;
    options.fields.push_back(
        {"text", std::make_shared<Letters>("text", "packed", Lengths::packed)});
    auto reads = std::make_shared<std::atomic<char>>(0);
    FakeStoreTrouble trouble{.spoil = [reads](Block& block) {
      Column other{.type = block.columns[0].type};
      for (std::int64_t row = 0; row < block.rows; ++row)
        other.append_text(
            std::string(block.columns[0].text(row).size(), *reads));
      block.columns[0] = std::move(other);
      ++*reads;
    }};
    auto store = counting_store(40, requests_of(options.fields), trouble);
    return std::make_shared<const IndexedDataset>(options, std::move(store));
  };
  Json json =
      verify_resume(job, {.steps = 3, .points = 1, .chains = 0, .rows = rows});
  EXPECT_EQ(json.find("why_one_rank")->string(), "the samples are packed");
  ASSERT_EQ(number(json, "divergences"), 1) << json.dump(2);
  const Json& found = json.find("first_divergences")->array().at(0);
  EXPECT_EQ(found.find("differs")->string(), "the bytes");
  EXPECT_EQ(number(found, "rows"), 10);
  EXPECT_EQ(found.find("row"), nullptr);
  EXPECT_EQ(found.find("key"), nullptr);
}

TEST(VerifyResumeOfOwnRows, RefusesRowsThatChangedBetweenTwoRestarts) {
  Job job = parse_job_of_rows(Json::parse(
      R"({"loader": {"batch_size": 10}, "device": "cpu"})", "test"));
  auto opened = std::make_shared<int>(0);
  RowsMaker rows = [opened](const Job&, Device&, StopFlag) {
    RowFunction function{
        .layout = layout_of_tensors({{.name = "x", .dtype = Dtype::int32}}),
        .fingerprint = "version " + std::to_string(++*opened),
        .call = [](const RowCall& call) {
          std::memset(call.out[0].data, 0, 4 * call.ids.size());
        }};
    return std::make_shared<const FunctionDataset>(40, std::move(function));
  };
  try {
    verify_resume(job, {.rows = rows});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_THAT(error.parts().code, HasSubstr("resume."));
  }
}

TEST_F(VerifyResume, RefusesNumbersThatMakeNoSense) {
  for (ResumeCheck check :
       {ResumeCheck{.steps = -1}, ResumeCheck{.points = -2},
        ResumeCheck{.chains = -1}, ResumeCheck{.most_ranks = 0},
        ResumeCheck{.points = 0, .chains = 0}})
    EXPECT_THROW(verify_resume(positions_.job(), check), Error);
}

TEST_F(VerifyResume, EndsWhenItIsStopped) {
  std::atomic<bool> stop = false;
  int lines = 0;
  try {
    verify_resume(positions_.job(),
                  {.stop = &stop, .progress = [&](const std::string&) {
                     if (++lines == 3) stop = true;
                   }});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_TRUE(is_stop(error));
  }
  EXPECT_EQ(lines, 3);
}

}  // namespace
}  // namespace penstock
