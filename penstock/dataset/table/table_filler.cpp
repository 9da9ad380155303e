#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "penstock/dataset/arrays/gather_filler.h"
#include "penstock/dataset/indexed/missing_rows.h"
#include "penstock/dataset/row_finisher.h"
#include "penstock/dataset/row_place.h"
#include "penstock/dataset/table/larger_finisher.h"
#include "penstock/dataset/table/table_dataset.h"

// The rows of a batch come from up to four places: the device, pinned memory,
// host memory and a mapped file, or the source. Each is a piece of one table,
// so that a batch is one gather: on the device where all its rows can be read
// from there, else on the host. Where the device keeps a part of the rows, the
// others are brought together on the host as stored, and copied; they
// are the last piece of the gather on the device (BatchLayout::Staged, as a run
// of one row or none).

namespace penstock {
namespace {

class TableFiller final : public SlotFiller {
 public:
  TableFiller(const TableDataset& dataset, FillMeters& meters,
              const FillerOptions& options)
      : dataset_(dataset),
        plan_(dataset.plan()),
        row_bytes_(dataset.layout().row_bytes),
        first_on_host_(plan_.first_in(Tier::ram)),
        first_missing_(plan_.first_in(Tier::none)),
        staged_(dataset.staged_place(options.side)),
        finisher_(dataset.fields(), dataset.layout(), dataset.facts(), options),
        meter_(meters.gather) {
    if (plan_.tier == Tier::none)
      missing_.emplace(dataset, meters, options.per_sample);
    for (const RowFinisher::Copied& copied : finisher_.copied())
      fields_.push_back({.row_stride = row_bytes_, .bytes = copied.bytes});
    if (dataset.larger() != nullptr)
      larger_.emplace(*dataset.larger(), dataset.facts(), options);
  }

  void fill(const FillItem& item, Stream& stream, Faults& faults) override {
    const std::size_t before = faults.rows.size();
    try {
      for (std::int64_t lost = dataset_.losses();;) {
        fill_rows(item, stream, faults);
        const std::int64_t now = dataset_.losses();
        if (now == lost) break;
        lost = now;  // pages of the store became zeros meanwhile
        faults.rows.resize(before);
      }
      reject_damaged(item, faults, before);
      for (RowFault& fault : std::span(faults.rows).subspan(before))
        dataset_.add_place(item.ids[static_cast<std::size_t>(fault.row)],
                           fault.place);
    } catch (const Error& error) {
      dataset_.remove_damaged(error);
      throw;
    }
  }

  void queue(const FillItem& batch, std::byte* scratch,
             Stream& stream) override {
    const auto kept = [&](std::size_t field, std::size_t i) {
      return dataset_.runs(field)->row(batch.ids[i]);
    };
    if (!staged_ && !gathered_on_device(plan_.tier))
      return finisher_.queue(batch, scratch, stream, kept);
    find_rows(batch);
    if (staged_) gather(batch, stream);
    find_stored();
    finisher_.queue(
        batch, stored_, kept,
        [&](std::size_t field, std::size_t i) {
          return dataset_.seen_run(field, batch.ids[i]);
        },
        scratch, stream);
  }

 private:
  /// Adds those that showed when they were encoded to what was found from
  /// `before` on.
  void reject_damaged(const FillItem& item, Faults& faults,
                      std::size_t before) const {
    const DamagedRows& kept = dataset_.damaged();
    for (std::size_t i = 0; !kept.empty() && i < item.ids.size(); ++i) {
      const auto found = kept.find(item.ids[i]);
      if (found == kept.end()) continue;
      faults.reject(found->second);
      faults.rows.back().row = static_cast<std::int64_t>(i);
    }
    if (missing_)
      for (const RowFault& fault : missing_->damaged()) faults.reject(fault);
    keep_first_of_each(faults, before);
  }

  void fill_rows(const FillItem& item, Stream& stream, Faults& faults) {
    if (missing_) missing_->read(item.ids, item.read);
    if (const Table* table = dataset_.table()) table->check(item.ids);
    BusyScope busy(meter_);
    if (staged_) return stage(item);
    find_rows(item);
    std::size_t bytes = gather(item, stream);
    if (!finisher_.idle()) {
      find_stored();
      const auto counted = [&](std::size_t field, std::size_t i) {
        std::span<const std::byte> run = run_of(item, field, i);
        bytes += run.size();
        return run;
      };
      if (larger_)
        larger_->finish(item, stored_, counted, finisher_, faults);
      else
        finisher_.finish(item, stored_, counted, faults,
                         [&](std::size_t field, std::size_t i) {
                           return run_of(item, field, i);
                         });
    }
    meter_.add_items(std::ssize(item.ids), static_cast<std::int64_t>(bytes));
  }

  bool is_missing(SampleId id) const { return id >= first_missing_; }

  /// Copies the stored rows that the device does not keep to where those of the
  /// batch come together.
  void stage(const FillItem& item) {
    const TensorPlace& to = item.to[*staged_];
    std::int64_t count = 0;
    for (std::size_t i = 0; i < item.ids.size(); ++i) {
      SampleId id = item.ids[i];
      if (id < first_on_host_) continue;
      const std::byte* row =
          is_missing(id) ? missing_row(i) : dataset_.table()->row(id);
      std::memcpy(to.row(i), row, row_bytes_);
      ++count;
    }
    meter_.add_items(std::ssize(item.ids),
                     count * static_cast<std::int64_t>(row_bytes_));
  }

