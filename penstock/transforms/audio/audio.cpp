#include "penstock/transforms/audio/audio.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/transforms/audio/clip.h"
#include "penstock/transforms/audio/mel.h"
#include "penstock/transforms/kinds.h"
#include "penstock/transforms/named_files.h"

// A parsed value is an encoded clip: the bytes of the file, or its path. What
// is stored is that, the waveform, or the spectrogram.

namespace penstock {
namespace {

/// Of what is parsed or stored at once: ends are of 32 bits.
constexpr std::size_t kMostBytes = UINT32_MAX;

/// Where the columns of a field are in a block; -1: none.
struct Places {
  std::size_t sound = 0;
  std::int64_t start = -1, end = -1;
};

class Parser final : public FieldParser {
 public:
  /// `decodes`: to see what is damaged.
  Parser(const Audio& audio, Places places, bool decodes,
         std::int64_t opened_ns)
      : audio_(audio),
        places_(places),
        decodes_(decodes),
        reader_(audio, opened_ns) {}

  void parse(const Block& block, Values& out, Faults& faults) override {
    for (std::int64_t row = 0; row < block.rows; ++row) {
      std::string column = audio_.column;
      std::string why = append(block, row, out.bytes, column);
      if (!why.empty())
        faults.reject({.row = row, .place = column, .why = std::move(why)});
      out.end_row();
    }
  }
  std::unique_ptr<FieldNotes> take_notes() override {
    if (files_.empty()) return nullptr;
    return std::make_unique<FileNotes>(std::exchange(files_, {}));
  }

 private:
  std::string append(const Block& block, std::int64_t row, Bytes& out,
                     std::string& column) {
    const Column& sound = block.columns[places_.sound];
    EncodedClip clip;
    std::string why = seconds(block, places_.start, row, clip.start);
    if (!why.empty()) {
      column = audio_.start;
      return why;
    }
    why = seconds(block, places_.end, row, clip.end);
    if (why.empty() && ends(block, row) && clip.end <= clip.start)
      why = "is " + Json(clip.end).dump() + ", but seconds from " +
            Json(clip.start).dump() + " on are requested";
    if (!why.empty()) {
      column = audio_.end;
      return why;
    }
    if (!sound.valid(row)) return "is NULL, expected the bytes of a sound file";
    std::string_view bytes = sound.text(row);
    std::string path;
    clip.is_path = sound.type.is_text();
    if (clip.is_path) {
      const bool relative = !audio_.folder.empty() && !bytes.starts_with('/');
      path = (relative ? audio_.folder + "/" : "") + std::string(bytes);
      // The size is part of the value, and so of the data set's fingerprint.
      const std::optional<FileStamp> found = stamp_of(path);
      if (!path.empty()) {
        files_.add(path, found);
        path += '\0' + (found ? std::to_string(found->bytes) : "none");
      }
      bytes = path;
    }
    if (bytes.empty()) return "is empty, expected the bytes of a sound file";
    if (out.size() + bytes.size() + EncodedClip::kHeader > kMostBytes)
      return "has " + std::to_string(bytes.size()) +
             " bytes, and together with the previous sounds more than 4 GiB";
    clip.bytes = std::as_bytes(std::span(bytes));
    why = decodes_ ? decode(clip) : reader_.check(clip);
    if (why.empty()) clip.append(out);
    return why;
  }

  /// What a row may need of it.
  std::string decode(const EncodedClip& clip) {
    if (audio_.crop == Audio::Crop::random) return reader_.check_all(clip);
    wave_.resize(
        static_cast<std::size_t>(audio_.channels() * audio_.samples()));
    return reader_.read(clip, std::nullopt, wave_);
  }

  /// Whether the row says where it ends in its file.
  bool ends(const Block& block, std::int64_t row) const {
    return places_.end >= 0 &&
           block.columns[static_cast<std::size_t>(places_.end)].valid(row);
  }

