#include "penstock/transforms/numbers/median.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

namespace penstock {
namespace {

constexpr int kDigitBits = 16;
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;
constexpr std::uint64_t kSign = std::uint64_t{1} << 63;

/// Numbers that are ordered as the values are.
std::uint64_t ordered(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}
double value_of(std::uint64_t number) {
  return std::bit_cast<double>((number & kSign) != 0 ? number & ~kSign
                                                     : ~number);
}

/// Finds the value of one rank, digit by digit from the highest.
struct Select {
  std::uint64_t found = 0;                ///< the digits that are known
  std::int64_t rank = 0;                  ///< among the values that have these
  std::vector<std::int64_t> counts = {};  ///< by the next digit

  void add(std::uint64_t number, int known) {
    const int left = 64 - known * kDigitBits;
    if (known > 0 && (number ^ found) >> left != 0) return;
    ++counts[(number >> (left - kDigitBits)) % kDigits];
  }
  void take_digit(int known) {
    std::size_t digit = 0;
    while (rank >= counts[digit]) rank -= counts[digit++];
    found |= std::uint64_t{digit} << (64 - (known + 1) * kDigitBits);
  }
};

class MedianFit final : public FieldFit {
 public:
  MedianFit(std::unique_ptr<FieldFit> fit, std::vector<std::string> names,
            std::unique_ptr<NumberRows> rows)
      : fit_(std::move(fit)),
        names_(std::move(names)),
        rows_(std::move(rows)),
        selects_(2 * names_.size()) {
    begin_pass();
  }

  std::unique_ptr<FieldFit> part() const override {
    auto part = std::make_unique<MedianFit>(fit_ ? fit_->part() : nullptr,
                                            names_, rows_->clone());
    part->known_ = known_;
    part->selects_ = selects_;
    part->begin_pass();
    return part;
  }

  void add(std::span<const ValueRow> rows,
           std::span<const std::uint8_t> train) override {
    if (fit_ != nullptr) fit_->add(rows, train);
    if (known_ == kEnd) return;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (train[i] == 0) continue;
      const std::span<const double> values = rows_->numbers(rows[i]);
      for (std::size_t c = 0; c < names_.size(); ++c) {
        if (std::isnan(values[c])) continue;
        const std::uint64_t number = ordered(values[c]);
        selects_[2 * c].add(number, known_);
        // The two are one until a digit parts them.
        if (known_ > 0) selects_[2 * c + 1].add(number, known_);
      }
    }
  }

  void merge(FieldFit& later) override {
    auto& from = static_cast<MedianFit&>(later);
    if (fit_ != nullptr) fit_->merge(*from.fit_);
    for (std::size_t s = 0; s < selects_.size(); ++s)
      for (std::size_t d = 0; d < selects_[s].counts.size(); ++d)
        selects_[s].counts[d] += from.selects_[s].counts[d];
  }

  bool again() override {
    if (fit_ != nullptr && !fit_->again()) {
      statistics_ = fit_->statistics();
      fit_.reset();
    }
    if (known_ < kEnd) end_pass();
    return fit_ != nullptr || known_ < kEnd;
  }

  Json statistics() override {
    for (std::size_t c = 0; c < names_.size(); ++c) {
      const double low = value_of(selects_[2 * c].found),
                   high = value_of(selects_[2 * c + 1].found);
      statistics_[names_[c]]["fill"] = any_[c] ? std::midpoint(low, high) : 0.0;
    }
    return std::move(statistics_);
  }

 private:
  static constexpr int kEnd = 64 / kDigitBits;  // digits

  void begin_pass() {
    for (Select& select : selects_)
      select.counts.assign(known_ < kEnd ? kDigits : 0, 0);
  }
  void end_pass() {
    if (known_ == 0) find_ranks();
    for (std::size_t s = 0; s < selects_.size(); ++s)
      if (any_[s / 2]) selects_[s].take_digit(known_);
    ++known_;
    begin_pass();
  }
  /// The first pass has counted all values.
  void find_ranks() {
    for (std::size_t c = 0; c < names_.size(); ++c) {
      Select &low = selects_[2 * c], &high = selects_[2 * c + 1];
      const std::int64_t count =
          std::reduce(low.counts.begin(), low.counts.end());
      any_.push_back(count > 0);
      high.counts = low.counts;
      low.rank = (count - 1) / 2;
      high.rank = count / 2;
    }
  }

  std::unique_ptr<FieldFit> fit_;  // null once it has ended
  const std::vector<std::string> names_;
  const std::unique_ptr<NumberRows> rows_;
  std::vector<Select> selects_;  // of each number the lower and the upper one
  std::vector<bool> any_;        // of each number: it has values
  int known_ = 0;                // digits
  Json statistics_;
};

}  // namespace

std::unique_ptr<FieldFit> with_medians(std::unique_ptr<FieldFit> fit,
                                       std::vector<std::string> names,
                                       std::unique_ptr<NumberRows> rows) {
  return std::make_unique<MedianFit>(std::move(fit), std::move(names),
                                     std::move(rows));
}

}  // namespace penstock
