#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "penstock/base/error.h"
#include "penstock/base/random.h"
#include "penstock/transforms/fake/runs.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

class Fit : public testing::Test {
 protected:
  void job(const std::string& section) {
    fields_ = parse_fields(Json::parse(section, "test"), "fields");
    notes_.clear();
    for (const Field& field : fields_) {
      notes_.push_back(std::make_unique<KeyTypes>());
      if (const auto& set = field.kind->facts().set)
        notes_.back()->keys.resize(set->keys.size(), {.number_row = "1"});
    }
  }
  void set_job() {
    job(R"({"r": {"json_set": {"column": "c", "keys": ["a", "b"], "max": 9},
                  "standardize": true}})");
  }
  void columns_job() {
    job(R"({"t": {"columns": ["x"], "standardize": true}})");
  }

  /// The statistics of each field, found in parts of so many blocks of ids,
  /// the last part first.
  std::vector<std::vector<Standardization>> run(std::size_t blocks = 1000) {
    std::vector<std::vector<Standardization>> found;
    auto bound = bound_to_float64(fields_, booleans_);
    statistics_.clear();
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      std::unique_ptr<FieldFit> fit = bound[f]->fit(notes_[f].get());
      do {
        pass(*fit, f, blocks);
      } while (fit->again());
      statistics_.push_back(fit->statistics());
      found.push_back(standardizations_from(statistics_.back()));
    }
    return found;
  }

  void pass(FieldFit& fit, std::size_t field, std::size_t blocks) {
    constexpr auto kBlock = static_cast<std::size_t>(FieldFit::kBlock);
    std::vector<std::unique_ptr<FieldFit>> parts;
    for (std::size_t first = 0; first < rows_.size(); first += blocks * kBlock)
      parts.push_back(fit.part());
    for (std::size_t p = parts.size(); p-- > 0;)
      for (std::size_t b = 0; b < blocks; ++b) {
        std::size_t first = (p * blocks + b) * kBlock;
        if (first < rows_.size())
          add(*parts[p], field, first, std::min(rows_.size(), first + kBlock));
      }
    for (auto& part : parts) fit.merge(*part);
  }

  void add(FieldFit& part, std::size_t field, std::size_t first,
           std::size_t end) {
    std::vector<ValueRow> rows;
    std::vector<std::uint8_t> train;
    for (std::size_t id = first; id < end; ++id) {
      rows.push_back(std::as_bytes(parts_of_run(fields_, rows_[id])[field]));
      train.push_back(!held_out_ || !held_out_(static_cast<SampleId>(id)));
    }
    part.add(rows, train);
  }

  std::string error_code(ErrorKind kind, std::string* text = nullptr) {
    try {
      run();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind);
      if (text != nullptr) *text = error.what();
      return error.parts().code;
    }
    return "no error";
  }

  std::vector<Field> fields_;
  std::vector<std::unique_ptr<KeyTypes>> notes_;
  std::vector<std::vector<bool>> booleans_;
  std::vector<std::vector<double>> rows_;
  std::function<bool(SampleId)> held_out_;
  std::vector<Json> statistics_;
};

TEST_F(Fit, GivesTheSameBitsHoweverTheWorkIsSharedOut) {
  columns_job();
  for (int i = 0; i < 5000; ++i) rows_.push_back({std::sin(i) * 1e3 + i});
  Standardization whole = run()[0][0];
  for (std::size_t blocks = 1; blocks <= 3; ++blocks) {
    Standardization parts = run(blocks)[0][0];
    EXPECT_EQ(parts.mean, whole.mean);
    EXPECT_EQ(parts.deviation, whole.deviation);
    EXPECT_EQ(parts.count, whole.count);
  }
}

TEST_F(Fit, TakesEachKeyOverTheKeptElementsOfTrainRows) {
  set_job();
  rows_ = {{2, 1, 10, 3, 20}, {1, 5, 30}, {1, 1000, 1000}};
  held_out_ = [](SampleId id) { return id == 2; };
  auto fitted = run();
  const Standardization& a = fitted[0][0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.mean, 3);
  EXPECT_EQ(a.deviation, std::sqrt(8.0 / 3));  // of the population
  EXPECT_EQ(a.divisor, a.deviation);
  EXPECT_EQ(a.count, 3);
  EXPECT_TRUE(a.standardize);
  EXPECT_EQ(fitted[0][1].mean, 20);
}

