#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "penstock/base/hash.h"
#include "penstock/sampling/sampling.h"

namespace penstock {

namespace {

// 0.8 + 0.1 + 0.1 is a little more than 1.
constexpr double kRounding = 1e-12;

constexpr std::int64_t kMostFolds = 100;

}  // namespace

const SettingsTable<Split>& split_settings() {
  static const SettingsTable<Split> table =
      SettingsTable<Split>()
          .number(
              "train", &Split::train, 0, 1,
              "Share of the rows to train on. Default: what the other sides "
              "leave")
          .number("val", &Split::val, 0, 1,
                  "Share of the rows to validate on while a model is trained")
          .number("test", &Split::test, 0, 1,
                  "Share of the rows on which the kept weights are evaluated, "
                  "once, "
                  "at the end of a run. Rows that no side takes are not used")
          .integer("seed", &Split::seed, 0,
                   std::numeric_limits<std::int64_t>::max(),
                   "Seed of the division. Another seed gives other sides")
          .text("by", &Split::by,
                "Column by whose value rows are divided: rows with the same "
                "value are on the same side. Default: the key of a row")
          .integer("folds", &Split::folds, 0, kMostFolds,
                   "Divides the rows of train and val into so many parts of "
                   "about equal size, for cross-validation. train.folds trains "
                   "once for each of them. Default: 0, no parts")
          .integer("fold", &Split::fold, 0, kMostFolds,
                   "With folds: the part that validates, from 0; the others "
                   "train")
          .rule(
              "description",
              "Divides the rows into train, validation and test by a hash, so "
              "that a row always has the same side.")
          .check([](Spec& spec, Split& split) {
            if (split.fold > 0 && split.fold >= split.folds)
              spec.refuse("fold",
                          "found part " + std::to_string(split.fold) +
                              ", and there are " + std::to_string(split.folds),
                          "parts are counted from 0: the last one is number "
                          "folds - 1");
            if (split.folds == 1)
              spec.refuse("folds",
                          "found 1, and one part cannot both train "
                          "and validate",
                          "use 2 or more, 5 for example");
            const double held_out = split.val + split.test;
            if (!spec.has("train")) split.train = std::max(0.0, 1 - held_out);
            const double sum = split.train + held_out;
            if (sum <= 1 || (split.test > 0 && sum < 1 + kRounding)) return;
            std::string shares = "train " + Json(split.train).dump() +
                                 (split.test > 0 ? ", val " : " and val ") +
                                 Json(split.val).dump();
            if (split.test > 0)
              shares += " and test " + Json(split.test).dump();
            spec.refuse(split.val > 0 ? "val" : "test",
                        shares + " add up to more than 1",
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

Json fold_json(const Split& split) {
  if (split.folds == 0) return {};
  return std::to_string(split.fold) + "/" + std::to_string(split.folds);
}

namespace {

/// Of a row whose place in the sides train and val is `u`, from 0 to 1.
Side side_in_folds(const Split& split, double u) {
  const double parts = static_cast<double>(split.folds) * u;
  const double part = std::floor(parts);
  if (parts - part >= split.share) return Side::unused;
  return static_cast<std::int64_t>(part) == split.fold ? Side::val
                                                       : Side::train;
}

}  // namespace

Side side_of(const Split& split, std::string_view by_value) {
  // 53 bits, so that the quotient stays below 1 after rounding.
  double u =
      static_cast<double>(hash64(by_value, split.seed) >> 11) * 0x1.0p-53;
  if (split.folds > 0 && u < split.train + split.val)
    return side_in_folds(split, u / (split.train + split.val));
  if (u < split.train)
    return u < split.train * split.share ? Side::train : Side::unused;
  const double held_out = split.train + split.val;
  if (u < held_out)
    return u < split.train + split.val * split.share ? Side::val : Side::unused;
  return u < held_out + split.test * split.share ? Side::test : Side::unused;
}

std::string_view name_of(Side side) {
  switch (side) {
    case Side::train:
      return "train";
    case Side::val:
      return "val";
    case Side::test:
      return "test";
    case Side::unused:
      break;
  }
  return "unused";
}

SideIndexes index_sides(const Split& split, std::int64_t rows,
                        std::span<const std::byte> sides) {
  if (split.whole()) return {.train = SideIndex(rows)};
  auto of = [&](Side side) {
    return SideIndex(sides, static_cast<std::byte>(side));
  };
  return {
      .train = of(Side::train), .val = of(Side::val), .test = of(Side::test)};
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
  for (Side side : {Side::train, Side::val, Side::test}) {
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
