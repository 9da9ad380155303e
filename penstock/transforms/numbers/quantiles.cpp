#include "penstock/transforms/numbers/quantiles.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

namespace penstock {
namespace {

constexpr int kBits = 64;
constexpr int kMostDigitBits = 16;
/// 2^this counts are kept of a number at most.
constexpr int kCountBits = 17;
constexpr std::uint64_t kSign = std::uint64_t{1} << 63;

/// Numbers that are ordered as the values are.
/// The bits of a positive double ascend with it, those of a negative one
/// descend. Setting the sign of the one and inverting the other gives one order
/// for all, infinities included; NaN is left out before.
std::uint64_t ordered(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}
double value_of(std::uint64_t number) {
  return std::bit_cast<double>((number & kSign) != 0 ? number & ~kSign
                                                     : ~number);
}

/// A value that is looked for: where it goes, and how many are before it among
/// those that begin with the same bits.
struct Wanted {
  std::size_t at = 0;
  std::int64_t rank = 0;
};

/// Values that begin with the same bits, some of which are looked for.
struct Group {
  std::uint64_t prefix = 0;
  std::vector<Wanted> wanted = {};
};

/// Finds the values of some ranks among those of one number, from the highest
/// bits on. Which bits are known is the fit's to know, for all numbers.
/// A radix select. Between two passes:
/// 1. Each group is the values that begin with `prefix`, its `known` highest
///    bits; groups ascend by it and none is without a value that is wanted.
/// 2. A wanted value has the place `rank` among the sorted values of its group.
/// 3. counts[group, digit] is how many values of the group go on with `digit`.
/// So the groups are at most as many as the wanted values, however many rows
/// there are, and after 64 bits each prefix is the value itself. Counts are
/// sums, so parts that counted different rows can be merged in any order.
struct Select {
  std::vector<Group> groups = {Group()};  ///< by ascending prefix
  std::vector<std::int64_t> counts = {};  ///< by group and the next digit
  std::int64_t values = 0;                ///< all of them

  void begin_pass(int digit_bits) {
    counts.assign(groups.size() << digit_bits, 0);
  }
  void add(std::uint64_t number, int known, int digit_bits) {
    std::size_t group = 0;
    if (known > 0) {
      const std::uint64_t prefix = number >> (kBits - known);
      auto found = std::ranges::lower_bound(groups, prefix, {}, &Group::prefix);
      if (found == groups.end() || found->prefix != prefix) return;
      group = static_cast<std::size_t>(found - groups.begin());
    }
    const std::uint64_t digit = (number << known) >> (kBits - digit_bits);
    ++counts[(group << digit_bits) + digit];
  }
  /// The first pass has counted all values.
  void want(QuantilePlaces places) {
    values = std::reduce(counts.begin(), counts.end());
    if (values == 0) return groups.clear();
    std::size_t at = 0;
    for (std::int64_t k = places.first; k <= places.last; ++k) {
      const std::int64_t low = rank_of(k, places.of);
      const std::int64_t high = std::min(low + 1, values - 1);
      groups[0].wanted.push_back({.at = at++, .rank = low});
      groups[0].wanted.push_back({.at = at++, .rank = high});
    }
    std::ranges::stable_sort(groups[0].wanted, {}, &Wanted::rank);
  }
  std::int64_t rank_of(std::int64_t place, std::int64_t of) const {
    return static_cast<std::int64_t>(
        static_cast<unsigned __int128>(place) *
        static_cast<unsigned __int128>(values - 1) /
        static_cast<unsigned __int128>(of));
  }
  void end_pass(int digit_bits) {
    std::vector<Group> next;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      std::uint64_t digit = 0;
      std::int64_t before = 0;
      auto count = [&] { return counts[(g << digit_bits) + digit]; };
      for (const Wanted& wanted : groups[g].wanted) {
        while (wanted.rank - before >= count()) before += count(), ++digit;
        const std::uint64_t prefix = (groups[g].prefix << digit_bits) | digit;
        if (next.empty() || next.back().prefix != prefix)
          next.push_back({.prefix = prefix});
        next.back().wanted.push_back(
            {.at = wanted.at, .rank = wanted.rank - before});
      }
    }
    groups = std::move(next);
  }
  /// All bits are known.
  std::vector<double> found(QuantilePlaces places) const {
    std::vector<double> pairs(
        2 * static_cast<std::size_t>(places.last - places.first + 1));
    for (const Group& group : groups)
      for (const Wanted& wanted : group.wanted)
        pairs[wanted.at] = value_of(group.prefix);
    std::vector<double> found;
    for (std::int64_t k = places.first; k <= places.last; ++k) {
      const double low = pairs[2 * found.size()],
                   high = pairs[2 * found.size() + 1];
      found.push_back(between(low, high, k, places.of));
    }
    return found;
  }
  // Linear interpolation at the exact place p (n - 1) / of: type 7 of Hyndman
  // and Fan (1996), the default of numpy. The remainder is taken in integers,
  // so that no number of rows makes it inexact.
  double between(double low, double high, std::int64_t place,
                 std::int64_t of) const {
    if (values == 0 || low == high) return low;
    const auto rest =
        static_cast<std::int64_t>(static_cast<unsigned __int128>(place) *
                                  static_cast<unsigned __int128>(values - 1) %
                                  static_cast<unsigned __int128>(of));
    if (2 * rest == of) return std::midpoint(low, high);
    return std::lerp(low, high,
                     static_cast<double>(rest) / static_cast<double>(of));
  }
};

class QuantileFit final : public FieldFit {
 public:
  QuantileFit(std::unique_ptr<FieldFit> fit, std::vector<std::string> names,
              NumberPlace place, std::unique_ptr<NumberRows> rows,
              QuantilePlaces places, std::string key)
      : fit_(std::move(fit)),
        names_(std::move(names)),
        place_(std::move(place)),
        rows_(std::move(rows)),
        places_(places),
        key_(std::move(key)),
        selects_(names_.size()) {
    begin_pass();
  }

