#pragma once

/// What can be asked without training: what a source holds, which rows cannot
/// be used, what this machine lacks, and whether a restart would change a
/// batch.
#include "penstock/inspect/check_rows.h"
#include "penstock/inspect/contact_sheet.h"
#include "penstock/inspect/digest.h"
#include "penstock/inspect/doctor.h"
#include "penstock/inspect/first_files.h"
#include "penstock/inspect/hf_datasets.h"
#include "penstock/inspect/new_job.h"
#include "penstock/inspect/peek.h"
#include "penstock/inspect/prepare.h"
#include "penstock/inspect/source_job.h"
#include "penstock/inspect/sweep.h"
#include "penstock/inspect/system.h"
#include "penstock/inspect/verify_resume.h"
