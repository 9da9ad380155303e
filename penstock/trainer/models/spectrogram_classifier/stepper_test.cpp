#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/trainer/fake/table_model.h"

// The steps of both kinds that tell classes of what has a shape: spectrograms
// here, pictures by their networks in image_classifier/golden_test.cpp.
namespace penstock {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kSteps = TableModel::kSteps;

/// 360 rows of 64 numbers: eight neighbours are high, or every eighth one, or
/// (rarely) none.
std::string spectrograms() {
  std::string csv = "y";
  for (int i = 0; i < 64; ++i) csv += ",x" + std::to_string(i);
  for (int row = 0; row < 360; ++row) {
    const int kind = row % 10 == 9 ? 2 : row % 2, at = row / 10 % 8;
    csv += kind == 0 ? "\nblock" : kind == 1 ? "\ncomb" : "\nnone";
    for (int i = 0; i < 64; ++i) {
      const bool on = kind == 0 ? i / 8 == at : kind == 1 && i % 8 == at;
      csv +=
          "," + std::to_string((on ? 2 : 0) + (row * 31 + i * 17) % 11 * 0.05);
    }
  }
  return csv + "\n";
}

Json job(const std::vector<std::string>& sets = {}) {
  Json json = Json::parse(R"({
    "fields": {"x": {"columns": []},
               "y": {"category": {"column": "y", "unknown": "error"}}},
    "split": {"train": 0.8, "val": 0.2},
    "loader": {"batch_size": 32},
    "model": {"kind": "spectrogram_classifier", "spectrogram": "x",
              "target": "y", "width": 8, "depth": 2},
    "train": {"lr": 0.01, "warmup_steps": 5, "threads": 1}})",
                          "test");
  for (int i = 0; i < 64; ++i)
    json["fields"]["x"]["columns"].push_back("x" + std::to_string(i));
  for (const std::string& set : sets) apply_setting(json, set);
  return json;
}

double number(const Json& json, const char* key) {
  return json.find(key)->number();
}

TEST(SpectrogramClassifier, LearnsShapesAndMeasuresEachClass) {
  for (const char* precision : {"float32", "bfloat16"}) {
    TableModel table(spectrograms(),
                     job({std::string("train.precision=") + precision}));
    auto model = table.stepper();
    std::vector<double> losses = table.take(*model, 0, kSteps);
    EXPECT_LT(losses.back(), losses.front() / 2);
    Json seen = table.validate(*model);
    EXPECT_GT(number(seen, "val_accuracy"), 0.9);
    EXPECT_GT(number(seen, "val_balanced_accuracy"), 0.8);
    EXPECT_LE(number(seen, "val_least_recall"),
              number(seen, "val_balanced_accuracy"));
    EXPECT_EQ(seen.find("val_top5_accuracy"), nullptr);  // of three classes
  }
}

TEST(SpectrogramClassifier, GoesOnFromASavedStateBitForBit) {
  for (const char* set : {"train.ema=0.9", "train.accumulate=3",
                          "train.gradient_checkpointing=true"}) {
    SCOPED_TRACE(set);
    TableModel table(spectrograms(), job({set}));
    auto whole = table.stepper();
    std::vector<double> losses = table.take(*whole, 0, 20);
    auto first = table.stepper();
    table.take(*first, 0, 7);
    ModelState saved = first->save();
    auto second = table.stepper();
    table.take(*second, 0, 2);
    table.validate(*second);
    second->restore(saved);
    EXPECT_EQ(table.take(*second, 7, 20),
              std::vector(losses.begin() + 7, losses.end()));
    expect_same_bits(whole->save(), second->save());
  }
}

/// 21 rows of four numbers, all in train: the last of three batches of eight
/// has three rows of padding.
std::string short_rows() {
  std::string csv = "a,b,c,d,y\n";
  for (int i = 0; i < 21; ++i)
    csv += std::to_string(i % 3) + "," + std::to_string(i % 7) + "," +
           std::to_string(i % 5) + ",0," + (i % 3 == 0 ? "no" : "yes") + "\n";
  return csv;
}

Json short_job(const std::vector<std::string>& sets = {}) {
  Json json = job({R"(fields.x={"columns": ["a", "b", "c", "d"]})",
                   R"(split={"train": 1})", "loader.batch_size=8"});
  for (const std::string& set : sets) apply_setting(json, set);
  return json;
}

