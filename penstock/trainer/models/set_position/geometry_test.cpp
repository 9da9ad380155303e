#include "penstock/trainer/models/set_position/geometry.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

namespace penstock {
namespace {

/// Sets of latitude, longitude and strength, as they are.
const Geography kPlain{.latitude = 0, .longitude = 1, .strength = 2};

at::Tensor floats(std::vector<float> values) { return at::tensor(values); }

double value(const at::Tensor& tensor) { return tensor.item<double>(); }

TEST(Geometry, CentroidIsWeightedByTheRootOfThePower) {
  // 20 dB more are ten times the weight.
  at::Tensor set = floats({0, 0, 10, 1.1f, 0, 30, 55, 66, 77}).view({1, 3, 3});
  LocalTangentPlane plane =
      plane_of(kPlain, set, floats({1, 1, 0}).view({1, 3}));
  EXPECT_NEAR(value(plane.latitude), 1.0, 1e-6);
  EXPECT_NEAR(value(plane.longitude), 0, 1e-6);
  EXPECT_NEAR(value(plane.receivers[0][0][1]), -111.195, 1e-3);
  EXPECT_NEAR(value(plane.receivers[0][1][1]), 11.1195, 1e-3);
  EXPECT_EQ(value(plane.receivers[0][2].abs().sum()), 0);
}

TEST(Geometry, ADegreeOfLongitudeShrinksTowardsThePole) {
  at::Tensor set = floats({60, 9, 0, 60, 11, 0}).view({1, 2, 3});
  LocalTangentPlane plane = plane_of(kPlain, set, at::ones({1, 2}));
  EXPECT_NEAR(value(plane.receivers[0][1][0]), 111.195 * 0.5, 1e-2);
  EXPECT_NEAR(value(plane.receivers[0][0][0]), -111.195 * 0.5, 1e-2);
}

TEST(Geometry, UndoesTheStandardisation) {
  Geography scaled = kPlain;
  scaled.latitude_scale = {45, 2};
  scaled.longitude_scale = {9, 4};
  scaled.strength_scale = {20, 5};
  scaled.target_latitude_scale = {46, 3};
  scaled.target_longitude_scale = {8, 5};
  at::Tensor plain = floats({44, 8, 10, 46, 12, 30}).view({1, 2, 3});
  at::Tensor target = floats({45.3f, 9.5f}).view({1, 2});
  at::Tensor mean = floats({45, 9, 20}), divisor = floats({2, 4, 5});
  at::Tensor mask = at::ones({1, 2});
  at::Tensor expected = on_plane(kPlain, plane_of(kPlain, plain, mask), target);
  at::Tensor found =
      on_plane(scaled, plane_of(scaled, (plain - mean) / divisor, mask),
               (target - floats({46, 8})) / floats({3, 5}));
  EXPECT_LT(value((expected - found).abs().max()), 0.002);
}

TEST(Geometry, WorksAcrossTheDateLine) {
  at::Tensor set = floats({0, 179, 0, 0, -179, 0}).view({1, 2, 3});
  LocalTangentPlane plane = plane_of(kPlain, set, at::ones({1, 2}));
  EXPECT_NEAR(std::abs(value(plane.longitude)), 180, 1e-4);
  EXPECT_NEAR(value(plane.receivers.abs().max()), 111.195, 1e-2);
  at::Tensor target = floats({0, -179}).view({1, 2});
  EXPECT_NEAR(value(on_plane(kPlain, plane, target)[0][0]), 111.195, 1e-2);
}

TEST(Geometry, ARowWithoutReceiversHasFiniteNumbers) {
  LocalTangentPlane plane =
      plane_of(kPlain, at::zeros({1, 4, 3}), at::zeros({1, 4}));
  EXPECT_TRUE(std::isfinite(value(plane.latitude)));
  EXPECT_TRUE(std::isfinite(value(plane.longitude)));
  EXPECT_EQ(value(plane.receivers.abs().sum()), 0);
}

TEST(Geometry, PaddingDoesNotMoveThePlane) {
  at::Tensor set = floats({45, 9, 10, 46, 10, 12}).view({1, 2, 3});
  at::Tensor padded = floats({45, 9, 10, 46, 10, 12, 7, 7, 99}).view({1, 3, 3});
  LocalTangentPlane one = plane_of(kPlain, set, at::ones({1, 2}));
  LocalTangentPlane other =
      plane_of(kPlain, padded, floats({1, 1, 0}).view({1, 3}));
  EXPECT_EQ(value(one.latitude), value(other.latitude));
  EXPECT_EQ(value(one.longitude), value(other.longitude));
}

TEST(Geometry, DistanceIsTheGreatCircle) {
  at::Tensor set = floats({45, 9, 10}).view({1, 1, 3});
  LocalTangentPlane plane = plane_of(kPlain, set, at::ones({1, 1}));
  at::Tensor here = at::zeros({1, 2});
  // Milan's meridian: a degree of latitude; a degree of longitude at 45 N.
  EXPECT_NEAR(
      value(distance_km(kPlain, plane, here, floats({46, 9}).view({1, 2}))),
      111.195, 1e-3);
  EXPECT_NEAR(
      value(distance_km(kPlain, plane, here, floats({45, 10}).view({1, 2}))),
      78.6263, 1e-3);
  // The other side of the Earth.
  EXPECT_NEAR(
      value(distance_km(kPlain, plane, here, floats({-45, -171}).view({1, 2}))),
      20015.11, 0.1);
}

TEST(Geometry, AGuessThatIsRightIsNoDistanceAway) {
  at::Tensor set = floats({45, 9, 10, 46, 11, 12}).view({1, 2, 3});
  LocalTangentPlane plane = plane_of(kPlain, set, at::ones({1, 2}));
  at::Tensor target = floats({45.7f, 9.8f}).view({1, 2});
  at::Tensor guess = on_plane(kPlain, plane, target);
  EXPECT_LT(value(distance_km(kPlain, plane, guess, target)), 0.001);
}

TEST(Geometry, SpreadIsThatOfTheReceivers) {
  Geography scaled = kPlain;
  scaled.latitude_scale = {60, 1};
  scaled.longitude_scale = {9, 2};
  EXPECT_NEAR(spread_km(scaled), 111.195, 1e-3);
}

}  // namespace
}  // namespace penstock
