#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "penstock/base/hash.h"
#include "penstock/sampling/sampling.h"

namespace penstock {

const SettingsTable<Split>& split_settings() {
  static const SettingsTable<Split> table =
      SettingsTable<Split>()
          .number("train", &Split::train, 0, 1,
                  "Share of the rows to train on. Default: what `val` leaves")
          .number("val", &Split::val, 0, 1,
                  "Share of the rows to validate on. Rows that neither side "
                  "takes are not used")
          .integer("seed", &Split::seed, 0,
                   std::numeric_limits<std::int64_t>::max(),
                   "Seed of the division. Another seed gives other sides")
          .text("by", &Split::by,
                "Column by whose value rows are divided: rows with the same "
                "value are on the same side. Default: the key of a row")
          .rule("description",
                "Divides the rows into train and validation by a hash, so that "
                "a row always has the same side.")
          .check([](Spec& spec, Split& split) {
            if (!spec.has("train")) split.train = 1 - split.val;
            if (split.train + split.val <= 1) return;
            spec.refuse("val",
                        "train " + Json(split.train).dump() + " and val " +
                            Json(split.val).dump() + " add up to more than 1",
                        "lower one of them; the rest up to 1 is not used");
          });
  return table;
}

Json split_section(const Json& share, const std::string& path) {
  constexpr double kDigits = 1e12;  // 1 - 0.8 is not the number nearest to 0.2
  const double train = share.number();
  if (!(train > 0 && train < 1))
    throw Error(ErrorKind::request,
                {.code = "settings.value",
                 .what = "cannot use the settings",
                 .where = path,
                 .why = "found " + share.dump() +
                        ", expected a share of the rows between 0 and 1",
                 .next = "write 0.8 to train on 80 % of the rows and validate "
                         "on the rest"});
  Json section;
  section["train"] = train;
  section["val"] = std::round((1 - train) * kDigits) / kDigits;
  return section;
}

Split parse_split(const Json* section, const std::string& path) {
  if (section == nullptr || section->is_null()) return {};
  if (section->is_number()) {
    const Json written = split_section(*section, path);
    return split_settings().parse(Spec(written, path));
  }
  return split_settings().parse(Spec(*section, path));
}

Side side_of(const Split& split, std::string_view by_value) {
  // 53 bits, so that the quotient stays below 1 after rounding.
  double u =
      static_cast<double>(hash64(by_value, split.seed) >> 11) * 0x1.0p-53;
  if (u < split.train)
    return u < split.train * split.share ? Side::train : Side::unused;
  return u < split.train + split.val * split.share ? Side::val : Side::unused;
}

namespace {

/// The nth row on a side is kept where `kept[n]`.
std::vector<bool> chosen(const Split& split, Side side, std::int64_t rows) {
  constexpr std::int64_t kRun = 1024;
  const Permutation order(rows, split.seed + static_cast<std::uint64_t>(side));
  std::vector<bool> kept(static_cast<std::size_t>(rows));
  std::vector<std::int64_t> numbers;
  for (std::int64_t first = 0; first < split.most; first += kRun) {
    numbers.resize(
        static_cast<std::size_t>(std::min(kRun, split.most - first)));
    order.range(first, numbers);
    for (std::int64_t number : numbers)
      kept[static_cast<std::size_t>(number)] = true;
  }
  return kept;
}

}  // namespace

void keep_most(const Split& split, std::span<std::byte> sides) {
  if (split.most == 0) return;
  for (Side side : {Side::train, Side::val}) {
    const auto on_side = static_cast<std::byte>(side);
    const std::int64_t rows = std::ranges::count(sides, on_side);
    if (rows <= split.most) continue;
    const std::vector<bool> kept = chosen(split, side, rows);
    std::size_t number = 0;
    for (std::byte& of_row : sides)
      if (of_row == on_side && !kept[number++])
        of_row = static_cast<std::byte>(Side::unused);
  }
}

}  // namespace penstock
