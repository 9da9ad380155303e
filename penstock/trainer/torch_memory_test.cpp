#include "penstock/trainer/torch_memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <gtest/gtest.h>

#include <vector>

namespace penstock {
namespace {

using c10::CachingAllocator::StatType;

/// An allocator as a GPU has one: it keeps what is freed until it is emptied.
class KeepingAllocator final : public c10::DeviceAllocator {
 public:
  std::int64_t used = 0, kept = 0, most = 0;
  bool ready = true;

  bool initialized() override { return ready; }
  void emptyCache(c10::MempoolId_t) override { kept = 0; }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(
      c10::DeviceIndex) override {
    c10::CachingDeviceAllocator::DeviceStats stats;
    constexpr auto kAll = static_cast<std::size_t>(StatType::AGGREGATE);
    stats.allocated_bytes[kAll].current = used;
    stats.allocated_bytes[kAll].peak = most;
    stats.reserved_bytes[kAll].current = used + kept;
    return stats;
  }
  void resetPeakStats(c10::DeviceIndex) override { most = used; }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  c10::DataPtr allocate(std::size_t) override { return {}; }
  void copy_data(void*, const void*, std::size_t) const override {}
};

class DeviceMemoryTest : public testing::Test {
 protected:
  // Of a kind of device that no library has registered here.
  static constexpr auto kKind = c10::DeviceType::PrivateUse1;
  DeviceMemoryTest() { c10::SetAllocator(kKind, &allocator_, 255); }
  const c10::Device device_{kKind, 0};
  static inline KeepingAllocator allocator_;  // registered for good
};

TEST_F(DeviceMemoryTest, WhatTheAllocatorKeepsGoesBackToTheDevice) {
  allocator_ = {};
  allocator_.used = 100, allocator_.kept = 30;
  EXPECT_EQ(empty_allocator_cache(device_), 30);
  EXPECT_EQ(empty_allocator_cache(device_), 0);
}

TEST_F(DeviceMemoryTest, APeakIsTheAllocators) {
  allocator_ = {};
  allocator_.used = 100, allocator_.most = 170;
  EXPECT_EQ(tensor_peak(device_), 170);
  begin_tensor_peak(device_);
  EXPECT_EQ(tensor_peak(device_), 100);
}

TEST_F(DeviceMemoryTest, OfADeviceThatWasNotUsedYetNothingIsAsked) {
  allocator_ = {};
  allocator_.kept = 30, allocator_.ready = false;
  EXPECT_EQ(empty_allocator_cache(device_), 0);
  EXPECT_EQ(tensor_peak(device_), 0);
}

TEST(HostMemory, KeepsNothing) {
  EXPECT_EQ(empty_allocator_cache(c10::Device(c10::DeviceType::CPU)), 0);
}

TEST(TorchMemory, TheLimitOfAGpuStandsBesideTheUsersSettings) {
  EXPECT_EQ(with_memory_share("", 0.25),
            "per_process_memory_fraction:0.250000");
  EXPECT_EQ(with_memory_share("expandable_segments:True", 1),
            "expandable_segments:True,per_process_memory_fraction:1.000000");
}

}  // namespace
}  // namespace penstock
