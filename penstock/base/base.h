#pragma once

/// What every room uses: bytes, blocks, tensors, errors, settings, time,
/// randomness, limits and the interfaces to the system. Includes no other room.
///
///     Json json = Json::parse(R"({"seed": 7})", "job.json");
///     Spec spec(json, "");
///     std::int64_t seed = spec.integer("seed", 0, 0, 9999);
///     spec.finish();  // refuses unknown keys and names the nearest
///     double noise = Random(std::uint64_t(seed), 0, 42, 0).normal();
///     log(LogLevel::info, "the noise of sample 42: " + std::to_string(noise));
#include "penstock/base/aligned.h"
#include "penstock/base/ascii.h"
#include "penstock/base/block.h"
#include "penstock/base/bytes.h"
#include "penstock/base/clock.h"
#include "penstock/base/columns.h"
#include "penstock/base/descriptor.h"
#include "penstock/base/dlpack.h"
#include "penstock/base/error.h"
#include "penstock/base/file.h"
#include "penstock/base/file_stamp.h"
#include "penstock/base/hash.h"
#include "penstock/base/host_limits.h"
#include "penstock/base/json.h"
#include "penstock/base/key.h"
#include "penstock/base/listed_numbers.h"
#include "penstock/base/log.h"
#include "penstock/base/plugin.h"
#include "penstock/base/plugin_build.h"
#include "penstock/base/random.h"
#include "penstock/base/sample.h"
#include "penstock/base/secret.h"
#include "penstock/base/setting_schema.h"
#include "penstock/base/settings.h"
#include "penstock/base/spec.h"
#include "penstock/base/sync.h"
#include "penstock/base/tensor.h"
#include "penstock/base/utf8.h"
