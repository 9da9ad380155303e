#include "penstock/session/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "penstock/demo/fake/positions_run.h"
#include "penstock/session/open_loader.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Ranks as threads, which gather through their own memory.
class Ranks {
 public:
  explicit Ranks(int count)
      : count_(count),
        texts_(static_cast<std::size_t>(count)),
        all_there_(count) {}

  /// Runs `work` for each rank; the errors they ended with, by rank.
  std::vector<std::optional<Error>> run(
      const std::function<void(Rank, const Agree&)>& work) {
    std::vector<std::optional<Error>> errors(static_cast<std::size_t>(count_));
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < count_; ++rank)
      threads.emplace_back([&, rank] {
        try {
          work({rank, count_}, gather(rank));
        } catch (const Error& error) {
          errors[static_cast<std::size_t>(rank)].emplace(error);
        }
      });
    threads.clear();
    return errors;
  }

 private:
  Agree gather(int rank) {
    return [this, rank](const std::string& mine) {
      texts_[static_cast<std::size_t>(rank)] = mine;
      all_there_.arrive_and_wait();
      return texts_;
    };
  }

  const int count_;
  std::vector<std::string> texts_;
  std::barrier<> all_there_;
};

Json facts(std::int64_t rows, std::int64_t batch_size = 32) {
  Json json;
  json["loader"]["batch_size"] = batch_size;
  json["rows"]["all"] = rows;
  json["fingerprint"] = "f00d" + std::to_string(rows);
  return json;
}

