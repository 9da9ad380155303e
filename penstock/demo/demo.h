#pragma once

/// Synthetic data to try everything with, and the quick start, which trains on
/// it.
#include "penstock/demo/positions.h"
#include "penstock/demo/quickstart.h"
