#pragma once

/// What a run measured, written down and shown: report.json, its page, metrics
/// for other programs, and comparisons of runs.
#include "penstock/report/compare_runs.h"
#include "penstock/report/find_run.h"
#include "penstock/report/folds.h"
#include "penstock/report/html_charts.h"
#include "penstock/report/live_run.h"
#include "penstock/report/metrics/metrics.h"
#include "penstock/report/png.h"
#include "penstock/report/profile.h"
#include "penstock/report/progress_file.h"
#include "penstock/report/ranks_sentence.h"
#include "penstock/report/report_facts.h"
#include "penstock/report/report_html.h"
#include "penstock/report/report_json.h"
