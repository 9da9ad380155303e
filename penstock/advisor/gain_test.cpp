#include "penstock/advisor/gain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/advisor/advisor.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr std::int64_t kDocuments = 24;  // in a sample, as they are packed

/// 1,000 samples in 1.2 s, of which the accelerator computes for one, and two
/// stages that took 0.9 s of a processor each. They count documents.
Snapshot packed() {
  Snapshot window;
  window.parts = {.steps = 100,
                  .samples = 1000,
                  .wall = 1200ms,
                  .compute = 1s,
                  .wait_data = 200ms};
  window.samples = 1000;
  for (const char* name : {"collate", "gather"})
    window.stages.push_back({.name = name,
                             .workers = 1,
                             .items = kDocuments * 1000,
                             .busy_wall = 900ms,
                             .busy_cpu = 900ms});
  window.stages.push_back(
      {.name = "deliver", .workers = 1, .items = kDocuments * 1000});
  window.limits.cpus = 2;
  return window;
}

TEST(Gain, ASampleTakesTheProcessorsOfAllDocumentsInIt) {
  const Snapshot window = packed();
  EXPECT_NEAR(processor_s_per_sample(window, window.stages), 1.8e-3, 1e-12);
  EXPECT_NEAR(processors_needed(window), 1.8, 1e-9);
  const Verdict verdict = diagnose(window);
  EXPECT_THAT(verdict.cause, HasSubstr("all stages together need more"));
  EXPECT_THAT(verdict.because, HasSubstr("one processor makes 556 samples/s"));
  EXPECT_THAT(verdict.because, HasSubstr("gives 1111 samples/s with 1 worker"));
  EXPECT_THAT(verdict.no_action,
              HasSubstr("takes 1.8 processors, and there are 2"));
}

TEST(Gain, ProcessorsEndTheGainOfPackedSamplesToo) {
  Snapshot window = packed();
  EXPECT_NEAR(gain(window, window.stages), 0.2, 1e-9) << "what steps take";
  window.limits.cpus = 1.65;
  EXPECT_NEAR(gain(window, window.stages), 1.65 / 1.8 * 1.2 - 1, 1e-9);
}

// The first step, and what loaders before a seek had made.
TEST(Gain, SamplesOfStepsThatWereNotTimedTookProcessorsToo) {
  Snapshot window = packed();
  window.samples = 3000;
  EXPECT_NEAR(processors_needed(window), 0.6, 1e-9);
  window.samples = 0;
  EXPECT_NEAR(processors_needed(window), 1.8, 1e-9) << "it is not known";
}

}  // namespace
}  // namespace penstock
