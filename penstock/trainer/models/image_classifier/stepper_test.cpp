#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/trainer/fake/table_model.h"

// That the networks learn. What they compute is compared in golden_test.cpp.
namespace penstock {
namespace {

using testing::HasSubstr;

constexpr int kSide = 16, kPictures = 64;

/// Pictures [3, 16, 16] of noise, of which a quarter is brighter: its place is
/// the class. Columns: pixels, as a list; class; labels: the class, "left"
/// where that is on the left, and of every third "third".
std::string pictures() {
  std::string csv = "pixels,class,labels\n";
  std::uint32_t noise = 1;
  for (int picture = 0; picture < kPictures; ++picture) {
    const int of_class = picture % 4;
    csv += "\"[";
    for (int channel = 0; channel < 3; ++channel)
      for (int y = 0; y < kSide; ++y)
        for (int x = 0; x < kSide; ++x) {
          noise = noise * 1664525U + 1013904223U;
          const bool bright = (y < kSide / 2) == (of_class < 2) &&
                              (x < kSide / 2) == (of_class % 2 == 0);
          csv += (channel + y + x == 0 ? "" : ",") +
                 std::to_string((noise >> 24) / 2 + (bright ? 100 : 0));
        }
    csv += "]\",c" + std::to_string(of_class) + ",c" + std::to_string(of_class);
    csv += of_class % 2 == 0 ? "|left" : "";
    csv += picture % 3 == 0 ? "|third\n" : "\n";
  }
  return csv;
}

Json job(const std::vector<std::string>& sets = {}) {
  Json json = Json::parse(R"({
    "fields": {"x": {"array": {"column": "pixels", "shape": [3, 16, 16],
                               "dtype": "uint8"}},
               "y": {"category": {"column": "class", "unknown": "error"}}},
    "split": {"train": 0.75, "val": 0.25},
    "loader": {"batch_size": 16},
    "model": {"kind": "image_classifier", "image": "x", "target": "y"},
    "train": {"lr": 0.0003, "warmup_steps": 5, "threads": 1}})",
                          "test");
  for (const std::string& set : sets) apply_setting(json, set);
  return json;
}

double number(const Json& json, const char* key) {
  return json.find(key)->number();
}

constexpr const char* kLabels =
    R"(fields.y={"multi_hot": {"column": "labels", "size": 8,
                               "separator": "|"}})";

TEST(ImageClassifier, LearnsPicturesByHeartAndTellsOthers) {
  TableModel table(pictures(), job());
  auto model = table.stepper();
  const std::vector<double> losses = table.take(*model, 0, 40);
  EXPECT_LT(losses.back(), 0.1);
  const Json seen = table.validate(*model);
  EXPECT_GT(number(seen, "val_accuracy"), 0.8);
}

TEST(ImageClassifier, LearnsSeveralLabelsOfAPicture) {
  TableModel table(pictures(), job({kLabels, "train.class_weights=balanced"}));
  auto model = table.stepper();
  const std::vector<double> losses = table.take(*model, 0, 40);
  EXPECT_LT(losses.back(), losses.front() / 3);
  const Json seen = table.validate(*model);
  // "third" cannot be seen; all else can: 1 for "left" and the four classes.
  EXPECT_GT(number(seen, "val_micro_f1"), 0.7);
  EXPECT_GT(number(seen, "val_map"), 0.7);
  EXPECT_EQ(seen.find("val_accuracy"), nullptr);
}

std::string refusal(const std::vector<std::string>& sets) {
  std::vector<std::string> all = sets;
  all.push_back(R"(source={"kind": "csv", "path": "x.csv"})");
  try {
    parse_job(job(all));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    return error.what();
  }
  return "nothing was refused";
}

TEST(ImageClassifier, RefusesTargetsThatAreNoClasses) {
  EXPECT_THAT(refusal({"model.target=x"}), HasSubstr("neither a category"));
  EXPECT_THAT(refusal({"train.class_weights=all"}), HasSubstr("class_weights"));
}

}  // namespace
}  // namespace penstock
