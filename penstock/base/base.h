#pragma once

/// The words that every room uses: bytes, blocks, tensors, errors, settings,
/// time, randomness, limits and the seams to the system. Includes no other
/// room.
#include "penstock/base/aligned.h"
#include "penstock/base/block.h"
#include "penstock/base/bytes.h"
#include "penstock/base/clock.h"
#include "penstock/base/columns.h"
#include "penstock/base/dlpack.h"
#include "penstock/base/error.h"
#include "penstock/base/file.h"
#include "penstock/base/hash.h"
#include "penstock/base/host_limits.h"
#include "penstock/base/json.h"
#include "penstock/base/key.h"
#include "penstock/base/log.h"
#include "penstock/base/plugin.h"
#include "penstock/base/random.h"
#include "penstock/base/sample.h"
#include "penstock/base/secret.h"
#include "penstock/base/setting_schema.h"
#include "penstock/base/settings.h"
#include "penstock/base/spec.h"
#include "penstock/base/sync.h"
#include "penstock/base/tensor.h"
#include "penstock/base/utf8.h"
