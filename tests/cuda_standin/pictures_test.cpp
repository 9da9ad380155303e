#include <gtest/gtest.h>

#include "penstock/dataset/fake/pictures_dataset.h"
#include "penstock/loader/seen_batches.h"
#include "tests/cuda_standin/standin.h"

// Pictures that the device `cuda` finishes: by its kernel, from what was copied
// or from what it keeps.

namespace penstock {
namespace {

class CudaPictures : public testing::Test {
 protected:
  void expect_bytes_of_the_host(PicturesDataset pictures) {
    if (pictures.files) return expect_bytes(std::move(pictures), {"ram"});
    expect_bytes(std::move(pictures), {"ram", "device"});
  }
  void expect_bytes(PicturesDataset pictures,
                    const std::vector<const char*>& caches) {
    const std::unique_ptr<Device> cpu = open_for_test("cpu");
    const std::vector<SeenBatch> right =
        seen_batches(pictures.prepare("host", *cpu), loading_, *cpu);
    for (const char* cache : caches) {
      SCOPED_TRACE(pictures.settings + " in " + cache);
      pictures.options.cache = cache;
      auto set = pictures.prepare("device", *cuda_);
      EXPECT_EQ(set->facts().device_fields_of(Side::train).size(), 1U);
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
  for (bool files : {false, true}) {
    pictures.files = files;
    for (const std::string& settings : pictures.all_settings()) {
      pictures.settings = settings;
      expect_bytes_of_the_host(pictures);
    }
  }
}

TEST_F(CudaPictures, DamagedOnesAreSubstitutedAsOnTheHost) {
  loading_.on_bad = OnBad::substitute;
  loading_.batches = 90;
  PicturesDataset pictures = PicturesDataset::with_damaged(folder_);
  expect_bytes_of_the_host(pictures);
  pictures.files = true;
  expect_bytes_of_the_host(pictures);
}

TEST_F(CudaPictures, WhatStreamsHoldIsPlanned) {
  const auto set = PicturesDataset(folder_).prepare("device", *cuda_);
  ASSERT_EQ(set->plan().notes.size(), 1U);
  EXPECT_EQ(set->plan().notes[0],
            "field 'x' is finished on the device: each stream uses 1.0 MiB "
            "of device memory for it, and 2.0 MiB pinned");
  DatasetFacts info = set->facts();
  const RingBytes with = ring_bytes(loading_, info);
  info.device_fields[0][0].stream_bytes = {};
  const RingBytes without = ring_bytes(loading_, info);
  EXPECT_EQ(with.device - without.device, 3 * kResizeBytes);
  EXPECT_EQ(with.host - without.host, 6 * kResizeBytes);
}

/// Files that nvJPEG decodes, that of the stand-in.
class CudaFiles : public CudaPictures {
 protected:
  CudaFiles() { pictures_.files = true; }

  PicturesDataset pictures_{folder_};
};

TEST_F(CudaFiles, AreDecodedThereWhereTheyAreBaseline) {
  const std::size_t before = cuda_standin::decoded_images();
  loading_.batches = 3;
  expect_bytes_of_the_host(pictures_);
  const std::size_t there = cuda_standin::decoded_images() - before;
  EXPECT_GT(there, 5U);
  EXPECT_LT(there, 30U);
}

TEST_F(CudaFiles, AreDecodedByTheHostWhereNvjpegFails) {
  cuda_standin::fail("nvjpegDecodeBatched", 1, cudaErrorIllegalAddress);
  cuda_standin::fail("nvjpegDecodeBatched", 4, cudaErrorIllegalAddress);
  expect_bytes_of_the_host(pictures_);
}

TEST_F(CudaFiles, MemoryThatRunsOutIsAnError) {
  const auto set = pictures_.prepare("device", *cuda_);
  loading_.workers = 0;
  for (int k : {1, 2, 3}) {
    Loader loader(set, loading_, *cuda_);
    cuda_standin::fail("cudaMalloc", k, cudaErrorMemoryAllocation);
    try {
      loader.next();
      ADD_FAILURE() << k;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
    }
  }
}

TEST_F(CudaFiles, WhatStreamsHoldIsPlanned) {
  const auto set = pictures_.prepare("device", *cuda_);
  ASSERT_EQ(set->plan().notes.size(), 1U);
  EXPECT_EQ(set->plan().notes[0],
            "field 'x' is finished on the device: each stream uses 9.0 MiB "
            "of device memory for it, and 10.0 MiB pinned; its decoders use "
            "128.0 MiB");
  // Decoders are the device's, whatever streams and loaders there are.
  EXPECT_EQ(decoder_bytes(set->facts()),
            kDecoders * (kDecodedBytes + kDecoderBytes));
}

// A device without engines, and then one whose memory is all given back.
TEST(CudaFilesWithoutEngines, AreDecodedThereAllTheSame) {
  cuda_standin::start({.jpeg_engines = false});
  {
    PicturesDataset pictures(PENSTOCK_TEST_DATA "/images");
    pictures.files = true;
    const std::unique_ptr<Device> cuda = open_for_test("cuda");
    const LoaderOptions loading{.batch_size = 16, .batches = 3};
    seen_batches(pictures.prepare("device", *cuda), loading, *cuda);
    EXPECT_GT(cuda_standin::decoded_images(), 5U);
  }
  EXPECT_EQ(cuda_standin::used(0), 0U);
  cuda_standin::start({});
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
