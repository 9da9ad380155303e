#include "penstock/transforms/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "penstock/base/error.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

class Pack : public testing::Test {
 protected:
  void job(const std::string& section) {
    fields_ = parse_fields(Json::parse(section, "test"), "fields");
    layout_ = layout_of(fields_);
    fitted_.fields.clear();
    for (const Field& field : fields_) {
      auto& standards = fitted_.fields.emplace_back();
      for (const std::string& name : field.json_set() != nullptr
                                         ? field.json_set()->keys
                                         : field.columns()->columns)
        standards.push_back({.name = name});
    }
  }
  void standard(std::size_t field, std::size_t at, double mean,
                double divisor) {
    Standard& standard = fitted_.fields[field][at];
    standard.standardize = true;
    standard.mean = mean;
    standard.divisor = divisor;
  }
  void run(const std::vector<double>& raw) {
    bytes_.assign(layout_.row_bytes, std::byte{0xdb});
    pack_row(fields_, layout_, fitted_, raw, bytes_.data(), [this] {
      ++asked_;
      return std::string("row 42");
    });
  }
  template <class T>
  std::vector<T> tensor(std::size_t at) const {
    const TensorSpec& spec = layout_.tensors[at];
    std::vector<T> values(spec.bytes / sizeof(T));
    std::memcpy(values.data(), bytes_.data() + spec.offset, spec.bytes);
    return values;
  }
  std::string error_of(const std::vector<double>& raw) {
    try {
      run(raw);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::transform);
      EXPECT_EQ(error.parts().code, "transform.range");
      EXPECT_EQ(asked_, 1);
      return error.what();
    }
    return "no error";
  }

  std::vector<Field> fields_;
  RowLayout layout_;
  Fitted fitted_;
  std::vector<std::byte> bytes_;
  int asked_ = 0;
};

TEST_F(Pack, PadsSetsWithZerosAndMasksWhatIsPresent) {
  job(R"({"r": {"json_set": {"column": "c", "keys": ["a", "b"], "max": 3}}})");
  run({2, 1, 2, kMissing, 0.1});
  EXPECT_THAT(tensor<float>(0), ElementsAre(1, 2, 0, 0.1f, 0, 0));
  EXPECT_THAT(tensor<float>(1), ElementsAre(1, 1, 0));
  EXPECT_EQ(asked_, 0);
}

TEST_F(Pack, AnEmptySetIsAllPadding) {
  job(R"({"r": {"json_set": {"column": "c", "keys": ["a"], "max": 2,
                             "min": 0}}})");
  run({0});
  EXPECT_THAT(tensor<float>(0), ElementsAre(0, 0));
  EXPECT_THAT(tensor<float>(1), ElementsAre(0, 0));
}

TEST_F(Pack, StandardisesInFloat64AndRoundsOnce) {
  job(R"({"r": {"json_set": {"column": "c", "keys": ["a", "b"], "max": 2},
                "standardize": true}})");
  standard(0, 0, 1e9, 3);
  run({2, 1e9 + 1, 5, kMissing, 7});
  EXPECT_THAT(tensor<float>(0),
              ElementsAre(static_cast<float>(1.0 / 3), 5, 0, 7));
}

TEST_F(Pack, WritesEveryDtype) {
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

TEST_F(Pack, TheFieldBehindAShortSetIsFound) {
  job(R"({"r": {"json_set": {"column": "c", "keys": ["a"], "max": 9}},
          "t": {"columns": ["x"]}})");
  run({1, 5, 6});
  EXPECT_THAT(tensor<float>(2), ElementsAre(6));
}

TEST_F(Pack, WhatRoundsToNegativeZeroIsZero) {
  job(R"({"t": {"columns": ["x"]}})");
  run({-1e-300});
  EXPECT_FALSE(std::signbit(tensor<float>(0)[0]));
}

TEST_F(Pack, AValueBeyondFloat32NamesItsFieldKeyAndRow) {
  job(R"({"r": {"json_set": {"column": "c", "keys": ["a", "b"], "max": 3}}})");
  EXPECT_THAT(error_of({2, 1, 2, 3, -1e39}),
              AllOf(HasSubstr("float32"), HasSubstr("field 'r', key 'b'"),
                    HasSubstr("key 'b', row 42: found -1e+39")));
}

TEST_F(Pack, TheRangeIsCheckedAfterStandardising) {
  job(R"({"t": {"columns": ["x"], "standardize": true}})");
  standard(0, 0, 0, 1e300);
  run({1e300});
  EXPECT_THAT(tensor<float>(0), ElementsAre(1));
  standard(0, 0, 0, 0x1p-300);
  EXPECT_THAT(error_of({1}), AllOf(HasSubstr("column 'x'"),
                                   HasSubstr("e+90 after standardising")));
}

TEST_F(Pack, AValueBeyondFloat64IsRefusedToo) {
  job(R"({"t": {"columns": ["x"], "dtype": "float64", "standardize": true}})");
  standard(0, 0, -1.7e308, 1);
  EXPECT_THAT(error_of({1.7e308}),
              AllOf(HasSubstr("float64"), HasSubstr("infinite")));
}

TEST_F(Pack, TheLargestFloat32Fits) {
  job(R"({"t": {"columns": ["x"]}})");
  double largest = static_cast<double>(std::numeric_limits<float>::max());
  run({largest});
  EXPECT_EQ(tensor<float>(0)[0], std::numeric_limits<float>::max());
  EXPECT_NE(error_of({largest * (1 + 1e-7)}), "no error");
}

}  // namespace
}  // namespace penstock
