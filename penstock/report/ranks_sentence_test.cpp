#include "penstock/report/ranks_sentence.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

std::string sentence_of(const std::string& slowest) {
  return ranks_sentence(Json::parse(
      R"({"ranks": {"world": 3, "backend": "gloo", "launcher": "srun",
                    "hosts": ["a", "b", "b"], "slowest": )" +
          slowest + "}}",
      "the test"));
}

TEST(RanksSentence, NamesTheSlowestAndWhatItWaitsFor) {
  EXPECT_EQ(sentence_of(R"({"rank": 2, "host": "b", "cause": "input",
                            "share": 0.12})"),
            "3 ranks on a, b (srun, gradients added by gloo). The others wait "
            "for rank 2 on b 12.0 % of the time: its batches come late.");
  EXPECT_TRUE(sentence_of(R"({"rank": 1, "host": "b", "cause": "processor",
                              "share": 0.5})")
                  .ends_with(": other programs use its processor."));
  EXPECT_EQ(
      sentence_of(R"({"rank": 0, "host": "a", "cause": "compute",
                            "share": 0.5})"),
      "3 ranks on a, b (srun, gradients added by gloo). The others wait "
      "for rank 0 on a 50.0 % of the time: its steps and checkpoints take "
      "longer.");
}

TEST(RanksSentence, OfTheNetworkAllRanksAreSlow) {
  EXPECT_EQ(sentence_of(R"({"rank": null, "host": null, "cause": "network",
                            "share": 0.3})"),
            "3 ranks on a, b (srun, gradients added by gloo). All ranks wait "
            "for the network 30.0 % of the time.");
  EXPECT_EQ(sentence_of("null"),
            "3 ranks on a, b (srun, gradients added by gloo). No rank keeps "
            "the others waiting.");
}

TEST(RanksSentence, ARunOfOneProcessHasNone) {
  EXPECT_EQ(ranks_sentence(Json::parse("{}", "the test")), "");
}

}  // namespace
}  // namespace penstock
