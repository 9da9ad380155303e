#include "penstock/transforms/standardization.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace penstock {
namespace {

constexpr double kMost = std::numeric_limits<double>::max();
/// No sum of fewer than 2^63 values overflows that are scaled by this.
constexpr double kSmall = 0x1p-64;
/// A scale of squares, and its reciprocal, is a power of two up to this one's.
constexpr int kMostExponent = 1000;

/// A list of numbers that may be missing.
std::vector<double> ascending(Spec& spec, std::string_view key) {
  std::vector<double> numbers;
  const Json* found = spec.raw(key);
  if (found == nullptr) return numbers;
  bool good = found->is_array() &&
              std::ranges::all_of(found->array(), &Json::is_number);
  if (good)
    for (const Json& number : found->array())
      numbers.push_back(number.number());
  if (!good || !std::ranges::is_sorted(numbers))
    spec.refuse(key, "the value is not an ascending list of numbers",
                "fit the data set again");
  return numbers;
}

Standardization read_one(Spec spec, const std::string& name) {
  Standardization number{.name = name};
  number.boolean = spec.boolean("boolean", false);
  number.standardize = spec.boolean("standardize", false);
  number.min_max = spec.boolean("min_max", false);
  number.log1p = spec.boolean("log1p", false);
  number.mean = spec.number("mean", {}, -kMost, kMost);
  number.deviation = spec.number("deviation", {}, 0, kMost);
  number.divisor = spec.number(
      "divisor", {}, std::numeric_limits<double>::denorm_min(), kMost);
  number.count = spec.integer("count", {}, 0, INT64_MAX);
  number.missing = spec.integer("missing", {}, 0, INT64_MAX);
  if (spec.has("fill")) number.fill = spec.number("fill", {}, -kMost, kMost);
  number.edges = ascending(spec, "edges");
  number.quantiles = ascending(spec, "quantiles");
  number.normal = spec.boolean("normal", false);
  spec.finish();
  return number;
}

/// What the passes collect of one number.
/// The mean comes first, then the squares of the distances to it: with one pass
/// the difference of two large sums would lose all digits of a small deviation.
/// means    sum of the values, least and greatest
/// small    only where that sum overflowed: the sum of the values times 2^-64
/// squares  sum of ((value - mean) * scale)^2
/// `scale` is the power of two that brings the farthest value into [1, 2), so
/// the squares neither overflow nor vanish, and multiplying by it rounds
/// nothing but what underflows.
struct Sum {
  double total = 0;
  double mean = 0;   // what the second pass measures from,
  double scale = 1;  // in these units
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  std::int64_t count = 0;
  std::int64_t missing = 0;

  bool overflowed() const { return !std::isfinite(total); }
};

// A part keeps the sum of each block of ids by itself, and they are added up
// in order of id at the end of a pass: so threads change no bit.
class NumbersFit final : public FieldFit {
 public:
  NumbersFit(std::vector<Standardization> numbers, NumberPlace place,
             std::unique_ptr<NumberRows> rows)
      : numbers_(std::move(numbers)),
        place_(std::move(place)),
        rows_(std::move(rows)),
        sums_(numbers_.size()) {}

  std::unique_ptr<FieldFit> part() const override {
    auto part = std::make_unique<NumbersFit>(numbers_, place_, rows_->clone());
    part->pass_ = pass_;
    for (std::size_t i = 0; i < sums_.size(); ++i)
      part->sums_[i] = {.mean = sums_[i].mean, .scale = sums_[i].scale};
    return part;
  }

  void read_as(const FieldFit& other) override {
    rows_ = static_cast<const NumbersFit&>(other).rows_->clone();
  }

  void add(std::span<const ValueRow> rows,
           std::span<const std::uint8_t> train) override {
    const std::int64_t count = train_rows(train);
    train_rows_ += count;
    if (only_counts()) {
      for (Sum& sum : sums_) sum.count += count;
      return;
    }
    std::size_t first = blocks_.size();
    blocks_.resize(first + sums_.size());
    double* block = blocks_.data() + first;
    switch (pass_) {
      case Pass::means:
        return add_rows<Pass::means>(rows, train, block);
      case Pass::small:
        return add_rows<Pass::small>(rows, train, block);
      case Pass::squares:
        return add_rows<Pass::squares>(rows, train, block);
    }
  }

