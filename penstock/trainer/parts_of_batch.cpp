#include "penstock/trainer/parts_of_batch.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "penstock/base/error.h"
#include "penstock/trainer/torch_error.h"

namespace penstock {
namespace {

/// The error, where memory was short.
std::optional<Error> looked(
    const BatchRows& rows,
    const std::function<void(const BatchRows& rows)>& look) try {
  in_torch("looking at rows", [&] { look(rows); });
  return std::nullopt;
} catch (const Error& error) {
  if (error.kind() != ErrorKind::out_of_memory) throw;
  return error;
}

}  // namespace

void in_parts(const BatchRows& batch, std::int64_t& most,
              const std::function<void(const BatchRows& rows)>& look,
              const Halved& halved) {
  for (std::int64_t begin = 0; begin < batch.rows();) {
    const std::int64_t rows = std::min(most, batch.rows() - begin);
    const std::optional<Error> shortage =
        looked(batch.slice(begin, begin + rows), look);
    if (!shortage) {
      begin += rows;
      continue;
    }
    if (rows == 1 || !halved) throw *shortage;
    most = static_cast<std::int64_t>(
        std::bit_floor(static_cast<std::uint64_t>(rows - 1)));
    halved(rows, most);
  }
}

}  // namespace penstock
