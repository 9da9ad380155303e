#include "penstock/dataset/arrays/array_dataset.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "penstock/dataset/arrays/gather_filler.h"

namespace penstock {
namespace {

constexpr std::size_t kHashedRows = 4096;  // where those are not all

[[noreturn]] void refuse(std::string code, std::string where, std::string why,
                         std::string next) {
  throw Error(ErrorKind::request, {.code = "arrays." + std::move(code),
                                   .what = "cannot make rows from these arrays",
                                   .where = std::move(where),
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

std::string quoted(const std::string& name) { return "'" + name + "'"; }
std::string where(const NamedArray& array) {
  return "array " + quoted(array.name);
}

void check_names(std::span<const NamedArray> arrays) {
  if (arrays.empty())
    refuse("none", "arrays", "there are no arrays", "give at least one array");
  std::set<std::string_view> seen;
  for (const NamedArray& array : arrays) {
    if (array.name.empty())
      refuse("name", "arrays", "an array has an empty name", "name the array");
    if (!seen.insert(array.name).second)
      refuse("name", where(array), "two arrays have this name",
             "give each array a different name");
  }
}

void check_shapes(std::span<const NamedArray> arrays) {
  for (const NamedArray& array : arrays)
    if (array.view.shape.empty())
      refuse("shape", where(array),
             "the array is a single value, without a dimension for rows",
             "give it the shape [rows] or [rows, ...]");
  const NamedArray& first = arrays[0];
  for (const NamedArray& array : arrays)
    if (array.view.shape[0] != first.view.shape[0])
      refuse("length", where(array),
             "the array has " + std::to_string(array.view.shape[0]) +
                 " rows, and " + quoted(first.name) + " has " +
                 std::to_string(first.view.shape[0]),
             "cut the arrays to one length");
  if (first.view.shape[0] == 0)
    refuse("empty", where(first),
           "the array has no rows: its shape is " + text_of(first.view.shape),
           "give at least one row");
}

void check_memory(std::span<const NamedArray> arrays) {
  for (const NamedArray& array : arrays) {
    MemoryKind memory = array.view.memory;
    if (memory != MemoryKind::cpu && memory != MemoryKind::cuda_host)
      refuse("memory", where(array),
             "the array is in device memory (DLPack device type " +
                 std::to_string(static_cast<int>(memory)) +
                 "), but rows are loaded from host memory",
             "copy the array to host memory; \"cache\": \"device\" then copies "
             "the array to the device once");
    PENSTOCK_ASSERT(array.view.data != nullptr || array.view.bytes() == 0,
                    "an array has bytes");
  }
}

bool is_real(Dtype dtype) {
  return dtype == Dtype::float32 || dtype == Dtype::float64;
}

/// Equal for 0 and -0, and for every NaN.
std::uint64_t hash_of_real(double value) {
  if (std::isnan(value)) return 0;
  return mix64(std::bit_cast<std::uint64_t>(value + 0.0) + 1);
}

const ArrayDatasetOptions& checked(const ArrayDatasetOptions& options,
                                   std::int64_t rows) {
  const std::string& cache = options.cache;
  if (cache != "auto" && cache != "device" && cache != "ram")
    refuse("cache", "cache",
           "found \"" + cache + "\", but arrays are already in memory",
           "use \"auto\", \"device\" or \"ram\"");
  if (options.budgets.pinned || options.budgets.ram || options.budgets.disk)
    refuse("cache", "cache", "found a budget, but arrays are already in memory",
           "set only the budget of the device, \"device_gib\"");
  for (auto [ids, side] :
       {std::pair(&options.train, "train"), std::pair(&options.val, "val"),
        std::pair(&options.test, "test")}) {
    if (!*ids) continue;
    for (SampleId id : **ids)
      if (id < 0 || id >= rows)
        refuse("ids", side,
               "there is no row " + std::to_string(id) + " among " +
                   std::to_string(rows) + " rows",
               "number rows from 0");
  }
  return options;
}

}  // namespace

RowLayout layout_of(std::span<const NamedArray> arrays) {
  check_names(arrays);
  check_shapes(arrays);
  check_memory(arrays);
  RowLayout layout;
  for (const NamedArray& array : arrays) {
    const Shape& shape = array.view.shape;
    TensorSpec tensor{.name = array.name,
                      .dtype = array.view.dtype,
                      .row_shape = Shape(shape.begin() + 1, shape.end()),
                      .offset = layout.row_bytes};
    tensor.bytes = static_cast<std::size_t>(elements_of(tensor.row_shape)) *
                   size_of(tensor.dtype);
    layout.row_bytes += tensor.bytes;
    layout.tensors.push_back(std::move(tensor));
  }
  return layout;
}

ArrayDataset::ArrayDataset(std::vector<NamedArray> arrays,
                           const ArrayDatasetOptions& options, Device& device)
    : arrays_(std::move(arrays)),
      layout_(layout_of(arrays_)),
      train_(checked(options, arrays_[0].view.shape[0]).train),
      val_(options.val),
      test_(options.test),
      ring_bytes_(options.ring_bytes) {
  facts_.rows = arrays_[0].view.shape[0];
  facts_.on_side = {train_ ? std::ssize(*train_) : facts_.rows,
                    val_ ? std::ssize(*val_) : 0,
                    test_ ? std::ssize(*test_) : 0};
  facts_.outputs = outputs_of(layout_);
  find_draws(options);
  find_place(options, device);
  constexpr std::size_t kMost = std::size_t{64} << 20;  // bytes
  const auto rows = static_cast<std::size_t>(facts_.rows);
  if (rows * layout_.row_bytes > kMost)
    facts_.fingerprint_of_some = [this, rows] {
      return hashed(std::max<std::size_t>(2, rows / kHashedRows));
    };
  if (facts_.plan.tier == Tier::device &&
      device.memory_kind() != MemoryKind::cpu)
    copy_to(device);
}

void ArrayDataset::find_draws(const ArrayDatasetOptions& options) {
  if (!options.drawing) return;
  if (!options.drawn_by)
    refuse("weights", options.drawing.balance ? "balance" : "weights",
           "there is no array '" + options.drawing.column + "'",
           "name one of the arrays");
  const NamedArray& by = *options.drawn_by;
  const TensorView& view = by.view;
  const bool balance = options.drawing.balance;
  if (view.shape.empty() || view.shape[0] != facts_.rows ||
      (!balance && view.shape.size() != 1))
    refuse("weights", where(by),
           "the array's shape is " + text_of(view.shape) + ", expected [" +
               std::to_string(facts_.rows) + (balance ? ", ...]" : "]"),
           "give one element per row");
  const std::size_t bytes =
      view.bytes() / static_cast<std::size_t>(facts_.rows);
  const Column numbers{
      .type = ColumnType::number(view.dtype),
      .length = facts_.rows,
      .values = Bytes::borrow({view.data, view.bytes()}, by.owner)};
  auto value_of = [&](SampleId row) -> std::uint64_t {
    if (balance && view.shape.size() == 1 && is_real(view.dtype))
      return hash_of_real(numbers.as_float64(row));
    if (balance)
      return hash64(std::span<const std::byte>(
          view.data + static_cast<std::size_t>(row) * bytes, bytes));
    const double weight = numbers.as_float64(row);
    if (!(weight >= 0 && std::isfinite(weight)))
      refuse("weights", where(by) + ", row " + std::to_string(row),
             "found " +
                 (std::isnan(weight)   ? "NaN"
                  : std::isinf(weight) ? "an infinity"
                                       : Json(weight).dump()) +
                 ", expected a finite number, 0 or more",
             "correct the weight");
    return std::bit_cast<std::uint64_t>(weight);
  };
  std::vector<std::uint64_t> values;
  for (std::int64_t rank = 0; rank < facts_.on_side[0]; ++rank)
    values.push_back(
        value_of(train_ ? (*train_)[static_cast<std::size_t>(rank)] : rank));
  facts_.draws = draws_of(options.drawing, std::move(values));
}

void ArrayDataset::find_place(const ArrayDatasetOptions& options,
                              const Device& device) {
  facts_.plan = plan_tiers({.rows = facts_.rows,
                            .row_bytes = layout_.row_bytes,
                            .ring_device_bytes = options.ring_bytes.device,
                            .ring_host_bytes = options.ring_bytes.host,
                            .tier = options.cache,
                            .budgets = options.budgets,
                            .in_ram = true},
                           tier_limits(read_host_limits(), device));
  if (options.planned) options.planned(facts_.plan);
}

void ArrayDataset::copy_to(Device& device) {
  for (std::size_t a = 0; a < arrays_.size(); ++a) {
    std::size_t row_bytes = layout_.tensors[a].bytes;
    // A table has rows of at least a byte; a gather moves none of these.
    Table table(Tier::device, row_bytes == 0 ? 0 : facts_.rows,
                std::max<std::size_t>(row_bytes, 1), device);
    const std::byte* from = arrays_[a].view.data;
    for (std::int64_t row = 0, count = 0; row_bytes != 0 && row < facts_.rows;
         row += count) {
      count = std::min(table.most_rows(), facts_.rows - row);
      std::size_t bytes = static_cast<std::size_t>(count) * row_bytes;
      std::memcpy(table.append(count), from, bytes);
      from += bytes;
    }
    table.seal();
    tables_.push_back(std::move(table));
  }
}

void ArrayDataset::select(Side side, std::span<SampleId> ranks) const {
  const Numbers& numbers = on(side);
  if (!numbers) return;  // a rank is its row's number
  for (SampleId& rank : ranks)
    if (rank >= 0) rank = (*numbers)[static_cast<std::size_t>(rank)];
}

namespace {

void add_hash(std::span<const std::byte> bytes, Sha256& all) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  for (std::size_t at = 0; at < bytes.size(); at += kPiece) {
    std::uint64_t hash =
        hash64(bytes.subspan(at, std::min(kPiece, bytes.size() - at)));
    all.add(std::as_bytes(std::span(&hash, 1)));
  }
}

}  // namespace

/// Over the rows of each array, every `step`th of them.
std::string ArrayDataset::hashed(std::size_t step) const {
  Sha256 all;
  for (const NamedArray& array : arrays_) {
    all.add(array.name + "\n" + std::string(name_of(array.view.dtype)) +
            text_of(array.view.shape) + "\n");
    const std::span<const std::byte> bytes{array.view.data, array.view.bytes()};
    const auto rows = static_cast<std::size_t>(array.view.shape.at(0));
    const std::size_t row = rows == 0 ? 0 : bytes.size() / rows;
    if (step == 1)
      add_hash(bytes, all);
    else
      for (std::size_t at = 0; at < rows; at += step)
        add_hash(bytes.subspan(at * row, row), all);
  }
  for (const Numbers* numbers : {&train_, &val_, &test_}) {
    if (numbers == &test_ && facts_.on_side[2] == 0) continue;
    all.add(*numbers ? std::to_string((*numbers)->size()) : "all");
    if (*numbers) add_hash(std::as_bytes(std::span(**numbers)), all);
  }
  return all.hex();
}

const std::string& ArrayDataset::fingerprint() const {
  hashed_.call([this] { fingerprint_ = hashed(1); });
  return fingerprint_;
}

OffDevice ArrayDataset::off_device(std::size_t, Device& device) const {
  if (tables_.empty()) return {};
  auto moved = std::make_shared<ArrayDataset>(
      arrays_,
      ArrayDatasetOptions{.cache = "ram",
                          .ring_bytes = ring_bytes_,
                          .train = train_,
                          .val = val_,
                          .test = test_},
      device);
  moved->facts_.draws = facts_.draws;
  return {.rows = std::move(moved)};
}

std::unique_ptr<SlotFiller> ArrayDataset::open_filler(
    FillMeters& meters, const FillerOptions&) const {
  std::vector<GatherField> fields;
  std::vector<std::size_t> outputs;
  for (std::size_t a = 0; a < arrays_.size(); ++a) {
    outputs.push_back(a);
    std::size_t row_bytes = layout_.tensors[a].bytes;
    fields.push_back(
        {.table = tables_.empty() ? arrays_[a].view.data : tables_[a].data(),
         .row_stride = row_bytes,
         .bytes = row_bytes});
  }
  return make_gather_filler(std::move(fields), std::move(outputs), plan().tier,
                            meters.gather);
}

}  // namespace penstock
