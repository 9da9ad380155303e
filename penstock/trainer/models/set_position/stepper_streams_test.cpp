#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/trainer/fake/positions_model.h"

namespace penstock {
namespace {

/// What libtorch did on this thread, in a turn and outside of one.
struct Watch {
  bool in_turn = false;
  std::size_t turns = 0;
  std::size_t inside = 0;
  std::vector<std::string> outside;
};
thread_local Watch watch;

std::unique_ptr<at::ObserverContext> see(const at::RecordFunction& function) {
  if (watch.in_turn)
    ++watch.inside;
  else
    watch.outside.emplace_back(function.name());
  return nullptr;
}

/// A stream of the cpu. A turn begins by waiting for the one before it, and
/// ends by recording the event that the next one waits for.
class WatchedStream final : public Stream {
 public:
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    std::copy_n(from, bytes, to);
  }
  void run(DeviceOperation operation) override { run_on_host(operation); }
  void wait(const Event&) override {
    watch.in_turn = true;
    ++watch.turns;
  }
  void step(std::uint64_t) override {}
  void synchronize() override {}

 private:
  Event recorded(bool timed) override {
    if (timed) return Event(wall_clock().now());
    watch.in_turn = false;
    return Event();
  }
};

class WatchedCpu final : public Device {
 public:
  explicit WatchedCpu(Device& cpu) : Device({.name = "watched"}), cpu_(cpu) {}
  Buffer allocate(std::size_t bytes) override { return cpu_.allocate(bytes); }
  Buffer allocate_pinned(std::size_t bytes) override { return allocate(bytes); }
  std::unique_ptr<Stream> make_stream() override {
    return std::make_unique<WatchedStream>();
  }
  DeviceMemory memory() const override { return cpu_.memory(); }

 private:
  Device& cpu_;
};

/// Each use of a stepper is watched by itself.
class StepperTurns : public testing::Test {
 protected:
  void SetUp() override {
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(see).scopes(
        {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
    watch = {};
  }
  void TearDown() override { at::removeCallback(handle_); }

  /// Something was asked of libtorch, in so many turns and outside of none.
  static void expect_in_turns(const char* what, std::size_t turns) {
    EXPECT_GT(watch.inside, 0u) << what;
    EXPECT_EQ(watch.turns, turns) << what;
    EXPECT_THAT(watch.outside, testing::IsEmpty()) << what;
    EXPECT_FALSE(watch.in_turn) << what;
    watch = {};
  }

  PositionsModel positions_{"cpu"};
  WatchedCpu device_{positions_.device()};
  at::CallbackHandle handle_{};
};

// On a GPU, what is asked of libtorch outside of a turn runs on its default
// stream, which waits for none of ours.
TEST_F(StepperTurns, AllThatIsAskedOfLibtorchIsAskedInATurn) {
  Loader loader(positions_.data(),
                loader_options(positions_.job(), Side::train), device_);
  WatchedStream stream;
  auto batch = std::make_shared<Batch>(promised(loader.next()));
  watch = {};
  auto model =
      make_stepper(PositionsModel::spec(), *positions_.data()->facts().fitted,
                   device_, PositionsModel::kSteps);
  expect_in_turns("making it", 7);
  model->step(batch, stream, 0);
  expect_in_turns("step", 1);
  model->validate(batch, stream);
  expect_in_turns("validate", 1);
  model->validated();
  expect_in_turns("validated", 1);
  ModelState state = model->save();
  expect_in_turns("save", 1);
  model->restore(state);
  expect_in_turns("restore", 1);
}

TEST_F(StepperTurns, LossesAskNothingOfLibtorch) {
  Loader loader(positions_.data(),
                loader_options(positions_.job(), Side::train), device_);
  WatchedStream stream;
  auto batch = std::make_shared<Batch>(promised(loader.next()));
  auto model =
      make_stepper(PositionsModel::spec(), *positions_.data()->facts().fitted,
                   device_, PositionsModel::kSteps);
  model->step(batch, stream, 0);
  watch = {};
  EXPECT_EQ(model->losses(false).size(), 1u);
  EXPECT_EQ(watch.turns, 0u);
  EXPECT_EQ(watch.inside, 0u);
  EXPECT_THAT(watch.outside, testing::IsEmpty());
}

}  // namespace
}  // namespace penstock
