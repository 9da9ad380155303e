#include "penstock/session/quarantine.h"

namespace penstock {
namespace {

constexpr const char* kQuarantine = "quarantine.jsonl";  // holds cells of rows

Json entry_of(const BadRow& row) {
  Json entry;
  entry["key"] = row.key;
  entry["column"] = row.column;
  entry["why"] = row.why;
  if (row.byte >= 0) entry["byte"] = row.byte;
  return entry;
}

Json entry_of(const RejectedSample& bad, const Batch& batch,
              const Dataset& rows) {
  Json entry;
  entry["key"] = key_of(rows, bad.sample);
  entry["column"] = bad.place;
  entry["why"] = bad.why;
  entry["epoch"] = batch.at().epoch;
  entry["step"] = batch.at().step;
  entry["row"] = bad.row;
  entry["substitute"] = key_of(rows, bad.substitute);
  return entry;
}

void add_line(std::string& lines, const Json& entry) {
  lines += (lines.empty() ? "" : "\n") + entry.dump();
}

/// `source`: which of several it is; else null.
void add_left_out(std::string& lines, const Dataset& dataset,
                  const Json& source) {
  const auto& scan = dataset.facts().scan;
  if (scan == nullptr) return;
  auto add = [&](Json entry) {
    if (!source.is_null()) entry["source"] = source;
    add_line(lines, entry);
  };
  for (const BadRow& row : scan->quarantine) add(entry_of(row));
  const std::int64_t more = scan->bad_rows - std::ssize(scan->quarantine);
  if (more <= 0) return;
  Json entry;
  entry["more"] = more;
  add(std::move(entry));
}

}  // namespace

std::string left_out_lines(const Dataset& dataset) {
  std::string lines;
  const std::vector<MixedRows>& parts = dataset.facts().parts;
  if (parts.empty()) add_left_out(lines, dataset, {});
  for (std::size_t s = 0; s < parts.size(); ++s)
    add_left_out(lines, *parts[s].rows, Json(std::int64_t(s)));
  return lines;
}

void Quarantine::add(const Dataset& dataset) {
  folder_.append(kQuarantine, left_out_lines(dataset), Readers::owner);
}

// A sample is listed once, though it is met again in each epoch; the list is
// bounded by kMost, whatever the data are like.
void Quarantine::add(const Batch& batch, const Dataset& rows) {
  std::string lines;
  for (const RejectedSample& bad : batch.rejected())
    if (listed_.size() < kMost && listed_.insert(bad.sample).second)
      add_line(lines, entry_of(bad, batch, rows));
  folder_.append(kQuarantine, lines, Readers::owner);
}

}  // namespace penstock
