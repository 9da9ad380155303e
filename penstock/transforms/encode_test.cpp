#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "penstock/base/error.h"
#include "penstock/transforms/fake/runs.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

class Encode : public testing::Test {
 protected:
  void job(const std::string& section) {
    fields_ = parse_fields(Json::parse(section, "test"), "fields");
    layout_ = layout_of(fields_);
    numbers_.clear();
    for (const Field& field : fields_) {
      auto& numbers = numbers_.emplace_back();
      const FieldFacts& facts = field.kind->facts();
      for (const std::string& name :
           facts.set ? facts.set->keys : facts.numbers->columns)
        numbers.push_back({.name = name});
    }
  }
  void standard(std::size_t field, std::size_t at, double mean,
                double divisor) {
    Standardization& number = numbers_[field][at];
    number.standardize = true;
    number.mean = mean;
    number.divisor = divisor;
  }
  /// Encodes one row of all fields.
  void run(const std::vector<double>& raw) {
    bytes_.assign(layout_.row_bytes, std::byte{0xdb});
    faults_.rows.clear();
    auto bound = bound_to_float64(fields_);
    std::size_t tensor = 0;
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      ValueRow row = std::as_bytes(parts_of_run(fields_, raw)[f]);
      bound[f]
          ->encoder(json_of(numbers_[f]), "statistics")
          ->encode({&row, 1},
                   {bytes_.data() + layout_.tensors[tensor].offset,
                    layout_.row_bytes},
                   faults_);
      tensor += fields_[f].kind->facts().stored.tensors.size();
    }
  }
  template <class T>
  std::vector<T> tensor(std::size_t at) const {
    const TensorSpec& spec = layout_.tensors[at];
    std::vector<T> values(spec.bytes / sizeof(T));
    std::memcpy(values.data(), bytes_.data() + spec.offset, spec.bytes);
    return values;
  }
  /// What is wrong with a row, in one text.
  std::string error_of(const std::vector<double>& raw) {
    run(raw);
    if (faults_.rows.empty()) return "no error";
    const RowFault& fault = faults_.rows[0];
    return fault.what + ": " + fault.place + ": " + fault.why + "; " +
           fault.next;
  }

  std::vector<Field> fields_;
  RowLayout layout_;
  std::vector<std::vector<Standardization>> numbers_;
  std::vector<std::byte> bytes_;
  Faults faults_;
};

TEST_F(Encode, PadsSetsWithZerosAndMasksWhatIsPresent) {
  job(R"({"r": {"json_set": {"column": "c", "keys": ["a", "b"], "max": 3}}})");
  run({2, 1, 2, kMissing, 0.1});
  EXPECT_THAT(tensor<float>(0), ElementsAre(1, 2, 0, 0.1f, 0, 0));
  EXPECT_THAT(tensor<float>(1), ElementsAre(1, 1, 0));
  EXPECT_TRUE(faults_.rows.empty());
}

TEST_F(Encode, AnEmptySetIsAllPadding) {
  job(R"({"r": {"json_set": {"column": "c", "keys": ["a"], "max": 2,
                             "min": 0}}})");
  run({0});
  EXPECT_THAT(tensor<float>(0), ElementsAre(0, 0));
  EXPECT_THAT(tensor<float>(1), ElementsAre(0, 0));
}

TEST_F(Encode, StandardisesInFloat64AndRoundsOnce) {
  job(R"({"r": {"json_set": {"column": "c", "keys": ["a", "b"], "max": 2},
                "standardize": true}})");
  standard(0, 0, 1e9, 3);
  run({2, 1e9 + 1, 5, kMissing, 7});
  EXPECT_THAT(tensor<float>(0),
              ElementsAre(static_cast<float>(1.0 / 3), 5, 0, 7));
}

TEST_F(Encode, WritesEveryDtype) {
  job(R"({"f": {"columns": ["x"]},
          "d": {"columns": ["y"], "dtype": "float64", "standardize": true},
          "n": {"columns": ["i", "j"], "dtype": "int64"}})");
  standard(1, 0, 0.5, 3);
  run({0.1, 0.6, std::bit_cast<double>(std::int64_t{-1}),
       std::bit_cast<double>(std::int64_t{9007199254740993})});
  EXPECT_THAT(tensor<float>(0), ElementsAre(0.1f));
  EXPECT_THAT(tensor<double>(1), ElementsAre((0.6 - 0.5) / 3));
  EXPECT_THAT(tensor<std::int64_t>(2), ElementsAre(-1, 9007199254740993));
}

TEST_F(Encode, TheFieldBehindAShortSetIsFound) {
  job(R"({"r": {"json_set": {"column": "c", "keys": ["a"], "max": 9}},
          "t": {"columns": ["x"]}})");
  run({1, 5, 6});
  EXPECT_THAT(tensor<float>(2), ElementsAre(6));
}

TEST_F(Encode, WhatRoundsToNegativeZeroIsZero) {
  job(R"({"t": {"columns": ["x"]}})");
  run({-1e-300});
  EXPECT_FALSE(std::signbit(tensor<float>(0)[0]));
}

TEST_F(Encode, AValueBeyondFloat32NamesItsFieldAndKey) {
  job(R"({"r": {"json_set": {"column": "c", "keys": ["a", "b"], "max": 3}}})");
  EXPECT_THAT(error_of({2, 1, 2, 3, -1e39}),
              AllOf(HasSubstr("float32"), HasSubstr("field 'r', key 'b'"),
                    HasSubstr("key 'b': found -1e+39")));
}

TEST_F(Encode, TheRangeIsCheckedAfterStandardising) {
  job(R"({"t": {"columns": ["x"], "standardize": true}})");
  standard(0, 0, 0, 1e300);
  run({1e300});
  EXPECT_THAT(tensor<float>(0), ElementsAre(1));
  standard(0, 0, 0, 0x1p-300);
  EXPECT_THAT(error_of({1}), AllOf(HasSubstr("column 'x'"),
                                   HasSubstr("e+90 after standardising")));
}

TEST_F(Encode, AValueBeyondFloat64IsRefusedToo) {
  job(R"({"t": {"columns": ["x"], "dtype": "float64", "standardize": true}})");
  standard(0, 0, -1.7e308, 1);
  EXPECT_THAT(error_of({1.7e308}),
              AllOf(HasSubstr("float64"), HasSubstr("infinite")));
}

TEST_F(Encode, TheLargestFloat32Fits) {
  job(R"({"t": {"columns": ["x"]}})");
  double largest = static_cast<double>(std::numeric_limits<float>::max());
  run({largest});
  EXPECT_EQ(tensor<float>(0)[0], std::numeric_limits<float>::max());
  EXPECT_NE(error_of({largest * (1 + 1e-7)}), "no error");
}

}  // namespace
}  // namespace penstock
