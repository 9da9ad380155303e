#include "penstock/base/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/base/error.h"

namespace penstock {
namespace {

using testing::HasSubstr;

template <class Act>
std::string error_of(Act act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    return error.what();
  }
  return "no error";
}

const Json kLoader = Json::parse(
    R"({"batch_size": 64, "tail": "dorp", "ratio": "half", "list": [1],
        "flag": 1, "nothing": null})",
    "test");

TEST(Spec, GivesValuesAndDefaults) {
  Spec spec(kLoader, "loader");
  EXPECT_EQ(spec.integer("batch_size", 256, 1, 1024), 64);
  EXPECT_EQ(spec.integer("workers", 2, 0, 8), 2);
  EXPECT_EQ(spec.number("batch_size", {}, 0, 100), 64.0);
  EXPECT_EQ(spec.text("nothing", "x"), "x");
  EXPECT_TRUE(spec.boolean("shuffle", true));
  EXPECT_TRUE(spec.texts("required").empty());
  EXPECT_FALSE(spec.has("nothing"));
}

TEST(Spec, NamesThePathTheValueAndWhatWasExpected) {
  Spec spec(kLoader, "loader");
  EXPECT_THAT(error_of([&] { spec.integer("batch_size", 1, 1, 32); }),
              HasSubstr("loader.batch_size: found 64, expected 1 to 32"));
  EXPECT_THAT(error_of([&] {
                spec.choice("tail", "drop", {"drop", "pad"});
              }),
              HasSubstr("found \"dorp\", expected one of: drop, pad"));
  EXPECT_THAT(error_of([&] { spec.number("ratio", 1, 0, 1); }),
              HasSubstr("found \"half\", expected a number"));
  EXPECT_THAT(error_of([&] { spec.texts("list"); }), HasSubstr("loader.list"));
  EXPECT_THAT(error_of([&] { spec.boolean("flag", true); }),
              HasSubstr("true or false"));
  EXPECT_THAT(error_of([&] { spec.text("path"); }),
              HasSubstr("loader.path: it is missing"));
  EXPECT_THAT(error_of([&] { spec.section("tail"); }),
              HasSubstr("expected an object"));
}

TEST(Spec, RefusesAnUnknownKeyAndNamesTheNearest) {
  Json json = Json::parse(R"({"batchsize": 1})", "test");
  Spec spec(json, "loader");
  spec.integer("batch_size", 1, 1, 8);
  spec.integer("seed", 0, 0, 8);
  EXPECT_THAT(error_of([&] { spec.finish(); }),
              HasSubstr("did you mean 'batch_size'?"));
}

}  // namespace
}  // namespace penstock
