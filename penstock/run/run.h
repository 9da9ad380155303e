#pragma once

/// A job becomes a run: steps, folder, report.
#include "penstock/run/agreement.h"
#include "penstock/run/digest.h"
#include "penstock/run/doctor.h"
#include "penstock/run/peek.h"
#include "penstock/run/prepare.h"
#include "penstock/run/session.h"
#include "penstock/run/stepper.h"
#include "penstock/run/train.h"
#include "penstock/run/trainer_plugin.h"