TEST(SpectrogramClassifier, PaddingDoesNotEnterTheStatisticsOfBatches) {
  for (const char* set :
       {"train.accumulate=1", "train.accumulate=3", "train.label_smoothing=0.1",
        "train.class_weights=balanced", "train.gradient_checkpointing=true"}) {
    SCOPED_TRACE(set);
    TableModel table(short_rows(), short_job({set}));
    auto padded = table.stepper();
    auto exact = table.stepper();
    EXPECT_EQ(table.take(*padded, 0, 9, Tail::pad),
              table.take(*exact, 0, 9, Tail::exact));
    expect_same_bits(padded->save(), exact->save());
  }
}

TEST(SpectrogramClassifier, ABatchOfOneValuePerChannelIsRefusedAndChangesNone) {
  // Of 17 rows the last batch has one, of which two stages leave one value.
  std::string csv = short_rows();
  for (int row = 0; row < 4; ++row)
    csv.resize(csv.rfind('\n', csv.size() - 2) + 1);
  for (Tail tail : {Tail::exact, Tail::pad}) {
    TableModel table(csv, short_job({"model.depth=3"}));
    auto model = table.stepper();
    table.take(*model, 0, 2);
    const ModelState before = model->save();
    try {
      table.take(*model, 2, 3, tail);
      FAIL() << "the step was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::transform);
      EXPECT_EQ(error.parts().code, "train.not_finite");
      EXPECT_EQ(error.parts().where, "layer 'stage2.bn1'");
    }
    expect_same_bits(model->save(), before);
  }
}

TEST(SpectrogramClassifier, GoesOnWhereStepsMovedTheWeightsTogether) {
  for (std::int64_t each : {2, 3, 4}) {
    SCOPED_TRACE(each);
    TableModel table(spectrograms(),
                     job({"train.accumulate=" + std::to_string(each)}));
    auto whole = table.stepper();
    const std::vector<double> losses = table.take(*whole, 0, 13);
    auto first = table.stepper();
    table.take(*first, 0, 12);
    auto second = table.stepper();
    second->restore(first->save());
    EXPECT_EQ(table.take(*second, 12, 13).back(), losses.back());
    expect_same_bits(whole->save(), second->save());
  }
}

TEST(SpectrogramClassifier, TakesRowsOfNumbersWithoutBands) {
  std::string csv = "a,b,c,d,y\n";
  for (int i = 0; i < 80; ++i)
    csv += std::to_string(i % 3) + ",1," + std::to_string(i % 5) + ",0," +
           (i % 3 == 0 ? "no" : "yes") + "\n";
  TableModel table(csv, job({R"(fields.x={"columns": ["a", "b", "c", "d"]})"}));
  auto model = table.stepper();
  table.take(*model, 0, 1);
  EXPECT_GT(estimate_memory(*model, 4)->per_row, 4 * 4);
}

TEST(SpectrogramClassifier, EstimatesItsMemoryWithoutATrace) {
  TableModel table(spectrograms(), job());
  auto model = table.stepper();
  const auto memory = estimate_memory(*model, 4);
  // Two convolutions of 64 numbers with 8 channels, two of 32 with 16.
  EXPECT_GT(memory->per_row, 4 * (2 * 8 * 64 + 2 * 16 * 32));
  EXPECT_NEAR(static_cast<double>(memory->bytes.optimizer),
              static_cast<double>(2 * memory->bytes.gradients), 64);
  for (const NamedTensor& one : model->save().tensors)
    if (one.name.ends_with("num_batches_tracked")) {
      EXPECT_EQ(*reinterpret_cast<const std::int64_t*>(one.view.data), 0);
    }
}

std::string refusal(const std::string& set) {
  try {
    parse_job(job({set, R"(source={"kind": "csv", "path": "x.csv"})"}));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    return error.what();
  }
  return "nothing was refused";
}

TEST(SpectrogramClassifier, RefusesFieldsThatDoNotFit) {
  EXPECT_THAT(refusal("model.target=x"), HasSubstr("is neither a category"));
  EXPECT_THAT(refusal("model.spectrogram=z"),
              HasSubstr("there is no field 'z'"));
  EXPECT_THAT(refusal("model.spectrogram=y"),
              HasSubstr("does not hold numbers"));
  EXPECT_THAT(refusal("train.attention=mask"), HasSubstr("attention"));
  const std::string image =
      R"(model={"kind": "image_classifier", "image": "x", "target": "y"})";
  EXPECT_THAT(refusal(image), HasSubstr("does not hold pictures"));
}

}  // namespace
}  // namespace penstock