  const std::byte* missing_row(std::size_t i) const {
    return missing_->rows() +
           static_cast<std::size_t>(missing_->number(i)) * row_bytes_;
  }

  /// Numbers the rows of the item, which are kept under their ids, as the
  /// gather knows them.
  void find_rows(const FillItem& item) {
    pieces_.clear();
    base_ = nullptr;
    const Table* table = dataset_.table();
    if (table != nullptr)
      for (const Table::Piece& piece : table->pieces())
        if (!staged_ || gathered_on_device(piece.tier))
          add_piece(piece.first, piece.data);
    if (staged_)
      add_piece(first_on_host_, item.to[*staged_].data);
    else if (missing_)
      add_piece(first_missing_, missing_->rows());
    const bool renumbered = staged_ || missing_;
    if (!renumbered) {
      rows_ = item.ids;
      return;
    }
    numbered_.assign(item.ids.begin(), item.ids.end());
    for (std::size_t i = 0; i < numbered_.size(); ++i) {
      std::int64_t& row = numbered_[i];
      if (staged_ && row >= first_on_host_)
        row = first_on_host_ + item.to[*staged_].starts[i];
      else if (!staged_ && is_missing(row))
        row = first_missing_ + missing_->number(i);
    }
    rows_ = numbered_;
  }
  void add_piece(SampleId first, const std::byte* data) {
    if (base_ == nullptr)
      base_ = data;
    else
      pieces_.push_back(piece_of(first, data, base_, row_bytes_));
  }

  std::size_t gather(const FillItem& item, Stream& stream) {
    std::size_t bytes = 0;
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      const RowFinisher::Copied& copied = finisher_.copied()[f];
      // Without a table no row is read.
      fields_[f].table = base_ == nullptr ? nullptr : base_ + copied.offset;
      fields_[f].out = item.to[copied.output].data;
      bytes += item.ids.size() * copied.bytes;
    }
    if (fields_.empty()) return bytes;
    Gather gather{.fields = fields_, .rows = rows_, .pieces = pieces_};
    if (staged_ || gathered_on_device(plan_.tier))
      stream.run(gather);
    else
      run_on_host(gather);
    return bytes;
  }

  /// Where the rows that find_rows() numbered are.
  void find_stored() {
    stored_.clear();
    if (base_ == nullptr) return;
    for (std::int64_t row : rows_)
      stored_.push_back(row < 0 ? nullptr
                                : row_at(row, base_, row_bytes_, pieces_));
  }

  std::span<const std::byte> run_of(const FillItem& item, std::size_t field,
                                    std::size_t i) const {
    return missing_ ? missing_->run(field, i)
                    : dataset_.seen_run(field, item.ids[i]);
  }

  const TableDataset& dataset_;
  const TierPlan& plan_;
  const std::size_t row_bytes_;
  const SampleId first_on_host_, first_missing_;
  const std::optional<std::size_t> staged_;  // a place of FillItem::to
  std::optional<MissingRows> missing_;
  RowFinisher finisher_;
  std::optional<LargerFinisher> larger_;
  StageMeter& meter_;
  std::vector<GatherField> fields_;
  // The rows of an item: their numbers, and where row 0 and the others are.
  std::span<const std::int64_t> rows_;
  std::vector<std::int64_t> numbered_;
  const std::byte* base_ = nullptr;
  std::vector<GatherPiece> pieces_;
  std::vector<const std::byte*> stored_;
};

/// Rows that are gathered unchanged need nothing else.
std::unique_ptr<SlotFiller> open_gather(const TableDataset& dataset,
                                        FillMeters& meters,
                                        const FillerOptions& options) {
  const Table* table = dataset.table();
  const Tier tier = dataset.plan().tier;
  if (table == nullptr || table->pieces().size() != 1 || tier >= Tier::disk ||
      !dataset.damaged().empty())
    return nullptr;
  RowFinisher finisher(dataset.fields(), dataset.layout(), dataset.facts(),
                       options);
  if (!finisher.idle() || !finisher.queues_nothing()) return nullptr;
  std::vector<GatherField> fields;
  std::vector<std::size_t> outputs;
  for (const RowFinisher::Copied& copied : finisher.copied()) {
    fields.push_back({.table = table->data() + copied.offset,
                      .row_stride = dataset.layout().row_bytes,
                      .bytes = copied.bytes});
    outputs.push_back(copied.output);
  }
  return make_gather_filler(std::move(fields), std::move(outputs), tier,
                            meters.gather);
}

}  // namespace

Json TableDataset::key_of(SampleId sample) const {
  const bool numbered = origin_->source->abilities().by_position &&
                        keys().type() == ColumnType::int64;
  return numbered ? row_name(*origin_->source, keys().integer(sample))
                  : keys().json(sample);
}

void TableDataset::add_place(SampleId sample, std::string& place) const {
  const RowParts* parts = origin_->parsing.parts.get();
  if (parts != nullptr && keys().type() == ColumnType::int64)
    add_row_place(parts, keys().integer(sample), place);
}

std::unique_ptr<SlotFiller> TableDataset::open_filler(
    FillMeters& meters, const FillerOptions& options) const {
  if (std::unique_ptr<SlotFiller> gather = open_gather(*this, meters, options))
    return gather;
  return std::make_unique<TableFiller>(*this, meters, options);
}

}  // namespace penstock
