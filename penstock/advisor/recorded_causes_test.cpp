// What the meters read in runs with a fault that was really there: those of
// bench/cause_campaign, on two processors that other programs used as well. The
// verdict has to name the fault, whichever rule is changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/advisor/advisor.h"
#include "penstock/advisor/fake/stages.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Piece {
  double ms;
  std::int64_t times;
};

struct Recorded {
  const char* fault;
  Limit limit;
  const char* named;
  /// Seconds of the wall and of its parts; steps and samples.
  struct {
    double wall, compute, data, host, copy, order;
    std::int64_t steps, samples;
  } parts;
  HostLimits limits;
  HostUse use;
  std::vector<StageNumbers> stages;
};

StageNumbers stage(const char* name, const char* pool, int workers,
                   std::int64_t items, std::int64_t calls, double wall_s,
                   double cpu_s, std::int64_t bytes,
                   std::initializer_list<Piece> times = {}) {
  StageNumbers stage{.name = name,
                     .work = work_of_stage(name),
                     .workers = workers,
                     .pool = pool};
  stage.items = items;
  stage.calls = calls;
  stage.busy_wall = from_seconds(wall_s);
  stage.busy_cpu = from_seconds(cpu_s);
  stage.bytes = bytes;
  for (const Piece& piece : times)
    stage.times.add(from_seconds(1e-3 * piece.ms), piece.times);
  return stage;
}

StageNumbers seen(StageNumbers stage, ThreadSightings looks) {
  stage.seen = looks;
  stage.seen.looks = looks.total();
  return stage;
}

HostLimits cpus(double count) { return {.cpus = count}; }

HostUse use(double cpu_s, double queued_s, std::int64_t throttled_us = 0,
            std::int64_t read_bytes = 0) {
  return {.cpu_seconds = cpu_s,
          .throttled_us = throttled_us,
          .read_bytes = read_bytes,
          .queued_seconds = queued_s};
}

const std::vector<Recorded> kRecorded = {
    {"a database that is 10 ms away",
     Limit::data,
     "'read' waits for the database: 128 rows per statement",
     {1.296, 0.118, 1.177, 0, 0, 0, 59, 15104},
     cpus(2),
     use(0.268, 0.0195),
     {stage("plan", "loader", 2, 15360, 0, 0.0007, 0.0007, 0),
      stage("read", "readers", 1, 15360, 120, 1.3071, 0.0959, 14087244,
            {{11.5, 120}}),
      stage("parse", "loader", 2, 15360, 0, 0.0208, 0.0208, 2986848),
      stage("collate", "loader", 2, 15360, 0, 0.0017, 0.0017, 3194880)}},
    {"one query per sample",
     Limit::data,
     "is queried once per sample",
     {0.441, 0.118, 0.323, 0, 0, 0, 59, 1888},
     cpus(2),
     use(0.2595, 0.0546),
     {stage("read per sample", "loader", 0, 1920, 1920, 0.4262, 0.1101, 1761721,
            {{0.21, 1920}}),
      stage("parse", "loader", 0, 1920, 0, 0.0127, 0.0127, 370560)}},
    {"one processor for four threads, which others used too",
     Limit::data,
     "could run (0.6 of 1 processors)",
     {0.980, 0.059, 0.921, 0, 0, 0, 59, 120832},
     cpus(1),
     use(0.7378, 3.50684),
     {stage("read", "readers", 4, 122880, 240, 0.9845, 0.4447, 112493771,
            {{1.7, 200}, {9.4, 40}}),
      stage("parse", "loader", 4, 122880, 0, 0.18, 0.1336, 23857376),
      stage("collate", "loader", 4, 122880, 0, 0.0213, 0.0094, 25559040)}},
    {"a quota of half a processor",
     Limit::data,
     "more processor time than the quota of 0.5 processors",
     {1.514, 0.059, 1.440, 0.014, 0, 0, 59, 120832},
     cpus(0.5),
     use(0.923, 5.814, 1025794),
     {stage("read", "readers", 4, 122880, 240, 1.7249, 0.5492, 112493771,
            {{2.4, 200}, {13.6, 30}, {75, 10}}),
      stage("parse", "loader", 4, 122880, 0, 0.2875, 0.1689, 23857376),
      stage("collate", "loader", 4, 122880, 0, 0.0138, 0.0124, 25559040)}},
    {"a busy neighbour",
     Limit::data,
     "could run (0.26 of 2 processors)",
     {2.569, 0.059, 2.507, 0.003, 0, 0, 59, 120832},
     cpus(2),
     use(0.873, 8.359, 0, 32768),
     {stage("read", "readers", 4, 122880, 240, 1.8282, 0.5142, 112493771,
            {{2.4, 210}, {27, 29}, {151, 1}}),
      stage("parse", "loader", 2, 122880, 0, 0.2416, 0.1446, 23857376),
      stage("collate", "loader", 2, 122880, 0, 0.0111, 0.0111, 25559040)}},
    {"a slow drive",
     Limit::data,
     "'read' waits for storage: 44.3 MB/s came from drives",
     {6.062, 0.118, 5.911, 0.032, 0.001, 0, 59, 1888},
     cpus(2),
     use(0.545, 0.81, 0, 268435456),
     {stage("read", "readers", 4, 1920, 60, 11.6943, 0.3154, 251658240,
            {{184, 50}, {302, 10}}),
      stage("parse", "loader", 2, 1920, 0, 0.068, 0.0502, 251658240),
      stage("collate", "loader", 2, 1920, 0, 0.0843, 0.068, 251658240)}},
    {"a lock",
     Limit::data,
     "'map' waits for a lock that its 2 threads share",
     {1.933, 0.068, 1.843, 0.021, 0, 0, 59, 3776},
     cpus(2),
     use(0.434, 0.598),
     {stage("read", "loader", 2, 4160, 0, 0.0187, 0.0136, 33280),
      seen(stage("map", "loader", 2, 3840, 0, 3.8838, 0.3768, 30720,
                 {{31, 108}, {38, 11}, {151, 1}}),
           {.running = 29, .in_lock = 62, .asleep = 55})}},
    {"Python's own lock",
     Limit::data,
     "'map' runs only one of its 2 threads at a time: in 28 % of the samples "
     "the others waited for one lock",
     {10.574, 0.635, 9.515, 0.424, 0, 0, 59, 15104},
     cpus(2),
     use(9.39, 7.465),
     {stage("read", "loader", 2, 16768, 0, 0.6218, 0.0232, 134144),
      seen(stage("map", "loader", 2, 15488, 0, 20.8477, 9.2532, 123904,
                 {{184, 100}, {252, 21}}),
           {.running = 307, .in_lock = 119})}},
    {"a slow row in 200",
     Limit::order,
     "one in 6 pieces of work of 'map' takes more than ten times the median",
     {1.259, 0.074, 1.183, 0.003, 0, 0.733, 59, 3776},
     cpus(2),
     use(0.084, 0.081),
     {stage("read", "loader", 2, 4320, 0, 0.0193, 0.0094, 34560),
      seen(stage("map", "loader", 2, 4064, 0, 2.279, 0.0515, 32512,
                 {{0.43, 106}, {92, 19}, {218, 2}}),
           {.running = 1, .in_lock = 1, .asleep = 96})}},
    {"a slow link",
     Limit::copy,
     "batches wait for their copy to the device",
     {1.047, 0.59, 0, 0, 0.457, 0, 59, 15104},
     cpus(2),
     use(0.149, 0.046),
     {stage("gather", "loader", 2, 15360, 0, 0.0016, 0.0016, 3194880)}},
    {"steps that take all the time",
     Limit::compute,
     "the input keeps up",
     {0.885, 0.885, 0, 0, 0, 0, 59, 15104},
     cpus(2),
     use(0.136, 0.034),
     {stage("gather", "loader", 2, 15360, 0, 0.0009, 0.0009, 3194880)}}};

