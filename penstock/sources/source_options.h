#pragma once

#include "penstock/sources/stop.h"

namespace penstock {

/// How a source is opened.
struct SourceOptions {
  /// Once it is set, opening and any later call of the source and its readers
  /// throws an error for which is_stop() holds, within a fraction of a second
  /// even where the database is silent: in a long statement, or waiting for a
  /// lock.
  StopFlag stop = nullptr;
  /// False: rows need no key, so none is looked for. Only scans are possible
  /// then.
  bool keys = true;
  /// True: what columns hold was learned from other rows, so a class of which
  /// no row is here is no mistake.
  bool fitted = false;
};

}  // namespace penstock