  static std::string seconds(const Block& block, std::int64_t place,
                             std::int64_t row, double& to) {
    if (place < 0) return {};
    const Column& column = block.columns[static_cast<std::size_t>(place)];
    if (!column.valid(row)) return {};
    to = column.as_float64(row);
    if (to >= 0 && std::isfinite(to)) return {};
    return "is " + Json(to).dump() + ", expected seconds, 0 or more";
  }

  const Audio audio_;
  const Places places_;
  const bool decodes_;
  ClipReader reader_;
  FileNotes files_;
  std::vector<float> wave_;
};

class Encoder final : public FieldEncoder {
 public:
  Encoder(const Audio& audio, std::int64_t opened_ns)
      : audio_(audio),
        form_(audio.stored_form()),
        row_bytes_(
            sizeof(float) *
            static_cast<std::size_t>(form_ == Audio::Form::features
                                         ? elements_of(audio.row_shape())
                                         : audio.channels() * audio.samples())),
        reader_(audio, opened_ns) {}

  void encode(std::span<const ValueRow> rows, const StoredRows& out,
              Faults& faults) override {
    std::byte* to = out.data;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (form_ == Audio::Form::encoded) {
        append(rows[r], *out.runs);
        continue;
      }
      std::string why = waveform(rows[r], to);
      if (!why.empty()) {
        std::memset(to, 0, row_bytes_);
        faults.reject({.row = static_cast<std::int64_t>(r),
                       .place = audio_.column,
                       .why = std::move(why),
                       .damaged = true});
      }
      to += out.stride;
    }
  }

 private:
  static void append(ValueRow row, Values& runs) {
    runs.bytes.append(row.data(), row.size());
    if (runs.bytes.size() > kMostBytes)
      throw Error(ErrorKind::request,
                  {.code = "audio.too_many_bytes",
                   .what = "cannot keep these sounds",
                   .where = "loader.batch_size",
                   .why = "the sounds of one read have more than 4 GiB",
                   .next = "use a smaller batch, or \"store\": \"samples\""});
    runs.end_row();
  }

  std::string waveform(ValueRow row, std::byte* to) {
    const bool features = form_ == Audio::Form::features;
    const auto samples =
        static_cast<std::size_t>(audio_.channels() * audio_.samples());
    if (features) wave_.resize(samples);
    const std::span<float> out(
        features ? wave_.data() : reinterpret_cast<float*>(to), samples);
    std::string why = reader_.read(EncodedClip::of(row), std::nullopt, out);
    if (!why.empty() || !features) return why;
    if (mel_ == nullptr) mel_ = std::make_unique<MelSpectrogram>(audio_);
    mel_->run(wave_,
              {reinterpret_cast<float*>(to),
               static_cast<std::size_t>(elements_of(audio_.row_shape()))});
    return {};
  }

  const Audio audio_;
  const Audio::Form form_;
  const std::size_t row_bytes_;  // of what is stored decoded
  ClipReader reader_;
  std::unique_ptr<MelSpectrogram> mel_;
  std::vector<float> wave_;
};

class BoundAudio final : public BoundField {
 public:
  BoundAudio(const Audio& audio, Places places)
      : audio_(audio), places_(places) {}
  std::unique_ptr<FieldParser> parser() const override {
    return std::make_unique<Parser>(audio_, places_, false, opened_ns_);
  }
  std::unique_ptr<FieldParser> checking_parser() const override {
    return std::make_unique<Parser>(audio_, places_, true, opened_ns_);
  }
  std::unique_ptr<FieldEncoder> encoder(const Json&,
                                        const std::string&) const override {
    return std::make_unique<Encoder>(audio_, opened_ns_);
  }
  std::unique_ptr<FieldNotes> notes_of(
      std::span<const std::byte> saved) const override {
    return file_notes_of(saved);
  }

