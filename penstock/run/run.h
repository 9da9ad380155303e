#pragma once

/// A job becomes a run: steps, folder, report.
///
///     TrainResult result = train(load_job("job.json", {}), {});
///     std::printf("%s\n", result.report.dump(2).c_str());
#include "penstock/inspect/inspect.h"
#include "penstock/report/report.h"
#include "penstock/run/first_rows.h"
#include "penstock/run/job_memory.h"
#include "penstock/run/loop.h"
#include "penstock/run/model_folder.h"
#include "penstock/run/newest_run.h"
#include "penstock/run/predict.h"
#include "penstock/run/prediction_file.h"
#include "penstock/run/text_table.h"
#include "penstock/run/train.h"
#include "penstock/run/trained_run.h"
#include "penstock/session/session.h"
