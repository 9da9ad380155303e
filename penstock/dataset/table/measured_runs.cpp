#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>

#include "penstock/base/error.h"
#include "penstock/dataset/table/larger_form.h"
#include "penstock/dataset/table/stored_table.h"

// What runs take, before they are packed: all of them where they are kept, what
// a thread holds that finishes the largest one, which is decoded then for
// example, and what is kept of that.

namespace penstock {
namespace {

/// What runs take in the larger form, those of so many rows looked at.
void measure_larger(const Field& field, std::int64_t looked,
                    const std::function<ValueRow(SampleId)>& row_of,
                    MeasuredRows& all) {
  const std::optional<LargerForm> larger = larger_form(field);
  if (!larger || looked == 0) return;
  std::size_t most = 0, bytes_of_looked = 0;
  for (std::int64_t i = 0; i < looked; ++i) {
    const std::size_t bytes =
        larger->field.kind->stored_run(row_of(i * all.rows / looked));
    most = std::max(most, bytes);
    bytes_of_looked += bytes;
  }
  all.finishing_bytes = std::max(all.finishing_bytes, finishing_bytes(most));
  if (larger->same_bytes)
    all.larger_bytes += static_cast<std::size_t>(
        static_cast<double>(bytes_of_looked) / static_cast<double>(looked) *
        static_cast<double>(all.rows));
}

}  // namespace

/// Encoded runs are about as long as parsed ones.
MeasuredRows measured(const TableOrigin& origin, const ScannedTable& scanned) {
  const RowsById& rows = scanned.rows;
  MeasuredRows all{.rows = rows.count(),
                   .on_side = scanned.found.sides.sizes(),
                   .scan = scanned.pass.memory};
  for (const ParsedBlock& block : rows.blocks)
    all.key_bytes +=
        block.keys.numbers().size_bytes() + block.keys.characters().size();
  for (std::size_t f = 0; f < origin.options.fields.size(); ++f) {
    const std::size_t element = origin.element_bytes[f];
    if (element == 0) continue;
    const Field& field = origin.options.fields[f];
    std::size_t longest = 0;
    for (SampleId id = 0; id < rows.count(); ++id) {
      const std::size_t bytes = field.kind->stored_run(rows.row(id, f));
      all.run_bytes += bytes;
      longest = std::max(longest, bytes / element);
    }
    all.longest.push_back({f, static_cast<std::int32_t>(longest)});
    measure_larger(
        field, all.rows, [&](SampleId id) { return rows.row(id, f); }, all);
  }
  return all;
}

MeasuredRows measured(const TableOrigin& origin, const StoredTable& stored) {
  constexpr std::int64_t kLooked = 128;  // each is read from the disk
  const FoundRows& found = stored.found;
  const auto& runs = stored.placed.runs;
  MeasuredRows all{.rows = stored.placed.store->about().find("rows")->integer(),
                   .on_side = found.sides.sizes(),
                   .key_bytes = found.keys->bytes(),
                   .in_store = true};
  for (std::size_t f = 0; f < runs.size(); ++f) {
    if (runs[f] == nullptr) continue;
    all.run_bytes += runs[f]->bytes();
    all.longest.push_back({f, runs[f]->longest()});
    try {
      measure_larger(
          origin.options.fields[f], std::min(kLooked, all.rows),
          [&](SampleId id) { return runs[f]->row(id); }, all);
    } catch (const Error&) {
      // Bytes that are damaged are heard of by who reads them.
    }
  }
  return all;
}

}  // namespace penstock
