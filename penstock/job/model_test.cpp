#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/job/job.h"
#include "penstock/models/models.h"
#include "penstock/models/set_position/descriptor.h"

namespace penstock {
namespace {

using testing::HasSubstr;

const char* const kModel = R"({
  "kind": "set_position", "set": "receivers", "target": "target",
  "latitude": "lat", "longitude": "lon", "strength": "snr_db"
})";

const char* const kFields = R"({
  "receivers": {"json_set": {"column": "receivers", "max": 8,
    "keys": ["snr_db", "lat", "lon"]}, "standardize": true},
  "target": {"columns": ["tx_lat", "tx_lon"], "standardize": true},
  "empty": {"json_set": {"column": "r", "max": 8, "min": 0,
    "keys": ["snr_db", "lat", "lon"]}},
  "three": {"columns": ["a", "b", "c"]},
  "whole": {"columns": ["a", "b"], "dtype": "int64"}
})";

ModelSpec model_with(const std::vector<std::string>& sets) {
  Json document = Json::parse(kModel, "test");
  for (const std::string& set : sets) apply_setting(document, set);
  return parse_model(&document,
                     parse_fields(Json::parse(kFields, "test"), "fields"));
}

template <class Work>
Error error_of(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::internal, {.what = "no error"});
}

std::string refusal(const std::vector<std::string>& sets) {
  Error error = error_of([&] { model_with(sets); });
  EXPECT_EQ(error.kind(), ErrorKind::request);
  return error.what();
}

TEST(Model, HasTheDefaultsOfTheSchema) {
  ModelSpec model = model_with({});
  EXPECT_FALSE(model.none());
  EXPECT_EQ(model.kind, "set_position");
  const SetPosition& settings = set_position_of(model);
  EXPECT_EQ(settings.set, "receivers");
  EXPECT_EQ(settings.latitude, "lat");
  EXPECT_EQ(settings.width, 64);
  EXPECT_EQ(settings.dropout, 0.1);
  EXPECT_EQ(settings.noise_db, 3);
  EXPECT_EQ(settings.seed, 0u);
}

TEST(Model, IsNoneWhenMissingOrNone) {
  Json none("none"), other("some");
  EXPECT_TRUE(parse_model(nullptr, {}).none());
  EXPECT_TRUE(parse_model(&none, {}).none());
  EXPECT_THAT(error_of([&] { parse_model(&other, {}); }).what(),
              HasSubstr("found \"some\", expected \"none\" or an object"));
}

TEST(Model, NamesTheNearestFieldAndKey) {
  EXPECT_THAT(refusal({"set=receiver"}),
              HasSubstr("model.set: there is no field 'receiver'; did you mean "
                        "'receivers'?"));
  EXPECT_THAT(refusal({"strength=snr"}),
              HasSubstr("model.strength: the set has no key 'snr'"));
  EXPECT_THAT(refusal({"widht=8"}), HasSubstr("did you mean 'width'?"));
}

TEST(Model, NeedsItsKindAndItsInputs) {
  for (const char* key :
       {"kind", "set", "target", "latitude", "longitude", "strength"})
    EXPECT_THAT(
        refusal({std::string(key) + "=null"}),
        HasSubstr(std::string("model.") + key + ": this key is missing"));
  EXPECT_THAT(refusal({"kind=transformer"}), HasSubstr("set_position"));
}

TEST(Model, RefusesFieldsThatDoNotFit) {
  EXPECT_THAT(refusal({"set=target"}), HasSubstr("is not a json_set"));
  EXPECT_THAT(refusal({"set=empty"}), HasSubstr("its \"min\" is 0"));
  EXPECT_THAT(refusal({"target=receivers"}), HasSubstr("two columns"));
  EXPECT_THAT(refusal({"target=three"}), HasSubstr("two columns"));
  EXPECT_THAT(refusal({"target=whole"}), HasSubstr("whole numbers"));
}

TEST(Model, ChecksRanges) {
  EXPECT_THAT(refusal({"width=4"}), HasSubstr("model.width: found 4"));
  EXPECT_THAT(refusal({"width=20"}), HasSubstr("a multiple of 8"));
  EXPECT_THAT(refusal({"dropout=1"}), HasSubstr("model.dropout"));
  EXPECT_THAT(refusal({"noise_db=-1"}), HasSubstr("model.noise_db"));
  EXPECT_THAT(refusal({"seed=-1"}), HasSubstr("model.seed"));
}

TEST(Learning, IsReadFromTheTrainSection) {
  Json train = Json::parse(R"({"lr": 0.5, "warmup_steps": 7, "clip_norm": 0,
                               "weight_decay": 0.25, "threads": 3})",
                           "test");
  Learning learning = learning_settings().parse(Spec(train, "train"));
  EXPECT_EQ(learning.lr, 0.5);
  EXPECT_EQ(learning.warmup_steps, 7);
  EXPECT_EQ(learning.weight_decay, 0.25);
  EXPECT_EQ(learning.clip_norm, 0);
  EXPECT_EQ(learning.threads, 3);
}

