#include "penstock/job/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "penstock/demo/fake/positions_run.h"
#include "penstock/job/sections.h"

namespace penstock {
namespace {

using testing::HasSubstr;

const char* const kJob = R"({
  "source": {"kind": "sqlite", "path": "d.sqlite", "table": "t"},
  "fields": {"x": {"columns": ["a"]}}
})";

Job job_with(std::vector<std::string> sets) {
  Json document = Json::parse(kJob, "test");
  for (const std::string& set : sets) apply_setting(document, set);
  return parse_job(document);
}

std::string error_of(std::vector<std::string> sets) {
  try {
    job_with(std::move(sets));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    return error.what();
  }
  return "no error";
}

TEST(Job, HasTheDefaultsOfTheSchema) {
  Job job = job_with({});
  EXPECT_EQ(job.loading.options.batch_size, 256);
  EXPECT_TRUE(job.loading.options.shuffle);
  EXPECT_EQ(job.loading.cache, "auto");
  EXPECT_EQ(job.training.epochs, 1);
  EXPECT_EQ(job.device.kind, "auto");
  EXPECT_EQ(job.output.dir, "runs");
  EXPECT_EQ(loader_options(job, Side::train).tail, Tail::drop);
  EXPECT_EQ(loader_options(job, Side::val).tail, Tail::exact);
  EXPECT_FALSE(loader_options(job, Side::val).shuffle);
}

TEST(Job, SetOverridesAnyKeyAsJsonOrElseAsText) {
  Job job = job_with({"loader.batch_size=32", "loader.tail=pad",
                      "device={\"kind\": \"sim\", \"step_ms\": 5}",
                      "output.dir=elsewhere", "train.max_steps=7"});
  EXPECT_EQ(job.loading.options.batch_size, 32);
  EXPECT_EQ(job.loading.tail, Tail::pad);
  EXPECT_EQ(job.device.step_ms, 5);
  EXPECT_EQ(job.output.dir, "elsewhere");
  EXPECT_EQ(job.training.max_steps, 7);
  EXPECT_THAT(error_of({"loader"}), HasSubstr("section.key=value"));
}

TEST(Job, SetGoesIntoObjectsAlone) {
  EXPECT_EQ(job_with({"device=sim", "device.step_ms=3"}).device.kind, "sim");
  EXPECT_THAT(error_of({"loader.seed=1", "loader.seed.deep=1"}),
              HasSubstr("section.key=value"));
  Json list = Json::parse("[1]", "test");
  EXPECT_THROW(apply_setting(list, "loader.seed=1"), Error);
  Json short_forms = Json::parse(R"({"source": "t.csv", "split": 0.8})", "");
  apply_setting(short_forms, "source.path=u.csv");
  apply_setting(short_forms, "split.seed=3");
  EXPECT_EQ(short_forms.find("source")->find("path")->string(), "u.csv");
  EXPECT_EQ(short_forms.find("source")->find("kind")->string(), "csv");
  EXPECT_EQ(short_forms.find("split")->dump(),
            R"({"train": 0.8, "val": 0.2, "seed": 3})");
}

