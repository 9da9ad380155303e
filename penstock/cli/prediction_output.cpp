#include "penstock/cli/prediction_output.h"

#include <unistd.h>

#include "penstock/cli/output.h"

namespace penstock {

std::unique_ptr<TableWriter> predictions_to_output(
    const std::vector<NewColumn>& columns) {
  if (::isatty(STDOUT_FILENO) == 1) return first_rows(columns, print);
  return text_writer(TextFormat::csv, columns, print_as_is, [] {});
}

}  // namespace penstock