Snapshot window_of(const Recorded& run) {
  Snapshot window;
  window.parts = {.steps = run.parts.steps, .samples = run.parts.samples};
  window.parts.wall = from_seconds(run.parts.wall);
  window.parts.compute = from_seconds(run.parts.compute);
  window.parts.wait_data = from_seconds(run.parts.data);
  window.parts.host = from_seconds(run.parts.host);
  window.parts.wait_copy = from_seconds(run.parts.copy);
  window.wait_order = from_seconds(run.parts.order);
  window.limits = run.limits;
  window.use = run.use;
  window.stages = run.stages;
  return window;
}

TEST(RecordedCauses, EachIsNamed) {
  for (const Recorded& run : kRecorded) {
    const Verdict verdict = diagnose(window_of(run));
    EXPECT_EQ(verdict.limit, run.limit) << run.fault;
    EXPECT_THAT(verdict.cause, HasSubstr(run.named)) << run.fault;
  }
}

TEST(RecordedCauses, NoneIsNamedForTheFaultOfAnother) {
  for (const Recorded& run : kRecorded)
    for (const Recorded& other : kRecorded) {
      if (&run == &other) continue;
      EXPECT_THAT(diagnose(window_of(run)).cause, Not(HasSubstr(other.named)))
          << run.fault << " as " << other.fault;
    }
}

// A rule with margin: half and twice as much load beside it changes no name.
TEST(RecordedCauses, AreNamedWithLessAndMoreLoadBesideThem) {
  for (const Recorded& run : kRecorded)
    for (const double load : {0.5, 2.0}) {
      if (run.fault == std::string("a busy neighbour") ||
          run.fault == std::string(kRecorded[2].fault))
        continue;  // these are the load
      Snapshot window = window_of(run);
      window.use.queued_seconds = load * *window.use.queued_seconds;
      EXPECT_THAT(diagnose(window).cause, HasSubstr(run.named)) << run.fault;
    }
}

}  // namespace
}  // namespace penstock