TEST_F(Fit, MissingValuesEnterNothingAndAreCountedOverAllRows) {
  set_job();
  rows_ = {{2, 1, kMissing, kMissing, 5}, {1, 3, kMissing}, {1, kMissing, 4}};
  held_out_ = [](SampleId id) { return id == 2; };
  const auto fitted = run();
  EXPECT_EQ(fitted[0][0].mean, 2);
  EXPECT_EQ(fitted[0][0].count, 2);
  EXPECT_EQ(fitted[0][0].missing, 2);
  EXPECT_EQ(fitted[0][1].mean, 5);
  EXPECT_EQ(fitted[0][1].missing, 2);
}

TEST_F(Fit, AKeyOfWhichNoTrainRowHasAValueIsNamed) {
  set_job();
  rows_ = {{1, 7, kMissing}, {1, 9, kMissing}, {1, 9, 4}};
  held_out_ = [](SampleId id) { return id == 2; };
  std::string text;
  EXPECT_EQ(error_code(ErrorKind::transform, &text),
            "transform.nothing_to_fit");
  EXPECT_THAT(text, HasSubstr("key 'b'"));
  rows_ = {{0}, {0}};  // lists without an element
  held_out_ = nullptr;
  EXPECT_EQ(error_code(ErrorKind::transform), "transform.nothing_to_fit");
}

TEST_F(Fit, AConstantIsItsOwnMeanAndDividesBy1) {
  columns_job();
  rows_.assign(1000, {0.1});  // whose sum is not 100
  const Standardization x = run()[0][0];
  EXPECT_EQ(x.mean, 0.1);
  EXPECT_EQ(x.divisor, 1);
  EXPECT_EQ(x.deviation, 0);
}

TEST_F(Fit, SquaresNeitherOverflowNorVanish) {
  for (double size : {1e200, 1.7e308, 1e154, 3e-162, 1e-200, 1e-307}) {
    columns_job();
    rows_ = {{size}, {-size}};
    EXPECT_EQ(run()[0][0].mean, 0);
    EXPECT_EQ(run()[0][0].deviation, size);
    EXPECT_EQ(run()[0][0].divisor, size);
  }
  rows_ = {{1e-200}, {3e-200}};
  const Standardization tiny = run()[0][0];
  EXPECT_EQ(tiny.mean, 2e-200);
  EXPECT_NEAR(tiny.deviation / 1e-200, 1, 1e-15);
}

TEST_F(Fit, TheSmallestNumbersOfAllHaveAMeanAndADivisor) {
  columns_job();
  double least = std::numeric_limits<double>::denorm_min();
  rows_ = {{0}, {4 * least}};
  EXPECT_EQ(run()[0][0].mean, 2 * least);
  EXPECT_EQ(run()[0][0].divisor, 2 * least);
  rows_.assign(1000, {0});
  rows_[0][0] = least;
  EXPECT_EQ(run()[0][0].deviation, 0);
  EXPECT_EQ(run()[0][0].divisor, 1);
}

TEST_F(Fit, TheSumForTheMeanDoesNotOverflow) {
  columns_job();
  double largest = std::numeric_limits<double>::max();
  rows_ = {{1.7e308}, {1.5e308}, {1.6e308}, {1.6e308}};
  const Standardization x = run()[0][0];
  EXPECT_DOUBLE_EQ(x.mean, 1.6e308);
  EXPECT_NEAR(x.deviation / 1e307, std::sqrt(0.5), 1e-13);
  rows_ = {{largest}, {largest}, {std::nextafter(largest, 0)}};
  EXPECT_LE(run()[0][0].mean, largest);
  rows_ = {{1e308, 5}, {1e308, 6}, {1e308, 7}};  // and its neighbour's
  job(R"({"t": {"columns": ["x", "y"], "standardize": true}})");
  EXPECT_EQ(run()[0][0].mean, 1e308);
  EXPECT_EQ(run()[0][1].mean, 6);
}

