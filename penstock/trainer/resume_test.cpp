#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>

#include "penstock/run/run.h"
#include "penstock/trainer/fake/kinds.h"
#include "penstock/trainer/fake/steps.h"
#include "penstock/trainer/trainer.h"

// Runs of every kind of model are stopped after a step, resumed, and must end
// with the bits of one that was not: 5 kinds x `train.accumulate` 1 to 4 x 12
// steps. Some of these 240 are drawn, or as many as PENSTOCK_TEST_RESUMES says.
namespace penstock {
namespace {

constexpr std::int64_t kSteps = 12;  // of three epochs
constexpr int kRows = 16;

/// A stepper of the trainer that asks for an end of the run in a step, and
/// leaves the state that the run ends with.
class Stopping final : public Stepper {
 public:
  Stopping(std::unique_ptr<Stepper> of, std::int64_t step,
           std::atomic<bool>& stop, ModelState& last)
      : Stepper(of->facts()),
        of_(std::move(of)),
        step_(step),
        stop_(stop),
        last_(last) {}
  ~Stopping() override { last_ = of_->save(); }
  void step(const std::shared_ptr<Batch>& batch, Stream& stream,
            std::int64_t number) override {
    of_->step(batch, stream, number);
    if (number + 1 == step_) stop_ = true;
  }
  std::vector<double> losses(bool wait) override { return of_->losses(wait); }
  void validate(const std::shared_ptr<Batch>& batch, Stream& stream) override {
    of_->validate(batch, stream);
  }
  Validated validated() override { return of_->validated(); }
  void restore(const ModelState& state) override { of_->restore(state); }

 private:
  ModelState state_in(std::vector<std::byte> memory) override {
    return of_->save(std::move(memory));
  }

  const std::unique_ptr<Stepper> of_;
  const std::int64_t step_;
  std::atomic<bool>& stop_;
  ModelState& last_;
};

class ResumeTest : public testing::Test {
 protected:
  ResumeTest() {
    char name[] = "/tmp/penstock-resume-XXXXXX";
    folder_ = ::mkdtemp(name);
    std::ofstream(folder_ + "/rows.csv") << rows_of_kinds(kRows);
  }
  ~ResumeTest() override { std::filesystem::remove_all(folder_); }

  Job job(const std::string& kind, std::int64_t accumulate) const {
    Json json = job_of_kind(kind, folder_);
    json["source"]["kind"] = "csv";
    json["source"]["path"] = folder_ + "/rows.csv";
    json["loader"]["batch_size"] = 3;
    json["train"]["max_steps"] = kSteps;
    json["train"]["epochs"] = 20;
    json["train"]["accumulate"] = accumulate;
    json["train"]["checkpoint_every_steps"] = 1000;
    json["output"]["dir"] = folder_ + "/runs";
    return parse_job(json);
  }

  struct Run {
    std::string folder;
    ModelState last;
  };
  /// A run that is stopped after that step, if it comes so far.
  static Run run(const Job& job, std::int64_t stop_after,
                 const std::string& resume = "") {
    std::atomic<bool> stop = false;
    Run made;
    OwnTrainer trainer{
        .cuda_unavailable_reason = [] { return std::string(); },
        .make_stepper = [&](const Job& of, const auto& session,
                            std::int64_t steps,
                            const auto&) -> std::unique_ptr<Stepper> {
          return std::make_unique<Stopping>(
              make_stepper(of.model, *session->opened()->facts().fitted,
                           session->device(), steps),
              stop_after, stop, made.last);
        }};
    const TrainResult result =
        train(job, {.stop = &stop, .resume = resume, .own = trainer});
    made.folder = result.report.find("run")->string();
    return made;
  }
  static std::int64_t steps_of(const Run& run) {
    const std::string path = run.folder + "/state.json";
    return Json::parse(real_files().read(path), path)
        .find("steps_taken")
        ->integer();
  }

  std::string folder_;
};

TEST_F(ResumeTest, EveryKindOfModelEndsWithTheBitsOfARunThatWasNotStopped) {
  struct Try {
    std::string kind;
    std::int64_t accumulate, step;
  };
  std::vector<Try> tries;
  for (const auto& [kind, of] : kinds())
    for (std::int64_t accumulate = 1; accumulate <= 4; ++accumulate)
      for (std::int64_t step = 1; step <= kSteps; ++step)
        tries.push_back({kind, accumulate, step});
  Random random(11, 0, 0, 0);
  for (std::size_t left = tries.size(); left > 1; --left)
    std::swap(tries[left - 1], tries[random.below(left)]);
  const char* wish = std::getenv("PENSTOCK_TEST_RESUMES");
  tries.resize(std::min<std::size_t>(
      tries.size(), wish == nullptr ? 12 : std::strtoul(wish, nullptr, 10)));

  std::map<std::pair<std::string, std::int64_t>, ModelState> whole;
  for (const Try& one : tries) {
    SCOPED_TRACE(one.kind + ", accumulate " + std::to_string(one.accumulate) +
                 ", step " + std::to_string(one.step));
    const Job of = job(one.kind, one.accumulate);
    auto [expected, unknown] = whole.try_emplace({one.kind, one.accumulate});
    if (unknown) expected->second = run(of, 0).last;
    const Run stopped = run(of, one.step);
    EXPECT_EQ(steps_of(stopped), one.step);
    const Run resumed = run(of, 0, stopped.folder);
    EXPECT_EQ(steps_of(resumed), kSteps);
    expect_same_bits(resumed.last, expected->second);
    std::filesystem::remove_all(folder_ + "/runs");
  }
}

}  // namespace
}  // namespace penstock