ErrorParts parts_of(const std::optional<Error>& error) {
  if (error) return error->parts();
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

class AgreementTest : public testing::TestWithParam<int> {};

TEST_P(AgreementTest, RanksOfTheSameFactsGoOn) {
  Ranks ranks(GetParam());
  auto errors = ranks.run([](Rank rank, const Agree& agree) {
    compare_ranks(agree, rank, facts(1000));
  });
  for (const std::optional<Error>& error : errors) EXPECT_FALSE(error);
}

TEST_P(AgreementTest, EveryRankHearsOfTheOneThatFailed) {
  Ranks ranks(GetParam());
  auto errors = ranks.run([](Rank rank, const Agree& agree) {
    Error own(ErrorKind::source, {.code = "a.code", .what = "a disk is gone"});
    if (rank.rank > 0) return compare_ranks(agree, rank, facts(1000));
    report_failure(agree, rank, std::make_exception_ptr(own));
    throw own;
  });
  EXPECT_EQ(parts_of(errors.front()).code, "a.code");
  for (std::size_t rank = 1; rank < errors.size(); ++rank) {
    ErrorParts parts = parts_of(errors[rank]);
    EXPECT_EQ(parts.code, "ranks.failed");
    EXPECT_EQ(parts.where, "rank 0");
    EXPECT_THAT(parts.why, HasSubstr("a disk is gone"));
    EXPECT_EQ(errors[rank]->kind(), ErrorKind::source);
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, AgreementTest, testing::Values(1, 2, 4));

/// What comparing these facts says, given in the order of their ranks.
ErrorParts compared(const std::vector<Json>& all, ErrorKind kind) {
  Ranks ranks(static_cast<int>(all.size()));
  auto errors = ranks.run([&](Rank rank, const Agree& agree) {
    compare_ranks(agree, rank, all[static_cast<std::size_t>(rank.rank)]);
  });
  for (const std::optional<Error>& error : errors) {
    EXPECT_EQ(parts_of(error).why, parts_of(errors.front()).why);
    EXPECT_EQ(error->kind(), kind);
  }
  return parts_of(errors.front());
}

TEST(Agreement, NamesWhatDiffersWithItsValuesAndRanks) {
  ErrorParts parts = compared(
      {facts(1000), facts(1001), facts(1000), facts(1000)}, ErrorKind::source);
  EXPECT_EQ(parts.code, "ranks.data");
  EXPECT_EQ(parts.where, "rows.all");
  EXPECT_EQ(parts.why,
            "rows.all is 1000 on ranks 0, 2, 3, 1001 on rank 1; fingerprint "
            "is f00d1000 on ranks 0, 2, 3, f00d1001 on rank 1");
}

TEST(Agreement, NamesSettingsBeforeTheRowsThatComeOfThem) {
  ErrorParts parts = compared({facts(10), facts(10), facts(10), facts(11, 64)},
                              ErrorKind::request);
  EXPECT_EQ(parts.code, "ranks.settings");
  EXPECT_EQ(parts.why, "loader.batch_size is 32 on ranks 0..2, 64 on rank 3");
}

TEST(Agreement, AFactThatOneRankLacksDiffersAndOneThatIsUnknownDoesNot) {
  Json more = facts(10), unknown = facts(10);
  more["fields"]["x"] = "float32";
  EXPECT_EQ(compared({more, facts(10)}, ErrorKind::request).why,
            "fields.x is float32 on rank 0 alone");
  unknown["fingerprint"] = Json();
  auto errors = Ranks(2).run([&](Rank rank, const Agree& agree) {
    compare_ranks(agree, rank, rank.rank == 0 ? unknown : facts(10));
  });
  for (const std::optional<Error>& error : errors) EXPECT_FALSE(error);
}

TEST(Agreement, ShowsALongValueByItsBeginningAndCountsTheRest) {
  Json one = facts(10), two = facts(10);
  for (const char* key : {"a", "b", "c", "d", "e"}) {
    one["split"][key] = std::string(500, 'x') + "1";
    two["split"][key] = std::string(500, 'x') + "2";
  }
  std::string why = compared({one, two}, ErrorKind::request).why;
  EXPECT_THAT(why, AllOf(HasSubstr("split.c"), Not(HasSubstr("split.d")),
                         HasSubstr("and 2 more")));
  EXPECT_LT(why.size(), 1000u);
}

TEST(Agreement, RefusesAnAnswerThatIsNoneOfEachRank) {
  auto why_with = [](const Agree& agree, Rank rank = {0, 2}) {
    try {
      compare_ranks(agree, rank, facts(10));
    } catch (const Error& error) {
      EXPECT_EQ(error.parts().code, "ranks.agree");
      return error.parts().why;
    }
    return std::string("nothing was thrown");
  };
  using Texts = std::vector<std::string>;
  EXPECT_THAT(why_with([](const std::string&) { return Texts{}; }),
              HasSubstr("0 texts for 2 ranks"));
  EXPECT_THAT(why_with([](const std::string& mine) { return Texts{mine}; }),
              HasSubstr("no text of rank 1"));
  EXPECT_THAT(why_with([](const std::string& mine) {
                return Texts{mine, mine};
              }),
              HasSubstr("no text of rank 1"));
  EXPECT_THAT(why_with([](const std::string&) {
                return Texts{"", ""};
              }),
              HasSubstr("no rank with this version"));
  // Two processes of one rank are fine.
  EXPECT_EQ(why_with(
                [](const std::string& mine) {
                  return Texts{mine, mine};
                },
                {0, 1}),
            "nothing was thrown");
}

TEST(Agreement, AFailureIsNotHiddenByAnAllGatherThatFailsToo) {
  report_failure(
      [](const std::string&) -> std::vector<std::string> {
        throw std::runtime_error("the network is gone");
      },
      {}, std::make_exception_ptr(std::runtime_error("x")));
}

/// Loaders of a table that is read by each rank for itself.
class RankLoaders : public testing::Test {
 protected:
  static constexpr std::int64_t kRows = 1000;

  void add_a_row() { write_rows(kRows + 1); }

  void write_rows(std::int64_t rows) {
    DemoOptions demo;
    demo.rows = rows;
    demo.to = positions_.job().source;
    demo.replace = true;
    write_positions_demo(demo);
  }

  /// Opens the job on each rank, with settings of its own.
  std::vector<std::optional<Error>> open(
      int world, const std::function<std::vector<std::string>(int)>& sets) {
    return Ranks(world).run([&](Rank rank, const Agree& agree) {
      open_loader(positions_.job(sets(rank.rank)),
                  {.rank = rank, .agree = agree});
    });
  }

  PositionsRun positions_{kRows};
};

TEST_F(RankLoaders, RanksWithOtherThreadsAndTiersAgree) {
  for (int world : {1, 2, 4}) {
    auto errors = open(world, [](int rank) -> std::vector<std::string> {
      if (rank == 0) return {};
      return {"loader.workers=0", "loader.cache=none", "device=cpu"};
    });
    for (const std::optional<Error>& error : errors)
      EXPECT_FALSE(error) << error->what();
  }
}

TEST_F(RankLoaders, ARowThatIsAddedBetweenTheirPassesEndsAllOfThem) {
  for (const char* device : {"device=cpu", "device=sim"}) {
    write_rows(kRows);
    std::barrier<> first_has_read(2);
    auto errors = Ranks(2).run([&](Rank rank, const Agree& agree) {
      if (rank.rank == 1) {
        first_has_read.arrive_and_wait();
        add_a_row();
      }
      Agree told = [&](const std::string& mine) {
        if (rank.rank == 0) first_has_read.arrive_and_wait();
        return agree(mine);
      };
      open_loader(positions_.job({device}), {.rank = rank, .agree = told});
    });
    for (const std::optional<Error>& error : errors) {
      ErrorParts parts = parts_of(error);
      EXPECT_EQ(parts.code, "ranks.data");
      EXPECT_THAT(parts.why,
                  HasSubstr("rows.all is 1000 on rank 0, 1001 on rank 1"));
    }
  }
}

TEST_F(RankLoaders, OtherFieldsAreNamed) {
  auto errors = open(2, [](int rank) -> std::vector<std::string> {
    if (rank == 0) return {"fields.target.columns=[\"tx_lat\"]"};
    return {"fields.target.columns=[\"tx_lon\"]"};
  });
  for (const std::optional<Error>& error : errors) {
    EXPECT_EQ(parts_of(error).code, "ranks.settings");
    EXPECT_THAT(parts_of(error).why,
                HasSubstr("fields.target.columns is [\"tx_lat\"] on rank 0"));
  }
}

TEST_F(RankLoaders, ARankThatCannotReadEndsAllOfThem) {
  for (int world : {2, 4}) {
    auto errors = open(world, [&](int rank) -> std::vector<std::string> {
      if (rank != 1) return {};
      return {"source.path=" + positions_.path("none.sqlite")};
    });
    for (int rank = 0; rank < world; ++rank) {
      ErrorParts parts = parts_of(errors[static_cast<std::size_t>(rank)]);
      EXPECT_EQ(parts.code, rank == 1 ? "sqlite.missing" : "ranks.failed");
      if (rank == 1) continue;
      EXPECT_EQ(parts.where, "rank 1");
      EXPECT_THAT(parts.why, HasSubstr("none.sqlite"));
    }
  }
}

TEST_F(RankLoaders, EverySettingThatDecidesTheRowsIsCompared) {
  using Sets = std::vector<std::string>;
  for (const Sets& sets :
       {Sets{"source.where=id > 0"}, Sets{"loader.seed=1"},
        Sets{"loader.shuffle=false"}, Sets{"loader.tail=exact"},
        Sets{"loader.batch_size=16"}, Sets{"split.val=0.1"},
        Sets{"split.seed=7"}, Sets{"source.on_bad=skip"},
        Sets{"loader.weights=id"}, Sets{"loader.balance=id"},
        Sets{"train.max_steps=3"}, Sets{"fields.target.standardize=false"}}) {
    auto errors = open(2, [&](int rank) { return rank == 0 ? Sets{} : sets; });
    std::string key = sets[0].substr(0, sets[0].find('='));
    if (key == "train.max_steps") key = "steps in all";
    for (const std::optional<Error>& error : errors) {
      EXPECT_EQ(parts_of(error).code, "ranks.settings");
      EXPECT_THAT(parts_of(error).why, HasSubstr(key + " is "));
    }
  }
}

TEST_F(RankLoaders, OneOfSeveralRanksAloneMustNameItsRows) {
  auto open_with = [&](const std::vector<std::string>& sets) -> ErrorParts {
    try {
      open_loader(positions_.job(sets), {.rank = {1, 2}});
    } catch (const Error& error) {
      return error.parts();
    }
    return {};
  };
  ErrorParts parts = open_with({});
  EXPECT_EQ(parts.code, "ranks.agree");
  std::size_t at = parts.next.find('"') + 1;  // the fingerprint of these rows
  std::string named = "source.fingerprint=" + parts.next.substr(at, 16);
  EXPECT_EQ(open_with({named}).code, "");
  add_a_row();
  EXPECT_EQ(open_with({named}).code, "source.fingerprint");
  EXPECT_THAT(open_with({named}).why,
              AllOf(HasSubstr("1001 rows"), HasSubstr(named.substr(19))));
  EXPECT_THROW(positions_.job({"source.fingerprint=\"12345\""}), Error);
}

}  // namespace
}  // namespace penstock
