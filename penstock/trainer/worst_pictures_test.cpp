#include "penstock/trainer/worst_pictures.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

Json details_of(const std::vector<SampleId>& samples) {
  Json details;
  details["worst"] = Json(Json::Array{});
  for (SampleId sample : samples) {
    Json entry;
    entry["sample"] = sample;
    details["worst"].push_back(std::move(entry));
  }
  return details;
}

const Json* picture_of(const Json& details, std::size_t at) {
  return details.find("worst")->array()[at].find("picture");
}

TEST(WorstPictures, TheHighestLossesOfAllBatchesKeepTheirPicture) {
  WorstPictures worst;
  for (SampleId batch = 0; batch < 3; ++batch) {
    const std::vector<SampleId> samples = {10 * batch, 10 * batch + 1};
    const at::Tensor pictures =
        at::full({2, 3, 2, 2}, 16 * (batch + 1), at::kByte);
    worst.add(pictures, at::tensor({1.0F, -1.0F}), samples);
  }
  Json details = details_of({20, 0, 99});
  worst.take(details);
  ASSERT_NE(picture_of(details, 0), nullptr);
  EXPECT_EQ(picture_of(details, 0)->find("rgb")->string(),
            "303030303030303030303030");
  EXPECT_EQ(picture_of(details, 1)->find("rgb")->string(),
            "101010101010101010101010");
  EXPECT_EQ(picture_of(details, 2), nullptr) << "it was not seen";
  Json again = details_of({20});
  worst.take(again);
  EXPECT_EQ(picture_of(again, 0), nullptr) << "it was taken";
}

TEST(WorstPictures, AreSmallAndFewHoweverManyRowsThereAre) {
  WorstPictures worst;
  std::vector<SampleId> all;
  for (SampleId first = 0; first < 90; first += 30) {
    std::vector<SampleId> samples;
    std::vector<float> losses;
    for (SampleId sample = first; sample < first + 30; ++sample) {
      samples.push_back(sample);
      losses.push_back(static_cast<float>(sample % 45));
    }
    all.insert(all.end(), samples.begin(), samples.end());
    worst.add(at::rand({30, 1, 100, 200}), at::tensor(losses), samples);
  }
  Json details = details_of(all);
  worst.take(details);
  std::size_t kept = 0;
  for (std::size_t at = 0; at < all.size(); ++at) {
    const Json* picture = picture_of(details, at);
    EXPECT_EQ(picture != nullptr, all[at] % 45 >= 35) << all[at];
    if (picture == nullptr) continue;
    ++kept;
    EXPECT_EQ(picture->find("width")->integer(), 40);
    EXPECT_EQ(picture->find("height")->integer(), 20);
    EXPECT_EQ(picture->find("rgb")->string().size(), 2U * 3 * 40 * 20);
  }
  EXPECT_EQ(kept, 20U);
}

TEST(WorstPictures, FloatsAreStretchedToAllBrightnesses) {
  WorstPictures worst;
  at::Tensor picture = at::zeros({1, 1, 1, 2});
  picture.index_put_(
      {at::tensor({0}), at::tensor({0}), at::tensor({0}), at::tensor({1})},
      at::tensor(2.5F));
  const std::vector<SampleId> samples = {4};
  worst.add(picture, at::tensor({1.0F}), samples);
  Json details = details_of({4});
  worst.take(details);
  EXPECT_EQ(picture_of(details, 0)->find("rgb")->string(), "000000ffffff");
}

}  // namespace
}  // namespace penstock
