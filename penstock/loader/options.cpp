#include "penstock/loader/options.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace penstock {
namespace {

[[noreturn]] void refuse_empty_side(Side side, std::int64_t rows) {
  const std::string name(name_of(side));
  throw Error(ErrorKind::request,
              {.code = "loader.empty_side",
               .what = "there are no rows for batches",
               .where = "split." + name,
               .why = "none of the " + std::to_string(rows) +
                      " rows is on the side '" + name + "'",
               .next = "raise split." + name +
                       ", or choose another split.by; for arrays, name the "
                       "rows of that side"});
}

[[noreturn]] void refuse_weight() {
  throw Error(
      ErrorKind::request,
      {.code = "loader.weight",
       .what = "cannot add the weights of rows to a batch",
       .where = "loader.tail, loader.on_bad",
       .why = "the rows already have a tensor 'weight'",
       .next = "rename the tensor, or use neither \"pad\" nor \"mask\""});
}

[[noreturn]] void refuse_substitutes() {
  throw Error(ErrorKind::request,
              {.code = "loader.on_bad",
               .what = "cannot substitute other samples for bad ones",
               .where = "loader.on_bad = \"substitute\"",
               .why = "the samples differ in length, and the shape of a batch "
                      "is fixed before it is filled",
               .next = "use \"mask\" or \"stop\""});
}

/// Throws Error(request) where there are no lengths to group samples by.
void check_groups(const Dataset& rows) {
  std::string why;
  if (rows.facts().mixture != nullptr)
    why = "samples come from several sources";
  else if (std::ranges::any_of(rows.outputs(), [](const Output& output) {
             return output.lengths == Lengths::bins;
           }))
    why = "samples are packed into rows of one length";
  else if (rows.facts().longest.empty())
    why = "no field has samples that differ in length";
  if (why.empty()) return;
  throw Error(
      ErrorKind::request,
      {.code = "loader.group_by_length",
       .what = "cannot group samples by their length",
       .where = "loader.group_by_length",
       .why = std::move(why),
       .next = "leave the setting out; for tokens set \"pack\": \"none\""});
}

}  // namespace

int parts_of_batch(const LoaderThreads& threads) {
  const int most = std::max({1, threads.workers, threads.readers});
  if (threads.readers < 1) return most;  // a batch is begun after the other
  const int ahead = std::max(1, threads.prefetch);
  const int enough = (2 * kPartsEach * most / ahead + 1) / 2;  // rounded
  return std::clamp(enough, 1, most);
}

Order order_of(const LoaderOptions& options, const Dataset& rows) {
  Order order = order_of(options, rows.rows_on(options.side));
  if (options.most_samples > 0 && options.most_samples < order.samples) {
    PENSTOCK_ASSERT(!order.shuffle, "a shuffled side takes all its samples");
    order.chosen_from = std::exchange(order.samples, options.most_samples);
    order.batch_size = std::min(order.batch_size, order.samples);
  }
  if (options.side != Side::train) return order;
  if (rows.facts().endless) {  // it has an order of its own
    order.shuffle = false;
    order.pages = {};
  }
  order.draws = rows.facts().draws;
  order.mixture = rows.facts().mixture;
  if (order.mixture != nullptr) order.samples = order.mixture->epoch_samples();
  if (options.group_by_length != LengthGroups::How::none) {
    check_groups(rows);
    order.groups = std::make_shared<const LengthGroups>(
        lengths_on(rows, Side::train), options.group_by_length,
        options.batch_size);
  }
  return order;
}

Order order_of(const LoaderOptions& options, std::int64_t rows) {
  return {.samples = rows,
          .seed = options.seed,
          .shuffle = options.shuffle,
          .batch_size = options.batch_size,
          .tail = options.tail,
          .pages = options.pages};
}

std::int64_t most_rows(const LoaderOptions& options, std::int64_t rows) {
  std::int64_t shared = options.tail == Tail::pad
                            ? options.batch_size
                            : std::min(options.batch_size, rows);
  return (shared + options.rank.world - 1) / options.rank.world;
}

LoaderOptions resolved(LoaderOptions options) {
  if (options.per_sample || options.prefetch == 0) options.workers = 0;
  if (options.workers == 0) options.prefetch = 0;
  return options;
}

int slots_of(const LoaderOptions& options) {
  return 2 + resolved(options).prefetch;
}

bool weighted(const LoaderOptions& options) {
  return options.tail == Tail::pad || options.on_bad == OnBad::mask;
}

void check(const LoaderOptions& options, const Dataset& dataset) {
  if (dataset.rows_on(options.side) == 0)
    refuse_empty_side(options.side, dataset.rows());
  for (const Output& output : dataset.outputs()) {
    if (weighted(options) && output.name == kWeight) refuse_weight();
    if (options.on_bad == OnBad::substitute && output.lengths != Lengths::equal)
      refuse_substitutes();
  }
}

}  // namespace penstock