  void merge(FieldFit& later) override {
    auto& from = static_cast<NumbersFit&>(later);
    blocks_.insert(blocks_.end(), from.blocks_.begin(), from.blocks_.end());
    train_rows_ += from.train_rows_;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      sums_[i].count += from.sums_[i].count;
      sums_[i].missing += from.sums_[i].missing;
      sums_[i].min = std::min(sums_[i].min, from.sums_[i].min);
      sums_[i].max = std::max(sums_[i].max, from.sums_[i].max);
    }
  }

  bool again() override {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      Sum& sum = sums_[i % sums_.size()];
      if (pass_ != Pass::small) sum.total += blocks_[i];
    }
    if (pass_ == Pass::small) take_small_sums();
    blocks_.clear();
    if (pass_ == Pass::means && any_overflowed()) {
      pass_ = Pass::small;
      return true;
    }
    if (pass_ == Pass::squares) return false;
    for (Sum& sum : sums_) end_means(sum);
    pass_ = Pass::squares;
    return std::ranges::any_of(numbers_, [](const Standardization& number) {
      return number.standardize && !number.min_max;
    });
  }

  Json statistics() override {
    for (std::size_t i = 0; i < numbers_.size(); ++i) finish(sums_[i], i);
    return json_of(numbers_);
  }

 private:
  /// The numbers need not be looked at.
  bool only_counts() const {
    return rows_->whole() &&
           std::ranges::none_of(numbers_, [](const Standardization& number) {
             return number.standardize || number.fill_mean;
           });
  }

  /// `small`: sums of small parts of the values, where plain ones overflowed.
  enum class Pass { means, small, squares };

  template <Pass kPass>
  void add_rows(std::span<const ValueRow> rows,
                std::span<const std::uint8_t> train, double* block) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      bool is_train = train[i] != 0;
      if (kPass != Pass::means && !is_train) continue;
      std::span<const double> values = rows_->numbers(rows[i]);
      const double* value = values.data();
      for (const double* end = value + values.size(); value < end;)
        for (std::size_t n = 0; n < sums_.size(); ++n)
          take<kPass>(*value++, is_train, sums_[n], block[n]);
    }
  }

  template <Pass kPass>
  static void take(double value, bool is_train, Sum& sum, double& block) {
    bool missing = std::isnan(value);
    if (kPass == Pass::means) {
      sum.missing += missing;
      if (missing || !is_train) return;
      ++sum.count;
      block += value;
      sum.min = std::min(sum.min, value);
      sum.max = std::max(sum.max, value);
    } else if (!missing) {
      double off = (value - sum.mean) * sum.scale;
      block += kPass == Pass::small ? value * kSmall : off * off;
    }
  }

  /// Of the sums that are needed: infinities among other values do not matter.
  bool any_overflowed() const {
    for (std::size_t i = 0; i < sums_.size(); ++i)
      if (sums_[i].overflowed() &&
          (numbers_[i].standardize || numbers_[i].fill_mean))
        return true;
    return false;
  }

  void take_small_sums() {
    std::vector<double> small(sums_.size());
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      small[i % small.size()] += blocks_[i];
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      if (!sums_[i].overflowed()) continue;
      sums_[i].total = small[i];
      sums_[i].scale = kSmall;
    }
  }

  static void end_means(Sum& sum) {
    if (sum.count == 0) return;
    sum.mean = sum.total / static_cast<double>(sum.count);
    // Rounding may take the scaled mean of huge values beyond them.
    if (sum.scale != 1)
      sum.mean = std::clamp(sum.mean / sum.scale, sum.min, sum.max);
    if (sum.min == sum.max) sum.mean = sum.min;
    double farthest = std::max(sum.max - sum.mean, sum.mean - sum.min);
    if (farthest > 0 && std::isfinite(farthest))
      sum.scale = std::ldexp(1.0, std::clamp(-std::ilogb(farthest),
                                             -kMostExponent, kMostExponent));
    sum.total = 0;
  }

  void finish(const Sum& sum, std::size_t at) {
    Standardization& number = numbers_[at];
    number.count = sum.count;
    number.missing = sum.missing;
    if (!number.standardize && !number.fill_mean) return;
    // A side without rows is refused as such.
    if (sum.count == 0 && train_rows_ > 0)
      throw nothing_to_fit(place_.of(number.name));
    if (number.fill_mean) number.fill = sum.mean;
    if (!number.standardize || sum.count == 0) return;
    number.mean = number.min_max ? sum.min : sum.mean;
    if (sum.min == sum.max) return;
    const double farthest =
        number.min_max ? sum.max - sum.min
                       : std::max(sum.max - sum.mean, sum.mean - sum.min);
    if (!std::isfinite(farthest))
      throw Error(ErrorKind::transform,
                  {.code = "transform.range",
                   .what = "cannot standardise values this far apart",
                   .where = place_.of(number.name),
                   .why = "their range exceeds float64: it runs from " +
                          Json(sum.min).dump() + " to " + Json(sum.max).dump(),
                   .next = "check the data, or leave the rows with these "
                           "values out with 'where'"});
    if (number.min_max) {
      number.divisor = farthest;
      return;
    }
    number.deviation =
        std::sqrt(sum.total / static_cast<double>(sum.count)) / sum.scale;
    // So close together that float64 has no such deviation: as good as a
    // constant.
    if (number.deviation > 0) number.divisor = number.deviation;
  }

  std::vector<Standardization> numbers_;
  const NumberPlace place_;
  std::unique_ptr<NumberRows> rows_;
  std::vector<Sum> sums_;
  std::vector<double> blocks_;   // the sums of each block, one after the other
  std::int64_t train_rows_ = 0;  // in all passes
  Pass pass_ = Pass::means;
};

}  // namespace

