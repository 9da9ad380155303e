#pragma once

/// Synthetic data to try everything with, and the quick start, which trains on
/// it.
///
///     SourceSpec to = parse_source_spec("sqlite:demo.sqlite", "to");
///     write_positions_demo({.rows = 4030, .seed = 1, .to = to});
#include "penstock/demo/device_check.h"
#include "penstock/demo/positions.h"
#include "penstock/demo/quickstart.h"
