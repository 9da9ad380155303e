#include <algorithm>
#include <cstring>
#include <list>
#include <vector>

#include "penstock/base/half.h"
#include "penstock/models/causal_lm/descriptor.h"
#include "penstock/run/model_folder.h"
#include "penstock/run/model_writer.h"

namespace penstock {
namespace {

constexpr const char* kAdapterNames = "model.base_model.model.";

bool is_number(Dtype dtype) {
  return dtype == Dtype::float32 || dtype == Dtype::float64 || is_half(dtype);
}

std::vector<float> numbers_of(const TensorView& view) {
  std::vector<float> numbers(static_cast<std::size_t>(elements_of(view.shape)));
  const std::size_t size = size_of(view.dtype);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::byte* at = view.data + i * size;
    if (is_half(view.dtype)) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, at, size);
      numbers[i] = from_half(view.dtype, bits);
    } else if (view.dtype == Dtype::float64) {
      double number = 0;
      std::memcpy(&number, at, size);
      numbers[i] = static_cast<float>(number);
    } else {
      std::memcpy(&numbers[i], at, size);
    }
  }
  return numbers;
}

/// W + scale B A, row by row: `down` is A, [r, in], and `up` is B, [out, r].
void add_product(std::vector<float>& weight, const std::vector<float>& up,
                 const std::vector<float>& down, std::size_t rank,
                 float scale) {
  const std::size_t in = down.size() / rank;
  for (std::size_t row = 0; row < up.size() / rank; ++row)
    for (std::size_t k = 0; k < rank; ++k) {
      const float factor = scale * up[row * rank + k];
      const float* from = &down[k * in];
      float* to = &weight[row * in];
      for (std::size_t i = 0; i < in; ++i) to[i] += factor * from[i];
    }
}

/// The weights of a run, merged one after the other.
class Merger {
 public:
  Merger(const TrainedRun& run, const MappedWeights& base, Dtype dtype)
      : lora_(*causal_lm_of(run.job.model).lora),
        base_(base),
        adapters_(read_weights(run)),
        dtype_(dtype) {
    for (const auto& [name, tensor] : base.all()) {
      if (!base.has(name + ".absmax")) continue;
      const std::vector<std::string> parts = names_of_nf4(name);
      of_four_bits_.insert(of_four_bits_.end(), parts.begin() + 1, parts.end());
    }
    std::ranges::sort(of_four_bits_);
  }

  std::vector<NamedTensor> merged(const std::string& name,
                                  const TensorView& view) {
    if (std::ranges::binary_search(of_four_bits_, name)) return {};
    const std::optional<Nf4Parts> parts = nf4_parts(base_, name);
    if (!parts && !is_number(view.dtype)) return {{name, view}};
    std::vector<float> numbers;
    Shape shape = view.shape;
    if (parts) {
      shape = parts->shape;
      numbers = dequantized(*parts);
    } else {
      numbers = numbers_of(view);
    }
    const bool has_adapter = add_adapter(name, numbers);
    std::vector<std::uint16_t>& halves = shard_.emplace_back(numbers.size());
    for (std::size_t i = 0; i < halves.size(); ++i)
      halves[i] = to_half(dtype_, numbers[i]);
    NamedTensor tensor{name,
                       {.data = reinterpret_cast<std::byte*>(halves.data()),
                        .dtype = dtype_,
                        .shape = std::move(shape)}};
    if (has_adapter) {
      ++written_.layers;
      written_.bytes_before += static_cast<std::int64_t>(view.bytes());
      written_.bytes_after += static_cast<std::int64_t>(tensor.view.bytes());
    }
    return {std::move(tensor)};
  }

  void shard_written() { shard_.clear(); }
  const WrittenModel& written() const { return written_; }

 private:
  /// In the type that the weight had before it was quantised: what the adapters
  /// have learned beside.
  static std::vector<float> dequantized(const Nf4Parts& parts) {
    const auto count = static_cast<std::size_t>(elements_of(parts.shape));
    std::vector<std::byte> bytes(count * size_of(parts.dtype));
    const TensorView view{
        .data = bytes.data(), .dtype = parts.dtype, .shape = parts.shape};
    dequantize_nf4(parts.codes, parts.weight_scales(), view);
    return numbers_of(view);
  }

  const TensorView* adapter(const std::string& name) const {
    const auto& tensors = adapters_.state.tensors;
    const auto found = std::ranges::find(tensors, name, &NamedTensor::name);
    return found == tensors.end() ? nullptr : &found->view;
  }

  bool add_adapter(const std::string& name, std::vector<float>& numbers) {
    if (!name.ends_with(".weight")) return false;
    const std::string layer =
        kAdapterNames + name.substr(0, name.size() - std::strlen(".weight"));
    const TensorView* down = adapter(layer + ".lora_A.weight");
    const TensorView* up = adapter(layer + ".lora_B.weight");
    if (down == nullptr || up == nullptr) return false;
    const auto rank = static_cast<std::size_t>(down->shape[0]);
    if (up->shape.size() != 2 || up->shape[1] != down->shape[0] ||
        up->shape[0] * down->shape[1] != std::ssize(numbers))
      refuse_weights(adapters_.path.string(),
                     "the adapter of '" + name + "' has another shape",
                     "name a run that trained adapters of this model");
    add_product(numbers, numbers_of(*up), numbers_of(*down), rank,
                static_cast<float>(lora_.scaling()));
    return true;
  }

  const Lora lora_;
  const MappedWeights& base_;
  const FileOfWeights adapters_;
  const Dtype dtype_;
  std::vector<std::string> of_four_bits_;  // parts beside codes, sorted
  std::list<std::vector<std::uint16_t>> shard_;
  WrittenModel written_;
};

}  // namespace

WrittenModel merge_adapters(const TrainedRun& run, const std::string& out,
                            Dtype dtype) {
  const ModelSpec& model = run.job.model;
  if (model.kind != "causal_lm" || !causal_lm_of(model).lora)
    throw Error(ErrorKind::request,
                {.code = "model.no_adapters",
                 .what = "cannot merge a run",
                 .where = run.folder.string(),
                 .why = "the model of the run has no adapters",
                 .next = "name a run of \"causal_lm\" with \"lora\""});
  const MappedWeights base(model.path);
  ModelWriter writer(base, out);
  Merger merger(run, base, dtype);
  writer.write_weights(
      [&](const std::string& name, const TensorView& view) {
        return merger.merged(name, view);
      },
      [&] { merger.shard_written(); });
  Json document = without(config_of(model).document,
                          {"quantization_config", "torch_dtype", "dtype"});
  document["dtype"] = name_of(dtype);
  document["torch_dtype"] = name_of(dtype);
  writer.write_rest(document);
  return merger.written();
}

}  // namespace penstock
