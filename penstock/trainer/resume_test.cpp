#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>

#include "penstock/run/run.h"
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

struct Kind {
  const char* field;   ///< x
  const char* target;  ///< y
  const char* model;
};

constexpr const char* kClass = R"({"category": {"column": "class",
                                   "unknown": "error"}})";
const std::map<std::string, Kind>& kinds() {
  static const std::map<std::string, Kind> all{
      {"tabular",
       {R"({"columns": ["a", "b"]})", kClass,
        R"({"target": "y", "width": 8, "depth": 1})"}},
      {"image_classifier",
       {R"({"array": {"column": "pixels", "shape": [3, 8, 8],
            "dtype": "uint8"}})",
        kClass, R"({"image": "x", "target": "y"})"}},
      {"spectrogram_classifier",
       {R"({"array": {"column": "pixels", "shape": [12, 16]}})", kClass,
        R"({"spectrogram": "x", "target": "y", "width": 8, "depth": 2})"}},
      {"set_position",
       {R"({"json_set": {"column": "heard", "keys": ["lat", "lon", "db"],
            "max": 2}})",
        R"({"columns": ["lat", "lon"]})",
        R"({"set": "x", "target": "y", "latitude": "lat", "longitude": "lon",
            "strength": "db", "width": 8})"}},
      {"causal_lm",
       {R"({"columns": ["a"]})",
        R"({"tokens": {"column": "ids", "max_length": 8, "pack": "none",
            "vocab_size": 20}})",
        R"({"tokens": "y"})"}}};
  return all;
}

constexpr const char* kDecoder = R"({
  "model_type": "llama", "vocab_size": 20, "hidden_size": 16,
  "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2,
  "num_key_value_heads": 1, "head_dim": 8, "rms_norm_eps": 1e-6,
  "tie_word_embeddings": true, "hidden_act": "silu"})";

std::string rows() {
  std::string csv = "a,b,class,lat,lon,ids,heard,pixels\n";
  for (int i = 0; i < kRows; ++i) {
    const std::string n = std::to_string(i), place = "50.0" + n;
    csv += n + "," + std::to_string(i * 7 % 5) + "," +
           (i % 3 == 0 ? "p" : "q") + "," + place + ",8.0" + n + ",\"[";
    for (int at = 0; at < 4 + i % 4; ++at)
      csv += (at == 0 ? "" : ",") + std::to_string((i + 3 * at) % 20);
    csv += R"(]","[{""lat"":)" + place + R"(,""lon"":8.1,""db"":)" + n +
           R"(}]","[)";
    for (int at = 0; at < 192; ++at)
      csv += (at == 0 ? "" : ",") + std::to_string((i * 37 + at * 11) % 250);
    csv += "]\"\n";
  }
  return csv;
}

class ResumeTest : public testing::Test {
 protected:
  ResumeTest() {
    char name[] = "/tmp/penstock-resume-XXXXXX";
    folder_ = ::mkdtemp(name);
    std::ofstream(folder_ + "/rows.csv") << rows();
    std::ofstream(folder_ + "/config.json") << kDecoder;
  }
  ~ResumeTest() override { std::filesystem::remove_all(folder_); }

  Job job(const std::string& kind, std::int64_t accumulate) const {
    const Kind& of = kinds().at(kind);
    Json json;
    json["source"]["kind"] = "csv";
    json["source"]["path"] = folder_ + "/rows.csv";
    json["fields"]["x"] = Json::parse(of.field, "x");
    json["fields"]["y"] = Json::parse(of.target, "y");
    json["split"]["val"] = 0.25;
    json["split"]["seed"] = 1;
    json["loader"]["batch_size"] = 3;
    json["loader"]["cache"] = "ram";
    json["device"] = "cpu";
    json["model"] = Json::parse(of.model, "model");
    json["model"]["kind"] = kind;
    if (kind == "causal_lm") json["model"]["config"] = folder_ + "/config.json";
    json["train"]["max_steps"] = kSteps;
    json["train"]["epochs"] = 20;
    json["train"]["accumulate"] = accumulate;
    json["train"]["warmup_steps"] = 3;
    json["train"]["threads"] = 1;
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
                            std::int64_t steps) -> std::unique_ptr<Stepper> {
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
      tries.size(), wish == nullptr ? 20 : std::strtoul(wish, nullptr, 10)));

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
