#include "penstock/session/rank_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "penstock/base/error.h"

namespace penstock {
namespace {

using testing::HasSubstr;

using Environment = std::map<std::string, std::string>;

std::optional<RankPlace> place_in(const Environment& environment) {
  return rank_place([&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

ErrorParts refusal(const Environment& environment) {
  try {
    place_in(environment);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    return error.parts();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

RanksAround around_in(const Environment& environment) {
  return ranks_around([&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(RanksAround, AreAsManyAsTheLauncherSays) {
  EXPECT_EQ(around_in({{"WORLD_SIZE", "8"}}).world, 8);
  EXPECT_EQ(
      around_in({{"LOCAL_WORLD_SIZE", "4"}, {"SLURM_NTASKS_PER_NODE", "1"}})
          .here,
      4);
  EXPECT_EQ(around_in({{"SLURM_NTASKS_PER_NODE", "2"}}).here, 2);
}

TEST(RanksAround, AreUnknownWhereTheNumberIsNotOne) {
  EXPECT_FALSE(around_in({}).here);
  EXPECT_FALSE(around_in({{"SLURM_NTASKS_PER_NODE", "2(x3)"}}).here);
  EXPECT_FALSE(around_in({{"WORLD_SIZE", "0"}}).world);
}

TEST(RankPlace, ProcessesThatThisProgramStartsAreKnown) {
  const auto place = place_in({{"RANK", "1"},
                               {"WORLD_SIZE", "2"},
                               {"MASTER_PORT", "29400"},
                               {kStartedBy, "17"}});
  ASSERT_TRUE(place);
  EXPECT_EQ(place->launcher, "penstock");
  EXPECT_EQ(place->master, "127.0.0.1");
}

TEST(RankPlace, ProcessByItselfHasNoRank) {
  EXPECT_FALSE(place_in({}));
  EXPECT_FALSE(place_in({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
  EXPECT_FALSE(
      place_in({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}));
  // An allocation of four tasks in whose shell the program was started.
  EXPECT_FALSE(place_in({{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}}));
}

TEST(RankPlace, TorchrunServesTheStoreItself) {
  const auto place = place_in({{"RANK", "5"},
                               {"WORLD_SIZE", "8"},
                               {"LOCAL_RANK", "1"},
                               {"LOCAL_WORLD_SIZE", "4"},
                               {"MASTER_ADDR", "gpu01"},
                               {"MASTER_PORT", "29400"},
                               {"TORCHELASTIC_RUN_ID", "none"},
                               {"TORCHELASTIC_RESTART_COUNT", "2"},
                               {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank.rank, 5);
  EXPECT_EQ(place->rank.world, 8);
  EXPECT_EQ(place->local_rank, 1);
  EXPECT_EQ(place->local_world, 4);
  EXPECT_EQ(place->launcher, "torchrun");
  EXPECT_EQ(place->master, "gpu01");
  EXPECT_EQ(place->port, 29400);
  EXPECT_TRUE(place->store_is_served);
  EXPECT_EQ(place->attempt, "none.2");  // not what the attempt before has left
}

TEST(RankPlace, TasksOfSlurmMeetOnTheFirstNode) {
  Environment step{{"SLURM_PROCID", "3"},
                   {"SLURM_STEP_NUM_TASKS", "6"},
                   {"SLURM_LOCALID", "1"},
                   {"SLURM_STEP_TASKS_PER_NODE", "2(x3)"},
                   {"SLURM_JOB_ID", "812"},
                   {"SLURM_STEP_ID", "0"},
                   {"SLURM_STEP_NODELIST", "gpu[03-05]"}};
  const auto place = place_in(step);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->launcher, "srun");
  EXPECT_EQ(place->rank.rank, 3);
  EXPECT_EQ(place->rank.world, 6);
  EXPECT_EQ(place->local_rank, 1);
  EXPECT_EQ(place->local_world, 2);
  EXPECT_EQ(place->master, "gpu03");
  EXPECT_GE(place->port, 15000);
  EXPECT_LT(place->port, 32768);
  EXPECT_FALSE(place->store_is_served);
  step["SLURM_PROCID"] = "0";
  EXPECT_EQ(place_in(step)->port, place->port);
  step["SLURM_RESTART_COUNT"] = "1";
  EXPECT_NE(place_in(step)->attempt, place->attempt);
}

TEST(RankPlace, RanksOfMpirunOnOneMachineMeetThere) {
  Environment started{
      {"OMPI_COMM_WORLD_RANK", "1"},       {"OMPI_COMM_WORLD_SIZE", "2"},
      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
      {"PMIX_NAMESPACE", "123"},           {"SLURM_PROCID", "0"}};
  const auto place = place_in(started);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->launcher, "mpirun");
  EXPECT_EQ(place->master, "127.0.0.1");
  started["OMPI_COMM_WORLD_SIZE"] = "4";
  const ErrorParts parts = refusal(started);
  EXPECT_EQ(parts.code, "ranks.environment");
  EXPECT_EQ(parts.where, "MASTER_ADDR");
  EXPECT_THAT(parts.next, HasSubstr("host of rank 0"));
}

TEST(RankPlace, WhatDoesNotFitIsRefusedByItsName) {
  EXPECT_THAT(refusal({{"WORLD_SIZE", "4"}}).why,
              HasSubstr("4 ranks, but RANK is not set"));
  EXPECT_EQ(refusal({{"RANK", "4"}, {"WORLD_SIZE", "4"}}).where, "RANK");
  EXPECT_THAT(refusal({{"RANK", "1"}}).why, HasSubstr("WORLD_SIZE is not set"));
  EXPECT_THAT(refusal({{"RANK", "one"}, {"WORLD_SIZE", "4"}}).why,
              HasSubstr("found 'one'"));
  EXPECT_EQ(refusal({{"RANK", "1"},
                     {"WORLD_SIZE", "2"},
                     {"MASTER_ADDR", "a"},
                     {"MASTER_PORT", "70000"}})
                .where,
            "MASTER_PORT");
  EXPECT_EQ(refusal({{"RANK", "1"}, {"WORLD_SIZE", "2"}}).where, "MASTER_PORT");
  EXPECT_THAT(refusal({{"SLURM_PROCID", "1"},
                       {"SLURM_STEP_NUM_TASKS", "2"},
                       {"WORLD_SIZE", "4"}})
                  .why,
              HasSubstr("WORLD_SIZE is 4"));
}

TEST(RankPlace, FirstHostOfEveryFormOfList) {
  EXPECT_EQ(first_host("login"), "login");
  EXPECT_EQ(first_host("a1,a2"), "a1");
  EXPECT_EQ(first_host("gpu[03-05,9],login"), "gpu03");
  EXPECT_EQ(first_host("rack[2,4]-n,x"), "rack2-n");
}

}  // namespace
}  // namespace penstock
