// FastJson against ReferenceJson: on the golden rows, on generated ones, and
// on thousands of damaged copies of both. What the fast parser accepts must be
// the same to the last bit; what it need not decline it must accept.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "penstock/base/random.h"
#include "penstock/transforms/fake/golden_rows.h"
#include "penstock/transforms/json_set/json_fast.h"
#include "penstock/transforms/json_set/json_grammar.h"
#include "penstock/transforms/json_set/json_reference.h"

namespace penstock {
namespace {

JsonSet receivers_set() {
  JsonSet set{.column = "receivers", .max = 10};
  set.keys = {"snr_db", "freq_offset_hz", "lat",  "lon",
              "alt_m",  "signal_present", "größe"};
  set.required = {"station"};
  return set;
}

class Pair {
 public:
  /// Whether the fast parser accepted; checks it against the reference.
  bool check(const std::string& text) {
    // An own buffer of exactly the promised size: a sanitizer sees each byte
    // beyond it.
    std::size_t size = text.size();
    auto buffer = std::make_unique<char[]>(size + FastJson::kReadsBehind);
    std::memcpy(buffer.get(), text.data(), size);
    // What lies behind continues the text in the worst way.
    for (std::size_t i = 0; i < FastJson::kReadsBehind; ++i)
      buffer[size + i] = "5]}\"e 9,"[(i + size) % 8];
    if (!fast_.parse({buffer.get(), size}, ours_)) return false;
    auto fault = reference_.parse(text, theirs_);
    EXPECT_FALSE(fault) << fault->why << "\n" << text;
    EXPECT_EQ(ours_.count, theirs_.count) << text;
    if (fault || ours_.count != theirs_.count) return true;
    std::size_t places = ours_.count * ours_.slots;
    EXPECT_EQ(std::memcmp(ours_.held.data(), theirs_.held.data(), places), 0)
        << text;
    EXPECT_EQ(
        std::memcmp(ours_.values.data(), theirs_.values.data(), 8 * places), 0)
        << text;
    return true;
  }

  bool reference_accepts(const std::string& text) {
    return !reference_.parse(text, theirs_);
  }

