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

TEST(Json, WritesEveryCharacterSoThatItComesBack) {
  EXPECT_EQ(Json("plain: ~ {}").dump(), R"("plain: ~ {}")");
  EXPECT_EQ(Json("a\"b\\c\n\x01").dump(), R"("a\"b\\c\n\u0001")");
  EXPECT_EQ(Json("\x7f").dump(), "\"\x7f\"");
  EXPECT_EQ(Json("\xff").dump(), "\"\ufffd\"");
  for (int c = 0; c < 128; ++c) {
    const std::string text = "x" + std::string(1, static_cast<char>(c)) + "y";
    EXPECT_EQ(Json::parse(Json(text).dump(), "test").string(), text) << c;
  }
}

TEST(Json, WritesDoublesSoThatTheyComeBackExactly) {
  for (double value : {0.1, 1e300, -2.0, 5e-324, 1.0 / 3})
    EXPECT_EQ(Json::parse(Json(value).dump(), "test").number(), value);
}

TEST(Json, WritesWhatIsNotFiniteAsNull) {
  EXPECT_EQ(Json(std::nan("")).dump(), "null");
  EXPECT_EQ(Json(HUGE_VAL).dump(), "null");
}

/// What is wrong with a text, and where.
ErrorParts fault_of(const std::string& text) {
  try {
    Json::parse(text, "job.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_EQ(error.parts().code, "json.syntax");
    EXPECT_NE(error.parts().what.find("job.json"), std::string::npos);
    EXPECT_FALSE(error.parts().next.empty());
    return error.parts();
  }
  return {};
}

TEST(Json, RefusesANumberBeyondADouble) {
  ErrorParts fault = fault_of("{\n \"lr\": -720E518, \"a\": 1}");
  EXPECT_EQ(fault.where, "line 2, column 8");
  EXPECT_NE(fault.why.find("too large"), std::string::npos);
}

TEST(Json, RefusesAnIntegerBeyond64BitsAsItIsWritten) {
  for (const char* written :
       {"18446744073709551615", "9223372036854775808", "-9223372036854775809",
        "99999999999999999999999"}) {
    ErrorParts fault = fault_of("[1,\n" + std::string(written) + "," +
                                std::string(written) + "]");
    EXPECT_EQ(fault.where, "line 2, column 1");
    EXPECT_EQ(fault.why, "found " + std::string(written) +
                             ", expected an integer from "
                             "-9223372036854775808 to 9223372036854775807");
    EXPECT_EQ(fault_of(written).where, "line 1, column 1");
  }
  EXPECT_EQ(Json::parse("9223372036854775807", "x").integer(), INT64_MAX);
  EXPECT_EQ(Json::parse("-9223372036854775808", "x").integer(), INT64_MIN);
  EXPECT_EQ(Json::parse("1e20", "x").number(), 1e20);
}

TEST(Json, RefusesNestingThatWouldExhaustTheStack) {
  EXPECT_NO_THROW(
      Json::parse(std::string(200, '[') + std::string(200, ']'), "x"));
  ErrorParts fault = fault_of("\n\n" + std::string(1000000, '['));
  EXPECT_NE(fault.why.find("200 levels"), std::string::npos);
  EXPECT_EQ(fault.where, "line 3, column 201");
}

TEST(Json, RefusesAKeyThatIsGivenTwice) {
  ErrorParts fault =
      fault_of("{\"y\": {\"a\": 1},\n \"x\": {\"a\": [2]}, \"y\" : 3}");
  EXPECT_EQ(fault.where, "line 2, column 19");
  EXPECT_EQ(fault.why, "the key \"y\" appears twice in this object");
  EXPECT_EQ(fault_of(R"({"": 1, "": 2})").where, "line 1, column 9");
  EXPECT_EQ(fault_of(R"({"a\"\\": 1, "\u0061\"\\": 2})").where,
            "line 1, column 14");
  EXPECT_EQ(fault_of(R"([{"a": 1}, {"a": 1, "a": null}])").where,
            "line 1, column 21");
}

TEST(Json, RefusesAKeyThatIsGivenTwiceAmongMany) {
  std::string text = "{";
  for (int i = 0; i < 5000; ++i) text += "\"k" + std::to_string(i) + "\": 1,\n";
  EXPECT_EQ(Json::parse(text + "\"k\": 2}", "x").object().size(), 5001u);
  for (int twice : {0, 11, 12, 4999}) {
    const std::string key = "k" + std::to_string(twice);
    ErrorParts fault = fault_of(text + " \"" + key + "\": 2}");
    EXPECT_EQ(fault.where, "line 5001, column 2");
    EXPECT_EQ(fault.why,
              "the key \"" + key + "\" appears twice in this object");
  }
}

