#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "penstock/loader/loader.h"

namespace penstock {

/// Where the numbers of a set and of its target lie, and what they were.
struct Geography {
  std::int64_t latitude = 0;  ///< keys of the set, by number
  std::int64_t longitude = 0;
  std::int64_t strength = 0;
  Scale latitude_scale, longitude_scale, strength_scale;
  Scale target_latitude_scale, target_longitude_scale;
};

/// A set of receivers on a plane of its own, around their inner centroid.
///
/// The centroid's weights are 10^(strength / 20): the square root of a power
/// in dB. Kilometres on the plane are those of the sphere at the centroid; over
/// a few hundred they are off by less than a percent.
struct LocalTangentPlane {
  at::Tensor latitude;   ///< [rows], of the centroid: degrees from the mean
  at::Tensor longitude;  ///< of the receivers' key, so that float32 is enough
  at::Tensor narrowing;  ///< [rows], cosine of the latitude
  at::Tensor receivers;  ///< [rows, max, 2], km to the east and to the north
};

/// `set` is [rows, max, keys], `mask` [rows, max]; both float32. A row without
/// a receiver gives some plane with finite numbers.
LocalTangentPlane plane_of(const Geography& geography, const at::Tensor& set,
                           const at::Tensor& mask);

/// Where `target` [rows, 2] (latitude, longitude) lies on the planes: [rows,
/// 2], km to the east and to the north, float32.
at::Tensor on_plane(const Geography& geography, const LocalTangentPlane& plane,
                    const at::Tensor& target);

/// The place that lies at `guess` ([rows, 2], km) on the plane: [rows, 2],
/// degrees of latitude and longitude (from -180 to 180), float64.
at::Tensor place_of(const Geography& geography, const LocalTangentPlane& plane,
                    const at::Tensor& guess);

/// The great-circle distance in km, [rows] in float64, between `target` and the
/// place that lies at `guess` ([rows, 2], km) on the plane.
at::Tensor distance_km(const Geography& geography,
                       const LocalTangentPlane& plane, const at::Tensor& guess,
                       const at::Tensor& target);

/// A length typical of how far receivers are apart, in km.
double spread_km(const Geography& geography);

}  // namespace penstock
