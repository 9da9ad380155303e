#include <algorithm>
#include <cmath>
#include <utility>

#include "penstock/job/manifest_rules.h"
#include "penstock/models/models.h"

// Rules of keys that say how a model is trained, validated and saved.

namespace penstock {
namespace {

const std::vector<std::string> kScheduleKeys = {"lr_scheduler_type",
                                                "lr_scheduler"};

bool is_number(const Json* value) {
  return value != nullptr && value->is_number();
}

double number_of(const ManifestKey& of) {
  if (!of.value.is_number())
    refuse_manifest(of.key, "found " + of.value.dump() + ", expected a number",
                    "write a number");
  return of.value.number();
}

/// Steps there move the weights; each takes as many batches as are
/// accumulated, and steps here are batches.
std::int64_t batches_of(const ManifestJob& job, ManifestKey& of,
                        std::int64_t updates) {
  const Json* found = job.other("gradient_accumulation_steps");
  if (found == nullptr) found = job.at("train.accumulate");
  const std::int64_t each =
      found == nullptr ? 1 : count_of("gradient_accumulation_steps", *found);
  if (each <= 1) return updates;
  of.why = "steps there are updates of the weights, and batches here";
  std::int64_t batches = 0;
  if (__builtin_mul_overflow(updates, each, &batches))
    refuse_manifest(of.key, "the number of batches exceeds 64 bits",
                    "write a smaller number");
  return batches;
}

/// How many updates the run takes, where the manifest says it.
std::int64_t max_updates(const ManifestJob& job) {
  const Json* most = job.other("max_steps");
  return most != nullptr && std::holds_alternative<std::int64_t>(most->value())
             ? std::max<std::int64_t>(0, most->integer())
             : 0;
}

/// A count of updates, or below 1 a share of all of them; 0: it cannot be
/// known.
std::int64_t updates_of(const ManifestJob& job, ManifestKey& of) {
  const double given = number_of(of);
  if (given < 0)
    refuse_manifest(of.key, "found " + of.value.dump() + ", below 0",
                    "write a number of steps");
  if (given >= 1) {
    if (given != std::floor(given))
      refuse_manifest(of.key, "found " + of.value.dump(),
                      "write a whole number of steps, or a share below 1");
    return static_cast<std::int64_t>(given);
  }
  const std::int64_t all = max_updates(job);
  if (all == 0)
    leave_out(of,
              "it is a share of all steps, whose number is not known before "
              "the rows are read: write a number of steps, or 'max_steps'");
  return static_cast<std::int64_t>(std::ceil(given * double(all)));
}

bool ignores_warmup(const ManifestJob& job) {
  const Json* schedule = job.first_of(kScheduleKeys);
  return schedule != nullptr && *schedule == Json("constant");
}

/// "steps" where no strategy is written: a number of steps asks for it.
std::string strategy(const ManifestJob& job,
                     const std::vector<std::string>& keys) {
  const Json* found = job.first_of(keys);
  return found != nullptr && found->is_string() ? found->string() : "steps";
}

}  // namespace

void manifest_epochs(ManifestJob& job, ManifestKey& of) {
  if (max_updates(job) > 0) {
    of.why = "'max_steps' decides when the run ends";
    return;
  }
  const double epochs = number_of(of);
  if (epochs != std::floor(epochs))
    refuse_manifest(
        of.key, "found " + of.value.dump() + ", and a run takes whole epochs",
        "write a whole number, or 'max_steps'");
  job.set(of, "train.epochs", static_cast<std::int64_t>(epochs));
}

/// Epochs are repeated until it is reached, so it is a bound of them too.
void manifest_max_steps(ManifestJob& job, ManifestKey& of) {
  if (number_of(of) <= 0) {
    of.why = "epochs decide when the run ends";
    return;
  }
  const std::int64_t steps = batches_of(job, of, count_of(of.key, of.value));
  job.set(of, "train.max_steps", steps);
  job.set(of, "train.epochs", steps);
}

void manifest_warmup_steps(ManifestJob& job, ManifestKey& of) {
  const double given = number_of(of);
  if (ignores_warmup(job)) {
    of.why = "the schedule \"constant\" has no warm-up";
    return;
  }
  const Json* ratio = job.other("warmup_ratio");
  if (given == 0 && is_number(ratio) && ratio->number() > 0) {
    of.why = "'warmup_ratio' is used";
    return;
  }
  if (given > 0 && given < 1)
    return job.set(of, "train.warmup_ratio", of.value);
  job.set(of, "train.warmup_steps",
          batches_of(job, of, static_cast<std::int64_t>(given)));
}

void manifest_warmup_ratio(ManifestJob& job, ManifestKey& of) {
  const double given = number_of(of);
  const Json* steps = job.other("warmup_steps");
  if (ignores_warmup(job))
    of.why = "the schedule \"constant\" has no warm-up";
  else if (is_number(steps) && steps->number() > 0)
    of.why = "'warmup_steps' is used";
  else if (given == 0)
    job.set(of, "train.warmup_steps", std::int64_t{0});
  else
    job.set(of, "train.warmup_ratio", of.value);
}

void manifest_schedule(ManifestJob& job, ManifestKey& of) {
  const std::string name = text_of(of);
  if (name == "linear" || name == "cosine")
    return job.set(of, "train.schedule", name);
  if (name == "constant" || name == "constant_with_warmup") {
    job.set(of, "train.schedule", "constant");
    if (name == "constant") job.set(of, "train.warmup_steps", std::int64_t{0});
    return;
  }
  leave_out(of,
            "schedules here are linear, cosine, constant and "
            "constant_with_warmup");
}

/// "auto" is bfloat16 where a GPU has it, and CPUs have it.
void manifest_bfloat16(ManifestJob& job, ManifestKey& of) {
  if (of.value == Json("auto") || of.value == Json("full") || is_true(of)) {
    if (of.value == Json("full")) of.why = "the weights stay float32";
    return job.set(of, "train.precision", "bfloat16");
  }
  of.why = "it is off here too, unless the job sets it";
}

void manifest_mixed_precision(ManifestJob& job, ManifestKey& of) {
  if (!is_true(of)) {
    of.why = "it is off here too, unless the job sets it";
    return;
  }
  const Json* bfloat16 = job.other("bf16");
  const bool brain = bfloat16 != nullptr && *bfloat16 == Json(true);
  job.set(of, "train.precision", brain ? "bfloat16" : "float16");
}

void manifest_optimizer(ManifestJob&, ManifestKey& of) {
  const std::string name =
      of.value.is_string() ? of.value.string() : of.value.dump();
  for (const char* same :
       {"adamw", "adamw_torch", "adamw_torch_fused", "adamw_torch_xla",
        "adamw_torch_npu_fused", "adamw_apex_fused", "adamw_hf"})
    if (name == same) {
      of.why = "AdamW is what models are trained with here";
      return;
    }
  if (name.find("adamw") != std::string::npos)
    return leave_out(of,
                     "models are trained with AdamW whose moments are float32 "
                     "and stay on the device");
  leave_out(of,
            "models are trained with AdamW here, and with no other optimizer "
            "than that of a module of your own");
}

/// Some programs name a way of it, such as "offload".
void manifest_checkpointing(ManifestJob& job, ManifestKey& of) {
  if (is_off(of.value)) {
    of.why = "it is off here too, unless the job sets it";
    return;
  }
  if (of.value.is_string())
    of.why = "it is recomputed on the device, nothing is offloaded";
  else if (!is_true(of))
    return;
  job.set(of, "train.gradient_checkpointing", true);
}

void manifest_evaluate(ManifestJob& job, ManifestKey& of) {
  const std::string how = text_of(of);
  if (how == "epoch")
    return job.set(of, "train.validate_every_epochs", std::int64_t{1});
  if (how == "no")
    of.why =
        "held-out rows are validated after each epoch; hold out none ('split') "
        "to train on all";
  else if (how == "steps")
    of.why = job.other("eval_steps") != nullptr
                 ? "'eval_steps' says how often"
                 : "without 'eval_steps', after each epoch";
  else
    leave_out(of, "expected no, epoch or steps");
}

void manifest_evaluate_steps(ManifestJob& job, ManifestKey& of) {
  if (strategy(job, {"eval_strategy", "evaluation_strategy"}) != "steps") {
    of.why = "the strategy of evaluation is not \"steps\"";
    return;
  }
  const std::int64_t updates = updates_of(job, of);
  if (updates == 0) return;
  job.set(of, "train.validate_every_steps", batches_of(job, of, updates));
}

void manifest_save(ManifestJob& job, ManifestKey& of) {
  const std::string how = text_of(of);
  if (how == "epoch")
    of.why = "a model is saved at the end of every epoch by default";
  else if (how == "steps")
    of.why = job.other("save_steps") != nullptr
                 ? "'save_steps' says how often"
                 : "without 'save_steps', at the end of every epoch";
  else if (how == "no")
    of.why =
        "a model is saved at the end of every epoch, so that the run can be "
        "resumed; the last save replaces the one before";
  else if (how == "best")
    job.set(of, "train.keep", "best");
  else
    leave_out(of, "expected no, epoch, steps or best");
}

void manifest_save_steps(ManifestJob& job, ManifestKey& of) {
  if (strategy(job, {"save_strategy"}) != "steps") {
    of.why = "'save_strategy' is not \"steps\"";
    return;
  }
  const std::int64_t updates = updates_of(job, of);
  if (updates == 0) return;
  job.set(of, "train.checkpoint_every_steps", batches_of(job, of, updates));
}

/// "eval_loss" is "val_loss" here.
void manifest_metric(ManifestJob& job, ManifestKey& of) {
  std::string name = text_of(of);
  if (name.starts_with("eval_")) name = name.substr(5);
  if (name == "f1") name = "macro_f1";
  if (find_metric(name) == nullptr) {
    of.understood = false;
    of.why = "no model measures '" + name + "'";
    return;
  }
  job.set(of, "train.metric", std::move(name));
}

void manifest_report_to(ManifestJob& job, ManifestKey& of) {
  const std::vector<Json> names =
      of.value.is_array() ? of.value.array() : std::vector<Json>{of.value};
  std::string others;
  for (const Json& name : names) {
    if (name == Json("tensorboard") || name == Json("all"))
      job.set(of, "output.tensorboard", true);
    else if (!is_off(name))
      others += (others.empty() ? "" : ", ") + name.dump();
  }
  if (!others.empty())
    of.why = "not sent to " + others +
             ": a run writes report.json and report.html, and with "
             "output.tensorboard and output.csv those";
  else if (of.settings.empty())
    of.why = "a run writes report.json and report.html into its folder";
  of.understood = others.empty() || !of.settings.empty();
}

}  // namespace penstock
