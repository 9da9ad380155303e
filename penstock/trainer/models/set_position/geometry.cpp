#include "penstock/trainer/models/set_position/geometry.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <numbers>

namespace penstock {
namespace {

constexpr double kRadian = std::numbers::pi / 180;
constexpr double kEarthKm = 6371.0088;
constexpr double kKmPerDegree = kEarthKm * kRadian;
// The poles: a degree of longitude is never taken for less than this share of
// one of latitude.
constexpr double kLeastNarrowing = 0.01;
// 10^(dB / 20) as a power of e.
constexpr double kWeightPerDb = std::numbers::ln10 / 20;

// The short way round the Earth.
at::Tensor wrapped(const at::Tensor& degrees) {
  return degrees - (degrees / 360).round() * 360;
}

// Degrees from the mean: exact in float32 where the map is small.
at::Tensor from_mean(const at::Tensor& values, Scale scale) {
  return values * scale.divisor;
}

struct Place {
  at::Tensor latitude, longitude;  // degrees from the receivers' mean
};

/// What lies at `guess`, km to the east and to the north.
Place from_plane(const LocalTangentPlane& plane, const at::Tensor& guess) {
  const at::Tensor km = guess.to(at::kDouble);
  return {plane.latitude + km.select(1, 1) / kKmPerDegree,
          plane.longitude + km.select(1, 0) / (plane.narrowing * kKmPerDegree)};
}

Place from_means(const Geography& geography, const at::Tensor& target) {
  const Scale& lat = geography.target_latitude_scale;
  const Scale& lon = geography.target_longitude_scale;
  at::Tensor exact = target.to(at::kDouble);
  return {exact.select(1, 0) * lat.divisor +
              (lat.mean - geography.latitude_scale.mean),
          exact.select(1, 1) * lon.divisor +
              (lon.mean - geography.longitude_scale.mean)};
}

}  // namespace

// Weights are amplitudes: 10^(dB / 20), divided by their sum, which is a
// softmax of dB ln 10 / 20 and cannot overflow. East and north are kilometres
// from the centroid; a degree of longitude is narrowed by the cosine of its
// latitude.
LocalTangentPlane plane_of(const Geography& geography, const at::Tensor& set,
                           const at::Tensor& mask) {
  at::Tensor latitude =
      from_mean(set.select(2, geography.latitude), geography.latitude_scale);
  at::Tensor longitude =
      from_mean(set.select(2, geography.longitude), geography.longitude_scale);
  at::Tensor strength =
      set.select(2, geography.strength) * geography.strength_scale.divisor;
  at::Tensor weights =
      (strength * kWeightPerDb).masked_fill(mask.eq(0), -1e9).softmax(1);
  // Longitudes are averaged as seen from the strongest receiver, or a set
  // across the date line would have its centroid on the other side of the
  // Earth.
  at::Tensor strongest =
      longitude.gather(1, weights.argmax(1, /*keepdim=*/true));
  LocalTangentPlane plane;
  plane.latitude = (weights * latitude).sum(1);
  plane.longitude =
      strongest.squeeze(1) + (weights * wrapped(longitude - strongest)).sum(1);
  plane.narrowing = ((plane.latitude + geography.latitude_scale.mean) * kRadian)
                        .cos()
                        .clamp_min(kLeastNarrowing);
  at::Tensor east = wrapped(longitude - plane.longitude.unsqueeze(1)) *
                    plane.narrowing.unsqueeze(1);
  at::Tensor north = latitude - plane.latitude.unsqueeze(1);
  plane.receivers =
      at::stack({east, north}, 2) * kKmPerDegree * mask.unsqueeze(2);
  return plane;
}

at::Tensor on_plane(const Geography& geography, const LocalTangentPlane& plane,
                    const at::Tensor& target) {
  Place truth = from_means(geography, target);
  at::Tensor east =
      wrapped(truth.longitude - plane.longitude) * plane.narrowing;
  at::Tensor north = truth.latitude - plane.latitude;
  return (at::stack({east, north}, 1) * kKmPerDegree).to(at::kFloat);
}

at::Tensor place_of(const Geography& geography, const LocalTangentPlane& plane,
                    const at::Tensor& guess) {
  const Place place = from_plane(plane, guess);
  return at::stack({place.latitude + geography.latitude_scale.mean,
                    wrapped(place.longitude + geography.longitude_scale.mean)},
                   1);
}

// The haversine formula, which stays exact for small distances:
//   h = sin^2(dlat / 2) + cos(lat1) cos(lat2) sin^2(dlon / 2)
//   d = 2 R asin(sqrt(h)),    R = 6371.0088 km, the mean radius of the Earth
// Rounding may take h beyond [0, 1], so it is clamped.
at::Tensor distance_km(const Geography& geography,
                       const LocalTangentPlane& plane, const at::Tensor& guess,
                       const at::Tensor& target) {
  Place truth = from_means(geography, target);
  const auto& [latitude, longitude] = from_plane(plane, guess);
  at::Tensor north = (latitude - truth.latitude) * (kRadian / 2);
  at::Tensor east = (longitude - truth.longitude) * (kRadian / 2);
  double mean = geography.latitude_scale.mean;
  at::Tensor both = ((latitude + mean) * kRadian).cos() *
                    ((truth.latitude + mean) * kRadian).cos();
  at::Tensor h = north.sin().square() + both * east.sin().square();
  return h.clamp(0, 1).sqrt().asin() * (2 * kEarthKm);
}

// The root mean square of the deviations in east and north: the unit of all
// that the network sees and answers.
double spread_km(const Geography& geography) {
  double narrowing = std::cos(geography.latitude_scale.mean * kRadian);
  return kKmPerDegree *
         std::hypot(geography.latitude_scale.divisor,
                    geography.longitude_scale.divisor * narrowing) /
         std::numbers::sqrt2;
}

}  // namespace penstock
