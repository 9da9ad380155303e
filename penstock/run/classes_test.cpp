#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "penstock/base/fake/test_folder.h"
#include "penstock/base/log.h"
#include "penstock/run/train.h"
#include "penstock/session/session.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// What the log says while it lives.
class Warnings {
 public:
  Warnings() {
    set_log_writer([this](LogLevel level, std::string_view text) {
      if (level >= LogLevel::warning) texts.emplace_back(text);
    });
  }
  ~Warnings() { set_log_writer({}); }

  std::vector<std::string> texts;
};

/// 40 rows of species, of which some are NULL, and a rare one.
class ClassesTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      load_source_plugin("csv");
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    std::ofstream file(folder_.path("t.csv"));
    file << "a,species,place\n";
    for (int row = 0; row < 40; ++row)
      file << row << ","
           << (row % 10 == 3  ? ""
               : row == 20    ? "rare"
               : row % 2 == 0 ? "cat"
                              : "dog")
           << ",here\n";
  }

  Json document(const std::string& more = "") {
    Json json = Json::parse(
        R"({"source": {"kind": "csv"},
            "fields": {"x": {"columns": ["a"]},
                       "y": {"category": {"column": "species")" +
            more + R"(}}}, "device": "cpu"})",
        "test");
    json["source"]["path"] = folder_.path("t.csv");
    json["loader"]["batch_size"] = std::int64_t{10};
    json["loader"]["cache_dir"] = folder_.path("stores");
    json["output"]["dir"] = folder_.path("runs");
    return json;
  }
  std::unique_ptr<Session> open(const std::string& more = "") {
    return open_loader(parse_job(document(more)));
  }

  TestFolder folder_;
};

Json names_of(Session& session, const std::string& field) {
  return Json(session.classes(field));
}

ErrorParts refused(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.parts();
  }
  return {.code = "nothing was refused"};
}

TEST_F(ClassesTest, NamesAreInOrderAndNullIsTheUnknownOne) {
  const Warnings warnings;
  EXPECT_EQ(names_of(*open(), "y").dump(), R"(["cat", "dog", "rare", null])");
  EXPECT_EQ(names_of(*open(R"(, "min_count": 2)"), "y").dump(),
            R"(["cat", "dog", null])");
  const ErrorParts parts = refused([&] { open()->classes("z"); });
  EXPECT_EQ(parts.code, "fields.no_classes");
  EXPECT_THAT(parts.next, HasSubstr("'y'"));
  EXPECT_EQ(refused([&] { open()->classes("x"); }).code, "fields.no_classes");
}

TEST_F(ClassesTest, RowsOfTheUnknownClassAreToldOnce) {
  Warnings warnings;
  open(R"(, "min_count": 2)");
  ASSERT_EQ(warnings.texts.size(), 1U);
  EXPECT_THAT(warnings.texts[0], AllOf(HasSubstr("'y' (class 2: 5 train rows)"),
                                       HasSubstr("ignore_index=2"),
                                       HasSubstr("\"unknown\": \"error\"")));
  warnings.texts.clear();
  // No value is missing, and all have a class.
  Json clean = document();
  clean["fields"]["y"]["category"]["column"] = "place";
  open_loader(parse_job(clean));
  EXPECT_THAT(warnings.texts, IsEmpty());
}

TEST_F(ClassesTest, RowsOutsideTheTrainSideAreCountedToo) {
  Warnings warnings;
  Json with_split = document();
  with_split["split"]["val"] = 0.5;
  open_loader(parse_job(with_split));
  ASSERT_EQ(warnings.texts.size(), 1U);
  EXPECT_THAT(warnings.texts[0], HasSubstr("outside the train side"));
}

TEST_F(ClassesTest, ARunSaysItOfItsTargetAlone) {
  const Warnings warnings;
  Json job = document();
  job["fields"]["place"]["category"]["column"] = "species";
  job["model"] = Json::parse(
      R"({"kind": "tabular", "target": "y", "inputs": ["x"]})", "test");
  std::vector<std::string> notes;
  const Job parsed = parse_job(job);
  auto session = open_loader(parsed, {.batches = 1});
  tell_unknown_class(parsed, *session->opened(),
                     [&](const std::string& line) { notes.push_back(line); });
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0],
              AllOf(HasSubstr("the target has an unknown class, the last: 'y' "
                              "(class 3: 4 train rows)"),
                    HasSubstr("weight 0"), Not(HasSubstr("place"))));
}

// As a version left it that numbered classes from 1, behind the unknown one.
TEST_F(ClassesTest, ARunOfTheOldNumberingIsNotGoneOnFrom) {
  const Warnings warnings;
  Json json = document();
  json["train"]["epochs"] = std::int64_t{2};
  json["train"]["max_steps"] = std::int64_t{3};
  const Job job = parse_job(json);
  const std::string run = train(job, {}).report.find("run")->string();
  const std::string path = run + "/state.json";
  Json state = Json::parse(real_files().read(path), path);
  state["fields"] = with_old_numbering(*state.find("fields"));
  real_files().write_atomic(path, state.dump());
  const ErrorParts parts =
      refused([&] { train(job_of_run(run), {.resume = run}); });
  EXPECT_EQ(parts.code, "resume.other_fields");
  EXPECT_EQ(parts.where, "fields.y.category.unknown");
  EXPECT_THAT(parts.why, HasSubstr("numbered its classes from 1"));

  auto session = open();
  session->load_state(session->state());
  Json of_loader = session->state();
  Sha256 digest;
  const std::string text = session->rows().fingerprint() +
                           with_old_numbering(recipes_of(job)).dump();
  digest.add(std::as_bytes(std::span(text)));
  of_loader["data"] = digest.hex().substr(0, 16);
  EXPECT_EQ(refused([&] { session->load_state(of_loader); }).code,
            "resume.other_fields");
}

}  // namespace
}  // namespace penstock
