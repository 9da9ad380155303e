#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "penstock/trainer/memory_use.h"
#include "penstock/trainer/model_stepper.h"
#include "penstock/trainer/models/causal_lm/adapter_files.h"
#include "penstock/trainer/models/causal_lm/generate.h"
#include "penstock/trainer/models/causal_lm/network.h"
#include "penstock/trainer/outcome_details.h"
#include "penstock/trainer/outcomes.h"
#include "penstock/trainer/ranks/rank_share.h"
#include "penstock/trainer/recompute.h"
#include "penstock/trainer/trainer.h"

// A loss, from the batch: the ids of its rows -> the decoder, in which each
// token sees those before it in its own document -> how likely each token is
// after each -> the cross entropy of those that are labels. All sums are over
// tokens, of a batch and of steps that move the weights together.
namespace penstock {
namespace {

constexpr std::int64_t kIgnored = -100;
constexpr double kCount = 65536;  // tokens that count 1: no gradient overflows
constexpr std::int64_t kMostLogits = std::int64_t{1} << 26;  // at once
constexpr const char* kRecomputes = "activations are computed again";
constexpr std::int64_t kLongDocument = 64;  // worth a call of its own, measured

/// What the model sees of a batch, or of some of it.
struct Rows {
  at::Tensor ids, labels, positions;  // int64, [rows, length]
  at::Tensor documents;               // the same; undefined: one in each row
  Sight sight;
};

/// The beginning of a held-out row, which is continued.
struct Prompt {
  SampleId sample = -1;
  std::vector<std::int32_t> tokens;
};

std::vector<std::int64_t> on_host(const at::Tensor& numbers) {
  at::Tensor here = numbers.to(at::kCPU).to(at::kLong).contiguous();
  const auto* first = here.const_data_ptr<std::int64_t>();
  return {first, first + here.numel()};
}

/// Where documents begin and end in rows one after the other.
std::vector<std::int64_t> bounds_of(const at::Tensor& documents) {
  const std::vector<std::int64_t> numbers = on_host(documents);
  const auto length = static_cast<std::size_t>(documents.size(1));
  std::vector<std::int64_t> bounds{0};
  for (std::size_t at = 1; at <= numbers.size(); ++at)
    if (at % length == 0 || numbers[at] != numbers[at - 1])
      bounds.push_back(static_cast<std::int64_t>(at));
  return bounds;
}

class CausalLmModel final : public Model {
 public:
  CausalLmModel(const ModelSpec& spec, const FittedFields& data,
                const at::TensorOptions& options)
      : settings_(causal_lm_of(spec)),
        learning_(spec.learning),
        device_(options.device()),
        field_(*tokens_field_of(settings_, data.fields)),
        packed_(field_.kind->facts().packing.has_value()),
        network_({.config = config_of(spec),
                  .lora = settings_.lora,
                  .seed = settings_.seed,
                  .precision = learning_.precision,
                  .recompute = learning_.gradient_checkpointing,
                  .quantization = settings_.quantization},
                 options,
                 spec.path.empty() ? nullptr
                                   : std::make_shared<WeightFiles>(spec.path)) {
    facts_ = {.parameters = network_.parameters(),
              .numbers = network_.size(),
              .bytes = network_.bytes(),
              .counts = true,
              .smoothing = learning_.label_smoothing,
              .no_graphs = no_graphs(),
              .in_force = in_force(),
              .row_work = work_of(data, options),
              .form = form_of(spec),
              .answers = {.names = {Json("loss_per_token")}},
              .texts = settings_.sample_texts,
              .description = description()};
  }

  MeanLoss loss(const BatchRows& batch, const DrawnFor& drawn) override {
    const Rows rows = rows_of(batch);
    TORCH_CHECK(drawn.fixed == nullptr || !recomputes(rows), kRecomputes);
    return loss_of(rows, learning_.label_smoothing);
  }

  Json check(const BatchRows& batch) override;

  bool begin_recompute() override { return network_.begin_recompute(); }

  at::Tensor look(const BatchRows& batch) override {
    const Rows rows = rows_of(batch);
    const at::Tensor losses = row_sums(rows);
    const at::Tensor counts = next_labels(rows).ne(kIgnored).sum(1);
    at::Tensor sum = losses.sum(), count = counts.sum();
    if (seen_.defined()) sum += seen_, count += seen_tokens_;
    const at::Tensor per_token = losses / counts;
    at::Tensor each = per_token.unsqueeze(1);
    keep_prompts(batch, rows);
    seen_rows_.add({.loss = per_token,
                    .truth = counts,
                    .weight = counts,
                    .samples = batch.ids()});
    seen_ = sum, seen_tokens_ = count;
    return each;
  }

