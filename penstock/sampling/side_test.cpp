#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/sampling/sampling.h"

namespace penstock {
namespace {

using testing::HasSubstr;

Split parsed(std::string_view text) {
  Json section = Json::parse(text, "test");
  return parse_split(&section, "split");
}

std::string error_of(std::string_view text) {
  try {
    parsed(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    return error.what();
  }
  return "no error";
}

std::string row(int i) { return "row " + std::to_string(i); }

TEST(Split, MissingMeansThatEverythingIsTrain) {
  Split split = parse_split(nullptr, "split");
  EXPECT_EQ(split.train, 1.0);
  EXPECT_EQ(split.val, 0.0);
  EXPECT_EQ(parsed("null").train, 1.0);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(side_of(split, row(i)), Side::train);
}

TEST(Split, ReadsItsSection) {
  Split split =
      parsed(R"({"train": 0.7, "val": 0.2, "seed": 9, "by": "session"})");
  EXPECT_EQ(split.train, 0.7);
  EXPECT_EQ(split.val, 0.2);
  EXPECT_EQ(split.seed, 9u);
  EXPECT_EQ(split.by, "session");
}

TEST(Split, GivesTrainWhatValLeaves) {
  EXPECT_EQ(parsed(R"({"val": 0.1})").train, 0.9);
  EXPECT_EQ(parsed(R"({"train": 0.9})").val, 0.0);
}

TEST(Split, OfOneShareGivesTheRestToVal) {
  Split split = parsed("0.8");
  EXPECT_EQ(split.train, 0.8);
  EXPECT_EQ(split.val, 0.2);
  EXPECT_EQ(parsed("0.9").val, 0.1);
  for (const char* text : {"0", "1", "80", "-0.5"})
    EXPECT_THAT(error_of(text), HasSubstr("between 0 and 1")) << text;
}

TEST(Split, TakesSharesThatMakeOneTogether) {
  for (const char* text :
       {R"({"train": 0.7, "val": 0.3})", R"({"train": 0.9, "val": 0.1})",
        R"({"train": 0.35, "val": 0.65})"}) {
    Split split = parsed(text);
    for (int i = 0; i < 1000; ++i)
      EXPECT_NE(side_of(split, row(i)), Side::unused) << text;
  }
}

TEST(Split, RefusesMoreThanOneTogether) {
  EXPECT_THAT(
      error_of(R"({"train": 0.9, "val": 0.2})"),
      HasSubstr("split.val: train 0.9 and val 0.2 add up to more than 1"));
}

TEST(Split, RefusesSharesOutOfRangeAndUnknownKeys) {
  EXPECT_THAT(error_of(R"({"train": 1.5})"), HasSubstr("split.train"));
  EXPECT_THAT(error_of(R"({"val": -0.1})"), HasSubstr("split.val"));
  EXPECT_THAT(error_of(R"({"vall": 0.1})"), HasSubstr("did you mean 'val'?"));
  EXPECT_THAT(error_of("[1]"), HasSubstr("expected an object"));
}

TEST(Side, TakesItsShareOfTheRows) {
  Split split{.train = 0.7, .val = 0.2, .seed = 4};
  double counts[3] = {};
  for (int i = 0; i < 100000; ++i)
    ++counts[static_cast<int>(side_of(split, row(i)))];
  // Five standard deviations of a draw of 100,000.
  EXPECT_NEAR(counts[static_cast<int>(Side::train)], 70000, 725);
  EXPECT_NEAR(counts[static_cast<int>(Side::val)], 20000, 633);
  EXPECT_NEAR(counts[static_cast<int>(Side::unused)], 10000, 475);
}

TEST(Side, IsAnotherDrawForAnotherSeed) {
  Split one{.train = 0.5, .val = 0.5, .seed = 1};
  Split other{.train = 0.5, .val = 0.5, .seed = 2};
  int same = 0;
  for (int i = 0; i < 10000; ++i)
    same += side_of(one, row(i)) == side_of(other, row(i)) ? 1 : 0;
  EXPECT_NEAR(same, 5000, 250);
}

TEST(Side, GrowsFromTrainWithoutLosingARow) {
  Split small{.train = 0.5, .val = 0.5, .seed = 1};
  Split large{.train = 0.6, .val = 0.4, .seed = 1};
  for (int i = 0; i < 1000; ++i) {
    if (side_of(small, row(i)) != Side::train) continue;
    EXPECT_EQ(side_of(large, row(i)), Side::train);
  }
}

// A function of the row's own value alone; these pin which.
TEST(Side, OfARowNeverChanges) {
  Split split{.train = 0.6, .val = 0.3, .seed = 17};
  std::string sides;
  for (int i = 0; i < 24; ++i)
    sides += "tv-"[static_cast<int>(side_of(split, row(i)))];
  EXPECT_EQ(sides, "ttvtvttttttttt-vtvttttvv");
}

TEST(Side, OfTheTestTakesWhatTheOthersLeaveAndMovesNoRowOfTheirs) {
  const Split two{.train = 0.6, .val = 0.3, .seed = 17};
  Split three = two;
  three.test = 0.1;
  int rows = 0;
  for (int i = 0; i < 10'000; ++i) {
    const Side before = side_of(two, row(i)), now = side_of(three, row(i));
    EXPECT_EQ(now, before == Side::unused ? Side::test : before);
    rows += now == Side::test ? 1 : 0;
  }
  EXPECT_NEAR(rows, 1000, 150);
  three.test = 0.05;
  for (int i = 0; i < 1000; ++i) {
    if (side_of(three, row(i)) != Side::test) continue;
    EXPECT_EQ(side_of(two, row(i)), Side::unused);
  }
}

TEST(Split, HasAThirdSide) {
  const Split split = parsed(R"({"train": 0.8, "val": 0.1, "test": 0.1})");
  EXPECT_EQ(split.test, 0.1);
  EXPECT_EQ(parsed(R"({"val": 0.25, "test": 0.25})").train, 0.5);
  EXPECT_EQ(parsed(R"({"train": 0.5})").test, 0.0);
  EXPECT_THAT(error_of(R"({"train": 0.8, "val": 0.1, "test": 0.2})"),
              HasSubstr("train 0.8, val 0.1 and test 0.2 add up to more"));
  EXPECT_THAT(error_of(R"({"train": 0.9, "test": 0.2})"),
              HasSubstr("split.test"));
}

TEST(Split, FoldsHoldOutEachRowOnce) {
  constexpr int kRows = 10'000, kFolds = 4;
  int tested = 0;
  std::array<int, kFolds> held_out{};
  for (int row = 0; row < kRows; ++row) {
    int times = 0;
    for (int fold = 0; fold < kFolds; ++fold) {
      const Split split{.train = 0.7,
                        .val = 0.1,
                        .test = 0.2,
                        .seed = 3,
                        .folds = kFolds,
                        .fold = fold};
      const Side side = side_of(split, std::to_string(row));
      EXPECT_NE(side, Side::unused);
      if (side == Side::val) {
        ++times;
        ++held_out[static_cast<std::size_t>(fold)];
      }
      if (side == Side::test && fold == 0) ++tested;
    }
    const Split plain{.train = 0.7, .val = 0.1, .test = 0.2, .seed = 3};
    EXPECT_EQ(times, side_of(plain, std::to_string(row)) == Side::test ? 0 : 1);
  }
  EXPECT_NEAR(tested, kRows * 0.2, 150);
  for (int rows : held_out) EXPECT_NEAR(rows, kRows * 0.2, 150);
}

TEST(Split, FoldsTakeAShareOfEachPart) {
  int less = 0, more = 0;
  for (int row = 0; row < 10'000; ++row) {
    auto side = [&](double share) {
      return side_of({.train = 1, .folds = 5, .fold = 2, .share = share},
                     std::to_string(row));
    };
    if (side(0.25) != Side::unused) {
      ++less;
      EXPECT_EQ(side(0.25), side(0.5));
    }
    if (side(0.5) != Side::unused) ++more;
  }
  EXPECT_NEAR(less, 2500, 150);
  EXPECT_NEAR(more, 5000, 150);
}

TEST(Split, RefusesFoldsThatAreNone) {
  auto why = [](const char* text) {
    const Json section = Json::parse(text, "test");
    try {
      parse_split(&section, "split");
    } catch (const Error& error) {
      return error.parts().why;
    }
    return std::string();
  };
  EXPECT_EQ(why(R"({"folds": 5, "fold": 4})"), "");
  EXPECT_THAT(why(R"({"folds": 5, "fold": 5})"), testing::HasSubstr("part 5"));
  EXPECT_THAT(why(R"({"fold": 1})"), testing::HasSubstr("part 1"));
  EXPECT_THAT(why(R"({"folds": 1})"), testing::HasSubstr("found 1"));
}

TEST(Split, ListsTheSamplesOfEachSide) {
  const Split split{.train = 0.6, .val = 0.3, .test = 0.1, .seed = 17};
  std::vector<std::byte> sides;
  for (int i = 0; i < 500; ++i)
    sides.push_back(static_cast<std::byte>(side_of(split, row(i))));
  const SideIndexes indexes = index_sides(split, 500, sides);
  const auto [train, val, test] = indexes.sizes();
  EXPECT_EQ(train + val + test, 500);
  for (Side side : {Side::train, Side::val, Side::test})
    for (std::int64_t n = 0; n < indexes.on(side).size(); ++n)
      EXPECT_EQ(
          side_of(split, row(static_cast<int>(indexes.on(side).select(n)))),
          side);
  EXPECT_EQ(index_sides({}, 500, {}).sizes(),
            (std::array<std::int64_t, 3>{500, 0, 0}));
}

TEST(Split, AShareOfEachSideIsAPartOfALargerShare) {
  const Split whole{.train = 0.8, .val = 0.2, .seed = 5};
  int train = 0, val = 0;
  for (int i = 0; i < 10'000; ++i) {
    Split some = whole, more = whole;
    some.share = 0.1;
    more.share = 0.5;
    const Side side = side_of(some, row(i));
    if (side == Side::unused) continue;
    EXPECT_EQ(side, side_of(whole, row(i)));
    EXPECT_EQ(side, side_of(more, row(i)));
    ++(side == Side::train ? train : val);
  }
  EXPECT_NEAR(train, 800, 100);
  EXPECT_NEAR(val, 200, 50);
}

TEST(Split, KeepsSoManyRowsOfEachSide) {
  std::vector<std::byte> sides;
  for (int i = 0; i < 1000; ++i)
    sides.push_back(static_cast<std::byte>(i % 10 == 0   ? Side::val
                                           : i % 10 == 1 ? Side::unused
                                                         : Side::train));
  auto count = [](const std::vector<std::byte>& of, Side side) {
    return std::ranges::count(of, static_cast<std::byte>(side));
  };
  for (auto [most, train, val] :
       {std::array{1, 1, 1}, {99, 99, 99}, {500, 500, 100}, {900, 800, 100}}) {
    std::vector<std::byte> kept = sides, again = sides;
    keep_most({.seed = 3, .most = most}, kept);
    EXPECT_EQ(count(kept, Side::train), train);
    EXPECT_EQ(count(kept, Side::val), val);
    for (std::size_t i = 0; i < kept.size(); ++i)
      EXPECT_TRUE(kept[i] == sides[i] ||
                  kept[i] == static_cast<std::byte>(Side::unused));
    keep_most({.seed = 3, .most = most}, again);
    EXPECT_EQ(again, kept);
    keep_most({.seed = 4, .most = most}, again = sides);
    EXPECT_EQ(again == kept, most == 900) << "another seed, other rows";
  }
}

}  // namespace
}  // namespace penstock
