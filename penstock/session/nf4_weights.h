#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "penstock/models/models.h"
#include "penstock/session/mapped_weights.h"
#include "penstock/session/safetensors.h"

namespace penstock {

/// A weight of four bits with what belongs to it, as bitsandbytes writes it
/// beside the codes: X, X.absmax, X.quant_map,
/// X.quant_state.bitsandbytes__nf4, and of scales of eight bits
/// X.nested_absmax and X.nested_quant_map.
struct Nf4Parts {
  Shape shape;                   ///< [out, in]
  Dtype dtype = Dtype::float32;  ///< which it had before it was quantised
  std::span<const std::uint8_t> codes;  ///< of weights, where they lie
  std::vector<float> scales;            ///< of weights; where nested, of scales
  /// Only where scales have eight bits: their codes, what codes stand for
  /// (256), and the mean that is added.
  std::vector<std::uint8_t> scale_codes;
  std::vector<float> scale_values;
  float mean = 0;

  bool nested() const { return !scale_values.empty(); }
  /// The scales of weights, float32.
  std::vector<float> weight_scales() const;
};

/// The weight `name`; nullopt where the files have it unquantised, or not at
/// all. The result is valid as long as `files`. Throws Error(request), code
/// model.weights: another type than nf4 (fp4), other blocks than of 64 and 256,
/// parts that are missing or of another size.
std::optional<Nf4Parts> nf4_parts(const MappedWeights& files,
                                  const std::string& name);
/// The names of those parts that such a weight may have.
std::vector<std::string> names_of_nf4(const std::string& name);

/// A weight that was quantised, as tensors of a safetensors file, which view
/// this object.
class Nf4Tensors {
 public:
  /// `weight`: [out, in], as quantize_nf4() takes it. `nested`: scales have
  /// eight bits.
  Nf4Tensors(const TensorView& weight, bool nested);
  std::vector<NamedTensor> named(const std::string& name);

 private:
  std::vector<std::uint8_t> codes_, scale_codes_;
  std::vector<float> values_, scales_, scale_values_;
  std::string state_;
};

}  // namespace penstock
