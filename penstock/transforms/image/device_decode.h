#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "penstock/transforms/image/picture_header.h"

namespace penstock {

/// Whether a file whose header was read is one that decoders of devices take,
/// wherever one is: baseline JPEG in one scan, in YCbCr of 4:4:4, 4:4:0, 4:2:2
/// or 4:2:0, that is looked at as stored. What they do with others
/// differs: with colours that are coded in another way, or with damage.
bool device_decodes(std::span<const std::byte> file,
                    const PictureHeader& header);

/// Decodes any picture that is read, exactly, and turns it as displayed:
/// Resize::decode. One that cannot be decoded, which is found out before it is
/// queued, leaves the image unchanged.
void decode_on_host(std::span<const std::byte> file, std::int32_t channels,
                    std::byte* image);

}  // namespace penstock