  std::unique_ptr<FieldFit> part() const override {
    auto part =
        std::make_unique<QuantileFit>(fit_ ? fit_->part() : nullptr, names_,
                                      place_, rows_->clone(), places_, key_);
    part->known_ = known_;
    for (std::size_t c = 0; c < selects_.size(); ++c)
      part->selects_[c].groups = selects_[c].groups;
    part->begin_pass();
    return part;
  }

  void read_as(const FieldFit& other) override {
    const auto& as = static_cast<const QuantileFit&>(other);
    if (fit_ != nullptr) fit_->read_as(*as.fit_);
    rows_ = as.rows_->clone();
  }

  void add(std::span<const ValueRow> rows,
           std::span<const std::uint8_t> train) override {
    if (fit_ != nullptr) fit_->add(rows, train);
    if (known_ == kBits) return;
    train_rows_ += train_rows(train);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (train[i] == 0) continue;
      const std::span<const double> values = rows_->numbers(rows[i]);
      for (std::size_t c = 0; c < selects_.size(); ++c)
        if (!std::isnan(values[c]))
          selects_[c].add(ordered(values[c]), known_, digit_bits_);
    }
  }

  void merge(FieldFit& later) override {
    auto& from = static_cast<QuantileFit&>(later);
    if (fit_ != nullptr) fit_->merge(*from.fit_);
    train_rows_ += from.train_rows_;
    for (std::size_t c = 0; c < selects_.size(); ++c)
      for (std::size_t i = 0; i < selects_[c].counts.size(); ++i)
        selects_[c].counts[i] += from.selects_[c].counts[i];
  }

  bool again() override {
    if (fit_ != nullptr && !fit_->again()) {
      statistics_ = fit_->statistics();
      fit_.reset();
    }
    if (known_ < kBits) end_pass();
    return fit_ != nullptr || known_ < kBits;
  }

  Json statistics() override {
    for (std::size_t c = 0; c < names_.size(); ++c) {
      if (selects_[c].values == 0 && train_rows_ > 0)
        throw nothing_to_fit(place_.of(names_[c]));
      const std::vector<double> found = selects_[c].found(places_);
      Json& to = statistics_[names_[c]];
      if (key_ == "fill") {
        to[key_] = found[0];
        continue;
      }
      to[key_] = Json(Json::Array{});
      for (double value : found) to[key_].push_back(value);
    }
    return std::move(statistics_);
  }

 private:
  void begin_pass() {
    std::size_t most = 1;
    for (const Select& select : selects_)
      most = std::max(most, select.groups.size());
    digit_bits_ = std::min(
        {kMostDigitBits, kBits - known_,
         std::max(1, kCountBits - static_cast<int>(std::bit_width(most - 1)))});
    if (known_ == kBits) return;
    for (Select& select : selects_) select.begin_pass(digit_bits_);
  }
  void end_pass() {
    for (Select& select : selects_) {
      if (known_ == 0) select.want(places_);
      select.end_pass(digit_bits_);
    }
    known_ += digit_bits_;
    begin_pass();
  }

  std::unique_ptr<FieldFit> fit_;  // null once it has ended
  const std::vector<std::string> names_;
  const NumberPlace place_;
  std::unique_ptr<NumberRows> rows_;
  const QuantilePlaces places_;
  const std::string key_;
  std::vector<Select> selects_;  // by number
  std::int64_t train_rows_ = 0;  // in all passes
  int known_ = 0;                // bits
  int digit_bits_ = 0;           // that this pass finds
  Json statistics_;
};

}  // namespace

std::unique_ptr<FieldFit> with_quantiles(std::unique_ptr<FieldFit> fit,
                                         std::vector<std::string> names,
                                         NumberPlace place,
                                         std::unique_ptr<NumberRows> rows,
                                         QuantilePlaces places,
                                         std::string key) {
  return std::make_unique<QuantileFit>(std::move(fit), std::move(names),
                                       std::move(place), std::move(rows),
                                       places, std::move(key));
}

}  // namespace penstock
