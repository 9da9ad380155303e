#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/dataset/dataset.h"
#include "penstock/dataset/fake/pictures_dataset.h"
#include "penstock/device/fake/named_gpu.h"
#include "penstock/loader/seen_batches.h"

// Pictures that a device finishes have the bytes that the host makes, whatever
// they are and wherever they are kept.

namespace penstock {
namespace {

using testing::HasSubstr;

constexpr const char* kFolder = PENSTOCK_TEST_DATA "/images";

std::vector<SeenBatch> seen_on_host(PicturesDataset pictures,
                                    LoaderOptions options) {
  const std::unique_ptr<Device> cpu = open_for_test("cpu");
  pictures.options.cache = "ram";
  options.workers = 0;
  return seen_batches(pictures.prepare("host", *cpu), options, *cpu);
}

/// Where they are kept, and whether as files that the device decodes.
struct PicturesCase : TierCase {
  bool files = false;
};

class DevicePictures : public testing::TestWithParam<PicturesCase> {
 protected:
  DevicePictures() { pictures_.files = GetParam().files; }
  void expect_bytes_of_the_host(const PicturesDataset& pictures) {
    const std::vector<SeenBatch> made = seen(pictures);
    EXPECT_EQ(made, seen_on_host(pictures, loading_));
    ASSERT_EQ(std::ssize(made), loading_.batches);
  }
  std::vector<SeenBatch> seen(PicturesDataset pictures) {
    pictures.options.cache = GetParam().cache;
    auto set = pictures.prepare("device", *device_);
    const bool there = GetParam().on_sim() &&
                       (!GetParam().files || pictures.options.cache != "none");
    EXPECT_EQ(set->facts().device_fields_of(loading_.side).size(),
              there ? 1U : 0U);
    return seen_batches(set, loading_, *device_);
  }

