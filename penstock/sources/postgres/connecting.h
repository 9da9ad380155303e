#pragma once

#include <libpq-fe.h>

#include <memory>
#include <string>
#include <vector>

#include "penstock/sources/stop.h"

namespace penstock::postgres {

struct CloseConnection {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
using Handle = std::unique_ptr<PGconn, CloseConnection>;

/// Settings of a connection, in the order in which libpq applies them.
struct ConnectionSettings {
  void add(const char* name, std::string value) {
    names.push_back(name);
    values.push_back(std::move(value));
  }

  std::vector<const char*> names;
  std::vector<std::string> values;
};

/// A connection that was tried, and why it failed; "" when it is open.
struct Connecting {
  Handle handle;
  std::string failure;
  bool timed_out = false;  ///< no host gave any other reason
};

/// Connects as PQconnectdbParams does: every address of every host has
/// `connect_timeout` seconds to answer. Unlike it, never blocks for longer than
/// a fraction of a second without looking at `stop`, except while a host's name
/// is looked up, whose time the system's resolver limits. Throws `run.stopped`
/// or std::bad_alloc.
Connecting connect_to(const ConnectionSettings& settings, StopFlag stop);

}  // namespace penstock::postgres
