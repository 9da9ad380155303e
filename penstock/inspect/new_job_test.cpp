#include "penstock/inspect/new_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "penstock/job/job.h"
#include "penstock/models/tabular/descriptor.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string job_of_pictures(const std::string& folder,
                            const std::string& target) {
  return new_job_text(
      {.source = parse_source_spec(Json("images:" + folder), ""),
       .target = target,
       .name = "t.json"});
}

class NewJobTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      load_source_plugin("csv");
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    char name[] = "/tmp/penstock-new-job-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  /// The text of the job for a CSV file of these rows.
  std::string text(const std::string& csv, const std::string& target) const {
    std::ofstream(folder_ + "/t.csv") << csv;
    return new_job_text(
        {.source = parse_source_spec(Json("csv:" + folder_ + "/t.csv"), ""),
         .target = target,
         .name = "t.json"});
  }
  /// That job, as the program reads it.
  Job job(const std::string& csv, const std::string& target) const {
    std::ofstream(folder_ + "/t.json") << text(csv, target);
    return load_job(folder_ + "/t.json", {});
  }
  Error refusal(const std::string& csv, const std::string& target) const {
    try {
      text(csv, target);
    } catch (const Error& error) {
      return error;
    }
    return Error(ErrorKind::internal, {.what = "nothing was refused"});
  }
  static std::vector<std::string> names(const Job& job) {
    std::vector<std::string> names;
    for (const Field& field : job.fields) names.push_back(field.name);
    return names;
  }
  static const Field& field(const Job& job, const std::string& name) {
    return *std::ranges::find(job.fields, name, &Field::name);
  }
  static const FieldFacts& facts(const Job& job, const std::string& name) {
    return field(job, name).kind->facts();
  }

  std::string folder_;
};

/// 200 rows of every kind of column.
std::string fruits() {
  std::string csv =
      "row,grams,length,colour,note,picked,empty,same,ripe,price\n";
  for (int i = 0; i < 200; ++i)
    csv += std::to_string(i) + "," + (i % 9 == 0 ? "" : std::to_string(i * 3)) +
           "," + std::to_string(i % 17) + ".5," +
           (i % 3 == 0   ? "red"
            : i % 3 == 1 ? "green"
                         : "") +
           ",text " + std::to_string(i) + ",2026-01-" +
           std::to_string(10 + i % 19) + "T06:30:00,,7," +
           (i == 5       ? ""
            : i % 2 == 0 ? "yes"
                         : "no") +
           "," + std::to_string(i % 50) + ".25\n";
  return csv;
}

TEST_F(NewJobTest, EachColumnBecomesWhatItHolds) {
  Job made = job(fruits(), "ripe");
  EXPECT_THAT(names(made), ElementsAre("numbers", "colour", "picked", "ripe"));
  const NumberFacts& numbers = *facts(made, "numbers").numbers;
  EXPECT_THAT(numbers.columns, ElementsAre("grams", "length", "price"));
  EXPECT_THAT(text(fruits(), "ripe"),
              HasSubstr("],\n      \"standardize\": true"));
  EXPECT_EQ(numbers.missing, MissingValue::By::mask);
  EXPECT_TRUE(facts(made, "colour").classes->unknown);
  EXPECT_FALSE(facts(made, "ripe").classes->unknown);
  EXPECT_EQ(made.source.where, R"("ripe" IS NOT NULL)");
  EXPECT_EQ(made.split.train, 0.8);
  EXPECT_EQ(tabular_of(made.model).target, "ripe");
}

TEST_F(NewJobTest, WhatIsLeftOutIsNamedWithTheReason) {
  std::string said = text(fruits(), "ripe");
  std::erase(said, '\n');
  for (std::size_t at; (at = said.find("  // ")) != said.npos;)
    said.erase(at, 4);
  EXPECT_THAT(said, AllOf(HasSubstr("\"row\" (row numbers)"),
                          HasSubstr("\"note\" (200 different texts in 200 "
                                    "rows)"),
                          HasSubstr("\"empty\" (no values)"),
                          HasSubstr("\"same\" (a single value)")));
}

TEST_F(NewJobTest, WhatIsNearlyNumbersIsAskedAbout) {
  std::string csv = "age,y\n";
  for (int i = 0; i < 100; ++i)
    csv += (i == 70 ? "?" : std::to_string(i % 40)) + (i % 2 ? ",u\n" : ",v\n");
  const Error asked = refusal(csv, "y");
  EXPECT_EQ(asked.parts().code, "source.unclear");
  EXPECT_THAT(asked.what(), AllOf(HasSubstr("column 'age'"), HasSubstr("'?'"),
                                  HasSubstr("t.csv:72"), HasSubstr("na=,?")));
}