 private:
  const Audio audio_;
  const Places places_;
  const std::int64_t opened_ns_ = file_clock_ns();
};

std::string setting_of(const std::string& name, const std::string& key) {
  return "fields." + name + ".audio." + key;
}

std::vector<ColumnRequest> columns_of(const std::string& name,
                                      const Audio& audio) {
  std::vector<ColumnRequest> all = {{.column = audio.column,
                                     .as = ReadAs::value,
                                     .setting = setting_of(name, "column")}};
  for (const auto& [key, column] :
       {std::pair("start", audio.start), std::pair("end", audio.end)})
    if (!column.empty())
      all.push_back({.column = column,
                     .as = ReadAs::number,
                     .setting = setting_of(name, key)});
  return all;
}

StoredForm stored_form(const std::string& name, const Audio& audio) {
  const Audio::Form form = audio.stored_form();
  if (form == Audio::Form::encoded) return {.element_bytes = 1};
  RowLayout layout;
  layout.append(
      {{.name = name,
        .dtype = Dtype::float32,
        .row_shape = form == Audio::Form::features
                         ? audio.row_shape()
                         : Shape{audio.channels(), audio.samples()}}});
  return {.tensors = std::move(layout.tensors)};
}

Json stored_recipe_of(const Audio& audio) {
  Audio stored = audio;
  stored.form = audio.stored_form();
  stored.augment.clear();
  Json recipe = audio_settings().shown(stored);
  // What an older version stored differs in the last bits, or by a factor.
  if (stored.form == Audio::Form::features) {
    recipe["window"] = "float32";
    if (audio.mel.of_amplitudes()) recipe["decibels"] = "20 log10";
  }
  return recipe;
}

FieldFacts facts_of(const std::string& name, const Audio& audio) {
  const bool encoded = audio.stored_form() == Audio::Form::encoded;
  FieldFacts facts{.columns = columns_of(name, audio),
                   .stored = stored_form(name, audio),
                   .outputs = {{.name = name, .row_shape = audio.row_shape()}},
                   .work = {.parsing = encoded ? "" : "decode",
                            .making = encoded ? "decode" : "transform"},
                   .recipe = audio_settings().shown(audio),
                   .stored_recipe = stored_recipe_of(audio),
                   .built_in = true};
  if (!audio.folder.empty())
    facts.folder = FolderFacts{.path = audio.folder,
                               .setting = "fields." + name + ".audio.folder",
                               .source_kind = "audio"};
  return facts;
}

class AudioKind final : public FieldKind {
 public:
  AudioKind(std::string name, Audio audio)
      : FieldKind(facts_of(name, audio)),
        name_(std::move(name)),
        audio_(std::move(audio)) {}

  std::unique_ptr<FieldFinisher> finisher(bool train) const override {
    return make_audio_finisher(audio_, train);
  }
  std::shared_ptr<const BoundField> bind(FieldColumns columns) const override {
    const ColumnKind kind = columns.types[0].kind;
    if (kind != ColumnKind::binary && kind != ColumnKind::utf8)
      throw column_error("fields.not_bytes", setting_of(name_, "column"),
                         columns.info[0], columns.types[0],
                         "expected the bytes of sound files, or their paths",
                         "name the column that holds them");
    Places places{.sound = columns.at[0]};
    std::size_t next = 1;
    if (!audio_.start.empty())
      places.start = static_cast<std::int64_t>(columns.at[next++]);
    if (!audio_.end.empty())
      places.end = static_cast<std::int64_t>(columns.at[next]);
    return std::make_shared<BoundAudio>(audio_, places);
  }

 private:
  const std::string name_;
  const Audio audio_;
};

}  // namespace

std::shared_ptr<const FieldKind> make_audio(std::string name, Audio audio) {
  return std::make_shared<AudioKind>(std::move(name), std::move(audio));
}

FieldDescriptor audio_field() {
  return describe_field<Audio, audio_settings, make_audio>("audio");
}

}  // namespace penstock
