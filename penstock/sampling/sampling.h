#pragma once

/// Which samples a batch holds, in which order, on which rank: pure functions.
///
///     Order order{.samples = 100'000, .seed = 7, .batch_size = 64};
///     Position at{.epoch = 3, .step = 10};
///     Plan plan;
///     plan_step(order, {.rank = 1, .world = 4}, at, plan);
///     for (const SampleRange& range : plan.ranges)
///       std::printf("%lld\n", static_cast<long long>(range.sample));

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/base/sample.h"
#include "penstock/base/settings.h"
#include "penstock/sampling/bin_stream.h"
#include "penstock/sampling/draws.h"
#include "penstock/sampling/length_groups.h"
#include "penstock/sampling/mixture.h"
#include "penstock/sampling/packing.h"
#include "penstock/sampling/paged.h"
#include "penstock/sampling/permutation.h"
#include "penstock/sampling/side_index.h"

namespace penstock {

/// What to do with the rows that do not fill the last batch of an epoch.
enum class Tail {
  drop,   ///< leave them out of this epoch
  pad,    ///< fill the batch up with rows whose sample is -1
  exact,  ///< a last batch that is short
};

/// Everything that decides which sample comes when. A value.
struct Order {
  std::int64_t samples = 0;  ///< of an epoch: those of this side of the split
  std::uint64_t seed = 0;
  bool shuffle = true;
  /// Where it is not shuffled: how many samples there are, of which `samples`
  /// are chosen by the seed, the same in every epoch; 0: all are taken.
  std::int64_t chosen_from = 0;
  std::int64_t batch_size = 256;  ///< global, over all ranks
  Tail tail = Tail::drop;
  Pages pages = {};  ///< where it is shuffled
  /// Brings together samples of about equal length, where it is shuffled and
  /// has no pages; null: it does not.
  std::shared_ptr<const LengthGroups> groups = {};
  /// Draws an epoch's samples, as many as there are; null: each comes once.
  std::shared_ptr<const Draws> draws = {};
  /// Takes an epoch's samples from several sources, `samples` in all; within
  /// each they are in the order that the above says. Null: there is one.
  std::shared_ptr<const Mixture> mixture = {};

  /// Of this side: those that sample_at() may give.
  std::int64_t samples_there() const {
    if (chosen_from > 0) return chosen_from;
    return mixture == nullptr ? samples : mixture->first_of(mixture->sources());
  }
};

/// A place in the endless run over epochs: what is saved and resumed.
struct Position {
  std::int64_t epoch = 0;
  std::int64_t step = 0;  ///< within the epoch
  friend bool operator==(const Position&, const Position&) = default;
};

/// One rank of `world`.
struct Rank {
  int rank = 0;
  int world = 1;
};

/// Steps in an epoch; the same for every rank. Throws Error(request)
/// "sampling.too_few" when `drop` leaves no step at all.
std::int64_t steps_per_epoch(const Order& order);

/// The sample at `position` of `epoch`, as a rank within this side.
std::int64_t sample_at(const Order& order, std::int64_t epoch,
                       std::int64_t position);

/// How many samples, drawn at random from the whole side, would be spread over
/// it as evenly as a batch is: the variance of their mean rank is that of the
/// batches of some epochs. About `batch_size` for the exact shuffle, fewer with
/// pages, 1 at least; 0 where nothing is shuffled. An estimate from 32 to 1,024
/// batches: for some tens of ms, of large batches longer.
double effective_batch(const Order& order);

/// The contents of one batch: bins of ranges, flat, so that packing, length
/// buckets and padding are plans too. Bin b, which is row b of the batch, holds
/// ranges bin_ends[b - 1] .. bin_ends[b].
struct Plan {
  Position at;
  std::vector<SampleRange> ranges;
  std::vector<std::int32_t> bin_ends;
  /// By range, where a sample may come more than once in an epoch: a number
  /// that is different each time. Empty: each sample comes once. An order that
  /// draws with replacement, or mixes sources, gives the position in the epoch.
  std::vector<std::int64_t> occurrences = {};
};

/// Fills `plan` with this rank's share of the step at `at`, rows
/// floor(r*B/W) .. floor((r+1)*B/W) of the global batch, where B is the batch
/// size; in the last batch of an `exact` epoch, the number of rows that are
/// left. (A rank may get none of them.) Keeps the vectors' memory. A pure
/// function: no earlier step is walked through.
void plan_step(const Order& order, Rank rank, Position at, Plan& plan);

/// The position after `at`.
Position next_position(const Order& order, Position at);

/// Which side of the split a row is on, by a keyed hash of its `by` value, so
/// that a row never changes sides when others are added.
enum class Side : std::uint8_t { train, val, unused, test };

/// "train", "val", "test" or "unused".
std::string_view name_of(Side side);

struct Split {
  double train = 1.0;
  double val = 0.0;   ///< for validation while a model is trained
  double test = 0.0;  ///< for one evaluation at the end
  std::uint64_t seed = 0;
  std::string by;  ///< a column; empty: the key
  /// Cross-validation: the rows of the sides train and val are divided into so
  /// many parts of about equal size, of which part `fold` validates and the
  /// others train. 0: they are divided as the shares say.
  std::int64_t folds = 0;
  std::int64_t fold = 0;  ///< from 0
  /// How much of each side is used: the rows of this share, by the same hash,
  /// so that a smaller share is a part of a larger one...
  double share = 1;
  /// ...and of those so many, chosen by `seed`; 0: all.
  std::int64_t most = 0;

  bool limited() const { return share < 1 || most > 0; }
  /// Every row is on the side train.
  bool whole() const { return train >= 1 && folds == 0 && !limited(); }
  /// Some rows validate.
  bool validates() const { return val > 0 || folds > 0; }
};

/// The section that a share of the rows stands for: 0.8 means {"train": 0.8,
/// "val": 0.2}, by the same bits. Throws Error(request), at `path`, for a
/// number that is not between 0 and 1.
Json split_section(const Json& share, const std::string& path);

/// Checks a `split` section, or a share to train on (0.8 leaves 0.2 for val).
/// Missing: all is train; `train` alone missing: what `val` and `test` leave.
Split parse_split(const Json* section, const std::string& path);
const SettingsTable<Split>& split_settings();

Side side_of(const Split& split, std::string_view by_value);
/// "2/5": part 2, from 0, of 5; null without folds. What identifies rows by
/// their sides holds it beside the shares.
Json fold_json(const Split& split);

/// The samples of each side.
struct SideIndexes {
  SideIndex train{0}, val{0}, test{0};

  const SideIndex& on(Side side) const {
    return side == Side::train ? train : side == Side::val ? val : test;
  }
  /// In the order train, val, test.
  std::array<std::int64_t, 3> sizes() const {
    return {train.size(), val.size(), test.size()};
  }
};
/// `sides`: a Side for each of `rows` rows; not looked at where all of them are
/// on the side train.
SideIndexes index_sides(const Split& split, std::int64_t rows,
                        std::span<const std::byte> sides);

/// Leaves `split.most` rows on each side, where there are more; the others are
/// unused. `sides`: a Side for each row, as side_of() gives it.
void keep_most(const Split& split, std::span<std::byte> sides);

}  // namespace penstock
