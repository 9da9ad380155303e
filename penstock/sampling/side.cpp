#include <limits>

#include "penstock/base/error.h"
#include "penstock/base/hash.h"
#include "penstock/base/spec.h"
#include "penstock/sampling/sampling.h"

namespace penstock {

Split parse_split(const Json* section, const std::string& path) {
  Split split;
  if (section == nullptr || section->is_null()) return split;
  Spec spec(*section, path);
  split.val = spec.number("val", 0.0, 0.0, 1.0);
  split.train = spec.number("train", 1.0 - split.val, 0.0, 1.0);
  split.seed = static_cast<std::uint64_t>(
      spec.integer("seed", 0, 0, std::numeric_limits<std::int64_t>::max()));
  split.by = spec.text("by", "");
  spec.finish();
  if (split.train + split.val > 1.0)
    spec.refuse("val",
                "train " + Json(split.train).dump() + " and val " +
                    Json(split.val).dump() + " are more than 1 together",
                "lower one of them; what they leave of 1 is not used");
  return split;
}

Side side_of(const Split& split, std::string_view by_value) {
  // 53 bits, so that the quotient stays below 1 after rounding.
  double u =
      static_cast<double>(hash64(by_value, split.seed) >> 11) * 0x1.0p-53;
  if (u < split.train) return Side::train;
  return u < split.train + split.val ? Side::val : Side::unused;
}

}  // namespace penstock
