#include "penstock/exec/spans.h"

#include <gtest/gtest.h>

#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "penstock/exec/meter.h"

namespace penstock {
namespace {

class Heard : public SpanListener {
 public:
  void began(std::string_view name) override {
    std::lock_guard lock(mutex_);
    said.push_back("begin " + std::string(name));
  }
  void ended(const Span& span) override {
    std::lock_guard lock(mutex_);
    said.push_back("end " + std::string(span.name));
    EXPECT_LE(span.begin, span.end);
  }
  std::vector<std::string> said;

 private:
  std::mutex mutex_;
};

TEST(Spans, WorkOnAStageIsHeardWhileSomebodyListens) {
  StageMeter meter("read", 1);
  auto heard = std::make_shared<Heard>();
  { BusyScope before(meter); }
  {
    auto listening = listen_to_spans(heard);
    EXPECT_TRUE(spans::heard());
    BusyScope scope(meter);
  }
  EXPECT_FALSE(spans::heard());
  { BusyScope after(meter); }
  // It ended before the listening did: scopes end in reverse order.
  EXPECT_EQ(heard->said, (std::vector<std::string>{"begin read", "end read"}));
  EXPECT_EQ(meter.numbers().times.count(), 3);
}

TEST(Spans, SeveralListenAndEachMayGo) {
  StageMeter meter("pack", 1);
  auto first = std::make_shared<Heard>(), second = std::make_shared<Heard>();
  auto one = listen_to_spans(first), two = listen_to_spans(second);
  { BusyScope scope(meter); }
  one.reset();
  { BusyScope scope(meter); }
  EXPECT_EQ(first->said.size(), 2u);
  EXPECT_EQ(second->said.size(), 4u);
}

TEST(Spans, AListenerThatThrowsHarmsNobody) {
  class Throws : public SpanListener {
    void ended(const Span&) override { throw std::runtime_error("full"); }
  };
  StageMeter meter("pack", 1);
  auto listening = listen_to_spans(std::make_shared<Throws>());
  { BusyScope scope(meter); }
  EXPECT_EQ(meter.numbers().times.count(), 1);
}

TEST(Spans, ThreadsWorkWhileListenersComeAndGo) {
  StageMeter meter("read", 4);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) BusyScope scope(meter);
    });
  for (int i = 0; i < 50; ++i) {
    auto heard = std::make_shared<Heard>();
    auto listening = listen_to_spans(heard);
    std::this_thread::yield();
    listening.reset();
    const std::size_t said = heard->said.size();
    std::this_thread::yield();
    EXPECT_EQ(heard->said.size(), said) << "it was told after it had gone";
  }
  threads.clear();
  // The clock of some scopes stands for that of all.
  EXPECT_NEAR(static_cast<double>(meter.numbers().times.count()), 2000, 200);
}

}  // namespace
}  // namespace penstock
