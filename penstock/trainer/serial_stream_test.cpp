#include "penstock/trainer/serial_stream.h"

#include <c10/core/impl/FakeGuardImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "penstock/base/error.h"
#include "penstock/base/log.h"

namespace penstock {
namespace {

/// On the simulated accelerator, where work that nobody ordered reads poison.
class TurnsTest : public testing::Test {
 protected:
  Buffer pinned(int number) {
    Buffer buffer = device_->allocate_pinned(sizeof(number));
    std::memcpy(buffer.data(), &number, sizeof(number));
    return buffer;
  }
  static int number_in(const Buffer& buffer) {
    int number = 0;
    std::memcpy(&number, buffer.data(), sizeof(number));
    return number;
  }
  static auto copying(Stream& stream, const Buffer& to, const Buffer& from) {
    return [&] { stream.copy(to.data(), from.data(), sizeof(int)); };
  }

  std::unique_ptr<Device> device_ =
      open_device({.kind = "sim", .virtual_time = true});
  std::unique_ptr<Stream> one_ = device_->make_stream();
  std::unique_ptr<Stream> other_ = device_->make_stream();
};

TEST_F(TurnsTest, WorkOnAnotherStreamComesAfterWhatWasThereBefore) {
  SerialStream turns(*device_, at::kCPU);
  Buffer from = pinned(7), to = pinned(0);
  Buffer first = device_->allocate(sizeof(int));
  Buffer second = device_->allocate(sizeof(int));
  turns.on(*one_, copying(*one_, first, from));
  turns.on(*other_, copying(*other_, second, first));
  turns.on(*one_, copying(*one_, to, second));
  one_->synchronize();
  EXPECT_EQ(number_in(to), 7);
}

TEST_F(TurnsTest, NowWaitsForAllThatWasQueuedBeforeIt) {
  SerialStream turns(*device_, at::kCPU);
  Buffer from = pinned(7), to = pinned(0);
  Buffer there = device_->allocate(sizeof(int));
  turns.on(*one_, copying(*one_, there, from));
  turns.on(*other_, copying(*other_, to, there));
  EXPECT_NE(number_in(to), 7);
  EXPECT_EQ(turns.now([&] { return number_in(from); }), 7);
  EXPECT_EQ(number_in(to), 7);
}

TEST_F(TurnsTest, AStreamMayBeGoneWhenTheNextTurnComes) {
  SerialStream turns(*device_, at::kCPU);
  Buffer from = pinned(7), to = pinned(0);
  Buffer there = device_->allocate(sizeof(int));
  turns.on(*one_, copying(*one_, there, from));
  one_.reset();
  turns.on(*other_, copying(*other_, to, there));
  other_.reset();
  turns.now([] {});
  EXPECT_EQ(number_in(to), 7);
}

TEST_F(TurnsTest, WhatWorkThatFailedHadQueuedComesBeforeTheNextTurn) {
  SerialStream turns(*device_, at::kCPU);
  Buffer from = pinned(7), to = pinned(0);
  Buffer there = device_->allocate(sizeof(int));
  EXPECT_THROW(turns.on(*one_,
                        [&] {
                          copying(*one_, there, from)();
                          throw std::runtime_error("half way");
                        }),
               std::runtime_error);
  turns.on(*other_, copying(*other_, to, there));
  turns.finish();
  EXPECT_EQ(number_in(to), 7);
}

/// Has a name, and maybe a device that fails when it is asked for an event.
class Handle final : public Stream {
 public:
  explicit Handle(void* handle, bool fails = false)
      : Stream(handle), fails_(fails) {}
  void copy(std::byte*, const std::byte*, std::size_t) override {}
  void run(DeviceOperation) override {}
  void wait(const Event&) override {}
  void step(std::uint64_t) override {}
  void synchronize() override {}

 private:
  Event recorded(bool) override {
    if (!fails_) return Event();
    throw Error(ErrorKind::device,
                {.code = "test.device", .what = "the device has failed"});
  }

  bool fails_;
};

using Fake = c10::impl::FakeGuardImpl<at::DeviceType::PrivateUse1>;

class TurnsOfADevice : public TurnsTest {
 protected:
  static void SetUpTestSuite() {
    static Fake fake;
    c10::impl::DeviceGuardImplRegistrar(at::DeviceType::PrivateUse1, &fake);
    Fake::setDeviceIndex(0);
    Fake::resetStreams();
  }
  static std::uintptr_t current() {
    return static_cast<std::uintptr_t>(Fake::getCurrentStreamIdFor(0));
  }
};

TEST_F(TurnsOfADevice, WorkRunsOnTheStreamThatIsNamed) {
  SerialStream turns(*device_, at::Device(at::DeviceType::PrivateUse1, 0));
  std::uintptr_t address = 0x7f00;
  Handle stream(reinterpret_cast<void*>(address));
  std::uintptr_t during = 0;
  turns.on(stream, [&] { during = current(); });
  EXPECT_EQ(during, address);
  EXPECT_EQ(current(), 0u);
}

TEST_F(TurnsTest, AFailureAtTheEndOfATurnIsLogged) {
  SerialStream turns(*device_, at::kCPU);
  Handle stream(nullptr, true);
  std::string logged;
  set_log_writer([&](LogLevel, std::string_view line) { logged = line; });
  turns.on(stream, [] {});
  set_log_writer({});
  EXPECT_THAT(logged, testing::HasSubstr("the device has failed"));
}

}  // namespace
}  // namespace penstock
