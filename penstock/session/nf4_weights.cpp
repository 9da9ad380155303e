#include "penstock/session/nf4_weights.h"

#include <algorithm>
#include <cstring>

#include "penstock/session/weights.h"

namespace penstock {
namespace {

constexpr const char* kScales = ".absmax";
constexpr const char* kValues = ".quant_map";
constexpr const char* kNestedScales = ".nested_absmax";
constexpr const char* kNestedValues = ".nested_quant_map";
constexpr const char* kState = ".quant_state.bitsandbytes__nf4";

/// Reads the parts of one weight, and refuses what they must not be.
class PartsReader {
 public:
  PartsReader(const MappedWeights& files, std::string name)
      : files_(files), name_(std::move(name)) {}

  Nf4Parts read() const {
    Nf4Parts parts = read_state();
    const std::int64_t count = elements_of(parts.shape);
    const TensorView& codes = view("", Dtype::uint8, nf4_bytes(count));
    parts.codes = {reinterpret_cast<const std::uint8_t*>(codes.data),
                   codes.bytes()};
    if (!std::ranges::equal(numbers(kValues, 16), nf4_values()))
      refuse("the quant_map does not hold the values of nf4");
    const std::int64_t blocks = nf4_blocks(count);
    if (!files_.has(name_ + kNestedScales)) {
      parts.scales = numbers(kScales, blocks);
      return parts;
    }
    const TensorView& scales = view(kScales, Dtype::uint8, blocks);
    const auto* first = reinterpret_cast<const std::uint8_t*>(scales.data);
    parts.scale_codes.assign(first, first + scales.bytes());
    parts.scales =
        numbers(kNestedScales, (blocks + kScaleBlock - 1) / kScaleBlock);
    parts.scale_values = numbers(kNestedValues, 256);
    return parts;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    refuse_weights(files_.at(name_).file, "tensor '" + name_ + "': " + why,
                   "use a model that bitsandbytes has quantised to nf4 in "
                   "blocks of 64, or the model without quantisation");
  }

  const TensorView& view(const char* part, Dtype dtype,
                         std::int64_t count) const {
    const TensorView& found = files_.at(name_ + part).view;
    if (found.dtype != dtype || elements_of(found.shape) != count)
      refuse((*part == '\0' ? "the codes are " : std::string(part) + " is ") +
             std::string(name_of(found.dtype)) + " " + text_of(found.shape) +
             ", expected " + std::to_string(count) + " numbers of type " +
             std::string(name_of(dtype)));
    return found;
  }

  std::vector<float> numbers(const char* part, std::int64_t count) const {
    const TensorView& found = view(part, Dtype::float32, count);
    std::vector<float> all(static_cast<std::size_t>(count));
    std::memcpy(all.data(), found.data, found.bytes());
    return all;
  }

  void expect(const Json& state, const char* key, const Json& expected) const {
    const Json* found = state.find(key);
    if (found == nullptr || *found != expected)
      refuse("the " + std::string(key) + " is " +
             (found == nullptr ? "missing" : found->dump()) + ", expected " +
             expected.dump());
  }

  Nf4Parts read_state() const {
    if (!files_.has(name_ + kState))
      refuse(files_.has(name_ + ".quant_state.bitsandbytes__fp4")
                 ? "the type is fp4, expected nf4"
                 : "the tensor has scales, but no " + std::string(kState + 1));
    const TensorView& bytes = files_.at(name_ + kState).view;
    const Json state =
        Json::parse({reinterpret_cast<const char*>(bytes.data), bytes.bytes()},
                    name_ + kState);
    if (!state.is_object()) refuse("the quant_state is not an object");
    expect(state, "quant_type", "nf4");
    expect(state, "blocksize", kNf4Block);
    Nf4Parts parts;
    const Json *shape = state.find("shape"), *dtype = state.find("dtype");
    if (shape == nullptr || !shape->is_array() || dtype == nullptr ||
        !dtype->is_string() || !dtype_from(dtype->string(), parts.dtype))
      refuse("the quant_state names no shape and type");
    for (const Json& extent : shape->array()) {
      const auto* count = std::get_if<std::int64_t>(&extent.value());
      if (count == nullptr || *count < 1 || *count > 1 << 30)
        refuse("the shape is " + shape->dump() +
               ", expected numbers from 1 to 2^30");
      parts.shape.push_back(*count);
    }
    if (parts.shape.size() != 2)
      refuse("the shape is " + shape->dump() + ", expected two dimensions");
    const Json* mean = state.find("nested_offset");
    if (mean == nullptr) return parts;
    expect(state, "nested_blocksize", kScaleBlock);
    expect(state, "nested_dtype", "float32");
    if (!mean->is_number())
      refuse("the nested_offset is " + mean->dump() + ", expected a number");
    parts.mean = static_cast<float>(mean->number());
    return parts;
  }

