#include "penstock/run/quarantine.h"

namespace penstock {
namespace {

Json entry_of(const BadRow& row) {
  Json entry;
  entry["key"] = row.key;
  entry["column"] = row.column;
  entry["why"] = row.why;
  if (row.byte >= 0) entry["byte"] = row.byte;
  return entry;
}

Json entry_of(const RejectedSample& bad, const Batch& batch,
              const TableDataset* table) {
  Json entry;
  entry["key"] = key_of(table, bad.sample);
  entry["column"] = bad.place;
  entry["why"] = bad.why;
  entry["epoch"] = batch.at().epoch;
  entry["step"] = batch.at().step;
  entry["row"] = bad.row;
  entry["substitute"] = key_of(table, bad.substitute);
  return entry;
}

void add_line(std::string& lines, const Json& entry) {
  lines += (lines.empty() ? "" : "\n") + entry.dump();
}

}  // namespace

void Quarantine::add(const TableDataset& dataset) {
  std::string lines;
  for (const BadRow& row : dataset.quarantine()) add_line(lines, entry_of(row));
  std::int64_t more = dataset.bad_rows() - std::ssize(dataset.quarantine());
  if (more > 0) {
    Json entry;
    entry["more"] = more;
    add_line(lines, entry);
  }
  folder_.append("quarantine.jsonl", lines);
}

void Quarantine::add(const Batch& batch, const TableDataset* table) {
  std::string lines;
  for (const RejectedSample& bad : batch.rejected())
    if (listed_.size() < kMost && listed_.insert(bad.sample).second)
      add_line(lines, entry_of(bad, batch, table));
  folder_.append("quarantine.jsonl", lines);
}

}  // namespace penstock
