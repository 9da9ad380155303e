#pragma once

#include <vector>

#include "penstock/base/setting_schema.h"
#include "penstock/base/spec.h"
#include "penstock/dataset/dataset.h"

namespace penstock {

/// One entry of `sources`.
struct MixedSource {
  SourceSpec source;
  std::vector<Field> fields;  ///< its own, or the job's
  Split split;                ///< the same
  double weight = 1;
};

/// What a job says beside `sources`: for those that say nothing of it.
struct BesideSources {
  const std::vector<Field>& fields;  ///< none where the job has no `fields`
  const Split& split;
  const Drawing& drawing;
  Preparing preparing;
};
/// Reads "sources", the sources that are mixed. All have fields, in the same
/// order. Throws Error(request).
std::vector<MixedSource> parse_mixed_sources(Spec& document,
                                             const BesideSources& job);

/// The schema of that section.
Json mixed_sources_schema();

}  // namespace penstock
