#include "penstock/run/first_rows.h"

#include <utility>

#include "penstock/base/formatted.h"
#include "penstock/base/table_text.h"
#include "penstock/run/text_table.h"

namespace penstock {
namespace {

class FirstRows final : public TableWriter {
 public:
  FirstRows(const std::vector<NewColumn>& columns, PrintText print)
      : print_(std::move(print)) {
    for (const NewColumn& column : columns) {
      if (cells_[0].size() == kColumns) break;
      cells_[0].push_back(column.name);
    }
  }
  void write(const Block& block) override {
    for (std::int64_t row = 0; row < block.rows; ++row, ++rows_)
      if (cells_.size() <= kRows) add(block, row);
  }
  void finish() override {
    std::string text = table_text(cells_);
    const std::int64_t more = rows_ - std::ssize(cells_) + 1;
    if (more > 0)
      text += "... and " + std::to_string(more) +
              " more rows; --out FILE writes all\n";
    print_(text);
  }

 private:
  static constexpr std::size_t kRows = 10, kColumns = 8;

  void add(const Block& block, std::int64_t row) {
    std::vector<std::string> cells;
    for (std::size_t c = 0; c < cells_[0].size(); ++c) {
      const Column& column = block.columns[c];
      const bool real = column.type.kind == ColumnKind::number &&
                        column.type != ColumnType::int64 && column.valid(row);
      cells.push_back(real ? formatted("%.4g", column.as_float64(row))
                           : cell_text(column, row));
    }
    cells_.push_back(std::move(cells));
  }

  const PrintText print_;
  std::vector<std::vector<std::string>> cells_{1};
  std::int64_t rows_ = 0;
};

}  // namespace

std::unique_ptr<TableWriter> first_rows(const std::vector<NewColumn>& columns,
                                        PrintText print) {
  return std::make_unique<FirstRows>(columns, std::move(print));
}

}  // namespace penstock