  std::vector<std::vector<std::int32_t>> generate(
      const BatchRows& batch, std::int64_t first,
      const Generation& settings) override;

  Json texts() override;

  Validated seen(RankShare* ranks) override {
    Validated found;
    prompts_.clear();
    std::vector<double> sums{0, 0};  // of losses, of tokens
    if (seen_.defined())
      sums = {seen_.item<double>(), seen_tokens_.item<double>()};
    seen_.reset(), seen_tokens_.reset();
    if (ranks != nullptr) ranks->sum(sums);
    std::vector<TextOutcome> worst;
    for (const Outcome& row : of_all_ranks(ranks, seen_rows_.take()))
      worst.push_back({.loss = row.loss,
                       .tokens = static_cast<std::int64_t>(row.truth),
                       .sample = row.sample});
    if (sums[1] == 0) return found;
    const double loss = sums[0] / sums[1];
    found.metrics["val_loss"] = loss;
    found.metrics["val_perplexity"] = std::exp(loss);
    found.details = text_details(worst);
    return found;
  }

 private:
  std::vector<SwitchInForce> in_force() const;
  WeightsForm form_of(const ModelSpec& spec) const {
    return settings_.lora
               ? adapter_form(*settings_.lora, spec.path)
               : WeightsForm{.beside = {{"config.json",
                                         model_config(network_.config())}}};
  }
  Json description() const;
  Json quantized_found() const;

  std::string name(const char* of) const {
    const std::string first =
        field_.kind->facts().outputs[0].name;  // input_ids
    return first.substr(0, first.size() - std::string("input_ids").size()) + of;
  }

  /// Of the whole vocabulary, for so many tokens at once.
  std::int64_t most_logits() const {
    return std::max<std::int64_t>(1,
                                  kMostLogits / network_.config().vocabulary);
  }
  const char* no_graphs() const {
    if (network_.recomputes()) return kRecomputes;
    return packed_ ? "batches pack different numbers of documents" : "";
  }
  bool recomputes(const Rows& rows) const {
    return network_.recomputes() || next_labels(rows).numel() > most_logits();
  }

  Rows rows_of(const BatchRows& batch) const;
  /// Of the first rows that it looks at, until there are enough; each once,
  /// also where a row is looked at again after a shortage of memory.
  void keep_prompts(const BatchRows& batch, const Rows& rows);
  Sight sight_of(const BatchRows& batch, const at::Tensor& documents) const;
  RowWork work_of(const FittedFields& data,
                  const at::TensorOptions& options) const;

  /// Labels stand where their token does; what is said at a token is compared
  /// with that of the next.
  static at::Tensor next_labels(const Rows& rows) {
    return rows.labels.slice(1, 1);
  }
  static at::Tensor count_of(const Rows& rows) {
    return next_labels(rows).ne(kIgnored).sum();
  }

  MeanLoss loss_of(const Rows& rows, double smoothing) const {
    at::Tensor count = count_of(rows);
    at::Tensor counted = count.to(at::kFloat) / kCount;
    return {sum_of(rows, smoothing) / count.clamp_min(1), counted};
  }

  at::Tensor sum_of(const Rows& rows, double smoothing) const;
  /// Of each row, [rows], float64.
  at::Tensor row_sums(const Rows& rows) const;

