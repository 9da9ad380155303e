#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "penstock/base/error.h"
#include "penstock/dataset/larger_form.h"
#include "penstock/dataset/table_dataset.h"

// What runs take, before they are packed: all of them where they are kept, and
// what a thread holds that finishes the largest one, which is decoded then for
// example.

namespace penstock {
namespace {

using RowOf = std::function<std::span<const std::byte>(SampleId)>;

/// For the largest of so many rows; 0 where the field has no larger form.
std::size_t largest_finishing(const Field& field, std::int64_t rows,
                              std::int64_t looked, const RowOf& row_of) {
  const std::optional<LargerForm> larger = larger_form(field);
  std::size_t most = 0;
  for (std::int64_t i = 0; larger && i < looked; ++i)
    most = std::max(most,
                    larger->field.kind->stored_run(row_of(i * rows / looked)));
  return finishing_bytes(most);
}

}  // namespace

/// Encoded runs are about as long as parsed ones.
void TableDataset::measure_runs(const RowsById& rows) {
  for (const ParsedBlock& block : rows.blocks)
    key_bytes_ +=
        block.keys.numbers().size_bytes() + block.keys.characters().size();
  for (std::size_t f = 0; f < options_.fields.size(); ++f) {
    const Field& field = options_.fields[f];
    StoredForm form = field.kind->stored();
    if (form.element_bytes == 0) continue;
    std::size_t longest = 0;
    for (SampleId id = 0; id < rows.count(); ++id) {
      const std::size_t bytes = field.kind->stored_run(rows.row(id, f));
      run_bytes_ += bytes;
      longest = std::max(longest, bytes / form.element_bytes);
    }
    longest_runs_.emplace_back(f, static_cast<std::int32_t>(longest));
    finishing_bytes_ = std::max(
        finishing_bytes_,
        largest_finishing(field, rows.count(), rows.count(),
                          [&](SampleId id) { return rows.row(id, f); }));
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
      finishing_bytes_ = std::max(
          finishing_bytes_,
          largest_finishing(options_.fields[f], info_.rows,
                            std::min(kLooked, info_.rows),
                            [&](SampleId id) { return runs_[f]->row(id); }));
    } catch (const Error&) {
      // Bytes that are damaged are heard of by who reads them.
    }
  }
}

}  // namespace penstock