  const MappedWeights& files_;
  const std::string name_;
};

std::string state_of(const TensorView& weight, bool nested, float mean) {
  Json state;
  state["quant_type"] = "nf4";
  state["blocksize"] = kNf4Block;
  state["dtype"] = name_of(weight.dtype);
  state["shape"] = Json::Array{};
  for (std::int64_t extent : weight.shape) state["shape"].push_back(extent);
  if (nested) {
    state["nested_blocksize"] = kScaleBlock;
    state["nested_dtype"] = "float32";
    state["nested_offset"] = static_cast<double>(mean);
  }
  return state.dump();
}

template <class Number>
TensorView view_of(std::vector<Number>& list, Dtype dtype, Shape shape) {
  return {.data = reinterpret_cast<std::byte*>(list.data()),
          .dtype = dtype,
          .shape = std::move(shape)};
}

}  // namespace

std::vector<float> Nf4Parts::weight_scales() const {
  if (!nested()) return scales;
  return scales_of(scale_codes, scales, mean, scale_values);
}

std::optional<Nf4Parts> nf4_parts(const MappedWeights& files,
                                  const std::string& name) {
  if (!files.has(name + kScales)) return std::nullopt;
  return PartsReader(files, name).read();
}

std::vector<std::string> names_of_nf4(const std::string& name) {
  return {name,
          name + kScales,
          name + kValues,
          name + kNestedScales,
          name + kNestedValues,
          name + kState};
}

Nf4Tensors::Nf4Tensors(const TensorView& weight, bool nested)
    : codes_(static_cast<std::size_t>(nf4_bytes(elements_of(weight.shape)))),
      values_(nf4_values().begin(), nf4_values().end()),
      scales_(static_cast<std::size_t>(nf4_blocks(elements_of(weight.shape)))) {
  quantize_nf4(weight, codes_, scales_);
  NestedScales second;
  if (nested) {
    second = nested_scales(scales_);
    scale_codes_ = std::move(second.codes);
    scales_ = std::move(second.scales);
    scale_values_ = {scale_values().begin(), scale_values().end()};
  }
  state_ = state_of(weight, nested, second.mean);
}

std::vector<NamedTensor> Nf4Tensors::named(const std::string& name) {
  std::vector<NamedTensor> all;
  auto add = [&](const char* part, auto& list, Dtype dtype, Shape shape) {
    all.push_back({name + part, view_of(list, dtype, std::move(shape))});
  };
  add("", codes_, Dtype::uint8, {std::ssize(codes_), 1});
  if (scale_values_.empty()) {
    add(kScales, scales_, Dtype::float32, {std::ssize(scales_)});
  } else {
    add(kScales, scale_codes_, Dtype::uint8, {std::ssize(scale_codes_)});
    add(kNestedScales, scales_, Dtype::float32, {std::ssize(scales_)});
    add(kNestedValues, scale_values_, Dtype::float32, {256});
  }
  add(kValues, values_, Dtype::float32, {16});
  all.push_back({name + kState,
                 {.data = reinterpret_cast<std::byte*>(state_.data()),
                  .dtype = Dtype::uint8,
                  .shape = {std::ssize(state_)}}});
  return all;
}

}  // namespace penstock
