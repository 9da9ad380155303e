#pragma once

/// What the program knows of each kind of model without libtorch: its name, its
/// settings, and which fields it takes. A kind's descriptor is in its folder.
#include "penstock/models/auto_count.h"
#include "penstock/models/class_target.h"
#include "penstock/models/kinds.h"
#include "penstock/models/metric.h"
#include "penstock/models/model.h"
#include "penstock/models/nf4/nf4.h"
#include "penstock/models/schedule.h"
