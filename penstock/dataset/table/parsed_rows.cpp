#include "penstock/dataset/table/parsed_rows.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "penstock/dataset/row_place.h"

// From values to statistics and stored rows. Statistics are found in passes
// over the train rows: threads add blocks of 1,024 ids to partial fits, which
// are merged in order of id, so that neither threads nor the blocks of the
// source change a bit. Rows are encoded 256 at a time, field by field: they are
// then still in the cache, and a kind is asked once for all of them. What it
// stored is checked before anything is read by it.

namespace penstock {
namespace {

using Fits = std::vector<std::unique_ptr<FieldFit>>;

/// Adds the blocks of ids [first, last) to parts of the current fits.
Fits fitted_part(const Fits& fits, const RowsById& rows, std::int64_t first,
                 std::int64_t last) {
  Fits parts;
  for (const auto& fit : fits)
    parts.push_back(fit == nullptr ? nullptr : fit->part());
  std::vector<ValueRow> values;
  std::vector<std::uint8_t> train;
  for (std::int64_t block = first; block < last; ++block) {
    SampleId begin = block * FieldFit::kBlock;
    SampleId end = std::min(rows.count(), begin + FieldFit::kBlock);
    train.clear();
    for (SampleId id = begin; id < end; ++id)
      train.push_back(rows.side(id) == 0);
    for (std::size_t f = 0; f < parts.size(); ++f) {
      if (parts[f] == nullptr) continue;
      values.clear();
      for (SampleId id = begin; id < end; ++id)
        values.push_back(rows.row(id, f));
      parts[f]->add(values, train);
    }
  }
  return parts;
}

/// One pass over the rows for all fits that are not null.
void run_pass(const Fits& fits, const RowsById& rows,
              const ShareOut& share_out) {
  Mutex mutex;
  std::map<std::int64_t, Fits> parts;  // by their first block
  auto work = [&](std::int64_t first, std::int64_t last) {
    Fits part = fitted_part(fits, rows, first, last);
    Lock lock(mutex);
    parts.emplace(first, std::move(part));
  };
  std::int64_t blocks =
      (rows.count() + FieldFit::kBlock - 1) / FieldFit::kBlock;
  if (share_out)
    share_out(blocks, work);
  else
    work(0, blocks);
  for (auto& [first, part] : parts)
    for (std::size_t f = 0; f < fits.size(); ++f)
      if (fits[f] != nullptr) fits[f]->merge(*part[f]);
}

}  // namespace

namespace {

FieldNotes* notes_of(const FitRows& rows, std::size_t field) {
  return field < rows.notes.fields.size() ? rows.notes.fields[field].get()
                                          : nullptr;
}

}  // namespace

std::vector<Json> fit_fields(const FitRows& of) {
  Fits fits;
  for (std::size_t f = 0; f < of.fields.size(); ++f)
    fits.push_back(of.fields[f]->fit(notes_of(of, f)));
  std::vector<Json> statistics(of.fields.size());
  auto unfinished = [](const auto& fit) { return fit != nullptr; };
  while (std::ranges::any_of(fits, unfinished)) {
    run_pass(fits, of.rows, of.share_out);
    for (std::size_t f = 0; f < fits.size(); ++f) {
      if (fits[f] == nullptr || fits[f]->again()) continue;
      statistics[f] = fits[f]->statistics();
      fits[f].reset();
    }
  }
  return statistics;
}

// A source's own fit knows how its rows were parsed.
Json fit_together(std::size_t field, std::span<const FitRows> sources) {
  Fits own;
  for (const FitRows& source : sources)
    own.push_back(source.fields[field]->fit(notes_of(source, field)));
  if (own.front() == nullptr) return {};
  FieldNotes* notes = notes_of(sources.front(), field);
  for (const FitRows& source : sources.subspan(1))
    if (FieldNotes* more = notes_of(source, field);
        notes != nullptr && more != nullptr)
      notes->merge(*more);
  Fits fits(sources.front().fields.size());
  std::unique_ptr<FieldFit>& fit = fits[field];
  fit = sources.front().fields[field]->fit(notes);
  do {
    for (std::size_t s = 0; s < sources.size(); ++s) {
      fit->read_as(*own[s]);
      run_pass(fits, sources[s].rows, sources[s].share_out);
    }
  } while (fit->again());
  return fit->statistics();
}

namespace {

/// Of a run, as far as its kind says: else what a length can be.
std::size_t most_elements(const FieldKind& kind) {
  for (const Output& output : kind.facts().outputs)
    if (output.own_lengths() && output.lengths != Lengths::bins &&
        output.most > 0)
      return static_cast<std::size_t>(output.most);
  return std::numeric_limits<std::int32_t>::max();
}

}  // namespace

RowEncoder::RowEncoder(const BoundFields& fields,
                       const std::vector<Field>& names, const RowLayout& layout,
                       const std::vector<Json>& statistics,
                       const Source* source)
    : stride_(layout.row_bytes), source_(source) {
  std::size_t tensor = 0;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const StoredForm& stored = names[f].kind->facts().stored;
    parts_.push_back(
        {checked_encoder(names[f], *fields[f], statistics[f]),
         stored.tensors.empty() ? 0 : layout.tensors[tensor].offset,
         stored.element_bytes, most_elements(*names[f].kind), names[f].name});
    tensor += stored.tensors.size();
  }
}