 private:
  KeySlots slots_{receivers_set()};
  FastJson fast_{slots_};
  ReferenceJson reference_{slots_};
  Elements ours_{slots_.names.size()}, theirs_{slots_.names.size()};
};

std::string some_number(Random& random) {
  switch (random.below(8)) {
    case 0:
      return std::to_string(random.below(100));
    case 1:
      return "-" + std::to_string(random.below(1000)) + "." +
             std::to_string(random.below(1000));
    case 2:
      return "0.000" + std::to_string(random.next());
    case 3:
      return std::to_string(random.next());
    case 4:
      return "1e-" + std::to_string(random.below(20));
    default:
      return Json(90 * (random.uniform() - 0.5)).dump();
  }
}

std::string some_value(Random& random) {
  static const char* kOdd[] = {"null",
                               "true",
                               "false",
                               "-0.0",
                               "[1, {\"lat\": [\"x\"]}]",
                               "{}",
                               "[]",
                               "\"\\ud83d\\ude00 \\\"q\\\" \\n\"",
                               "\"ä 東京 😀\"",
                               "\"plain\""};
  return kOdd[random.below(std::size(kOdd))];
}

// Rows of a table look alike: the same keys and the same white space. One in
// `odd` values is unusual.
std::string generated(Random& random, std::uint64_t odd) {
  static const char* kKeys[] = {"station",        "lat",           "lon",
                                "alt_m",          "größe",         "snr_db",
                                "freq_offset_hz", "signal_present"};
  static const char* kSpaces[] = {"", " ", "\n  "};
  std::string space = kSpaces[random.below(std::size(kSpaces))];
  std::string text = "[";
  auto elements = random.below(6);
  for (std::uint64_t i = 0; i < elements; ++i) {
    text += (i == 0 ? "{" : "," + space + "{");
    bool first = true;
    for (const char* key : kKeys) {
      if (random.below(odd) == 0) continue;
      text += (first ? "\"" : "," + space + "\"") + std::string(key) +
              "\":" + space;
      first = false;
      if (random.below(odd) == 0 && std::strcmp(key, "station") == 0)
        text += some_value(random);
      else if (std::strcmp(key, "station") == 0)
        text += "\"DL" + std::to_string(random.below(1000)) + "\"";
      else if (std::strcmp(key, "signal_present") == 0)
        text += random.below(2) == 0 ? "true" : "false";
      else
        text += random.below(odd) == 0 ? "null" : some_number(random);
      if (random.below(odd) == 0)
        text += "," + space + "\"extra\":" + space + some_value(random);
    }
    text += space + "}";
  }
  return text + "]";
}

std::string damaged(std::string text, Random& random) {
  static const std::string kBytes =
      "{}[]\",:0123456789.-+eE\\ \n\t\"tfnu\x01\x7f\x80\xc3\xa4\xff";
  auto changes = 1 + random.below(3);
  for (std::uint64_t i = 0; i < changes && !text.empty(); ++i) {
    auto at = static_cast<std::size_t>(random.below(text.size()));
    char byte = kBytes[random.below(kBytes.size())];
    switch (random.below(6)) {
      case 0:
        text.erase(at, 1 + random.below(4));
        break;
      case 1:
        text.insert(at, 1, byte);
        break;
      case 2:
        text.resize(at);
        break;
      case 3:  // a piece twice
        text.insert(at,
                    text.substr(random.below(text.size()), random.below(60)));
        break;
      case 4:
        text.insert(at, "\"lat\":3,");
        break;
      default:
        text[at] = byte;
    }
  }
  return text;
}

TEST(FastJson, ReadsTheGoldenRowsLikeTheReference) {
  Pair pair;
  for (int round = 0; round < 3; ++round)
    for (const std::string& text : golden_texts()) {
      bool accepted = pair.check(text);
      // Escaped keys are the reference's; all else is ours.
      EXPECT_EQ(accepted, text.find("\\u0073") == std::string::npos) << text;
    }
}

TEST(FastJson, ReadsGeneratedRowsLikeTheReference) {
  Pair pair;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    Random random(1, 0, i, 0);
    std::string text = generated(random, 3 + i % 40);
    EXPECT_TRUE(pair.check(text)) << text;
  }
}

TEST(FastJson, NeverAcceptsWhatTheReferenceDoesNot) {
  Pair pair;
  std::vector<std::string> golden = golden_texts();
  int accepted = 0, refused = 0;
  for (std::uint64_t i = 0; i < 40000; ++i) {
    Random random(2, 0, i, 0);
    std::string text =
        i % 4 == 0 ? golden[i / 4 % golden.size()] : generated(random, 12);
    (pair.check(damaged(text, random)) ? accepted : refused) += 1;
  }
  EXPECT_GT(accepted, 2000);
  EXPECT_GT(refused, 2000);
}

TEST(FastJson, AcceptsMixedSpacingAndDeclinesDeepNesting) {
  Pair pair;
  EXPECT_TRUE(pair.check(R"([{"lat":1,"lon":2}])"));
  EXPECT_TRUE(pair.check(R"([{"lat": 1,"lon":  2},{"lat":1 , "lon":2 } ])"));
  EXPECT_TRUE(pair.check(" [ ] "));
  EXPECT_TRUE(pair.check("[{ },{}]"));
  auto nested = [](std::size_t levels) {
    return R"([{"x":)" + std::string(levels - 2, '[') +
           std::string(levels - 2, ']') + "}]";
  };
  EXPECT_TRUE(pair.check(nested(64)));
  EXPECT_FALSE(pair.check(nested(65)));
  EXPECT_FALSE(pair.check(R"([{"x":)" + std::string(5'000'000, '[')));
}

TEST(FastJson, SurvivesEveryTruncation) {
  Pair pair;
  Random random(3, 0, 0, 0);
  std::string text = generated(random, 5) + golden_texts()[0];
  for (std::size_t size = 0; size < text.size(); ++size)
    pair.check(text.substr(0, size));
}

TEST(FastJson, LearnsManyKeysAndLongOnes) {
  Pair pair;
  for (int round = 0; round < 3; ++round) {
    std::string text = "[{\"lat\":1";
    for (int i = 0; i < 80; ++i)
      text += ",\"k" + std::string(static_cast<std::size_t>(i), 'x') +
              "\":" + std::to_string(i);
    EXPECT_TRUE(pair.check(text + ",\"lon\":2}]"));
  }
}

// The grammar decides what is JSON; here an independent parser agrees.
TEST(Grammar, AgreesWithAnotherParser) {
  for (std::uint64_t i = 0; i < 20000; ++i) {
    Random random(4, 0, i, 0);
    std::string text = damaged(generated(random, 12), random);
    // The other one refuses half a surrogate pair, which RFC 8259 allows.
    if (text.find("\\u") != std::string::npos) continue;
    bool accepted = true;
    try {
      nlohmann::json parsed = nlohmann::json::parse(text);
    } catch (const nlohmann::json::parse_error&) {
      accepted = false;
    } catch (const nlohmann::json::out_of_range&) {
      continue;  // a number beyond double, which is JSON all the same
    }
    EXPECT_EQ(!fault_of_json(text).has_value(), accepted) << text;
  }
}

}  // namespace
}  // namespace penstock
