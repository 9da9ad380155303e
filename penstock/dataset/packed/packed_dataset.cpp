#include "penstock/dataset/packed/packed_dataset.h"

#include <utility>

namespace penstock {

PackedDataset::PackedDataset(std::shared_ptr<const Dataset> rows,
                             const Packing& packing, std::uint64_t seed)
    : rows_(std::move(rows)) {
  const auto bins = std::make_shared<const PackedBins>(rows_, packing, seed);
  facts_ = rows_->facts();
  facts_.endless = bins->endless();
  facts_.on_side = {bins->count(Side::train), bins->count(Side::val),
                    bins->count(Side::test)};
  facts_.rows = bins->first_of(Side::test) + facts_.on_side[2];
  facts_.bins = bins;
}

void PackedDataset::select(Side side, std::span<SampleId> ranks) const {
  if (side == Side::train) return;
  for (SampleId& rank : ranks)
    if (rank >= 0) rank += facts_.bins->first_of(side);
}

void PackedDataset::lengths(std::size_t, std::span<const SampleRange> ranges,
                            std::span<std::int32_t> out) const {
  // Every piece lies within its sample.
  for (std::size_t i = 0; i < ranges.size(); ++i)
    out[i] = ranges[i].end - ranges[i].begin;
}

std::optional<Packing> packing_of(const RowsRecipe& recipe) {
  const std::string* name = nullptr;
  std::optional<Packing> found;
  for (const Field& field : recipe.fields)
    if (const std::optional<Packing>& packing = field.kind->facts().packing) {
      found = packing;
      name = &field.name;
    }
  if (!found) return found;
  if (recipe.fields.size() > 1)
    throw Error(
        ErrorKind::request,
        {.code = "packing.fields",
         .what = "cannot pack the samples of a field next to other fields",
         .where = "fields." + *name,
         .why = "a packed row holds several samples, and the job has " +
                std::to_string(recipe.fields.size()) + " fields",
         .next = "leave the other fields out, or set \"pack\": \"none\""});
  if (recipe.drawing)
    throw Error(
        ErrorKind::request,
        {.code = "packing.drawn",
         .what = "cannot combine weighted or balanced sampling with packing",
         .where = recipe.drawing.balance ? "loader.balance" : "loader.weights",
         .why = "a packed row holds several samples, so a sample cannot be "
                "drawn by its own weight or class",
         .next = "leave this setting out, or set \"pack\": \"none\""});
  return found;
}

namespace {

[[noreturn]] void refuse_empty(std::int64_t samples, const std::string& field) {
  throw Error(ErrorKind::source,
              {.code = "packing.empty",
               .what = "there are no tokens to pack into rows",
               .where = "fields." + field,
               .why = "none of the " + std::to_string(samples) +
                      " documents has a token",
               .next = "check the name of the column and its content"});
}

}  // namespace

std::shared_ptr<const Dataset> packed(std::shared_ptr<const Dataset> rows,
                                      const TableDatasetOptions& options) {
  const std::optional<Packing> packing = packing_of(options);
  if (!packing || options.plan_only) return rows;
  const std::int64_t samples = rows->facts().rows;
  auto bins =
      std::make_shared<PackedDataset>(std::move(rows), *packing, options.seed);
  if (bins->facts().rows == 0) refuse_empty(samples, options.fields[0].name);
  for (Side side : {Side::train, Side::val, Side::test}) {
    if (bins->rows_on(side) == 0) continue;
    const std::string line = (side == Side::train ? "packed: "
                              : side == Side::val ? "packed, held out: "
                                                  : "packed, for the test: ") +
                             bins->facts().bins->numbers(side).text();
    log(LogLevel::info, line);
    if (options.scanning) options.scanning(line);
  }
  return bins;
}

}  // namespace penstock
