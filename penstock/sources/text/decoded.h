#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "penstock/sources/files/input_file.h"

namespace penstock::text {

/// Takes the next bytes.
using ByteSink = std::function<void(std::span<const char> bytes)>;

/// Whether a file is compressed, by its name.
bool is_compressed(const files::DataFile& file);

/// Hands on what a .gz or .zst file (or one that is neither) holds, piece by
/// piece. Throws Error(source), files.damaged: with the offset.
void unpack(const files::DataFile& file, const files::InputFile& input,
            const ByteSink& sink);

/// Hands on text as UTF-8 that comes in another encoding. One thread's.
class Transcoder {
 public:
  /// Throws Error(request), source.encoding.
  Transcoder(const files::DataFile& file, const std::string& encoding,
             ByteSink sink);
  ~Transcoder();
  Transcoder(const Transcoder&) = delete;
  Transcoder& operator=(const Transcoder&) = delete;

  /// Throws Error(source), files.encoding, with the offset.
  void take(std::span<const char> bytes);
  void finish();

 private:
  [[noreturn]] void refuse(std::size_t at) const;

  const files::DataFile& file_;
  const std::string encoding_;
  const ByteSink sink_;
  void* converter_;
  std::string left_;       // a character that is not whole yet
  std::size_t taken_ = 0;  // bytes before `left_`
};

/// True for the names of UTF-8 and its part ASCII.
bool is_plain(const std::string& encoding);

}  // namespace penstock::text