TEST_F(NewJobTest, NumbersOfRowsWithoutANameAreLeftOut) {
  std::string csv = ",x,y\n";
  for (int i = 0; i < 100; ++i)
    csv += std::to_string(i) + "," + std::to_string(i % 7) +
           (i % 2 ? ",u\n" : ",v\n");
  EXPECT_THAT(text(csv, "y"),
              HasSubstr("\"c1\" (the number of the row, without a name)"));
}

TEST_F(NewJobTest, ANumberIsARegression) {
  Job made = job(fruits(), "price");
  EXPECT_EQ(facts(made, "price").outputs[0].row_shape, Shape());
  EXPECT_THAT(text(fruits(), "price"),
              HasSubstr("{\"column\": \"price\", \"standardize\": true}"));
  EXPECT_FALSE(classifies(tabular_of(made.model), field(made, "price")));
  EXPECT_EQ(made.source.where, "");
}

TEST_F(NewJobTest, FewIntegersAreClassesAndManyARegression) {
  std::string few = "x,y\n", many = few;
  for (int i = 0; i < 100; ++i) {
    few += std::to_string(i * i) + "," + std::to_string(i % 20) + "\n";
    many += std::to_string(i * i) + "," + std::to_string(i % 21) + "\n";
  }
  EXPECT_TRUE(facts(job(few, "y"), "y").classes);
  EXPECT_TRUE(facts(job(many, "y"), "y").numbers);
}

TEST_F(NewJobTest, FewWholeNumbersWithGapsAreClassesAsPandasWritesThem) {
  std::string few = "x,y\n", parts = few;
  for (int i = 0; i < 100; ++i) {
    few += std::to_string(i * i) + (i % 9 == 0 ? ",\n"
                                    : i % 2    ? ",1.0\n"
                                               : ",0.0\n");
    parts += std::to_string(i * i) + (i % 2 ? ",1.0\n" : ",0.5\n");
  }
  const Job made = job(few, "y");
  EXPECT_TRUE(facts(made, "y").classes);
  EXPECT_TRUE(classifies(tabular_of(made.model), field(made, "y")));
  EXPECT_THAT(text(few, "y"), HasSubstr("For a regression: {\"column\""));
  EXPECT_TRUE(facts(job(parts, "y"), "y").numbers);
}

TEST_F(NewJobTest, TimesThatAreMissingInSomeRowsAreInputsBesideAMask) {
  std::string csv = "t,y\n";
  for (int i = 0; i < 100; ++i)
    csv += (i % 10 == 0 ? "" : "2026-01-" + std::to_string(10 + i % 19)) +
           (i % 2 ? ",yes\n" : ",no\n");
  const Job made = job(csv, "y");
  EXPECT_THAT(names(made), ElementsAre("t", "y"));
  EXPECT_THAT(text(csv, "y"), AllOf(HasSubstr("missing in 10 rows"),
                                    HasSubstr("\"missing\": \"mask\"")));
}

TEST_F(NewJobTest, OfRareClassesTheOtherSideMayHaveOneMore) {
  std::string csv = "x,y\n";
  for (int i = 0; i < 100; ++i)
    csv += std::to_string(i * i) + (i == 50 ? ",rare\n" : ",often\n");
  EXPECT_TRUE(facts(job(csv, "y"), "y").classes->unknown);
}

