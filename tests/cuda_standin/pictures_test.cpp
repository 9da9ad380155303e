#include <gtest/gtest.h>

#include "penstock/dataset/fake/pictures_dataset.h"
#include "penstock/loader/seen_batches.h"

// Pictures that the device `cuda` finishes: by its kernel, from what was copied
// or from what it keeps.

namespace penstock {
namespace {

class CudaPictures : public testing::Test {
 protected:
  void expect_bytes_of_the_host(PicturesDataset pictures) {
    const std::unique_ptr<Device> cpu = open_for_test("cpu");
    const std::vector<SeenBatch> right =
        seen_batches(pictures.prepare("host", *cpu), loading_, *cpu);
    for (const char* cache : {"ram", "device"}) {
      SCOPED_TRACE(pictures.settings + " in " + cache);
      pictures.options.cache = cache;
      auto set = pictures.prepare("device", *cuda_);
      EXPECT_EQ(set->info().device_fields_of(Side::train).size(), 1U);
      EXPECT_EQ(seen_batches(set, loading_, *cuda_), right);
    }
  }

  const std::string folder_ = PENSTOCK_TEST_DATA "/images";
  const std::unique_ptr<Device> cuda_ = open_for_test("cuda");
  LoaderOptions loading_{
      .tail = Tail::pad, .batch_size = 16, .workers = 2, .batches = 14};
};

TEST_F(CudaPictures, HaveTheBytesOfTheHost) {
  PicturesDataset pictures(folder_);
  for (const std::string& settings : PicturesDataset::kinds_of_settings()) {
    pictures.settings = settings;
    expect_bytes_of_the_host(pictures);
  }
}

TEST_F(CudaPictures, DamagedOnesAreSubstitutedAsOnTheHost) {
  loading_.on_bad = OnBad::substitute;
  loading_.batches = 90;
  expect_bytes_of_the_host(PicturesDataset::with_damaged(folder_));
}

TEST_F(CudaPictures, WhatStreamsHoldIsPlanned) {
  const auto set = PicturesDataset(folder_).prepare("device", *cuda_);
  ASSERT_EQ(set->plan().notes.size(), 1U);
  EXPECT_EQ(set->plan().notes[0],
            "field 'x' is finished on the device: each stream holds 1.0 MiB "
            "there for it, and 2.0 MiB pinned");
  DatasetInfo info = set->info();
  const RingBytes with = ring_bytes(loading_, info);
  info.device_fields[0][0].stream_bytes = 0;
  const RingBytes without = ring_bytes(loading_, info);
  EXPECT_EQ(with.device - without.device, 3 * kResizeBytes);
  EXPECT_EQ(with.host - without.host, 6 * kResizeBytes);
}

TEST_F(CudaPictures, WhatStreamsHoldIsCharged) {
  const auto set = PicturesDataset(folder_).prepare("device", *cuda_);
  auto held = [](HeldIn place) {
    for (const HeldMemory& one : held_memory())
      if (one.owner == HeldFor::copies && one.place == place) return one.bytes;
    return std::size_t{0};
  };
  const std::size_t there = held(HeldIn::device), pinned = held(HeldIn::pinned);
  {
    Loader loader(set, loading_, *cuda_);
    loader.next();
    EXPECT_GE(held(HeldIn::device), there + kResizeBytes);
    EXPECT_EQ(held(HeldIn::pinned) - pinned,
              2 * (held(HeldIn::device) - there));
  }
  EXPECT_EQ(held(HeldIn::device), there);
  EXPECT_EQ(held(HeldIn::pinned), pinned);
}

}  // namespace
}  // namespace penstock