TEST(Json, ReadsEscapesAndWhatIsNearlyNothing) {
  EXPECT_EQ(Json::parse(R"("\u00e9\ud83d\ude00\n\/")", "x").string(),
            "\u00e9\U0001f600\n/");
  EXPECT_EQ(Json::parse("1e-400", "x").number(), 0);
  EXPECT_EQ(Json::parse("[-0.0, 5e-324]", "x").array()[1].number(), 5e-324);
  EXPECT_EQ(fault_of(R"(["\ud800x"])").where, "line 1, column 9");
  EXPECT_EQ(fault_of(R"(["\udc00"])").where, "line 1, column 3");
}

TEST(Json, NamesLineAndColumnOfASyntaxError) {
  EXPECT_EQ(fault_of("{\n  \"a\": 1,\n  \"b\" 2\n}").where, "line 3, column 7");
  EXPECT_EQ(fault_of("").where, "line 1, column 1");
  EXPECT_EQ(fault_of("{\"a\": 1").where, "line 1, column 8");
  EXPECT_EQ(fault_of("{\"a\": 1} x").where, "line 1, column 10");
}

TEST(Json, NamesTheStartOfTheWordThatIsWrong) {
  for (auto [text, column] :
       std::initializer_list<std::pair<const char*, const char*>>{
           {R"({"a": nul})", "7"},         {R"({"a": truth, "b": 1})", "7"},
           {R"({"a": falsely})", "7"},     {R"({"a": -x})", "7"},
           {R"({"a": 1.2.3})", "7"},       {R"({"a": 0012})", "7"},
           {R"({"a": 1e+})", "7"},         {R"({"a": .5})", "7"},
           {R"({"a": 'text'})", "7"},      {R"({"a": NaN})", "7"},
           {R"({"a": // why)", "7"},       {R"({"a": "x" "long text"})", "11"},
           {R"({"a": "x" 123456})", "11"}, {R"({"a": "x" true})", "11"},
           {R"({"a": 1,})", "9"},          {R"({"a": [1, 2})", "12"},
           {R"({"a": 1} "more")", "10"},   {R"({abc: 1})", "2"},
           {R"({"a\"b": "c\\" x})", "16"}, {"\xef\xbb\xbf{\"a\": x}", "10"}})
    EXPECT_EQ(fault_of(text).where, "line 1, column " + std::string(column))
        << text;
  EXPECT_EQ(fault_of("{\n  \"a\": 1,\n  \"b\": nothing\n}").where,
            "line 3, column 8");
}

TEST(Json, NamesTheStartOfATextThatIsNotClosed) {
  EXPECT_EQ(fault_of("{\n  \"a\": \"lost,\n  \"b\": 2\n}").where,
            "line 2, column 8");
  EXPECT_EQ(fault_of("{\"a\": \"lost}").where, "line 1, column 7");
  EXPECT_EQ(fault_of("\"\\").where, "line 1, column 1");
  EXPECT_EQ(fault_of("\"").where, "line 1, column 1");
}

TEST(Json, NamesTheCharacterOfATextThatIsBad) {
  EXPECT_EQ(fault_of("[\"\xff\"]").where, "line 1, column 3");
  EXPECT_EQ(fault_of("[\"ab\xc3\"]").where, "line 1, column 5");
  EXPECT_EQ(fault_of("[\"ab\xe2\x82z\"]").where, "line 1, column 5");
  EXPECT_EQ(fault_of("[\"\xf0\x9f\x98\x80\xed\xa0\x80\"]").where,
            "line 1, column 7");
  EXPECT_EQ(fault_of(R"(["ok\n", "C:\data"])").where, "line 1, column 13");
  EXPECT_EQ(fault_of(R"(["\u12g4"])").where, "line 1, column 3");
}

TEST(Json, FindsTheMembersOfALargeObject) {
  Json made;
  for (int i = 0; i < 1000; ++i) made["key" + std::to_string(i)] = i;
  made["key7"] = "changed";
  const Json copy = made;
  const Json parsed = Json::parse(made.dump(), "x");
  Json assigned(1);
  assigned = copy;
  for (const Json& json : {made, copy, parsed, assigned}) {
    ASSERT_EQ(json.object().size(), 1000);
    EXPECT_EQ(json.find("key7")->string(), "changed");
    EXPECT_EQ(json.find("key63")->integer(), 63);
    EXPECT_EQ(json.find("key999")->integer(), 999);
    EXPECT_EQ(json.find("key1000"), nullptr);
    EXPECT_EQ(json.object()[999].first, "key999");
  }
  made = Json(Json::Object{});
  made["key1"] = 2;
  EXPECT_EQ(made.object().size(), 1);
  EXPECT_EQ(made.find("key63"), nullptr);
  EXPECT_EQ(copy.object().size(), 1000);
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
