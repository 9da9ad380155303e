#include <limits>

#include "penstock/base/hash.h"
#include "penstock/sampling/sampling.h"

namespace penstock {

const SettingsTable<Split>& split_settings() {
  static const SettingsTable<Split> table =
      SettingsTable<Split>()
          .number("train", &Split::train, 0, 1, "")
          .number("val", &Split::val, 0, 1, "")
          .integer("seed", &Split::seed, 0,
                   std::numeric_limits<std::int64_t>::max(), "")
          .text("by", &Split::by,
                "rows that share its value share the side; default: the key")
          .rule("description",
                "Sides by a keyed hash; train + val <= 1, the rest is unused.")
          .check([](Spec& spec, Split& split) {
            if (!spec.has("train")) split.train = 1 - split.val;
            if (split.train + split.val <= 1) return;
            spec.refuse("val",
                        "train " + Json(split.train).dump() + " and val " +
                            Json(split.val).dump() + " add up to more than 1",
                        "lower one of them; what they leave of 1 is not used");
          });
  return table;
}

Split parse_split(const Json* section, const std::string& path) {
  if (section == nullptr || section->is_null()) return {};
  return split_settings().parse(Spec(*section, path));
}

Side side_of(const Split& split, std::string_view by_value) {
  // 53 bits, so that the quotient stays below 1 after rounding.
  double u =
      static_cast<double>(hash64(by_value, split.seed) >> 11) * 0x1.0p-53;
  if (u < split.train) return Side::train;
  return u < split.train + split.val ? Side::val : Side::unused;
}

}  // namespace penstock
