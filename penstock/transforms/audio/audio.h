#pragma once

#include <memory>
#include <string>

#include "penstock/transforms/audio/audio_settings.h"
#include "penstock/transforms/field_kind.h"

namespace penstock {

/// The kind `audio`. A row is bad whose sound is NULL, cannot be decoded, has
/// no samples, or ends before `start`. `name` is for messages.
std::shared_ptr<const FieldKind> make_audio(std::string name, Audio audio);

std::unique_ptr<FieldFinisher> make_audio_finisher(const Audio& audio,
                                                   bool train);

}  // namespace penstock