std::int64_t train_rows(std::span<const std::uint8_t> train) {
  return std::ranges::count_if(
      train, [](std::uint8_t is_train) { return is_train != 0; });
}

Error nothing_to_fit(std::string where) {
  return Error(ErrorKind::transform,
               {.code = "transform.nothing_to_fit",
                .what = "there are no values to compute statistics from",
                .where = std::move(where),
                .why = "no row on the side 'train' holds a value",
                .next = "check the name, and the query or file that fills the "
                        "column, or leave the column out of the field"});
}

Json json_of(const std::vector<Standardization>& numbers) {
  Json json(Json::Object{});
  for (const Standardization& number : numbers) {
    Json& to = json[number.name];
    to["boolean"] = number.boolean;
    to["standardize"] = number.standardize;
    if (number.min_max) to["min_max"] = true;
    if (number.log1p) to["log1p"] = true;
    to["mean"] = number.mean;
    to["deviation"] = number.deviation;
    to["divisor"] = number.divisor;
    to["count"] = number.count;
    to["missing"] = number.missing;
    if (number.fill) to["fill"] = *number.fill;
    for (auto [key, list] : {std::pair("edges", &number.edges),
                             std::pair("quantiles", &number.quantiles)})
      for (double value : *list) to[key].push_back(value);
    if (number.normal) to["normal"] = true;
  }
  return json;
}

std::optional<Json> unfitted_numbers(
    const std::vector<Standardization>& numbers) {
  for (const Standardization& number : numbers)
    if (number.standardize || number.fill_mean) return std::nullopt;
  return json_of(numbers);
}

std::vector<Standardization> standardizations_from(
    const Json& statistics, const std::vector<std::string>& names,
    const std::string& path) {
  Spec spec(statistics, path);
  std::vector<Standardization> numbers;
  for (const std::string& name : names)
    numbers.push_back(read_one(spec.section(name), name));
  spec.finish();
  return numbers;
}

std::vector<Standardization> standardizations_from(const Json& statistics) {
  std::vector<std::string> names;
  if (statistics.is_object())
    for (const auto& [name, number] : statistics.object())
      names.push_back(name);
  return standardizations_from(statistics, names, "statistics");
}

std::unique_ptr<FieldFit> fit_numbers(std::vector<Standardization> numbers,
                                      NumberPlace place,
                                      std::unique_ptr<NumberRows> rows) {
  return std::make_unique<NumbersFit>(std::move(numbers), std::move(place),
                                      std::move(rows));
}

}  // namespace penstock
