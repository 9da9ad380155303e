#pragma once

#include <string>

#include "penstock/transforms/audio/decode/sound_bytes.h"

namespace penstock {

// libsndfile shortens a sound to the bytes that are there, and estimates the
// length of an MP3 file by its first frame. So files are looked at before they
// are decoded: one that is cut off is refused, and a header without a length
// gets one.

/// What is wrong with the length of a file of any format; empty: nothing.
/// `frames`: samples of each channel, where libsndfile would guess; else -1.
std::string check_length(SoundBytes& file, std::int64_t& frames);

/// WAV, RF64, W64 and AIFF: the data chunk must hold the bytes that its header
/// says. A writer to a pipe does not know the length and says 0, or about
/// 2^31, 2^32 or 2^63: then the sound ends where the file does.
std::string check_chunks(SoundBytes& file);
/// An Ogg file must end with a whole page; what follows it, a tag, is left out.
std::string check_pages(SoundBytes& file);
/// FLAC whose header does not say how many samples there are gets the number
/// that its last frame shows. `at`: behind ID3 tags.
std::string complete_flac(SoundBytes& file, std::int64_t at);
/// MP3 without an Xing or Info frame, which would say it, has the samples of
/// each channel that all its frames have together. `at`: behind ID3 tags.
std::string count_mp3(SoundBytes& file, std::int64_t at, std::int64_t& samples);

/// Where an ID3v2 tag ends that begins at `at`; `at`: there is no tag.
std::int64_t after_id3(SoundBytes& file, std::int64_t at);

}  // namespace penstock
