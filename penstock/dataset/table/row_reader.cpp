#include "penstock/dataset/table/scan.h"
#include "penstock/dataset/table/table_dataset.h"

namespace penstock {

struct TableDataset::RowReader::State {
  const TableDataset& dataset;
  StageMeter* const meter;  // of parsing
  SampleReader reader;
  BlockParser parser;
  KeyList keys;
  Block block;
};

TableDataset::RowReader::RowReader(const TableDataset& dataset,
                                   FillMeters* meters)
    : state_(
          new State{dataset,
                    meters != nullptr ? &meters->prepare : nullptr,
                    SampleReader(*dataset.origin_->source, &dataset.keys(),
                                 meters != nullptr ? &meters->read : nullptr),
                    BlockParser(dataset.origin_->parsing),
                    KeyList(dataset.keys().type()),
                    {}}) {}

TableDataset::RowReader::~RowReader() = default;

void TableDataset::RowReader::read(std::span<const SampleId> ids,
                                   ParsedBlock& rows, ItemRead* ahead) {
  State& s = *state_;
  read_rows(s.reader, ids, ahead, s.block);
  std::optional<BusyScope> busy;
  if (s.meter != nullptr) busy.emplace(*s.meter);
  s.keys.clear();
  for (SampleId id : ids) s.keys.append(s.dataset.keys(), id);
  ParseNotes notes;
  rows = s.parser.parse(s.keys, s.block, notes);
  if (s.meter != nullptr)
    s.meter->add_items(s.block.rows, static_cast<std::int64_t>(rows.bytes()));
  const SampleId first = s.dataset.plan().first_in(Tier::none);
  // Rows keep their order, so the first difference names the changed row.
  for (std::size_t i = 0; i < ids.size(); ++i) {
    auto at = static_cast<std::int64_t>(i);
    bool same =
        at < rows.rows() && rows.keys.canonical(at) == s.keys.canonical(at) &&
        rows.hashes[i] ==
            (*s.dataset.placed_
                  .row_hashes)[static_cast<std::size_t>(ids[i] - first)];
    if (same) continue;
    throw Error(ErrorKind::source,
                {.code = "source.row_changed",
                 .what = "row " + s.keys.shown(at) +
                         " has changed since training began",
                 .where = s.dataset.origin_->source->shown(),
                 .why = "another program has written to the table",
                 .next = "start again, or keep the rows with \"loader.cache\": "
                         "\"ram\""});
  }
}

}  // namespace penstock
