#pragma once

#include <cstdint>
#include <string>

#include "penstock/models/model.h"

namespace penstock {

/// Predicts where something is, and how surely, from a set of receivers.
struct SetPosition {
  std::string set;       ///< a json_set field
  std::string target;    ///< a columns field of two: latitude, longitude
  std::string latitude;  ///< keys of the set: where a receiver is, in degrees
  std::string longitude;
  std::string strength;     ///< key of the set, in dB: weights its centroid
  std::int64_t width = 64;  ///< of all layers; a multiple of 8
  // What a set is learned from is made a little different in every epoch.
  double dropout = 0.1;    ///< share of receivers left out
  double noise_db = 3;     ///< deviation of the noise added to strengths
  std::uint64_t seed = 0;  ///< of the first weights, and of these two
};

ModelKind set_position_model();

/// The settings of a model of this kind; an internal error for another kind's.
const SetPosition& set_position_of(const ModelSpec& model);

}  // namespace penstock
