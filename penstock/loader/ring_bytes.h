#pragma once

#include "penstock/loader/options.h"

namespace penstock {

/// The bytes that a loader's ring of slots takes at most. Of the data set are
/// needed: its outputs, how long they are, what a device finishes, and the
/// number of rows on the loader's side, or more: a batch that is not padded has
/// no more.
RingBytes ring_bytes(const LoaderOptions& options, const DatasetFacts& facts);

/// What a device's decoders hold beside that, for all loaders of a data set.
std::size_t decoder_bytes(const DatasetFacts& facts);

/// What the stream of a filler holds for fields that the device finishes.
StreamBytes stream_bytes(const DatasetFacts& facts, Side side);

}  // namespace penstock