TEST(Learning, AMicroBatchIsANumberOrFound) {
  auto read = [](const Json& rows) {
    Json train(Json::Object{{"micro_batch", rows}, {"oom", Json("exact")}});
    return learning_settings().parse(Spec(train, "train"));
  };
  EXPECT_EQ(read(8).micro_batch, 8);
  EXPECT_EQ(read(8).oom, Learning::OnShortage::exact);
  EXPECT_TRUE(read("auto").find_micro_batch);
  EXPECT_FALSE(read("auto").micro_batch.has_value());
  for (const Json& wrong : {Json(0), Json("some")})
    EXPECT_EQ(error_of([&] { read(wrong); }).parts().where,
              "train.micro_batch");
}

TEST(Learning, TakesAShareOfTheStepsAsWarmUp) {
  Learning learning;
  learning.warmup_steps = 7;
  EXPECT_EQ(warmup_of(learning, 101), 7);
  learning.warmup_ratio = 0.1;
  EXPECT_EQ(warmup_of(learning, 101), 11);
}

TEST(Learning, ChecksItsRanges) {
  for (const char* key :
       {"lr", "warmup_steps", "weight_decay", "clip_norm", "threads"}) {
    Json train(Json::Object{{key, Json(-1)}});
    EXPECT_THAT(error_of([&] {
                  learning_settings().parse(Spec(train, "train"));
                }).what(),
                HasSubstr(std::string("train.") + key + ": found -1"));
  }
}

TEST(Learning, UsesAllProcessorsWhereNoThreadsAreNamed) {
  auto processors = static_cast<int>(read_host_limits().cpus);
  EXPECT_EQ(threads_of({}), std::max(1, processors));
  EXPECT_EQ(threads_of({.learning = {.threads = 3}}), 3);
}

TEST(Model, ShowsEveryDefaultThatWasUsed) {
  Json section = model_section(model_with({"width=32"}));
  EXPECT_EQ(section.find("kind")->string(), "set_position");
  EXPECT_EQ(section.find("width")->integer(), 32);
  EXPECT_EQ(section.find("noise_db")->number(), 3);
  EXPECT_EQ(model_section({}), Json("none"));
}

/// A job with that model, and a section `train`.
Json job_with(const std::string& model, const std::string& train) {
  return Json::parse(
      R"({"source": {"kind": "sqlite", "path": "d", "table": "t"},
          "fields": )" +
          std::string(kFields) + R"(, "model": )" + model + R"(, "train": )" +
          train + "}",
      "test");
}

TEST(Switches, ThatAModelHasNotAreRefusedWithThoseItHas) {
  Error error = error_of(
      [&] { parse_job(job_with(kModel, R"({"label_smoothing": 0.1})")); });
  EXPECT_EQ(error.kind(), ErrorKind::request);
  EXPECT_EQ(error.parts().where, "train.label_smoothing");
  EXPECT_THAT(error.parts().why, HasSubstr("\"set_position\""));
  EXPECT_THAT(error.parts().next,
              HasSubstr("train.precision, train.tf32, train.graphs, "
                        "train.accumulate"));
}

TEST(Switches, ThatAModelHasAreRead) {
  Job job =
      parse_job(job_with(kModel, R"({"precision": "bfloat16", "accumulate": 4,
                           "ema": 0.99, "tf32": true})"));
  EXPECT_EQ(job.model.learning.precision, Dtype::bfloat16);
  EXPECT_EQ(job.model.learning.accumulate, 4);
  EXPECT_EQ(job.model.learning.ema, 0.99);
  EXPECT_TRUE(job.model.learning.tf32);
}

TEST(Switches, OfMemoryAreThoseOfAnOwnModelToo) {
  const Job job = parse_job(job_with(R"({"kind": "own", "class": "a.py:A"})",
                                     R"({"micro_batch": 8, "oom": "stop"})"));
  EXPECT_EQ(job.model.learning.micro_batch, 8);
  EXPECT_EQ(job.model.learning.oom, Learning::OnShortage::stop);
}

TEST(Switches, WithoutAModelChangeNothing) {
  EXPECT_TRUE(parse_job(job_with("\"none\"", R"({"label_smoothing": 0.1})"))
                  .model.none());
}

TEST(OwnModel, TakesThePlaceOfAnotherKindButForItsTarget) {
  Json document = job_with(R"({"kind": "tabular", "target": "target"})", "{}");
  use_own_model(document, "net.py:Net");
  EXPECT_EQ(document.find("model")->dump(),
            R"({"target": "target", "kind": "own", "class": "net.py:Net"})");
  EXPECT_EQ(parse_job(document).model.kind, "own");
}

TEST(OwnModel, KeepsWhatTheJobSaysOfSuchAModel) {
  Json document = job_with(
      R"({"kind": "own", "class": "a.py:A", "arguments": {"width": 3}})", "{}");
  use_own_model(document, "b.py:B");
  EXPECT_EQ(document.find("model")->dump(),
            R"({"kind": "own", "class": "b.py:B", "arguments": {"width": 3}})");
}

TEST(OwnModel, RefusesATargetThatIsNoFieldAndALossOfNone) {
  Error error = error_of([&] {
    parse_job(job_with(R"({"kind": "own", "class": "a.py:A",
                           "target": "targte"})",
                       "{}"));
  });
  EXPECT_THAT(error.what(), HasSubstr("did you mean 'target'"));
  error = error_of([&] {
    parse_job(
        job_with(R"({"kind": "own", "class": "a.py:A", "loss": "mse"})", "{}"));
  });
  EXPECT_EQ(error.parts().where, "model.loss");
}

}  // namespace
}  // namespace penstock