  const CausalLm settings_;
  const Learning learning_;
  const at::Device device_;
  const Field field_;
  const bool packed_;
  DecoderNetwork network_;
  at::Tensor seen_, seen_tokens_;
  Outcomes seen_rows_;  // the loss per token, and as truth the tokens
  std::vector<Prompt> prompts_;
};

Rows CausalLmModel::rows_of(const BatchRows& batch) const {
  Rows rows{.ids = tensor_of(batch, name("input_ids")),
            .labels = tensor_of(batch, name("labels")),
            .positions = tensor_of(batch, name("position_ids"))};
  // Rows that only fill a batch up teach nothing.
  at::Tensor left_out = weights_of(batch).eq(0).unsqueeze(1);
  rows.labels = rows.labels.masked_fill(left_out, kIgnored);
  if (!packed_) return rows;  // what fills a row stands behind all it has
  rows.documents = tensor_of(batch, name("document_ids"));
  rows.sight = sight_of(batch, rows.documents);
  return rows;
}

Sight CausalLmModel::sight_of(const BatchRows& batch,
                              const at::Tensor& documents) const {
  if (device_.is_cpu() && learning_.attention != Learning::Attention::mask) {
    // The offsets of a batch are not those of a part of it.
    std::vector<std::int64_t> bounds =
        batch.is_slice() ? bounds_of(documents)
                         : on_host(tensor_of(batch, name("cu_seqlens")));
    const bool long_enough =
        bounds.back() >= kLongDocument * std::ssize(bounds);
    if (long_enough || learning_.attention == Learning::Attention::documents)
      return {.bounds = std::move(bounds)};
  }
  return {.mask = mask_of(documents)};
}

// Logits are many: where all at once would be too many, some tokens' are made,
// and made again for their gradients.
at::Tensor CausalLmModel::sum_of(const Rows& rows, double smoothing) const {
  at::Tensor hidden =
      network_.hidden(rows.ids, rows.positions, rows.sight).slice(1, 0, -1);
  at::Tensor labels = next_labels(rows).reshape(-1);
  hidden = hidden.reshape({labels.size(0), hidden.size(-1)});
  auto sum = [this, smoothing](const at::Tensor& of, const at::Tensor& truth) {
    return at::cross_entropy_loss(network_.logits(of), truth, {},
                                  at::Reduction::Sum, kIgnored, smoothing);
  };
  const std::int64_t most = most_logits();
  if (labels.size(0) <= most) return sum(hidden, labels);
  at::Tensor all = at::zeros({}, hidden.options());
  for (std::int64_t at = 0; at < labels.size(0); at += most) {
    at::Tensor truth = labels.slice(0, at, at + most);
    all = all + recomputed([sum, truth](const at::Tensor& of,
                                        bool) { return sum(of, truth); },
                           hidden.slice(0, at, at + most));
  }
  return all;
}

at::Tensor CausalLmModel::row_sums(const Rows& rows) const {
  const at::NoGradGuard no_graph;
  const at::Tensor labels = next_labels(rows);
  const at::Tensor truth = labels.reshape(-1);
  const at::Tensor hidden =
      network_.hidden(rows.ids, rows.positions, rows.sight)
          .slice(1, 0, -1)
          .reshape({truth.size(0), network_.config().hidden});
  const std::int64_t most = most_logits();
  std::vector<at::Tensor> losses;
  for (std::int64_t at = 0; at < truth.size(0); at += most)
    losses.push_back(at::cross_entropy_loss(
        network_.logits(hidden.slice(0, at, at + most)),
        truth.slice(0, at, at + most), {}, at::Reduction::None, kIgnored));
  return at::cat(losses).reshape(labels.sizes()).to(at::kDouble).sum(1);
}

/// What stands before the first target. The first token never is one: where all
/// others are, all tokens, but for one that ends the text.
std::vector<std::int32_t> prompt_of(std::span<const std::int64_t> ids,
                                    std::span<const std::int64_t> labels,
                                    const std::vector<std::int32_t>& ends) {
  std::size_t count = 0;
  while (count < ids.size() && labels[count] == kIgnored) ++count;
  if (count <= 1) count = ids.size();
  std::vector<std::int32_t> prompt;
  for (std::int64_t id : ids.first(count))
    prompt.push_back(static_cast<std::int32_t>(id));
  if (prompt.size() > 1 && std::ranges::count(ends, prompt.back()) > 0)
    prompt.pop_back();
  return prompt;
}

std::vector<std::vector<std::int32_t>> CausalLmModel::generate(
    const BatchRows& batch, std::int64_t first, const Generation& settings) {
  PENSTOCK_ASSERT(!packed_, "a row of predictions is one document");
  const std::vector<std::int64_t> ids =
      on_host(tensor_of(batch, name("input_ids")));
  const std::vector<std::int64_t> labels =
      on_host(tensor_of(batch, name("labels")));
  const std::vector<std::int64_t> lengths =
      on_host(tensor_of(batch, name("input_ids") + "_lengths"));
  const std::size_t width = ids.size() / lengths.size();
  std::vector<std::vector<std::int32_t>> texts;
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    const auto length = static_cast<std::size_t>(lengths[row]);
    const std::vector<std::int32_t> prompt = prompt_of(
        std::span(ids).subspan(row * width, length),
        std::span(labels).subspan(row * width, length), settings.ends);
    texts.emplace_back();
    if (!prompt.empty())
      texts.back() =
          generated(network_, prompt, first + static_cast<std::int64_t>(row),
                    settings, device_);
  }
  return texts;
}

/// As prompt_of() has it; where all is a target, the first tokens.
std::vector<std::int32_t> first_tokens(std::span<const std::int64_t> ids,
                                       std::span<const std::int64_t> labels) {
  constexpr std::size_t kMost = 16;
  std::vector<std::int32_t> prompt = prompt_of(ids, labels, {});
  if (prompt.size() == ids.size())
    prompt.resize(std::min(kMost, (prompt.size() + 1) / 2));
  return prompt;
}

// Of a row of several documents, the first one.
void CausalLmModel::keep_prompts(const BatchRows& batch, const Rows& rows) {
  const std::int64_t left = settings_.sample_texts - std::ssize(prompts_);
  const std::int64_t take = std::min(left, rows.ids.size(0));
  if (take <= 0) return;
  const std::vector<std::int64_t> ids = on_host(rows.ids.slice(0, 0, take)),
                                  labels =
                                      on_host(rows.labels.slice(0, 0, take)),
                                  places =
                                      on_host(rows.positions.slice(0, 0, take));
  const auto width = static_cast<std::size_t>(rows.ids.size(1));
  for (std::int64_t row = 0; row < take; ++row) {
    const std::size_t begin = static_cast<std::size_t>(row) * width;
    std::size_t end = begin + 1;  // positions count up in a document
    while (end < begin + width && places[end] == places[end - 1] + 1) ++end;
    const auto of = [&](const std::vector<std::int64_t>& all) {
      return std::span(all).subspan(begin, end - begin);
    };
    if (std::ranges::all_of(of(labels),
                            [](std::int64_t id) { return id == kIgnored; }))
      continue;
    const SampleId sample = batch.ids()[static_cast<std::size_t>(row)];
    if (std::ranges::find(prompts_, sample, &Prompt::sample) == prompts_.end())
      prompts_.push_back(
          {.sample = sample, .tokens = first_tokens(of(ids), of(labels))});
  }
}

Json CausalLmModel::texts() {
  const std::vector<Prompt> prompts = std::exchange(prompts_, {});
  if (prompts.empty()) return {};
  auto list = [](const std::vector<std::int32_t>& tokens) {
    Json ids(Json::Array{});
    for (std::int32_t id : tokens) ids.push_back(id);
    return ids;
  };
  Json all(Json::Array{});
  for (const Prompt& prompt : prompts) {
    Json text;
    text["sample"] = prompt.sample;
    text["prompt"] = list(prompt.tokens);
    text["tokens"] =
        list(generated(network_, prompt.tokens, prompt.sample,
                       {.max_tokens = settings_.sample_tokens}, device_));
    all.push_back(std::move(text));
  }
  return all;
}

/// Of four-bit weights: how many, in how many bytes.
Json CausalLmModel::quantized_found() const {
  Json found{Json::Object{}};
  const DecoderNetwork::Quantized& quantized = network_.quantized();
  if (quantized.layers == 0) return found;
  Json& json = found["quantized"];
  json["layers"] = quantized.layers;
  json["parameters"] = quantized.size;
  json["bytes"] = quantized.bytes;
  return found;
}

// The first row of several documents, and each of these by itself.
Json CausalLmModel::check(const BatchRows& batch) {
  Json found = quantized_found();
  if (!packed_) return found;
  const at::NoGradGuard no_graph;
  const Rows all = rows_of(batch);
  const std::int64_t length = all.ids.size(1);
  for (std::int64_t r = 0; r < all.ids.size(0); ++r) {
    const std::vector<std::int64_t> documents =
        on_host(all.documents.select(0, r));
    if (documents.front() == documents.back() || documents.front() < 0)
      continue;
    auto row = [&](std::int64_t begin, std::int64_t end) {
      auto part = [&](const at::Tensor& of) {
        return of.slice(0, r, r + 1).slice(1, begin, end);
      };
      return Rows{.ids = part(all.ids),
                  .labels = part(all.labels),
                  .positions = part(all.positions),
                  .documents = part(all.documents)};
    };
    Rows packed = row(0, length);
    const bool masked = all.sight.mask.defined();
    double apart = 0;
    std::vector<std::int64_t> bounds{0};
    for (std::int64_t i = 1; i <= length; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (i < length && documents[at] == documents[at - 1]) continue;
      apart += sum_of(row(bounds.back(), i), 0).item<double>();
      bounds.push_back(i);
    }
    if (masked)
      packed.sight.mask = all.sight.mask.slice(0, r, r + 1);
    else
      packed.sight.bounds = bounds;
    const double together = sum_of(packed, 0).item<double>();
    const double off = std::abs(together - apart) / std::max(1.0, apart);
    if (!(off <= (learning_.precision == Dtype::float32 ? 1e-4 : 2e-2)))
      throw Error(
          ErrorKind::internal,
          {.code = "model.contaminated",
           .what = "documents in one row affect each other",
           .where = "model",
           .why = "their loss is " + std::to_string(together) +
                  " when packed, and one by one " + std::to_string(apart),
           .next = "report this with the job; \"pack\": \"none\" avoids it"});
    Json& row_found = found["packed_row"];
    row_found["documents"] = std::ssize(bounds) - 1;
    row_found["packed"] = together;
    row_found["separate"] = apart;
    log(LogLevel::info,
        "a packed row has the loss of its " +
            std::to_string(std::ssize(bounds) - 1) + " documents one by one: " +
            std::to_string(together) + " and " + std::to_string(apart));
    break;
  }
  return found;
}

// 2 operations for each weight that a token is multiplied with, and as much
// again for each gradient: of what it is made of, and of the weight itself
// where that learns. Attention by the mean document, of which a token sees
// half.
RowWork CausalLmModel::work_of(const FittedFields& data,
                               const at::TensorOptions& options) const {
  const DecoderConfig& config = network_.config();
  const Json found = data.statistics_of(field_.name);
  const double tokens = found.find("tokens")->number();
  const double documents = std::max(1.0, found.find("documents")->number());
  const auto most =
      static_cast<double>(field_.kind->facts().tokens->max_length);
  const double mean = std::min(most, tokens / documents);
  RowWork work;
  work.tokens = packed_ ? most : mean;
  const double weights = static_cast<double>(multiplied_weights(config));
  const double seen =
      2.0 * static_cast<double>(config.layers * config.heads * config.head) *
      mean;
  work.flops = work.tokens * ((settings_.lora ? 4 : 6) * weights + 3 * seen);
  const Dtype precision = learning_.precision;
  work.peak_flops = measured_peak_flops(
      options.dtype(precision == Dtype::bfloat16  ? at::kBFloat16
                    : precision == Dtype::float16 ? at::kHalf
                                                  : at::kFloat));
  return work;
}

std::vector<SwitchInForce> CausalLmModel::in_force() const {
  const bool recompute = learning_.gradient_checkpointing;
  const Json asked = *learning_settings().shown(learning_).find("attention");
  SwitchInForce attention{.name = "attention", .asked = asked, .got = asked};
  if (!packed_)
    attention.got = "causal", attention.why = "a row is one document";
  else if (!device_.is_cpu() && asked != Json("mask"))
    attention.got = "mask", attention.why = "a GPU processes whole rows";
  return {
      {.name = "gradient_checkpointing", .asked = recompute, .got = recompute},
      attention};
}

Json CausalLmModel::description() const {
  const DecoderConfig& config = network_.config();
  Json json;
  json["kind"] = "causal_lm";
  json["model_type"] = config.model_type;
  for (const auto& [key, value] :
       {std::pair("vocab_size", config.vocabulary),
        std::pair("hidden_size", config.hidden),
        std::pair("intermediate_size", config.inner),
        std::pair("num_hidden_layers", config.layers),
        std::pair("num_attention_heads", config.heads),
        std::pair("num_key_value_heads", config.groups),
        std::pair("head_dim", config.head)})
    json[key] = value;
  json["rope_theta"] = config.rope.theta;
  const DecoderNetwork::Quantized& quantized = network_.quantized();
  if (quantized.layers > 0) json["quantized_bytes"] = quantized.bytes;
  json["lora"] = settings_.lora ? adapter_config(*settings_.lora, "") : Json();
  json["seed"] = static_cast<std::int64_t>(settings_.seed);
  return json;
}

}  // namespace

std::unique_ptr<Model> make_causal_lm(const ModelSpec& spec,
                                      const FittedFields& data,
                                      const at::TensorOptions& options) {
  return std::make_unique<CausalLmModel>(spec, data, options);
}

}  // namespace penstock