  const std::unique_ptr<Device> device_ = open_for_test(GetParam().device);
  PicturesDataset pictures_{kFolder};
  LoaderOptions loading_{.tail = Tail::pad,
                         .batch_size = 16,
                         .workers = GetParam().workers,
                         .batches = 14};
};

// Two epochs of them, and the padding behind each.
TEST_P(DevicePictures, HaveTheBytesOfTheHost) {
  for (const std::string& settings : pictures_.all_settings()) {
    SCOPED_TRACE(settings);
    pictures_.settings = settings;
    expect_bytes_of_the_host(pictures_);
  }
}

TEST_P(DevicePictures, OfTheOtherSideToo) {
  pictures_.options.split = {.train = 0.5, .val = 0.5};
  loading_.side = Side::val;
  for (const std::string& settings : pictures_.all_settings()) {
    SCOPED_TRACE(settings);
    pictures_.settings = settings;
    expect_bytes_of_the_host(pictures_);
  }
}

// What stands for a damaged picture has the room of any other one, which may
// come in its place.
TEST_P(DevicePictures, DamagedOnesAreMaskedAndSubstitutedAsOnTheHost) {
  pictures_ = PicturesDataset::with_damaged(kFolder);
  pictures_.files = GetParam().files;
  loading_.batches = 90;
  for (OnBad on_bad : {OnBad::mask, OnBad::substitute}) {
    loading_.on_bad = on_bad;
    expect_bytes_of_the_host(pictures_);
  }
}

// The substitute is larger than the sound picture in whose place it comes.
TEST_P(DevicePictures, GiveWayWhereAnotherFieldRejectsTheirRow) {
  if (GetParam().cache == std::string("device"))
    GTEST_SKIP() << "the field beside it is the host's";
  pictures_ = PicturesDataset::with_damaged_beside(kFolder);
  pictures_.files = GetParam().files;
  loading_.batches = 300;
  loading_.on_bad = OnBad::substitute;
  expect_bytes_of_the_host(pictures_);
}

TEST_P(DevicePictures, ADamagedOneIsNamedInItsTurn) {
  loading_.batches = 90;
  pictures_ = PicturesDataset::with_damaged(kFolder);
  pictures_.files = GetParam().files;
  try {
    seen(pictures_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "data.bad_sample");
    EXPECT_THAT(error.what(), HasSubstr("damaged PNG"));
    EXPECT_THAT(error.what(), HasSubstr(", image, epoch 0"));
  }
}

INSTANTIATE_TEST_SUITE_P(All, DevicePictures,
                         testing::Values(PicturesCase{{"cpu", "ram", 0}},
                                         PicturesCase{{"cpu", "ram", 2}},
                                         PicturesCase{{"sim", "ram", 0}},
                                         PicturesCase{{"sim", "ram", 1}},
                                         PicturesCase{{"sim", "ram", 2}},
                                         PicturesCase{{"sim", "ram", 8}},
                                         PicturesCase{{"sim", "none", 2}},
                                         PicturesCase{{"sim", "device", 0}},
                                         PicturesCase{{"sim", "device", 2}},
                                         PicturesCase{{"sim", "device", 8}}));
INSTANTIATE_TEST_SUITE_P(Files, DevicePictures,
                         testing::Values(PicturesCase{{"cpu", "ram", 2}, true},
                                         PicturesCase{{"sim", "ram", 0}, true},
                                         PicturesCase{{"sim", "ram", 2}, true},
                                         PicturesCase{{"sim", "ram", 8}, true},
                                         PicturesCase{{"sim", "none", 2},
                                                      true}));

TEST(DevicePicturesPlan, SaysWhereTheyAreFinished) {
  const PicturesDataset pictures(kFolder);
  for (const auto& [kind, says] :
       {std::pair("sim", "field 'x' is finished on the device\n"),
        std::pair("cpu",
                  "field 'x' is finished on the host: host memory is")}) {
    const std::unique_ptr<Device> device = open_for_test(kind);
    EXPECT_THAT(pictures.prepare("device", *device)->plan().text(),
                HasSubstr(says));
    EXPECT_EQ(pictures.prepare("host", *device)->plan().notes.size(), 0U);
  }
}

TEST(DevicePicturesPlan, PicturesThatADeviceFinishesAreKeptThere) {
  PicturesDataset pictures(kFolder);
  pictures.options.cache = "auto";
  const std::unique_ptr<Device> sim = open_for_test("sim");
  EXPECT_EQ(pictures.prepare("device", *sim)->plan().tier, Tier::device);
  EXPECT_EQ(pictures.prepare("host", *sim)->plan().tier, Tier::ram);
}

TEST(DevicePicturesPlan, FilesThatADeviceDecodesAreKeptOnTheHost) {
  PicturesDataset pictures(kFolder);
  pictures.files = true;
  pictures.options.cache = "auto";
  const std::unique_ptr<Device> sim = open_for_test("sim");
  const auto set = pictures.prepare("device", *sim);
  EXPECT_EQ(set->plan().tier, Tier::ram);
  EXPECT_THAT(set->plan().text(),
              HasSubstr("field 'x' is finished on the device\n"));
  pictures.options.cache = "none";
  EXPECT_THAT(pictures.prepare("device", *sim)->plan().text(),
              HasSubstr("field 'x' is finished on the host: the files are not "
                        "kept; \"loader.cache\": \"ram\" keeps them"));
  pictures.options.cache = "device";
  try {
    pictures.prepare("device", *sim);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "cache.no_room");
    EXPECT_THAT(error.what(),
                HasSubstr("host finishes fields for every batch"));
  }
}

/// A GPU whose driver is there, and nvJPEG is not.
class WithoutDecoders final : public NamedGpu {
 public:
  void load_decoders() override {
    throw Error(ErrorKind::device, {.code = "device.no_nvjpeg"});
  }
};

TEST(DevicePicturesPlan, MissingDecodersAreToldBeforeARowIsRead) {
  PicturesDataset pictures(kFolder);
  pictures.files = true;
  std::vector<std::string> scans;
  pictures.options.scanning = [&](const std::string& line) {
    scans.push_back(line);
  };
  WithoutDecoders device;
  auto error_of = [&](const std::string& place) -> std::string {
    const TableDatasetOptions with = pictures.options_with(place);
    try {
      prepare_dataset(
          with, std::make_unique<FakeSource>(pictures.table, requests_of(with)),
          device);
    } catch (const Error& error) {
      return error.parts().code;
    }
    return {};
  };
  EXPECT_EQ(error_of("device"), "device.no_nvjpeg");
  EXPECT_TRUE(scans.empty());
  pictures.options.cache = "none";  // then the host decodes
  EXPECT_EQ(error_of("device"), "");
}

TEST(DevicePicturesPlan, WhatADeviceKeepsComesBack) {
  PicturesDataset pictures = PicturesDataset::with_damaged(kFolder);
  pictures.options.cache = "device";
  const LoaderOptions loading{
      .batch_size = 16, .on_bad = OnBad::substitute, .batches = 90};
  const std::unique_ptr<Device> sim = open_for_test("sim");
  auto back = pictures.prepare("device", *sim)->off_device(1, *sim).rows;
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(back->plan().tier, Tier::ram);
  EXPECT_THAT(back->plan().text(), HasSubstr("finished on the device"));
  EXPECT_EQ(seen_batches(back, loading, *sim), seen_on_host(pictures, loading));
}

}  // namespace
}  // namespace penstock