TEST(Job, EveryRefusalHasANextStep) {
  try {
    job_with({"loader.batch_size=0"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_FALSE(error.parts().next.empty());
  }
}

TEST(Job, KeepsNoPasswordInWhatItShows) {
  Job job = job_with({R"(source={"kind": "postgres", "table": "t",
                                 "uri": "postgresql://me:hunter2@h/b"})"});
  EXPECT_THAT(without_secrets(job.document).dump(),
              testing::Not(HasSubstr("hunter2")));
  EXPECT_THAT(resolved_settings(job, *open_device({.kind = "cpu"})).dump(),
              testing::Not(HasSubstr("hunter2")));
}

TEST(Job, NamesTheNearestKnownKey) {
  EXPECT_THAT(error_of({"loader.batchsize=1"}),
              HasSubstr("did you mean 'batch_size'?"));
  EXPECT_THAT(error_of({"lodaer.batch_size=1"}),
              HasSubstr("did you mean 'loader'?"));
}

TEST(Job, SaysWhichSettingsDivideThreadsByWhatTheyDo) {
  const std::string told =
      error_of({R"(loader.workers={"read": 4, "prepare": 2})"});
  EXPECT_THAT(told, HasSubstr("loader.workers: found an object"));
  EXPECT_THAT(told, HasSubstr("\"readers\" sets how many reads"));
  EXPECT_THAT(error_of({"loader.workers=many"}), HasSubstr("0 to 1024"));
}

TEST(Job, ChecksTypesAndRangesWithThePath) {
  EXPECT_THAT(error_of({"loader.batch_size=0"}),
              HasSubstr("loader.batch_size: found 0"));
  EXPECT_THAT(error_of({"loader.cache=fast"}),
              HasSubstr("auto, device, pinned, ram, disk, none"));
  EXPECT_THAT(error_of({"train.epochs=\"two\""}), HasSubstr("train.epochs"));
  EXPECT_THAT(error_of({"loader=3"}), HasSubstr("expected an object"));
}

TEST(Job, OperationsAreCheckedBeforeAnythingIsRead) {
  auto set = [](const std::string& list) {
    return std::vector<std::string>{"loader.operations=" + list};
  };
  Job job = job_with(set(R"([{"mixup": ["x"], "alpha": 0.2}])"));
  EXPECT_EQ(job.loading.options.operations.size(), 1u);
  EXPECT_NE(recipes_of(job), recipes_of(job_with({})));
  EXPECT_EQ(recipes_of(job_with({})), recipes_of(job.fields));
  EXPECT_THAT(error_of(set(R"([{"mixup": ["z"]}])")),
              HasSubstr("no tensor 'z', only 'x'"));
  EXPECT_THAT(error_of(set(R"([{"mixup": ["x"], "alpha": 0}])")),
              HasSubstr("loader.operations[0].alpha"));
  EXPECT_THAT(error_of({"fields.x.dtype=int64",
                        R"(loader.operations=[{"mixup": ["x"]}])"}),
              HasSubstr("'x' is int64, expected float32, float64,"));
}

TEST(Job, AQueryPerSampleKeepsNothing) {
  Job job = job_with({"loader.read=per_sample"});
  EXPECT_EQ(job.loading.cache, "none");
  EXPECT_EQ(loader_options(job, Side::train).workers, 0);
  EXPECT_THAT(error_of({"loader.read=per_sample", "loader.cache=ram"}),
              HasSubstr("reads from the source"));
}

// What is stored is parsed again by --resume: it must still be a URI of libpq.
TEST(Job, TheCacheIsATierOrABudgetForEach) {
  Job job = job_with({R"(loader.cache={"device_gib": 0.5, "disk_gib": 0})",
                      "loader.cache.dir=/scratch"});
  EXPECT_EQ(job.loading.cache, "auto");
  EXPECT_EQ(job.loading.budgets.device, std::size_t{1} << 29);
  EXPECT_EQ(job.loading.budgets.disk, 0u);
  EXPECT_FALSE(job.loading.budgets.ram);
  EXPECT_EQ(job.loading.cache_dir, "/scratch");
  Json shown = loading_settings().shown(job.loading);
  EXPECT_EQ(shown.find("cache")->dump(),
            R"({"device_gib": 0.5, "disk_gib": 0.0})");
  EXPECT_THAT(error_of({R"(loader.cache={"vram_gib": 1})"}),
              HasSubstr("loader.cache.vram_gib"));
  EXPECT_THAT(error_of({R"(loader.cache={"ram_gib": -1})"}),
              HasSubstr("loader.cache.ram_gib"));
  EXPECT_THAT(
      error_of({R"(loader.cache={"dir": "/a"})", "loader.cache_dir=/b"}),
      HasSubstr("loader.cache_dir"));
}

TEST(Job, PagesAreForAnOrderThatIsShuffled) {
  const std::string paged =
      R"(loader.order={"paged": {"page": 8, "window": 2}})";
  EXPECT_EQ(job_with({paged}).loading.options.pages, (Pages{8, 2}));
  EXPECT_FALSE(job_with({"loader.order=exact"}).loading.options.pages);
  EXPECT_THAT(error_of({paged, "loader.shuffle=false"}),
              HasSubstr("loader.order"));
  EXPECT_THAT(error_of({"loader.order=paged"}), HasSubstr("\"window\""));
}

TEST(Job, RowsAreDrawnByOneColumnAndAtRandom) {
  const Job job = job_with({"loader.weights=w"});
  EXPECT_EQ(job.loading.drawing.column, "w");
  EXPECT_FALSE(job.loading.drawing.balance);
  EXPECT_EQ(*loading_settings().shown(job.loading).find("weights"), Json("w"));
  EXPECT_TRUE(job_with({"loader.balance=c"}).loading.drawing.balance);
  EXPECT_THAT(error_of({"loader.weights=w", "loader.balance=c"}),
              HasSubstr("leave one of them out"));
  EXPECT_THAT(error_of({"loader.weights=w", "loader.shuffle=false"}),
              HasSubstr("loader.weights"));
  EXPECT_THAT(error_of({"loader.balance=w",
                        R"(loader.order={"paged": {"page": 8, "window": 2}})"}),
              HasSubstr("loader.balance"));
  EXPECT_THAT(error_of({"loader.weights="}), HasSubstr("the name is empty"));
}

TEST(Job, ALimitIsANumberOfRowsOrAShare) {
  EXPECT_EQ(job_with({"loader.limit=25"}).split.most, 25);
  EXPECT_EQ(job_with({"loader.limit=12.5%"}).split.share, 0.125);
  EXPECT_FALSE(job_with({"loader.limit=100%"}).split.limited());
  EXPECT_EQ(*loading_settings()
                 .shown(job_with({"loader.limit=12.5%"}).loading)
                 .find("limit"),
            Json("12.5%"));
  for (const char* wrong :
       {"loader.limit=0", "loader.limit=-1", "loader.limit=1.5",
        "loader.limit=0%", "loader.limit=101%", "loader.limit=ten",
        "loader.limit=10 %", "loader.limit=nan%", "loader.limit=true"})
    EXPECT_THAT(error_of({wrong}), HasSubstr("loader.limit")) << wrong;
}

TEST(Job, ASecretIsLeftOutOfWhatIsStored) {
  auto stored = [](const std::string& uri) {
    Json document;
    document["source"]["uri"] = uri;
    return without_secrets(document).find("source")->find("uri")->string();
  };
  EXPECT_EQ(stored("postgresql://u:geheim@h/d"), "postgresql://u@h/d");
  EXPECT_EQ(stored("postgresql://h/d?sslpassword=geheim&user=u"),
            "postgresql://h/d?user=u");
  EXPECT_EQ(stored("host=h password=geheim user=u"), "host=h user=u");
  for (const char* uri : {"pwuser:geheim@h/d", "postgres:/u:geheim@h/d",
                          "host=h passwrd='geheim'", "postgresql://u:geheim"})
    EXPECT_EQ(stored(uri), "***") << uri;
}

TEST(Job, SourceAndFieldsAreNeeded) {
  EXPECT_THAT(error_of({"source=null"}), HasSubstr("source"));
  EXPECT_THAT(error_of({"fields=null"}), HasSubstr("fields"));
}

TEST(Job, TheReportShowsEveryDefaultThatWasUsed) {
  Job job = job_with({"loader.workers=3"});
  Json settings = resolved_settings(job, *open_device({.kind = "cpu"}));
  const Json& loader = *settings.find("loader");
  EXPECT_EQ(loader.find("workers")->integer(), 3);
  EXPECT_EQ(loader.find("tail")->string(), "drop");
  EXPECT_EQ(settings.find("device_used")->string(), "cpu");
}

// Every key of the schema is known to the parser.
TEST(JobSchema, NamesNothingThatTheParserRefuses) {
  Json schema = Json::parse(job_schema(), "schema");
  const Json& sections = *schema.find("properties");
  for (const char* name : {"source", "split", "loader", "train", "output"}) {
    const Json* section = sections.find(name);
    if (const Json* forms = section->find("anyOf"))
      section = &forms->array().back();  // the full one
    for (const auto& [key, rule] : section->find("properties")->object()) {
      std::vector<std::string> sets = {std::string(name) + "." + key + "=[]"};
      if (key == "uri" || key == "connections")
        sets.insert(sets.begin(),
                    R"(source={"kind": "postgres", "uri": "u", "table": "t"})");
      if (key == "sources")
        sets.insert(sets.begin(), R"(source={"kind": "joined"})");
      EXPECT_THAT(error_of(sets), testing::Not(HasSubstr("no such key")))
          << sets.back();
    }
  }
}

TEST(StepsInAll, AreTheEpochsOrMaxStepsWhereThatIsLess) {
  PositionsRun positions(20);
  Order order{.samples = 100, .batch_size = 10};
  EXPECT_EQ(steps_in_all(positions.job({"train.epochs=3"}), order), 30);
  EXPECT_EQ(steps_in_all(positions.job({"train.epochs=3", "train.max_steps=7"}),
                         order),
            7);
  EXPECT_EQ(steps_in_all(
                positions.job({"train.epochs=3", "train.max_steps=70"}), order),
            30);
}

TEST(StepsInAll, AreNeverMoreThanANumberCanHold) {
  PositionsRun positions(20);
  Order order{.samples = std::int64_t{1} << 30, .batch_size = 1};
  std::string most = "train.epochs=1099511627776";
  EXPECT_EQ(steps_in_all(positions.job({most}), order), INT64_MAX);
  EXPECT_EQ(steps_in_all(positions.job({most, "train.max_steps=5"}), order), 5);
}

TEST(JobOfASource, TakesOfTheSectionWhatRowsOfAnySourceHave) {
  auto parsed = [](const char* text) {
    return parse_job_of_source(Json::parse(text, "test"), {});
  };
  Job job = parsed(R"({"source": {"on_bad": "skip"},
                       "fields": {"x": {"columns": ["a"]}}})");
  EXPECT_TRUE(job.source.skip_bad);
  EXPECT_EQ(job.fields.size(), 1u);
  EXPECT_FALSE(
      parsed(R"({"fields": {"x": {"columns": ["a"]}}})").source.skip_bad);
  EXPECT_THROW(parsed("{}"), Error);
  EXPECT_THROW(parsed(R"({"source": {"table": "t"},
                          "fields": {"x": {"columns": ["a"]}}})"),
               Error);
}

