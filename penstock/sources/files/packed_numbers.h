#pragma once

#include <string>
#include <vector>

#include "penstock/base/bytes.h"
#include "penstock/base/json.h"
#include "penstock/base/tensor.h"

namespace penstock::files {

/// What attributes of the CF conventions make of an array of numbers, as
/// xarray.open_dataset does by default.
struct PackedNumbers {
  /// Of the numbers in the file, with the sign that `_Unsigned` gives them.
  Dtype stored = Dtype::float64;
  Dtype dtype = Dtype::float64;      ///< of the numbers that readers get
  double scale = 1, offset = 0;      ///< value * scale + offset
  std::vector<double> missing = {};  ///< stored numbers that mean NaN
  bool unpacks = false;              ///< false: numbers are read as stored

  bool operator==(const PackedNumbers&) const = default;
};

/// Reads `scale_factor`, `add_offset`, `missing_value`, `_FillValue` and
/// `_Unsigned`; each but the last is a number or a list, of which the first two
/// have one entry. `singles` names attributes that are float32 in the file.
/// Attributes that cannot be applied are ignored, with a warning that names
/// `place`.
PackedNumbers packed_by(const Json& attributes,
                        const std::vector<std::string>& singles, Dtype stored,
                        const std::string& place);

/// Numbers of `packed.stored` as those of `packed.dtype`.
Bytes unpacked(const PackedNumbers& packed, const Bytes& stored);

}  // namespace penstock::files
