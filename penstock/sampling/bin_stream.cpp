#include "penstock/sampling/bin_stream.h"

#include <algorithm>
#include <string>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/random.h"
#include "penstock/sampling/permutation.h"

// Windows count on from pass to pass. Where each of them ends, in bins, is what
// must be known to find a bin; a window that was forgotten is packed again.

namespace penstock {
namespace {

constexpr std::uint64_t kStream = 0x73747265616d;  // "stream"
/// The batches that lie ready come from one window, or from two.
constexpr std::size_t kRemembered = 3;

Pages pages_of(std::int64_t window) {
  const std::int64_t page = std::min(window, BinStream::kPage);
  return {.page = page, .window = window / page};
}

[[noreturn]] void refuse_empty(std::int64_t samples) {
  throw Error(ErrorKind::source,
              {.code = "packing.empty",
               .what = "there are no tokens to put into rows",
               .where = "the packed samples",
               .why = "none of the " + std::to_string(samples) +
                      " samples of a pass has a token",
               .next = "check the column, and 'source.where'"});
}

}  // namespace

BinStream::BinStream(std::int64_t samples, const BinRules& rules,
                     LengthsOf lengths)
    : count_(samples),
      rules_(rules),
      pages_(pages_of(rules.window)),
      a_pass_((samples - 1) / (pages_.page * pages_.window) + 1),
      lengths_(std::move(lengths)) {
  PENSTOCK_ASSERT(samples > 0 && rules.window > 0,
                  "windows hold samples that are there");
}

std::int32_t BinStream::append(std::int64_t bin, std::vector<SampleRange>& to) {
  PENSTOCK_ASSERT(bin >= 0, "bins count from 0");
  while (count() <= bin) pack_next();
  const std::int64_t number =
      std::ranges::upper_bound(ends_, bin) - ends_.begin();
  const Window& of = window(number);
  Random random(rules_.seed, static_cast<std::uint64_t>(number), 1, kStream);
  const Permutation order(of.bins.count(), random.next());
  const std::size_t first = to.size();
  const std::int32_t left =
      of.bins.append(order(bin - begin_of(number)), 0, to);
  for (SampleRange& piece : std::span(to).subspan(first))
    piece.sample = of.samples[static_cast<std::size_t>(piece.sample)];
  return left;
}

void BinStream::pack_next() {
  const auto number = static_cast<std::int64_t>(ends_.size());
  const Bins& packed = window(number).bins;
  samples_ += packed.samples();
  empty_ += packed.empty();
  cut_ += packed.cut();
  elements_ += packed.elements();
  ends_.push_back(count() + packed.count());
  if (number + 1 >= a_pass_ && ends_.back() == 0) refuse_empty(count_);
}

const BinStream::Window& BinStream::window(std::int64_t number) {
  auto known = std::ranges::find(recent_, number, &Window::number);
  if (known != recent_.end()) return *known;
  const std::int64_t pass = number / a_pass_;
  const std::int64_t most = pages_.page * pages_.window;
  const std::int64_t first = (number % a_pass_) * most;
  Window made{.number = number};
  made.samples.resize(static_cast<std::size_t>(std::min(most, count_ - first)));
  PagedOrder(count_, pages_, mix64(rules_.seed ^ kStream), pass)
      .range(first, made.samples);
  asked_.resize(made.samples.size());
  lengths_(made.samples, asked_);
  made.bins = Bins(asked_, {.size = rules_.size});
  if (recent_.size() < kRemembered) {
    recent_.push_back(std::move(made));
    return recent_.back();
  }
  Window& place = recent_[oldest_];
  oldest_ = (oldest_ + 1) % kRemembered;
  place = std::move(made);
  return place;
}

}  // namespace penstock
