#pragma once

#include <cstdint>

#include "penstock/session/session.h"

namespace penstock {

/// How far the weighted centroid of the receivers is from the truth, the
/// simplest estimate that a model of `set_position` must beat.
struct CentroidError {
  double n = 0;  ///< of the weights 10^(strength / 10 n): the best of 1, 2, 4
                 ///< on the train rows
  double train_median_km = 0;
  double val_median_km = 0;  ///< over the held-out rows; NaN without any
  std::int64_t val_rows = 0;
};

/// Over all rows of a session on the host (device cpu) that was opened with
/// `job`, whose model says which fields they are.
CentroidError weighted_centroid(const Session& session, const Job& job);

/// Great-circle distance on a sphere of 6371.0088 km (the mean radius, IUGG),
/// by the haversine formula; degrees.
double haversine_km(double latitude, double longitude, double other_latitude,
                    double other_longitude);

}  // namespace penstock
