#pragma once

/// Threads and queues: the only room that starts threads. A bounded queue that
/// can be closed and can carry an error, a group of workers that run a stage,
/// the sequencer that restores order, and the meters of a stage.
///
///     Queue<int> numbers(4);
///     std::atomic<int> sum{0};
///     Stage adders({.name = "add", .workers = 2, .body = [&](int) {
///                     while (auto number = numbers.pop()) sum += *number;
///                   }});
///     for (int i = 0; i < 100; ++i) numbers.push(i);
///     numbers.close();
///     adders.join();
#include "penstock/exec/durations.h"
#include "penstock/exec/headcount.h"
#include "penstock/exec/meter.h"
#include "penstock/exec/queue.h"
#include "penstock/exec/ranges.h"
#include "penstock/exec/ring.h"
#include "penstock/exec/sequencer.h"
#include "penstock/exec/sightings.h"
#include "penstock/exec/spans.h"
#include "penstock/exec/stage.h"
