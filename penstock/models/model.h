#pragma once

#include <any>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/base.h"
#include "penstock/transforms/transforms.h"

namespace penstock {

/// The most of a count that has no other limit: of steps, epochs, rows.
inline constexpr std::int64_t kMany = std::int64_t{1} << 40;

/// The settings of `train` that a model needs.
struct Learning {
  double lr = 2e-3;  ///< the peak, after the warm-up
  /// Missing: see warmup_of().
  std::optional<std::int64_t> warmup_steps;
  /// A share of all steps, which then replaces `warmup_steps`; 0: unused.
  double warmup_ratio = 0;
  /// How the rate falls after the warm-up.
  enum class Decay : std::uint8_t { cosine, linear, constant };
  Decay decay = Decay::cosine;
  double weight_decay = 0.01;
  double clip_norm = 1;  ///< of all gradients together; 0: no clipping
  int threads = 0;       ///< of the model's mathematics; 0: all that we may use
  /// Of a network's mathematics; its weights stay float32.
  Dtype precision = Dtype::float32;
  bool tf32 = false;  ///< float32 products of a GPU, less exact
  /// Whether a GPU's kernels of a step are queued as one CUDA graph.
  enum class Graphs : std::uint8_t { off, by_device };
  Graphs graphs = Graphs::off;
  std::int64_t accumulate = 1;  ///< steps whose gradients move the weights
  /// What is done about a step that runs out of memory.
  enum class OnShortage : std::uint8_t {
    guard,  ///< what can be given up is, and the step is repeated
    exact,  ///< the same, unless the numbers would change by it
    stop,   ///< the run ends
  };
  OnShortage oom = OnShortage::guard;
  /// Rows of a batch that go through the model at once. Missing: all of them.
  std::optional<std::int64_t> micro_batch;
  bool find_micro_batch = false;  ///< "auto": as many as fit, found by trials
  std::int64_t micro_batch_min = 1;
  double ema = 0;              ///< of the weights' mean over time; 0: none
  double label_smoothing = 0;  ///< of true classes, given to all
  /// Classes count the more, the fewer train rows have them.
  bool balanced_classes = false;
  /// What layers computed is computed again when their gradients are.
  bool gradient_checkpointing = false;
  /// How a model of text keeps documents of a row apart.
  enum class Attention : std::uint8_t {
    by_device,  ///< `documents` on the host where they are long, else `mask`
    mask,       ///< whole rows, with a mask
    documents,  ///< each document by itself
  };
  Attention attention = Attention::by_device;
  /// What several ranks do with a torch module of the user's; models of the
  /// built-in kinds add their gradients by themselves.
  enum class Strategy : std::uint8_t { by_default, ddp, fsdp2, deepspeed };
  Strategy strategy = Strategy::by_default;
};
const SettingsTable<Learning>& learning_settings();

/// The `model` section of a job, checked, with the settings of `train` that a
/// model needs. A value.
struct ModelSpec {
  std::string kind = "none";  ///< "none", or the name of a ModelKind
  std::any own;               ///< the settings of which the kind knows the type
  Learning learning;
  std::string path;  ///< of the first weights, safetensors; empty: drawn

  bool none() const { return kind == "none"; }
};
/// A kind's settings, and those that every kind has.
SettingsTable<ModelSpec> with_shared(SettingsTable<ModelSpec> own);

/// What the program knows of a kind of model without the trainer: its
/// descriptor, trainer/models/NAME/descriptor.h.
struct ModelKind {
  std::string name;  ///< the value of `kind`
  std::string about;
  SettingsTable<ModelSpec> settings;
  /// Throws Error(request) for fields that do not fit.
  void (*check)(const Spec& section, const ModelSpec& model,
                const std::vector<Field>& fields);
  /// Those settings of `train` that not every model has, and this one has.
  std::vector<std::string> switches;
  /// The names of the metrics that a validation of the model may give, "loss"
  /// first. Some need a certain number of classes: "auc" needs two.
  std::vector<std::string> (*metrics)(const ModelSpec& model,
                                      const std::vector<Field>& fields);
  /// It reads the file of `path` itself: other programs' weights, of any dtype.
  bool reads_path = false;
  /// It needs no more than is known of rows that are read by position, before
  /// they are scanned: classes that the source knows.
  bool without_scan = false;
};
/// All kinds, in the order in which hints name them.
const std::vector<ModelKind>& model_kinds();

/// Whether a model reads the file of its `path` itself.
bool reads_path(const ModelSpec& model);

/// The field that the setting `key` of a model names. Throws Error(request)
/// with the nearest name if none exists.
const Field& field_named(const Spec& section, std::string_view key,
                         const std::string& name,
                         const std::vector<Field>& fields);

/// Checks a job's `model` section: missing, "none" or an object. Throws
/// Error(request) with the JSON path, also for a model that does not fit the
/// fields.
ModelSpec parse_model(const Json* section, const std::vector<Field>& fields);
/// Throws Error(request) for a setting of the section `train` that the model
/// has not.
void check_switches(const Spec& train, const ModelSpec& model);
/// Throws Error(request), at the setting `metric` of the section `train`, for a
/// metric that the model does not have.
void check_metric(const Spec& train, const std::string& metric,
                  const ModelSpec& model, const std::vector<Field>& fields);
/// The settings of that section with every default: "none" or an object.
Json model_section(const ModelSpec& model);
/// The JSON Schema of that section.
Json model_schema();

/// Over how many of a run's `steps` the learning rate rises: as many as the job
/// names, else 5 % of them, at most 50.
std::int64_t warmup_of(const Learning& learning, std::int64_t steps);

/// How many threads the computations of a model may use here.
int threads_of(const ModelSpec& model);

}  // namespace penstock
