#pragma once

/// A job file becomes a run: settings, steps, folder, report.
#include "penstock/run/agreement.h"
#include "penstock/run/centroid.h"
#include "penstock/run/digest.h"
#include "penstock/run/doctor.h"
#include "penstock/run/job.h"
#include "penstock/run/model.h"
#include "penstock/run/peek.h"
#include "penstock/run/session.h"
#include "penstock/run/stepper.h"
#include "penstock/run/train.h"