// Kinds are also written by users: what one promised is checked before it is
// relied on.
void RowEncoder::check_runs(const Part& part, const Values& runs,
                            std::int64_t before) const {
  auto refuse = [&](std::string why) {
    throw Error(
        ErrorKind::internal,
        {.code = "transform.wrong_runs",
         .what = "a field kind stored something other than it declared",
         .where = "field '" + part.name + "'",
         .why = std::move(why),
         .next =
             "correct the kind's encode(), or report the error to its author"});
  };
  penstock::check_runs(runs, before, std::ssize(rows_), part.name);
  for (std::int64_t row = before; row < runs.rows(); ++row) {
    std::size_t bytes = runs.row(row).size();
    if (bytes % part.run_bytes != 0)
      refuse("a run has " + std::to_string(bytes) +
             " bytes, which is not a multiple of its element's " +
             std::to_string(part.run_bytes));
    if (bytes / part.run_bytes > part.most_elements)
      refuse("a run has " + std::to_string(bytes / part.run_bytes) +
             " elements, expected " + std::to_string(part.most_elements) +
             " at most");
  }
}

void RowEncoder::judge(RowFault fault, const KeyList& keys, std::int64_t at,
                       Faults* damaged) const {
  if (fault.damaged && damaged != nullptr)
    return damaged->reject(std::move(fault));
  const std::string row = source_ != nullptr ? shown_row(*source_, keys, at)
                                             : "row " + keys.shown(at);
  throw Error(ErrorKind::transform,
              {.code = "transform.range",
               .what = fault.what.empty() ? "cannot store a row" : fault.what,
               .where = fault.place + ", " + row,
               .why = fault.why,
               .next = fault.next.empty() ? "correct the row, or leave it out"
                                          : fault.next});
}

template <class RowOf, class Rejected>
void RowEncoder::encode_rows(std::int64_t count, std::byte* out,
                             std::span<Values> runs, RowOf row_of,
                             Rejected rejected) {
  constexpr std::int64_t kTogether = 256;  // rows: they stay in the cache
  for (std::int64_t begin = 0; begin < count; begin += kTogether) {
    std::int64_t end = std::min(count, begin + kTogether);
    for (std::size_t f = 0; f < parts_.size(); ++f) {
      rows_.clear();
      for (std::int64_t row = begin; row < end; ++row)
        rows_.push_back(row_of(row, f));
      std::byte* to =
          out + static_cast<std::size_t>(begin) * stride_ + parts_[f].offset;
      faults_.rows.clear();
      StoredRows stored{.data = to, .stride = stride_};
      if (parts_[f].run_bytes != 0) stored.runs = &runs[f];
      std::int64_t before = stored.runs == nullptr ? 0 : stored.runs->rows();
      parts_[f].encoder->encode(rows_, stored, faults_);
      if (stored.runs != nullptr) check_runs(parts_[f], *stored.runs, before);
      check_rejected(faults_.rows, std::ssize(rows_), parts_[f].name);
      for (RowFault& fault : faults_.rows) {
        fault.row += begin;
        rejected(std::move(fault));
      }
    }
  }
}

void RowEncoder::encode(const RowsById& rows, SampleId first, SampleId end,
                        std::byte* out, std::span<Values> runs,
                        Faults* damaged) {
  encode_rows(
      end - first, out, runs,
      [&](std::int64_t row, std::size_t f) { return rows.row(first + row, f); },
      [&](RowFault fault) {
        const RowRef ref = rows.ref(first + fault.row);
        judge(std::move(fault), rows.blocks[ref.block].keys, ref.row, damaged);
      });
}

void RowEncoder::encode(std::int64_t count, const ValuesOf& row_of,
                        std::byte* out, std::span<Values> runs,
                        Faults& faults) {
  encode_rows(count, out, runs, row_of,
              [&](RowFault fault) { faults.reject(std::move(fault)); });
}

void RowEncoder::encode(const ParsedBlock& block, std::byte* out,
                        std::span<Values> runs, Faults* damaged) {
  encode_rows(
      block.rows(), out, runs,
      [&](std::int64_t row, std::size_t f) { return block.fields[f].row(row); },
      [&](RowFault fault) {
        const std::int64_t at = fault.row;
        judge(std::move(fault), block.keys, at, damaged);
      });
}

std::vector<std::byte> sides_of(const RowsById& rows) {
  std::vector<std::byte> sides;
  sides.reserve(static_cast<std::size_t>(rows.count()));
  for (SampleId id = 0; id < rows.count(); ++id)
    sides.push_back(static_cast<std::byte>(rows.side(id)));
  return sides;
}

std::vector<std::uint64_t> draws_in(const RowsById& rows) {
  std::vector<std::uint64_t> draws;
  for (SampleId id = 0; id < rows.count(); ++id)
    if (rows.side(id) == static_cast<std::uint8_t>(Side::train))
      draws.push_back(rows.block(id).draws[rows.ref(id).row]);
  return draws;
}

void keep_most(const Split& split, bool keep_ids, RowsById& rows) {
  if (!split.limited()) return;
  std::vector<std::byte> sides = sides_of(rows);
  keep_most(split, sides);
  for (SampleId id = 0; id < rows.count(); ++id)
    rows.block(id).sides[rows.ref(id).row] =
        static_cast<std::uint8_t>(sides[static_cast<std::size_t>(id)]);
  if (keep_ids) return;
  std::erase_if(rows.refs, [&](RowRef ref) {
    return rows.blocks[ref.block].sides[ref.row] ==
           static_cast<std::uint8_t>(Side::unused);
  });
}

}  // namespace penstock
