#include "penstock/monitor/trace.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "penstock/monitor/nvtx.h"
#include "penstock/monitor/step_clock.h"

namespace penstock {
namespace {

using namespace std::chrono_literals;

Json parsed(const Trace& trace) { return Json::parse(trace.text(), "trace"); }

/// Its complete events, and of metadata the names.
std::vector<Json> events(const Json& trace, const char* phase) {
  std::vector<Json> found;
  for (const Json& event : trace.find("traceEvents")->array())
    if (event.find("ph")->string() == phase) found.push_back(event);
  return found;
}

TEST(Trace, KeepsEachPieceOfWorkByItsThread) {
  StageMeter read("read", 2), pack("pack", 1);
  Trace trace;
  const Nanoseconds before = wall_clock().now();
  std::jthread([&] {
    BusyScope outer(read);
    BusyScope inner(pack);
  }).join();
  { BusyScope scope(pack); }
  const Nanoseconds after = wall_clock().now();
  trace.end();
  { BusyScope scope(pack); }  // not heard any more

  const auto spans = events(parsed(trace), "X");
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0].find("name")->string(), "pack");
  EXPECT_EQ(spans[1].find("name")->string(), "read");
  EXPECT_EQ(*spans[0].find("tid"), *spans[1].find("tid"));
  EXPECT_NE(*spans[0].find("tid"), *spans[2].find("tid"));
  for (const Json& span : spans) {
    const double begin = span.find("ts")->number();
    EXPECT_GE(begin, 1e-3 * static_cast<double>(before.count()) - 0.001);
    EXPECT_LE(begin + span.find("dur")->number(),
              1e-3 * static_cast<double>(after.count()) + 0.001);
  }
}

TEST(Trace, HoldsTheStepsOfTheDeviceOnTheSameClock) {
  DeviceSpec spec;
  spec.kind = "sim";
  spec.step_ms = 2;
  auto device = open_device(spec);
  auto stream = device->make_stream();
  StepClock clock(device->clock());
  Trace trace;
  const Nanoseconds before = wall_clock().now();
  for (int step = 0; step < 4; ++step) {
    clock.ask();
    clock.got(*stream);
    clock.after_wait(*stream);
    clock.group(0, 1, step);
    stream->step(static_cast<std::uint64_t>(step));
    clock.after_step(*stream);
  }
  clock.finish();
  std::vector<Json> steps;
  for (const Json& span : events(parsed(trace), "X"))
    if (span.find("name")->string() == "step") steps.push_back(span);
  ASSERT_EQ(steps.size(), 3u);  // the first only starts the clock
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].find("args")->find("step")->integer(),
              static_cast<std::int64_t>(i) + 1);
    EXPECT_GE(steps[i].find("dur")->number(), 1999);
    EXPECT_GT(steps[i].find("ts")->number(),
              1e-3 * static_cast<double>(before.count()));
    EXPECT_EQ(steps[i].find("pid")->integer(), 2);
  }
}

TEST(Trace, CountsWhatItHasNoRoomFor) {
  StageMeter read("read \"a\"\n", 1);
  Trace trace(2);
  for (int i = 0; i < 5; ++i) BusyScope scope(read);
  EXPECT_EQ(trace.kept(), 2u);
  const Json json = parsed(trace);
  EXPECT_EQ(json.find("otherData")->find("dropped")->integer(), 3);
  EXPECT_EQ(events(json, "X")[0].find("name")->string(), "read \"a\"\n");
}

TEST(Trace, OfNothingIsATraceToo) {
  const Json json = parsed(Trace());
  EXPECT_TRUE(events(json, "X").empty());
  std::set<std::string> names;
  for (const Json& event : events(json, "M"))
    names.insert(event.find("args")->find("name")->string());
  EXPECT_EQ(names,
            (std::set<std::string>{"device", "loop", "pipeline", "stream"}));
}

// What a tool of NVIDIA's would be told.
thread_local std::vector<std::string> open_ranges;
std::vector<std::string> all_ranges;

int push(const char* name) {
  open_ranges.push_back(name);
  all_ranges.push_back(name);
  return static_cast<int>(open_ranges.size()) - 1;
}
int pop() {
  EXPECT_FALSE(open_ranges.empty());
  open_ranges.pop_back();
  return static_cast<int>(open_ranges.size());
}

TEST(Nvtx, RangesAreThoseOfTheStages) {
  StageMeter read("read", 1), pack("pack", 1);
  BusyScope began_before(read);
  auto telling = tell_nvtx({.push = push, .pop = pop});
  {
    BusyScope outer(read);
    BusyScope inner(pack);
    EXPECT_EQ(open_ranges, (std::vector<std::string>{"read", "pack"}));
  }
  EXPECT_TRUE(open_ranges.empty());
  EXPECT_EQ(all_ranges, (std::vector<std::string>{"read", "pack"}));
}

TEST(Nvtx, IsLeftOutWhereThereIsNone) {
  EXPECT_EQ(tell_nvtx(open_nvtx("libnothing-of-that-name.so")), nullptr);
  EXPECT_EQ(tell_nvtx_where_asked(), nullptr);
}

}  // namespace
}  // namespace penstock
