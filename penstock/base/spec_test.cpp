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

TEST(Spec, ReadsASectionAndThenRefusesWhatItDoesNotKnow) {
  struct {
    std::int64_t batch_size = 0;
  } options;
  Json json = Json::parse(R"({"batch_size": 64})", "test");
  Spec spec(json, "loader");
  options.batch_size = spec.integer("batch_size", 256, 1, 1 << 20);
  spec.finish();
  EXPECT_EQ(options.batch_size, 64);
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
              HasSubstr("loader.path: this key is missing"));
  EXPECT_THAT(error_of([&] { spec.section("tail"); }),
              HasSubstr("expected an object"));
}

TEST(Spec, NamesTheRangeToWhomGivesNoInteger) {
  Json json =
      Json::parse(R"({"seed": 2.0, "n": "18446744073709551615"})", "test");
  Spec spec(json, "loader");
  EXPECT_THAT(error_of([&] { spec.integer("seed", 0, 0, INT64_MAX); }),
              HasSubstr("found 2.0, expected an integer from 0 to "
                        "9223372036854775807"));
  EXPECT_THAT(error_of([&] { spec.integer("n", 0, -1, 7); }),
              HasSubstr("found \"18446744073709551615\", expected an integer "
                        "from -1 to 7"));
}

TEST(Spec, ShowsNoSecret) {
  Json json = Json::parse(
      R"({"object": {"password": "SECRET"}, "list": ["a", "SECRET"],
          "inner": [["SECRET"]], "uri": "postgresql://u:SECRET@h/db",
          "pairs": "host=h password='SECRET'",
          "postgresql://u:SECRET@h/db": 1})",
      "test");
  Spec spec(json, "source");
  std::vector<std::string> all;
  for (const char* key : {"object", "list", "inner", "uri", "pairs"}) {
    all.push_back(error_of([&] { spec.integer(key, 0, 0, 1); }));
    all.push_back(error_of([&] { spec.number(key, 0, 0, 1); }));
    all.push_back(error_of([&] { spec.boolean(key, true); }));
  }
  for (const char* key : {"object", "list"})
    all.push_back(error_of([&] { spec.text(key); }));
  for (const char* key : {"object", "inner", "uri"})
    all.push_back(error_of([&] { spec.texts(key); }));
  all.push_back(error_of([&] { spec.choice("uri", "", {"a"}); }));
  all.push_back(error_of([&] { spec.finish(); }));
  for (const std::string& text : all) {
    EXPECT_NE(text, "no error");
    EXPECT_EQ(text.find("SECRET"), std::string::npos) << text;
  }
  EXPECT_THAT(all[0], HasSubstr("source.object: found an object of 1 key,"));
  EXPECT_THAT(all[3], HasSubstr("source.list: found a list of 2 items,"));
  EXPECT_THAT(all[9], HasSubstr("found \"postgresql://u:***@h/db\","));
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
