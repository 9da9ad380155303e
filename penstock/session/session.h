#pragma once

/// A job that is open: its device, its rows and its loader, and what is needed
/// to stop and to go on.
///
///     auto loader = penstock::open_loader(job);
///     while (std::optional<penstock::Batch> batch = loader->next())
///       my_step(batch->tensors(), loader->stream());
#include "penstock/session/agreement.h"
#include "penstock/session/buffered_file.h"
#include "penstock/session/checkpoint.h"
#include "penstock/session/checkpoint_writer.h"
#include "penstock/session/classes.h"
#include "penstock/session/copied_list.h"
#include "penstock/session/drive.h"
#include "penstock/session/folder.h"
#include "penstock/session/host_copy.h"
#include "penstock/session/keeping.h"
#include "penstock/session/live_tuner.h"
#include "penstock/session/machine_profile.h"
#include "penstock/session/model_stepper.h"
#include "penstock/session/not_finite.h"
#include "penstock/session/open_loader.h"
#include "penstock/session/opening.h"
#include "penstock/session/predictor.h"
#include "penstock/session/progress_reporter.h"
#include "penstock/session/quarantine.h"
#include "penstock/session/rank_facts.h"
#include "penstock/session/run_numbers.h"
#include "penstock/session/safetensors.h"
#include "penstock/session/sample_key.h"
#include "penstock/session/scan_line.h"
#include "penstock/session/spilled_memory.h"
#include "penstock/session/staging.h"
#include "penstock/session/state.h"
#include "penstock/session/stepper.h"
#include "penstock/session/store_size.h"
#include "penstock/session/stores.h"
#include "penstock/session/timeline.h"
#include "penstock/session/train_options.h"
#include "penstock/session/trainer_plugin.h"
#include "penstock/session/unused_labels.h"
#include "penstock/session/weights.h"
