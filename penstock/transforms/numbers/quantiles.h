#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/transforms/standardization.h"

namespace penstock {

/// Places among sorted values, evenly apart: first / of, ..., last / of of the
/// way from the least to the greatest.
struct QuantilePlaces {
  std::int64_t first = 1, last = 1, of = 2;  ///< the median
};

/// Adds to a fit's statistics what stands at these places of each number's
/// values over the train rows, under `key`: a list, or, of "fill", the one
/// number. Between two values it is interpolated; of no values,
/// transform.nothing_to_fit. Exact, in five passes or some more, each of which
/// counts the values by some bits of them (a radix select), so that memory does
/// not grow with the rows: 1 MiB a number, and as much for each thread.
std::unique_ptr<FieldFit> with_quantiles(std::unique_ptr<FieldFit> fit,
                                         std::vector<std::string> names,
                                         NumberPlace place,
                                         std::unique_ptr<NumberRows> rows,
                                         QuantilePlaces places,
                                         std::string key);

}  // namespace penstock
