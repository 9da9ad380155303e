#include "penstock/run/train.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "penstock/demo/fake/positions_run.h"
#include "penstock/session/session.h"

namespace penstock {
namespace {

using testing::HasSubstr;

double number(const Json& json, const char* key) {
  return json.find(key)->number();
}

std::int64_t lines_of(const std::string& path) {
  std::string text = real_files().read(path);
  return std::count(text.begin(), text.end(), '\n');
}

/// The first step is told at once; then the listener asks for the end.
TrainResult stopped_after_a_step(const Job& job, TrainOptions options = {}) {
  std::atomic<bool> stop{false};
  options.stop = &stop;
  options.listener.progress = [&](const Progress&) { stop = true; };
  return train(job, options);
}

TEST(Train, WritesARunFolderThatHoldsTogether) {
  PositionsRun positions;
  Json report = train(positions.job({"train.epochs=2"}), {}).report;
  std::string folder = report.find("run")->string();
  EXPECT_EQ(real_files().read(folder + "/report.json"), report.dump(2) + "\n");
  EXPECT_EQ(lines_of(folder + "/steps.jsonl"), report.find("steps")->integer());
  Json run = Json::parse(real_files().read(folder + "/run.json"), "r");
  EXPECT_NE(run.find("settings"), nullptr);
  EXPECT_EQ(std::filesystem::canonical(positions.path("runs/latest")),
            std::filesystem::canonical(folder));
  EXPECT_EQ(report.find("epochs")->array().size(), 2u);
  EXPECT_GT(number(*report.find("dataset"), "val"), 0);
}

TEST(Train, UtilisationOnTheWallClockIsAtLeastStepsTimesStepTimeOverWall) {
  PositionsRun positions;
  Json report = train(positions.job({"train.epochs=3", "loader.workers=0",
                                     "device.clock=wall", "device.step_ms=4"}),
                      {})
                    .report;
  double sum = 0;
  for (const auto& [name, share] : report.find("parts")->object())
    sum += share.number();
  EXPECT_NEAR(sum, 1, 1e-9);
  double wall = 0;
  for (const Json& epoch : report.find("epochs")->array())
    wall += number(epoch, "seconds");
  double steps = number(report, "steps") - 1;
  // More where the machine was late to end a step: virtual time is exact.
  EXPECT_GE(number(report, "au"), steps * 0.004 / wall - 0.01);
  EXPECT_LE(number(report, "au"), 1);
}

TEST(Train, OnCpuStepsTakeNoTimeAndUtilisationIsUnknown) {
  PositionsRun positions;
  Json report = train(positions.job({"device=cpu"}), {}).report;
  EXPECT_TRUE(report.find("au")->is_null());
  EXPECT_EQ(report.find("verdict")->find("limit")->string(), "unknown");
  EXPECT_GT(report.find("steps")->integer(), 0);
}

TEST(Train, StopsAfterSoManySteps) {
  PositionsRun positions;
  Json report =
      train(positions.job({"train.epochs=9", "train.max_steps=5"}), {}).report;
  EXPECT_EQ(report.find("steps")->integer(), 5);
}

TEST(Train, GoesOnWhereItWasInterrupted) {
  PositionsRun positions;
  TrainResult first = stopped_after_a_step(positions.job({"train.epochs=2"}));
  EXPECT_TRUE(first.interrupted);
  EXPECT_EQ(first.report.find("steps")->integer(), 1);
  std::string folder = first.report.find("run")->string();
  TrainResult rest = train(job_of_run(folder), {.resume = folder});
  EXPECT_FALSE(rest.interrupted);
  Json whole = train(positions.job({"train.epochs=2"}), {}).report;
  EXPECT_EQ(rest.report.find("steps")->integer() + 1,
            whole.find("steps")->integer());
}

/// The epoch and step of a run's steps, "0/3 0/4 1/0".
std::string steps_of(const Json& report) {
  std::string text;
  std::istringstream lines(
      real_files().read(report.find("run")->string() + "/steps.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    Json step = Json::parse(line, "steps.jsonl");
    text += (text.empty() ? "" : " ") +
            std::to_string(step.find("epoch")->integer()) + "/" +
            std::to_string(step.find("step")->integer());
  }
  return text;
}

TEST(Train, LeavesOutOrTakesAgainStepsOfDataWhenItGoesOn) {
  PositionsRun positions(200);  // four steps an epoch
  std::string folder = stopped_after_a_step(positions.job({"train.epochs=2"}))
                           .report.find("run")
                           ->string();
  Json job = job_of_run(folder).document;
  EXPECT_EQ(steps_of(train(parse_job(job), {.resume = folder}).report),
            "0/1 0/2 0/3 1/0 1/1 1/2 1/3");
  EXPECT_EQ(
      steps_of(train(parse_job(job), {.resume = folder, .skip = 2}).report),
      "0/3 1/0 1/1 1/2 1/3 2/0 2/1");
  EXPECT_EQ(
      steps_of(train(parse_job(job), {.resume = folder, .skip = 9}).report),
      "2/2 2/3 3/0 3/1 3/2 3/3 4/0");
  Json again = train(parse_job(job), {.resume = folder, .skip = -1}).report;
  EXPECT_EQ(steps_of(again), "0/0 0/1 0/2 0/3 1/0 1/1 1/2");
  Json run = Json::parse(
      real_files().read(again.find("run")->string() + "/run.json"), "run");
  EXPECT_EQ(run.find("skipped_steps")->integer(), -1);
}

TEST(Train, ARunThatSkippedGoesOnBehindWhatItLeftOut) {
  PositionsRun positions(200);
  Job job = positions.job({"train.epochs=2"});
  std::string first = stopped_after_a_step(job).report.find("run")->string();
  std::string second = stopped_after_a_step(job, {.resume = first, .skip = 2})
                           .report.find("run")
                           ->string();
  EXPECT_EQ(steps_of(train(job, {.resume = second}).report),
            "1/0 1/1 1/2 1/3 2/0 2/1");
}

TEST(Train, GivenAgainACommandThatFailedSkipsOnce) {
  PositionsRun positions(200);
  Job job = positions.job({"train.epochs=2"});
  std::string first = stopped_after_a_step(job).report.find("run")->string();
  const std::string latest = positions.path("runs/latest");
  std::vector<std::string> notes;
  TrainOptions options{.resume = latest + "/", .skip = 2};
  options.listener.note = [&](const std::string& line) {
    notes.push_back(line);
  };
  auto leads_to_the_first = [&] {
    return std::filesystem::canonical(latest) ==
           std::filesystem::canonical(first);
  };
  EXPECT_THROW(
      train(positions.job({"train.epochs=2", "source.where=id > 3"}), options),
      Error);
  EXPECT_TRUE(leads_to_the_first());
  std::atomic<bool> stop{true};
  options.stop = &stop;
  EXPECT_TRUE(train(job, options).interrupted);
  EXPECT_TRUE(leads_to_the_first());
  EXPECT_THAT(notes.back(), HasSubstr("no steps were skipped"));
  stop = false;
  Json report = train(job, options).report;
  EXPECT_EQ(steps_of(report), "0/3 1/0 1/1 1/2 1/3 2/0 2/1");
  EXPECT_FALSE(leads_to_the_first());
  EXPECT_THAT(notes,
              testing::Contains(
                  "skipped 2 steps: the run continues at epoch 0, step 3"));
  Json run = Json::parse(
      real_files().read(report.find("run")->string() + "/run.json"), "run");
  EXPECT_EQ(run.find("resumed_from")->string(), first);
}

TEST(Train, CountsTheEpochsOfARunThatSkipped) {
  PositionsRun positions(200);
  Job job = positions.job({"train.epochs=2"});
  std::string first = stopped_after_a_step(job).report.find("run")->string();
  auto epochs_told = [&](std::int64_t skip) {
    std::string told;
    TrainOptions options{.resume = first, .skip = skip};
    options.listener.note = [&](const std::string& line) {
      if (line.starts_with("epoch")) told += line.substr(6, line.find(':') - 5);
    };
    std::int64_t epochs = 0;
    options.listener.progress = [&](const Progress& p) { epochs = p.epochs; };
    train(job, options);
    return told + std::to_string(epochs);
  };
  EXPECT_EQ(epochs_told(0), "1/2:2/2:2");
  EXPECT_EQ(epochs_told(9), "3/5:4/5:5/5:5");
  EXPECT_EQ(epochs_told(-1), "1/2:2/2:2");
}

/// The error of resuming the run with this skip.
ErrorParts refused_skip(const Job& job, const std::string& folder,
                        std::int64_t skip) {
  try {
    train(job, {.resume = folder, .skip = skip});
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "resume.skip");
    EXPECT_EQ(error.kind(), ErrorKind::request);
    return error.parts();
  }
  ADD_FAILURE() << "no error for " << skip;
  return {};
}

TEST(Train, RefusesToSkipToWhereThereIsNoStep) {
  PositionsRun positions(200);
  std::string begun =
      stopped_after_a_step(positions.job()).report.find("run")->string();
  for (std::int64_t skip : {std::int64_t{-2}, INT64_MIN})
    EXPECT_THAT(refused_skip(positions.job(), begun, skip).next,
                HasSubstr("go back no further"));
  for (std::int64_t skip : {INT64_MAX, INT64_MAX / 2})
    EXPECT_THAT(refused_skip(positions.job(), begun, skip).next,
                HasSubstr("skip fewer"));
  std::atomic<bool> stop{true};
  std::string never =
      train(positions.job(), {.stop = &stop}).report.find("run")->string();
  refused_skip(positions.job(), never, 1);
}

TEST(Train, RefusesToSkipWhereNoStepIsLeft) {
  PositionsRun positions(200);
  Job job = positions.job({"train.epochs=2"});
  Job short_job = positions.job({"train.epochs=2", "train.max_steps=3"});
  std::string all = train(job, {}).report.find("run")->string();
  std::string some = train(short_job, {}).report.find("run")->string();
  for (std::int64_t skip : {-1, 1}) {
    EXPECT_EQ(refused_skip(job, all, skip).why, "the run has no steps left");
    EXPECT_EQ(refused_skip(job, all, skip).next, "raise train.epochs");
    EXPECT_EQ(refused_skip(short_job, some, skip).next,
              "raise train.max_steps");
  }
  EXPECT_EQ(train(job, {.resume = all}).report.find("run")->string(), all);
}

TEST(Train, StopsInTheMiddleOfReadingTheTable) {
  PositionsRun positions;
  std::atomic<bool> stop{true};
  TrainResult first = train(positions.job(), {.stop = &stop});
  EXPECT_TRUE(first.interrupted);
  EXPECT_TRUE(first.report.find("dataset")->is_null());
  EXPECT_EQ(first.report.find("steps")->integer(), 0);
  std::string folder = first.report.find("run")->string();
  TrainResult rest = train(job_of_run(folder), {.resume = folder});
  EXPECT_GT(rest.report.find("steps")->integer(), 0);
}

/// The error of resuming a run whose job is changed so.
ErrorParts refused_with(const std::string& folder, const std::string& set) {
  Json document = job_of_run(folder).document;
  apply_setting(document, set);
  try {
    train(parse_job(document), {.resume = folder});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    return error.parts();
  }
  return {.code = "none"};
}

TEST(Train, RefusesToResumeWithOtherFieldsAndNamesTheFirst) {
  PositionsRun positions;
  std::string folder =
      stopped_after_a_step(positions.job()).report.find("run")->string();
  auto refused = [&](const std::string& set, const std::string& where,
                     const std::string& why) {
    ErrorParts parts = refused_with(folder, set);
    EXPECT_EQ(parts.code, "resume.other_fields") << set;
    EXPECT_EQ(parts.where, where);
    EXPECT_EQ(parts.why, why);
  };
  refused("fields.receivers.json_set.max=7", "fields.receivers.json_set.max",
          "found 7, but the run was made with 8");
  refused("fields.target.standardize=false", "fields.target.standardize",
          "found false, but the run was made with true");
  refused("fields.target.dtype=float64", "fields.target.dtype",
          R"(found "float64", but the run was made with "float32")");
  refused(R"(fields.target.columns=["tx_lon", "tx_lat"])",
          "fields.target.columns",
          R"(found ["tx_lon", "tx_lat"], but the run was made with )"
          R"(["tx_lat", "tx_lon"])");
  refused(R"(fields.more={"columns": ["tx_lat"]})", "fields.more",
          R"(found {"columns": ["tx_lat"], "dtype": "float32", )"
          R"("standardize": false}, but the run was made with nothing)");
}

/// As a program would that fits them in another way.
void move_the_mean_of_target(const std::string& folder) {
  auto save = [&](const std::string& name, const Json& json) {
    real_files().write_atomic(folder + "/" + name, json.dump(2) + "\n");
  };
  auto read = [&](const std::string& name) {
    return Json::parse(real_files().read(folder + "/" + name), name);
  };
  Json statistics = read("statistics.json"), state = read("state.json");
  Json& mean = statistics["target"]["tx_lat"]["mean"];
  mean = mean.number() + 1.0 / 3;
  save("statistics.json", statistics);
  Sha256 hash;
  hash.add(real_files().read(folder + "/statistics.json"));
  state["statistics_sha256"] = hash.hex();
  save("state.json", state);
}

TEST(Train, ResumedItAppliesTheStatisticsThatWereSaved) {
  PositionsRun positions;
  std::string folder = stopped_after_a_step(positions.job({"train.epochs=2"}))
                           .report.find("run")
                           ->string();
  move_the_mean_of_target(folder);
  std::string saved = real_files().read(folder + "/statistics.json");
  for (int resumed = 0; resumed < 2; ++resumed) {  // from a resumed run too
    folder = train(job_of_run(folder), {.resume = folder})
                 .report.find("run")
                 ->string();
    EXPECT_EQ(real_files().read(folder + "/statistics.json"), saved);
  }
}

TEST(Train, StoppedBeforeTheRowsWereReadItStillHasTheStatistics) {
  PositionsRun positions;
  std::string first = stopped_after_a_step(positions.job({"train.epochs=2"}))
                          .report.find("run")
                          ->string();
  move_the_mean_of_target(first);
  std::atomic<bool> stop{true};
  std::string second =
      train(job_of_run(first), {.stop = &stop, .resume = first})
          .report.find("run")
          ->string();
  std::string third = train(job_of_run(second), {.resume = second})
                          .report.find("run")
                          ->string();
  EXPECT_EQ(real_files().read(third + "/statistics.json"),
            real_files().read(first + "/statistics.json"));
}

TEST(Train, RefusesToResumeWhereTheStatisticsAreNotThoseThatWereSaved) {
  PositionsRun positions;
  std::string folder =
      stopped_after_a_step(positions.job()).report.find("run")->string();
  std::string file = folder + "/statistics.json";
  real_files().write_atomic(file, real_files().read(file) + " ");
  ErrorParts parts = refused_with(folder, "train.epochs=2");
  EXPECT_EQ(parts.code, "resume.damaged_checkpoint");
  EXPECT_EQ(parts.where, file);
  std::filesystem::remove(file);
  parts = refused_with(folder, "train.epochs=2");
  EXPECT_EQ(parts.code, "resume.damaged_checkpoint");
  EXPECT_EQ(parts.where, file);
}

// Settings that decide how rows are read do not change what a model sees.
TEST(Train, SavedStatisticsGiveTheSameRowsBitForBit) {
  PositionsRun positions;
  for (const char* cache : {"ram", "none"}) {
    for (int workers : {0, 1, 2, 8}) {
      Job job =
          positions.job({std::string("loader.cache=") + cache, "device=cpu",
                         "loader.workers=" + std::to_string(workers)});
      auto bytes = [&](const std::optional<Json>& statistics) {
        auto session = open_loader(job, {.statistics = statistics});
        Batch batch = promised(session->next());
        batch.wait();
        const TensorView& view = batch.tensors()[0].view;
        const char* begin = reinterpret_cast<const char*>(view.data);
        return std::pair(std::string(begin, begin + view.bytes()),
                         session->opened()->statistics());
      };
      auto [fitted, statistics] = bytes(std::nullopt);
      Json saved = Json::parse(statistics.dump(2), "statistics.json");
      EXPECT_EQ(bytes(saved).first, fitted) << cache << " " << workers;
      saved["target"] = saved["receivers"];  // applied, not fitted
      EXPECT_THROW(bytes(saved), Error);
    }
  }
}

TEST(Train, ADefaultThatIsWrittenOutIsNoOtherField) {
  PositionsRun positions;
  std::string folder =
      stopped_after_a_step(positions.job()).report.find("run")->string();
  EXPECT_EQ(refused_with(folder, "fields.target.dtype=float32").code, "none");
  EXPECT_EQ(refused_with(folder, "fields.receivers.json_set.min=1").code,
            "none");
}

TEST(Train, ARunThatHadNotBegunMayGetOtherFields) {
  PositionsRun positions;
  std::atomic<bool> stop{true};
  std::string folder =
      train(positions.job(), {.stop = &stop}).report.find("run")->string();
  EXPECT_EQ(refused_with(folder, "fields.target.standardize=false").code,
            "none");
}

// The log tells of the folder when all that it holds is `run.json`.
TEST(TrainDeathTest, KilledBeforeItsFirstStateItLeavesLatestWhereItWas) {
  PositionsRun positions;
  std::string folder = stopped_after_a_step(positions.job({"train.epochs=2"}))
                           .report.find("run")
                           ->string();
  auto killed = [&] {
    set_log_level(LogLevel::info);
    set_log_writer([](LogLevel, std::string_view line) {
      if (line.starts_with("run folder ")) ::kill(::getpid(), SIGKILL);
    });
    train(job_of_run(folder), {.resume = folder});
  };
  EXPECT_EXIT(killed(), testing::KilledBySignal(SIGKILL), "");
  std::string latest = positions.path("runs/latest");
  EXPECT_EQ(std::filesystem::canonical(latest),
            std::filesystem::canonical(folder));
  TrainResult rest = train(job_of_run(latest), {.resume = latest});
  Json whole = train(positions.job({"train.epochs=2"}), {}).report;
  EXPECT_EQ(rest.report.find("steps")->integer() + 1,
            whole.find("steps")->integer());
}

TEST(Train, ARunThatFailsBeforeItsFirstStepLeavesNoFolder) {
  PositionsRun positions;
  EXPECT_THROW(train(positions.job({"source.where=nothing > 1"}), {}), Error);
  EXPECT_FALSE(std::filesystem::exists(positions.path("runs")));
}

TEST(Train, StoppedBeforeItsFirstStepItCanBeResumedAndIsNotTheLatest) {
  PositionsRun positions;
  const std::atomic<bool> stop{true};
  TrainResult first = train(positions.job(), {.stop = &stop});
  EXPECT_TRUE(first.interrupted);
  EXPECT_FALSE(std::filesystem::exists(positions.path("runs/latest")));
  const std::string folder = first.report.find("run")->string();
  Json rest = train(job_of_run(folder), {.resume = folder}).report;
  EXPECT_GT(number(rest, "steps"), 0);
  EXPECT_EQ(std::filesystem::canonical(positions.path("runs/latest")),
            std::filesystem::canonical(rest.find("run")->string()));
}

TEST(Train, OfAFinishedRunItSaysThatAndLeavesAllAsItIs) {
  PositionsRun positions;
  Json whole = train(positions.job({"train.epochs=2"}), {}).report;
  const std::string folder = whole.find("run")->string();
  std::vector<std::string> notes;
  TrainOptions options{.resume = positions.path("runs/latest")};
  options.listener.note = [&](const std::string& line) {
    notes.push_back(line);
  };
  EXPECT_EQ(train(job_of_run(folder), options).report, whole);
  EXPECT_THAT(notes, testing::ElementsAre(
                         HasSubstr("is finished: the run took all 30 steps")));
  EXPECT_EQ(
      std::distance(std::filesystem::directory_iterator(positions.path("runs")),
                    std::filesystem::directory_iterator()),
      2)
      << "the run and the link";
  Json more =
      train(parse_job(document_of_run(folder, {"train.epochs=3"})), options)
          .report;
  EXPECT_EQ(number(more, "steps"), 15);
}

TEST(Train, RefusesToResumeInAnotherOrder) {
  PositionsRun positions;
  std::string folder =
      stopped_after_a_step(positions.job()).report.find("run")->string();
  Json document = job_of_run(folder).document;
  apply_setting(document, "loader.seed=99");
  try {
    train(parse_job(document), {.resume = folder});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_EQ(error.parts().code, "resume.other_order");
    EXPECT_EQ(error.parts().where, "loader.seed");
  }
}

TEST(Train, RefusesToResumeOnOtherRows) {
  PositionsRun positions;
  std::string folder =
      stopped_after_a_step(positions.job()).report.find("run")->string();
  Json document = job_of_run(folder).document;
  apply_setting(document, "source.where=id > 3");
  try {
    train(parse_job(document), {.resume = folder});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_EQ(error.parts().code, "resume.other_data");
  }
}

TEST(Train, RefusesToResumeFromWhatIsNoRun) {
  PositionsRun positions;
  EXPECT_THROW(job_of_run(positions.path("nothing")), Error);
  real_files().make_folders(positions.path("odd"));
  real_files().write_atomic(positions.path("odd/run.json"), "[]");
  EXPECT_THROW(job_of_run(positions.path("odd")), Error);
  real_files().write_atomic(positions.path("odd/run.json"), "{\"job\"");
  EXPECT_THROW(job_of_run(positions.path("odd")), Error);
}

TEST(Train, AnOutputFolderThatCannotBeMadeIsNamed) {
  PositionsRun positions;
  real_files().write_atomic(positions.path("file"), "");
  try {
    train(positions.job({"output.dir=" + positions.path("file/runs")}), {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_THAT(error.parts().where, HasSubstr("file/runs"));
  }
}

TEST(Train, WarnsOfAStarvedAcceleratorWithTheCauseAndOneAction) {
  PositionsRun positions;
  std::vector<std::string> notes;
  TrainOptions options;
  options.listener.note = [&](const std::string& line) {
    notes.push_back(line);
  };
  Json report =
      train(positions.job({"loader.read=per_sample", "device.clock=wall",
                           "device.step_ms=1", "source.round_trip_ms=0.2",
                           "train.max_steps=6"}),
            options)
          .report;
  const Json& verdict = *report.find("verdict");
  EXPECT_EQ(verdict.find("limit")->string(), "data");
  EXPECT_EQ(verdict.find("stage")->string(), "read per sample");
  ASSERT_FALSE(verdict.find("actions")->array().empty());
  EXPECT_THAT(notes.back(), HasSubstr("once per sample"));
  EXPECT_THAT(notes.back(), HasSubstr("set loader.read to \"batch\""));
}

// The host is some steps ahead of the device when it comes to an epoch's end.
TEST(Train, TellsOfAnEpochWhenTheDeviceHasEndedItsSteps) {
  PositionsRun positions;
  for (int workers : {0, 1, 2, 8}) {
    std::vector<std::string> notes;
    TrainOptions options;
    options.listener.note = [&](const std::string& line) {
      if (line.starts_with("epoch")) notes.push_back(line);
    };
    Json report =
        train(positions.job({"loader.workers=" + std::to_string(workers),
                             "device.step_ms=10", "train.epochs=3"}),
              options)
            .report;
    ASSERT_EQ(notes.size(), 3u);
    char rate[32];  // the same in each epoch, and in all of them
    std::snprintf(rate, sizeof(rate), " %.0f samples/s",
                  report.find("samples_per_s")->number());
    for (const std::string& note : notes) EXPECT_THAT(note, HasSubstr(rate));
  }
}

// `alt_m` is null in some receivers: demanding it makes their rows bad.
TEST(Train, ListsWhatItSkipped) {
  PositionsRun positions;
  Job job = positions.job({"source.on_bad=skip",
                           R"(fields.receivers.json_set.required=["alt_m"])"});
  Json report = train(job, {}).report;
  std::int64_t left_out = report.find("dataset")->find("left_out")->integer();
  EXPECT_GT(left_out, 0);
  std::string folder = report.find("run")->string();
  EXPECT_EQ(lines_of(folder + "/quarantine.jsonl"), left_out);
  EXPECT_THAT(real_files().read(folder + "/quarantine.jsonl"),
              HasSubstr("alt_m"));
}

}  // namespace
}  // namespace penstock
