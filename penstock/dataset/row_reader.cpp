#include "penstock/dataset/scan.h"
#include "penstock/dataset/table_dataset.h"

namespace penstock {

struct TableDataset::RowReader::State {
  const TableDataset& dataset;
  std::unique_ptr<Reader> reader;
  BlockParser parser;
  KeyList keys;
  std::vector<std::int64_t> positions;
  Block block;

  /// Of rows by position, the keys are positions.
  ReadRequest request(std::span<const SampleId> ids) {
    keys.clear();
    for (SampleId id : ids) keys.append(dataset.keys_, id);
    if (dataset.source_->abilities().by_key) return keys;
    positions.clear();
    for (std::int64_t at = 0; at < keys.size(); ++at)
      positions.push_back(keys.integer(at));
    return positions;
  }
};

TableDataset::RowReader::RowReader(const TableDataset& dataset)
    : state_(new State{dataset,
                       open_checked_reader(*dataset.source_),
                       BlockParser(dataset.parsing_),
                       KeyList(dataset.keys_.type()),
                       {},
                       {}}) {}

TableDataset::RowReader::~RowReader() = default;

void TableDataset::RowReader::read(std::span<const SampleId> ids,
                                   ParsedBlock& rows) {
  State& s = *state_;
  ReadRequest request = s.request(ids);
  if (read_meter != nullptr) {
    BusyScope busy(*read_meter);
    s.reader->read(request, s.block);
    read_meter->add_items(s.block.rows,
                          static_cast<std::int64_t>(s.block.bytes()));
    read_meter->add_calls(1);
  } else {
    s.reader->read(request, s.block);
  }
  std::optional<BusyScope> busy;
  if (prepare_meter != nullptr) busy.emplace(*prepare_meter);
  ParseNotes notes;
  rows = s.parser.parse(s.keys, s.block, notes);
  if (prepare_meter != nullptr)
    prepare_meter->add_items(s.block.rows,
                             static_cast<std::int64_t>(rows.bytes()));
  // Rows keep their order, so the first difference names the changed row.
  for (std::size_t i = 0; i < ids.size(); ++i) {
    auto at = static_cast<std::int64_t>(i);
    bool same = at < rows.rows() &&
                rows.keys.canonical(at) == s.keys.canonical(at) &&
                rows.hashes[i] ==
                    s.dataset.row_hashes_[static_cast<std::size_t>(ids[i])];
    if (same) continue;
    throw Error(ErrorKind::source,
                {.code = "source.row_changed",
                 .what = "row " + s.keys.shown(at) +
                         " is no longer what it was when training began",
                 .where = s.dataset.source_->shown(),
                 .why = "another program has written to the table",
                 .next = "start again, or keep the rows with \"loader.cache\": "
                         "\"ram\""});
  }
}

}  // namespace penstock
