#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "penstock/base/error.h"
#include "penstock/dataset/rank_limits.h"
#include "penstock/dataset/table/larger_form.h"
#include "penstock/dataset/table/larger_plan.h"
#include "penstock/dataset/table/table_dataset.h"

// What runs take, before they are packed: all of them where they are kept, what
// a thread holds that finishes the largest one, which is decoded then for
// example, and what is kept of that.

namespace penstock {

void TableDataset::measure_larger(
    const Field& field, std::int64_t rows, std::int64_t looked,
    const std::function<ValueRow(SampleId)>& row_of) {
  const std::optional<LargerForm> larger = larger_form(field);
  if (!larger || looked == 0) return;
  std::size_t most = 0, all = 0;
  for (std::int64_t i = 0; i < looked; ++i) {
    const std::size_t bytes =
        larger->field.kind->stored_run(row_of(i * rows / looked));
    most = std::max(most, bytes);
    all += bytes;
  }
  finishing_bytes_ = std::max(finishing_bytes_, finishing_bytes(most));
  if (larger->same_bytes)
    larger_bytes_ += static_cast<std::size_t>(static_cast<double>(all) /
                                              static_cast<double>(looked) *
                                              static_cast<double>(rows));
}

/// Encoded runs are about as long as parsed ones.
void TableDataset::measure_runs(const RowsById& rows) {
  for (const ParsedBlock& block : rows.blocks)
    key_bytes_ +=
        block.keys.numbers().size_bytes() + block.keys.characters().size();
  for (std::size_t f = 0; f < options_.fields.size(); ++f) {
    const Field& field = options_.fields[f];
    const StoredForm& form = field.kind->facts().stored;
    if (form.element_bytes == 0) continue;
    std::size_t longest = 0;
    for (SampleId id = 0; id < rows.count(); ++id) {
      const std::size_t bytes = field.kind->stored_run(rows.row(id, f));
      run_bytes_ += bytes;
      longest = std::max(longest, bytes / form.element_bytes);
    }
    longest_runs_.emplace_back(f, static_cast<std::int32_t>(longest));
    measure_larger(field, rows.count(), rows.count(),
                   [&](SampleId id) { return rows.row(id, f); });
  }
}

void TableDataset::measure_stored_runs() {
  constexpr std::int64_t kLooked = 128;  // each is read from the disk
  key_bytes_ = keys_->bytes();
  for (std::size_t f = 0; f < runs_.size(); ++f) {
    if (runs_[f] == nullptr) continue;
    run_bytes_ += runs_[f]->bytes();
    longest_runs_.emplace_back(f, runs_[f]->longest());
    try {
      measure_larger(options_.fields[f], facts_.rows,
                     std::min(kLooked, facts_.rows),
                     [&](SampleId id) { return runs_[f]->row(id); });
    } catch (const Error&) {
      // Bytes that are damaged are heard of by who reads them.
    }
  }
}

void TableDataset::keep_larger() {
  larger_.reset();
  const bool varies = std::ranges::any_of(
      facts_.outputs,
      [](const Output& output) { return output.lengths != Lengths::equal; });
  if (larger_bytes_ == 0 || options_.cache != "auto" ||
      options_.budgets.any() || plan().tier == Tier::none || varies)
    return;
  LargerRows::Making making{.fields = options_.fields,
                            .statistics = fitted_->statistics};
  std::string shown;
  for (std::size_t f = 0; f < making.fields.size(); ++f) {
    const std::optional<LargerForm> form = larger_form(making.fields[f]);
    if (!form || !form->same_bytes) continue;
    making.fields[f] = form->field;
    making.larger.push_back(f);
    shown += (shown.empty() ? "" : ", ") + form->shown();
  }
  const auto line =
      std::ranges::find(facts_.plan.lines, plan().tier, &TierPlan::Line::tier);
  // Those of a mapped file are read from it whenever they are not kept.
  const LargerPlan kept =
      plan_larger({.shown = shown,
                   .rows = facts_.rows,
                   .bytes = larger_bytes_,
                   .others = line->host_bytes,
                   .read_again = plan().tier == Tier::disk ? run_bytes_ : 0,
                   .sharing = ranks_sharing(options_.cache, options_)},
                  options_, plan().limits);
  if (!kept.note.empty()) facts_.plan.notes.push_back(kept.note);
  if (!kept.keeping) return;
  making.bound = bind_fields(making.fields, *source_);
  larger_ = std::make_shared<LargerRows>(facts_.rows, std::move(making),
                                         *kept.keeping);
  line->host_bytes += kept.bytes;
}

}  // namespace penstock
