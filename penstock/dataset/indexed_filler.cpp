#include "penstock/dataset/indexed_filler.h"

#include <algorithm>

namespace penstock {

IndexedFiller::IndexedFiller(const IndexedDataset& dataset, FillMeters& meters,
                             const FillerOptions& options)
    : dataset_(dataset),
      meters_(meters),
      per_sample_(options.per_sample),
      reader_(*dataset.source_, nullptr, &meters.read),
      encoder_(dataset.bound_, dataset.options_.fields, dataset.layout_,
               dataset.statistics_),
      finisher_(dataset.options_.fields, dataset.layout_, dataset.info_,
                options),
      values_(dataset.bound_.size()),
      faults_(dataset.bound_.size()),
      runs_(dataset.bound_.size()) {
  for (const auto& field : dataset.bound_) parsers_.push_back(field->parser());
}

// A sample goes from its place in the item to its place in the block, which is
// by ascending position, and from there, unless it is rejected, to a stored
// row.
void IndexedFiller::fill(const FillItem& item, Stream&, Faults& faults) {
  reading_order(item.ids, ranges_);
  number_.assign(item.ids.size(), -1);
  ids_.assign(item.ids.size(), -1);
  rows_.clear();
  stored_rows_ = 0;
  for (Values& runs : runs_) runs.clear();
  std::size_t per_call = per_sample_ ? 1 : ranges_.size();
  for (std::size_t at = 0; at < ranges_.size(); at += per_call) {
    part_ = std::span(ranges_).subspan(at, per_call);
    read(item);
    parse();
    encode(item, faults);
  }
  check_lengths(item);
  BusyScope busy(meters_.pack);
  finish(item, faults);
  std::ranges::sort(faults.rows, {}, &RowFault::row);
  for (RowFault& fault : faults.rows)
    name(item.ids[static_cast<std::size_t>(fault.row)], fault);
}

/// Where a row is all that its part holds, as of a folder of pictures, the part
/// names it.
void IndexedFiller::name(SampleId sample, RowFault& fault) const {
  const std::vector<NamedRows>& parts = dataset_.source_->info().parts;
  auto part = std::ranges::upper_bound(parts, sample, {}, &NamedRows::end);
  if (part == parts.end()) return;
  const std::int64_t first = part == parts.begin() ? 0 : std::prev(part)->end;
  if (part->end - first == 1) fault.place += " of '" + part->name + "'";
}

void IndexedFiller::read(const FillItem& item) {
  positions_.clear();
  for (std::size_t range : part_) positions_.push_back(item.ids[range]);
  read_rows(reader_, positions_, item.read, block_);
}

void IndexedFiller::parse() {
  BusyScope busy(meters_.prepare);
  std::size_t bytes = 0;
  for (std::size_t f = 0; f < parsers_.size(); ++f) {
    values_[f].clear();
    faults_[f].rows.clear();
    parsers_[f]->parse(block_, values_[f], faults_[f]);
    PENSTOCK_ASSERT(values_[f].rows() == block_.rows,
                    "a field gives every row a run");
    bytes += values_[f].bytes.size();
  }
  meters_.prepare.add_items(block_.rows, static_cast<std::int64_t>(bytes));
}

// Faults of the reader come first, then those of fields in their order: so a
// sample is rejected for one reason, always the same.
void IndexedFiller::find_faults() {
  fault_.assign(static_cast<std::size_t>(block_.rows), nullptr);
  problems_.clear();
  if (!block_.problems.empty()) {
    std::vector<ColumnRequest> requests = requests_of(dataset_.options_.fields);
    for (const RowProblem& problem : block_.problems)
      problems_.push_back({.row = problem.row,
                           .place = requests[problem.column].column,
                           .why = problem.why});
  }
  auto add = [&](const RowFault& fault) {
    const RowFault*& of = fault_[static_cast<std::size_t>(fault.row)];
    if (of == nullptr) of = &fault;
  };
  for (const RowFault& problem : problems_) add(problem);
  for (const Faults& of : faults_)
    for (const RowFault& fault : of.rows) add(fault);
}

void IndexedFiller::encode(const FillItem& item, Faults& faults) {
  BusyScope busy(meters_.pack);
  find_faults();
  good_.clear();
  for (std::int64_t row = 0; row < block_.rows; ++row) {
    std::size_t range = part_[static_cast<std::size_t>(row)];
    const RowFault* fault = fault_[static_cast<std::size_t>(row)];
    if (fault == nullptr) {
      good_.push_back(row);
      continue;
    }
    RowFault bad = *fault;
    bad.row = static_cast<std::int64_t>(range);
    if (bad.too_short && bad.why.empty())
      bad.why = "its field would leave it out, which needs a scan";
    faults.reject(std::move(bad));
  }
  const std::size_t row_bytes = dataset_.layout_.row_bytes;
  const std::int64_t first = stored_rows_;
  stored_rows_ += std::ssize(good_);
  rows_.resize(rows_.size() + good_.size() * row_bytes);
  encoded_.rows.clear();
  encoder_.encode(
      std::ssize(good_),
      [&](std::int64_t row, std::size_t field) {
        return values_[field].row(good_[static_cast<std::size_t>(row)]);
      },
      rows_.data() + static_cast<std::size_t>(first) * row_bytes, runs_,
      encoded_);
  for (std::size_t g = 0; g < good_.size(); ++g) {
    std::size_t range = part_[static_cast<std::size_t>(good_[g])];
    number_[range] = first + static_cast<std::int64_t>(g);
    ids_[range] = item.ids[range];
  }
  for (RowFault& fault : encoded_.rows) {
    std::size_t range = part_[static_cast<std::size_t>(
        good_[static_cast<std::size_t>(fault.row)])];
    if (ids_[range] < 0) continue;  // by another field already
    ids_[range] = -1;
    fault.row = static_cast<std::int64_t>(range);
    faults.reject(std::move(fault));
  }
  meters_.pack.add_items(std::ssize(good_),
                         static_cast<std::int64_t>(good_.size() * row_bytes));
}

// A batch has its shape before it is read.
void IndexedFiller::check_lengths(const FillItem& item) const {
  for (std::size_t v = 0; v < dataset_.varying_.size(); ++v) {
    std::size_t field = dataset_.varying_[v];
    std::size_t element =
        dataset_.options_.fields[field].kind->stored().element_bytes;
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      if (ids_[i] < 0) continue;
      auto found = static_cast<std::int64_t>(
          runs_[field].row(number_[i]).size() / element);
      std::int32_t expected =
          dataset_.lengths_[v][static_cast<std::size_t>(item.ids[i])];
      if (found == expected) continue;
      throw Error(
          ErrorKind::source,
          {.code = "source.length_changed",
           .what = "a sample has another length than its source said",
           .where = dataset_.source_->shown() + ", position " +
                    std::to_string(item.ids[i]) + ", field '" +
                    dataset_.options_.fields[field].name + "'",
           .why = "found " + std::to_string(found) + " elements, expected " +
                  std::to_string(expected),
           .next = "start again, if another program has written to it"});
    }
  }
}

void IndexedFiller::finish(const FillItem& item, Faults& faults) {
  const std::size_t row_bytes = dataset_.layout_.row_bytes;
  stored_.clear();
  for (std::size_t i = 0; i < ids_.size(); ++i)
    stored_.push_back(
        ids_[i] < 0
            ? nullptr
            : rows_.data() + static_cast<std::size_t>(number_[i]) * row_bytes);
  finisher_.copy(item, stored_);
  if (finisher_.idle()) return;
  FillItem good = item;
  good.ids = ids_;
  finisher_.finish(
      good, stored_,
      [&](std::size_t field, std::size_t i) {
        return runs_[field].row(number_[i]);
      },
      faults);
}

void IndexedFiller::queue(const FillItem& batch, std::byte* scratch,
                          Stream& stream) {
  finisher_.queue(batch, scratch, stream);
}

std::unique_ptr<SlotFiller> IndexedDataset::open_filler(
    FillMeters& meters, const FillerOptions& options) const {
  return std::make_unique<IndexedFiller>(*this, meters, options);
}

}  // namespace penstock
