#pragma once

/// A job becomes a run: steps, folder, report.
///
///     TrainResult result = train(load_job("job.json", {}), {});
///     std::printf("%s\n", result.report.dump(2).c_str());
#include "penstock/run/agreement.h"
#include "penstock/run/check_rows.h"
#include "penstock/run/compare_runs.h"
#include "penstock/run/contact_sheet.h"
#include "penstock/run/copied_list.h"
#include "penstock/run/digest.h"
#include "penstock/run/doctor.h"
#include "penstock/run/find_run.h"
#include "penstock/run/hf_datasets.h"
#include "penstock/run/machine_profile.h"
#include "penstock/run/model_stepper.h"
#include "penstock/run/new_job.h"
#include "penstock/run/peek.h"
#include "penstock/run/prepare.h"
#include "penstock/run/report_facts.h"
#include "penstock/run/report_html.h"
#include "penstock/run/safetensors.h"
#include "penstock/run/sample_key.h"
#include "penstock/run/session.h"
#include "penstock/run/source_job.h"
#include "penstock/run/staging.h"
#include "penstock/run/stepper.h"
#include "penstock/run/stores.h"
#include "penstock/run/sweep.h"
#include "penstock/run/system.h"
#include "penstock/run/train.h"
#include "penstock/run/trainer_plugin.h"
#include "penstock/run/verify_resume.h"