TEST_F(NewJobTest, NamesThatAreTakenOrHardToQuoteAreStillFields) {
  std::string csv = "weight,numbers,\"a \"\"b\"\"\"\n";
  for (int i = 0; i < 100; ++i)
    csv += std::string(i % 2 == 0 ? "x" : "y") + "," + std::to_string(i * i) +
           "," +
           (i % 5 == 0   ? ""
            : i % 3 == 0 ? "p"
                         : "q") +
           "\n";
  Job made = job(csv, "a \"b\"");
  EXPECT_THAT(names(made), ElementsAre("numbers", "weight_", "a \"b\""));
  EXPECT_EQ(made.source.where, R"("a ""b""" IS NOT NULL)");
}

TEST_F(NewJobTest, SaysWhyATargetCannotBeLearned) {
  auto expect = [&](const std::string& target, const std::string& why) {
    Error error = refusal(fruits(), target);
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_EQ(error.parts().code, "init.target");
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("'" + target + "'"), HasSubstr(why)));
  };
  expect("rip", "did you mean 'ripe'?");
  expect("empty", "holds no value");
  expect("same", "all values are the same");
  expect("note", "200 different texts in 200 rows");
  expect("picked", "holds times");
  EXPECT_THAT(refusal("x,y\n", "y").what(), HasSubstr("has no rows"));
}

TEST_F(NewJobTest, RefusesATableWithNothingToPredictFrom) {
  Error error = refusal("id,y\n1,a\n2,b\n3,a\n4,b\n5,a\n6,b\n7,a\n8,b\n", "y");
  EXPECT_EQ(error.parts().code, "init.no_inputs");
  EXPECT_THAT(error.what(), HasSubstr("\"id\" (row numbers)"));
}

TEST_F(NewJobTest, OfPicturesTrainsAClassifierOfTheirClasses) {
  for (const char* name : {"ant", "bee"}) {
    std::filesystem::create_directories(folder_ + "/p/" + name);
    std::ofstream(folder_ + "/p/" + name + "/1.jpg") << "is not read";
  }
  std::ofstream(folder_ + "/t.json")
      << job_of_pictures(folder_ + "/p", "class");
  const Job job = load_job(folder_ + "/t.json", {});
  EXPECT_EQ(job.source.kind, "images");
  EXPECT_EQ(job.model.kind, "image_classifier");
  EXPECT_THAT(names(job), ElementsAre("image", "class"));
  // Nothing is drawn at random but what the job says, each with a comment.
  const std::string text = job_of_pictures(folder_ + "/p", "class");
  EXPECT_THAT(text, HasSubstr("\"train\": \"random_resized_crop\""));
  EXPECT_THAT(text, HasSubstr("// And half of them mirrored."));
  EXPECT_THAT(text, HasSubstr("\n      \"flip\": 0.5}},"));
  // The class is the target where none is named, and two pictures make batches.
  EXPECT_EQ(job_of_pictures(folder_ + "/p", ""), text);
  EXPECT_EQ(job.loading.options.batch_size, 1);
  try {
    job_of_pictures(folder_ + "/p", "path");
    ADD_FAILURE() << "it is no class";
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "init.target");
    EXPECT_THAT(error.what(), HasSubstr("write --target class"));
  }
}

TEST_F(NewJobTest, OfATableWithoutATargetNamesTheOptionAndTheColumns) {
  const Error error = refusal("a,b\n1,2\n3,4\n", "");
  EXPECT_EQ(error.parts().code, "init.target");
  EXPECT_THAT(error.what(), HasSubstr("name the column with --target: a, b"));
}

TEST_F(NewJobTest, OfTextsTrainsALanguageModelOfTheNamedFolder) {
  std::filesystem::create_directories(folder_ + "/base");
  std::string csv = "text\n";
  for (int i = 0; i < 400; ++i)
    csv += std::to_string(i) + " bottles of beer on the wall, and one more\n";
  const Error error = refusal(csv, "");
  EXPECT_EQ(error.parts().code, "init.base");
  EXPECT_THAT(error.what(), HasSubstr("--base FOLDER"));
  NewJob job{.source = parse_source_spec(Json("csv:" + folder_ + "/t.csv"), ""),
             .name = "t.json",
             .base = folder_ + "/base"};
  EXPECT_THROW(new_job_text(job), Error);  // the folder is empty
  for (const char* name : {"/tokenizer.json", "/config.json"})
    std::ofstream(job.base + name) << "{}";
  std::string text = new_job_text(job);
  EXPECT_THAT(text, AllOf(HasSubstr("\"kind\": \"causal_lm\", \"config\": "),
                          HasSubstr("\"eos\": true"),
                          HasSubstr("the 400 documents of")));
  std::ofstream(job.base + "/model.safetensors") << "";
  text = new_job_text(job);
  EXPECT_THAT(text, AllOf(HasSubstr("\"path\": "), HasSubstr("\"lora\": {")));
}

TEST_F(NewJobTest, EndsWhereItIsStopped) {
  std::ofstream(folder_ + "/t.csv") << fruits();
  std::atomic<bool> stop{true};
  try {
    new_job_text(
        {.source = parse_source_spec(Json("csv:" + folder_ + "/t.csv"), ""),
         .target = "ripe",
         .name = "t.json"},
        {&stop});
    FAIL() << "it was not stopped";
  } catch (const Error& error) {
    EXPECT_TRUE(is_stop(error));
  }
}

}  // namespace
}  // namespace penstock
