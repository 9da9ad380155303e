#include "penstock/session/not_finite.h"

#include <cstring>
#include <utility>

namespace penstock {
namespace {

/// Whether one of the floats is not a number: all bits of its exponent are set,
/// and some of its fraction. `infinity` has the bits of the positive infinity.
template <class Bits>
bool any_nan(const TensorView& tensor, Bits infinity) {
  constexpr auto kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  const std::byte* at = tensor.data;
  const std::byte* end = at + tensor.bytes();
  bool any = false;  // without a branch: the loop is vectorised
  for (; at != end; at += sizeof(Bits)) {
    Bits bits = 0;
    std::memcpy(&bits, at, sizeof(Bits));
    any |= static_cast<Bits>(bits & static_cast<Bits>(~kSign)) > infinity;
  }
  return any;
}

bool has_nan(const TensorView& tensor) {
  switch (tensor.dtype) {
    case Dtype::float64:
      return any_nan<std::uint64_t>(tensor, 0x7ff0000000000000);
    case Dtype::float32:
      return any_nan<std::uint32_t>(tensor, 0x7f800000);
    case Dtype::float16:
      return any_nan<std::uint16_t>(tensor, 0x7c00);
    case Dtype::bfloat16:
      return any_nan<std::uint16_t>(tensor, 0x7f80);
    default:
      return false;
  }
}

/// Gradients that are kept between steps in float16 may overflow: the step that
/// would use them is left out then, and the loss is scaled by less.
bool may_overflow(const ModelState& model, const NamedTensor& tensor) {
  if (!tensor.name.starts_with("gradient.")) return false;
  for (const NamedTensor& one : model.tensors)
    if (one.name.starts_with("scale.")) return true;
  const Json* optimiser =
      model.json.is_object() ? model.json.find("optimiser") : nullptr;
  if (optimiser == nullptr || !optimiser->is_object()) return false;
  const Json* scaler = optimiser->find("scaler");  // torch's, of a module
  return scaler != nullptr && scaler->is_object() && !scaler->object().empty();
}

}  // namespace

Error not_finite_error(std::string where, std::string why, std::string next) {
  return {ErrorKind::transform,
          {.code = kNotFinite,
           .what = "the model cannot continue to train",
           .where = std::move(where),
           .why = std::move(why),
           .next = std::move(next)}};
}

std::optional<std::string> tensor_without_number(const ModelState& model) {
  for (const NamedTensor& tensor : model.tensors)
    if (has_nan(tensor.view) && !may_overflow(model, tensor))
      return tensor.name;
  return std::nullopt;
}

}  // namespace penstock
