#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "penstock/dataset/streamed/row_window.h"
#include "penstock/exec/exec.h"
#include "penstock/sources/sources.h"

namespace penstock {

/// How the rows of a source become windows.
struct RowStreamOptions {
  std::vector<Field> fields;
  std::vector<Json> statistics;  ///< by field, of a run; null: it needs none
  int workers = 1;               ///< threads that parse; one reads beside them
  std::int64_t batch_rows = 1;   ///< windows are multiples, but for the last
  /// Takers of windows, in turn. For several, the first windows are small, and
  /// later ones grow, so that few rows are shared by all takers, too.
  int takers = 1;
  bool skip_bad =
      false;  ///< rows that cannot be used are left out, and counted
};

/// What a stream left out, up to the window that was taken last.
struct RowsLeftOut {
  static constexpr std::size_t kMostNamed = 1000;

  std::int64_t too_short = 0;  ///< rows left out by a field's own rule
  std::int64_t bad_rows = 0;
  std::vector<BadRow> bad = {};  ///< the first of them

  std::int64_t count() const { return too_short + bad_rows; }
};

/// Throws Error(transform), code data.bad_rows, for a row that cannot be used;
/// `source` is that of its place.
[[noreturn]] void refuse_bad_row(const BadRow& row, const std::string& source);

/// Rows of a source in its own order, prepared by statistics that are known, in
/// windows that are data sets. Memory is bounded, however many rows there are:
/// one window is handed out, one is ready, and one is being prepared.
///
/// One consumer thread. The rows of a window depend on the source and the
/// number of takers, and those of a batch on the source alone; neither depends
/// on the number of workers.
class RowStream {
 public:
  /// `source` was opened with requests_of(options.fields). Throws
  /// Error(request) where its columns are not what the fields need, or the
  /// statistics are not theirs.
  RowStream(std::unique_ptr<Source> source, RowStreamOptions options);
  ~RowStream();

  /// The next rows; null after the last. Throws what reading throws, and
  /// without `skip_bad` Error(transform), code data.bad_rows, for a row that
  /// cannot be used.
  std::shared_ptr<const RowWindow> next();
  /// Of the windows that were taken; of all rows after the last one.
  const RowsLeftOut& left_out() const { return left_out_; }
  const Source& source() const { return *source_; }

 private:
  struct RawBlock {
    std::int64_t number;
    KeyList keys;
    Block block;
  };
  struct Window {
    std::shared_ptr<const RowWindow> rows;
    RowsLeftOut left_out;  // of all blocks that it was taken from
  };
  void read();
  void parse();
  void assemble();
  void add(RowsLeftOut& all, const PreparedBlock& block) const;
  void end(std::exception_ptr error);

  const std::unique_ptr<Source> source_;
  const RowStreamOptions options_;
  const RowLayout layout_;
  const BlockParser::Options parsing_;
  const std::shared_ptr<const FittedFields> fitted_;
  // Blocks that were read and are in no window yet hold a ticket each.
  Queue<char> tickets_;
  Queue<RawBlock> raw_;
  Sequencer<std::shared_ptr<const PreparedBlock>> prepared_;
  Queue<Window> windows_;
  RowsLeftOut left_out_;
  std::unique_ptr<Stage> assembling_, parsing_stage_, reading_;
};

}  // namespace penstock
