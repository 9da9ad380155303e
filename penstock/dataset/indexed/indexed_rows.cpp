#include "penstock/dataset/indexed/indexed_rows.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "penstock/dataset/row_place.h"

namespace penstock {
namespace {

bool has_gaps(const RowLayout& layout) {
  std::size_t bytes = 0;
  for (const TensorSpec& tensor : layout.tensors) bytes += tensor.bytes;
  return bytes != layout.row_bytes;
}

}  // namespace

IndexedRows::IndexedRows(const Origin& of, FillMeters& meters, bool per_sample)
    : of_(of),
      meters_(meters),
      per_sample_(per_sample),
      gaps_(has_gaps(of.layout)),
      reader_(of.source, nullptr, &meters.read),
      encoder_(of.bound, of.fields, of.layout, of.statistics),
      values_(of.bound.size()),
      faults_(of.bound.size()),
      runs_(of.bound.size()) {
  for (const auto& field : of.bound) parsers_.push_back(field->parser());
}

// A sample goes from its place among the ids to its place in the block, which
// is by ascending position, and from there, unless it is rejected, to a stored
// row.
void IndexedRows::prepare(std::span<const SampleId> ids, ItemRead* read_ahead,
                          Faults& faults) {
  reading_order(ids, places_);
  number_.assign(ids.size(), -1);
  ids_.assign(ids.size(), -1);
  rows_.clear();
  stored_rows_ = 0;
  for (Values& runs : runs_) runs.clear();
  std::size_t per_call = per_sample_ ? 1 : places_.size();
  for (std::size_t at = 0; at < places_.size(); at += per_call) {
    part_ = std::span(places_).subspan(at, per_call);
    read(ids, read_ahead);
    parse();
    encode(ids, faults);
  }
}

void IndexedRows::name(std::span<const SampleId> ids, Faults& faults) const {
  std::ranges::sort(faults.rows, {}, &RowFault::row);
  for (RowFault& fault : faults.rows)
    add_row_place(of_.source.facts().parts.get(),
                  ids[static_cast<std::size_t>(fault.row)], fault.place);
}

void IndexedRows::read(std::span<const SampleId> ids, ItemRead* ahead) {
  positions_.clear();
  for (std::size_t place : part_) positions_.push_back(ids[place]);
  read_rows(reader_, positions_, ahead, block_);
}

void IndexedRows::parse() {
  BusyScope busy(meters_.prepare);
  std::size_t bytes = 0;
  for (std::size_t f = 0; f < parsers_.size(); ++f) {
    values_[f].clear();
    faults_[f].rows.clear();
    parsers_[f]->parse(block_, values_[f], faults_[f]);
    check_runs(values_[f], 0, block_.rows, of_.fields[f].name);
    check_rejected(faults_[f].rows, block_.rows, of_.fields[f].name);
    bytes += values_[f].bytes.size();
  }
  meters_.prepare.add_items(block_.rows, static_cast<std::int64_t>(bytes));
}

// Faults of the reader come first, then those of fields in their order: so a
// sample is rejected for one reason, always the same.
void IndexedRows::find_faults() {
  fault_.assign(static_cast<std::size_t>(block_.rows), nullptr);
  problems_.clear();
  if (!block_.problems.empty()) {
    std::vector<ColumnRequest> requests = requests_of(of_.fields);
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

void IndexedRows::encode(std::span<const SampleId> ids, Faults& faults) {
  BusyScope busy(meters_.pack);
  find_faults();
  good_.clear();
  for (std::int64_t row = 0; row < block_.rows; ++row) {
    std::size_t place = part_[static_cast<std::size_t>(row)];
    const RowFault* fault = fault_[static_cast<std::size_t>(row)];
    if (fault == nullptr) {
      good_.push_back(row);
      continue;
    }
    RowFault bad = *fault;
    bad.row = static_cast<std::int64_t>(place);
    if (bad.too_short && bad.why.empty())
      bad.why = "the field would leave the row out, which needs a scan";
    faults.reject(std::move(bad));
  }
  const std::size_t row_bytes = of_.layout.row_bytes;
  const std::int64_t first = stored_rows_;
  stored_rows_ += std::ssize(good_);
  const std::size_t begin = rows_.size(), added = good_.size() * row_bytes;
  rows_.resize(begin + added);
  auto* stored = rows_.mutable_data<std::byte>() + begin;
  if (gaps_) std::memset(stored, 0, added);
  encoded_.rows.clear();
  encoder_.encode(
      std::ssize(good_),
      [&](std::int64_t row, std::size_t field) {
        return values_[field].row(good_[static_cast<std::size_t>(row)]);
      },
      stored, runs_, encoded_);
  for (std::size_t g = 0; g < good_.size(); ++g) {
    std::size_t place = part_[static_cast<std::size_t>(good_[g])];
    number_[place] = first + static_cast<std::int64_t>(g);
    ids_[place] = ids[place];
  }
  for (RowFault& fault : encoded_.rows) {
    std::size_t place = part_[static_cast<std::size_t>(
        good_[static_cast<std::size_t>(fault.row)])];
    if (ids_[place] < 0) continue;  // by another field already
    ids_[place] = -1;
    fault.row = static_cast<std::int64_t>(place);
    faults.reject(std::move(fault));
  }
  meters_.pack.add_items(std::ssize(good_), static_cast<std::int64_t>(added));
}

}  // namespace penstock
