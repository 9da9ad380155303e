#include "penstock/base/json.h"

#include <gtest/gtest.h>

#include <cmath>

#include "penstock/base/error.h"

namespace penstock {
namespace {

TEST(Json, KeepsTheOrderOfKeysAndComesBackTheSame) {
  std::string text = R"({"z": [1, 2.5, true, null], "a": {"x": "ü\"\n"}})";
  Json json = Json::parse(text, "test");
  EXPECT_EQ(Json::parse(json.dump(), "test"), json);
  EXPECT_EQ(Json::parse(json.dump(2), "test"), json);
  EXPECT_LT(json.dump().find("\"z\""), json.dump().find("\"a\""));
}

TEST(Json, WritesDoublesSoThatTheyComeBackExactly) {
  for (double value : {0.1, 1e300, -2.0, 5e-324, 1.0 / 3})
    EXPECT_EQ(Json::parse(Json(value).dump(), "test").number(), value);
}

TEST(Json, WritesWhatIsNotFiniteAsNull) {
  EXPECT_EQ(Json(std::nan("")).dump(), "null");
  EXPECT_EQ(Json(HUGE_VAL).dump(), "null");
}

TEST(Json, RefusesANumberBeyondADouble) {
  try {
    Json::parse(R"({"lr": -720E518})", "job.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "json.syntax");
    EXPECT_NE(error.parts().why.find("too large"), std::string::npos);
  }
}

TEST(Json, RefusesNestingThatWouldExhaustTheStack) {
  EXPECT_NO_THROW(
      Json::parse(std::string(200, '[') + std::string(200, ']'), "x"));
  try {
    Json::parse(std::string(1000000, '['), "job.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.parts().why.find("200 levels"), std::string::npos);
  }
}

TEST(Json, NamesLineAndColumnOfASyntaxError) {
  try {
    Json::parse("{\n  \"a\": 1,\n  \"b\" 2\n}", "job.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_NE(error.parts().where.find("line 3"), std::string::npos);
    EXPECT_NE(error.parts().what.find("job.json"), std::string::npos);
  }
}

TEST(Json, AddsMembersAndItems) {
  Json json;
  json["a"]["b"] = 1;
  json["list"].push_back("x");
  EXPECT_EQ(json.dump(), R"({"a": {"b": 1}, "list": ["x"]})");
  EXPECT_EQ(json.find("nothing"), nullptr);
}

}  // namespace
}  // namespace penstock