/// What loading a job file of this text says.
std::string loading(const std::string& text) {
  const std::string path =
      testing::TempDir() + "penstock_job_" + std::to_string(::getpid());
  std::ofstream(path) << text;
  std::string said;
  try {
    said = load_job(path, {}).document.dump();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    said = error.what();
  }
  std::filesystem::remove(path);
  return said;
}

TEST(LoadJob, TakesCommentsToTheEndOfALineAndNothingElse) {
  EXPECT_EQ(
      loading(R"(// a job
      {"source": {"kind": "sqlite", // "path": "e",
                  "path": "no // comment \" // here", "table": "t"},
       "fields": {"x": {"columns": ["a", //
                                    "b"]}}} //)"),
      R"({"source": {"kind": "sqlite", "path": "no // comment \" // )"
      R"(here", "table": "t"}, "fields": {"x": {"columns": ["a", "b"]}}})");
  for (const char* text : {"{/* a */}", "{} / a", "# a\n{}", "{\"a\": 1,}"})
    EXPECT_THAT(loading(text), HasSubstr("not valid JSON")) << text;
  EXPECT_THAT(loading("{ // a\n  b}"), HasSubstr("line 2, column 3"));
}

TEST(LoadJob, NamesAMissingFileAndABadLine) {
  try {
    load_job("/nonexistent/job.json", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_EQ(error.parts().where, "/nonexistent/job.json");
  }
}

}  // namespace
}  // namespace penstock