TEST_F(Fit, AScaleChangesNoBit) {
  columns_job();
  for (double size : {1e-120, 1e-30, 1.0, 3e7, 1e30, 1e120}) {
    Random random(2, 0, 0, 0);
    rows_.clear();
    for (int i = 0; i < 3000; ++i)
      rows_.push_back(
          {size * (random.uniform() - 0.3) * std::exp(30 * random.uniform())});
    auto in_blocks = [&](auto part) {
      double total = 0;
      for (std::size_t start = 0; start < rows_.size(); start += 1024) {
        double block = 0;
        for (std::size_t id = start; id < std::min(start + 1024, rows_.size());
             ++id)
          block += part(rows_[id][0]);
        total += block;
      }
      return total / static_cast<double>(rows_.size());
    };
    double mean = in_blocks([](double value) { return value; });
    double square = in_blocks(
        [&](double value) { return (value - mean) * (value - mean); });
    EXPECT_EQ(run()[0][0].mean, mean) << size;
    EXPECT_EQ(run()[0][0].deviation, std::sqrt(square)) << size;
  }
}

TEST_F(Fit, SumsRunInBlocksOf1024Ids) {
  columns_job();
  Random random(1, 0, 0, 0);
  for (int i = 0; i < 5000; ++i)
    rows_.push_back({std::exp(20 * random.uniform())});
  held_out_ = [](SampleId id) { return id % 7 == 0; };
  double total = 0, one_run = 0;
  std::int64_t count = 0;
  for (std::size_t start = 0; start < rows_.size(); start += 1024) {
    double block = 0;
    for (std::size_t id = start; id < std::min(start + 1024, rows_.size());
         ++id) {
      if (id % 7 == 0) continue;
      block += rows_[id][0];
      one_run += rows_[id][0];
      ++count;
    }
    total += block;
  }
  ASSERT_NE(total, one_run);  // the order shows
  const Standardization x = run()[0][0];
  EXPECT_EQ(x.mean, total / static_cast<double>(count));
  double squares = 0;
  for (std::size_t start = 0; start < rows_.size(); start += 1024) {
    double block = 0;
    for (std::size_t id = start; id < std::min(start + 1024, rows_.size());
         ++id)
      if (id % 7 != 0)
        block += (rows_[id][0] - x.mean) * (rows_[id][0] - x.mean);
    squares += block;
  }
  EXPECT_EQ(x.deviation, std::sqrt(squares / static_cast<double>(count)));
}

TEST_F(Fit, BooleansAreNeverStandardised) {
  job(R"({"r": {"json_set": {"column": "c", "keys": ["a"], "max": 9},
                "standardize": true},
          "t": {"columns": ["x", "y"], "standardize": true}})");
  notes_[0]->keys[0] = {.boolean_row = "3"};
  booleans_ = {{}, {true, false}};
  rows_ = {{1, 1, 1, 5}, {2, 0, kMissing, 0, 7}};
  auto fitted = run();
  for (const Standardization& standard : {fitted[0][0], fitted[1][0]}) {
    EXPECT_TRUE(standard.boolean);
    EXPECT_FALSE(standard.standardize);
    EXPECT_EQ(standard.mean, 0);
    EXPECT_EQ(standard.divisor, 1);
  }
  EXPECT_EQ(fitted[0][0].missing, 1);
  EXPECT_EQ(fitted[1][1].mean, 6);
}

TEST_F(Fit, NothingIsShiftedWhereNothingIsStandardised) {
  job(R"({"t": {"columns": ["x"], "dtype": "float64"},
          "n": {"columns": ["i"], "dtype": "int64"}})");
  std::int64_t all_ones = -1;  // the bits of a NaN
  rows_ = {{5, std::bit_cast<double>(all_ones)}, {7, 0}};
  auto fitted = run();
  EXPECT_EQ(fitted[0][0].mean, 0);
  EXPECT_EQ(fitted[0][0].count, 2);
  EXPECT_EQ(fitted[1][0].count, 2);
  EXPECT_EQ(fitted[1][0].missing, 0);
}

TEST_F(Fit, NumbersMixedWithBooleansAreAnErrorThatNamesOneRowOfEach) {
  set_job();
  notes_[0]->keys[1] = {"42", "'abc'"};
  std::string text;
  EXPECT_EQ(error_code(ErrorKind::transform, &text), "transform.mixed_types");
  EXPECT_THAT(text, AllOf(HasSubstr("field 'r', key 'b'"),
                          HasSubstr("key 42 holds a number"),
                          HasSubstr("key 'abc' a boolean")));
}

TEST_F(Fit, ADistanceBeyondFloat64IsAnError) {
  columns_job();
  rows_ = {{1.7e308}, {-1.7e308}, {-1.7e308}};
  std::string text;
  EXPECT_EQ(error_code(ErrorKind::transform, &text), "transform.range");
  EXPECT_THAT(text, AllOf(HasSubstr("column 'x'"), HasSubstr("1.7e+308")));
}

TEST_F(Fit, AKeyToSortByIsNoMixtureEither) {
  job(R"({"r": {"json_set": {"column": "c", "keys": ["a"], "max": 9,
                "overflow": "strongest", "sort_by": "s"}}})");
  rows_ = {{1, 5}};
  notes_[0]->keys = {{.number_row = "1"}, {.number_row = "4"}};
  EXPECT_EQ(error_code(ErrorKind::transform), "no error");
  notes_[0]->keys[1] = {"42", "43"};
  std::string text;
  EXPECT_EQ(error_code(ErrorKind::transform, &text), "transform.mixed_types");
  EXPECT_THAT(text, AllOf(HasSubstr("field 'r', key 's'"),
                          HasSubstr("key 42 holds a number")));
}

TEST_F(Fit, ComesBackFromJsonBitForBit) {
  job(R"({"r": {"json_set": {"column": "c", "keys": ["a", "b"], "max": 9},
                "standardize": true},
          "t": {"columns": ["x"]}})");
  notes_[0]->keys[1] = {.boolean_row = "1"};
  rows_ = {{1, 0.1, 1, 3}, {1, 0.7, 0, 4}, {1, kMissing, 0, 4}};
  auto fitted = run();
  for (std::size_t f = 0; f < 2; ++f) {
    auto back =
        standardizations_from(Json::parse(statistics_[f].dump(2), "test"));
    ASSERT_EQ(back.size(), fitted[f].size());
    for (std::size_t i = 0; i < fitted[f].size(); ++i) {
      const Standardization &ours = fitted[f][i], &theirs = back[i];
      EXPECT_EQ(ours.name, theirs.name);
      EXPECT_EQ(ours.boolean, theirs.boolean);
      EXPECT_EQ(ours.standardize, theirs.standardize);
      EXPECT_EQ(ours.mean, theirs.mean);
      EXPECT_EQ(ours.deviation, theirs.deviation);
      EXPECT_EQ(ours.divisor, theirs.divisor);
      EXPECT_EQ(ours.count, theirs.count);
      EXPECT_EQ(ours.missing, theirs.missing);
    }
  }
}

TEST_F(Fit, ADamagedOrForeignJsonIsRefused) {
  columns_job();
  rows_ = {{1}, {2}};
  run();
  auto error = [&](const Json& from) {
    try {
      bound_to_float64(fields_)[0]->encoder(from, "statistics.t");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::request);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(error(statistics_[0]), "no error");
  Json damaged = statistics_[0];
  damaged["x"]["divisor"] = 0.0;
  EXPECT_THAT(error(damaged), HasSubstr("statistics.t.x.divisor"));
  Json foreign = statistics_[0];
  foreign["u"] = 3;
  EXPECT_THAT(error(foreign), HasSubstr("statistics.t.u"));
  EXPECT_THAT(error(Json(Json::Object{})), HasSubstr("statistics.t.x"));
}

}  // namespace
}  // namespace penstock
