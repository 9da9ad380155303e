#pragma once

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "penstock/base/json.h"

namespace penstock {

/// A kind of model, small: its two fields and its settings.
struct Kind {
  const char* field;   ///< x
  const char* target;  ///< y
  const char* model;
};

inline constexpr const char* kClass = R"({"category": {"column": "class",
                                   "unknown": "error"}})";
inline const std::map<std::string, Kind>& kinds() {
  static const std::map<std::string, Kind> all{
      {"tabular",
       {R"({"columns": ["a", "b"]})", kClass,
        R"({"target": "y", "width": 8, "depth": 1})"}},
      {"image_classifier",
       {R"({"array": {"column": "pixels", "shape": [3, 8, 8],
            "dtype": "uint8"}})",
        kClass, R"({"image": "x", "target": "y"})"}},
      {"spectrogram_classifier",
       {R"({"array": {"column": "pixels", "shape": [12, 16]}})", kClass,
        R"({"spectrogram": "x", "target": "y", "width": 8, "depth": 2})"}},
      {"set_position",
       {R"({"json_set": {"column": "heard", "keys": ["lat", "lon", "db"],
            "max": 2}})",
        R"({"columns": ["lat", "lon"]})",
        R"({"set": "x", "target": "y", "latitude": "lat", "longitude": "lon",
            "strength": "db", "width": 8})"}},
      {"causal_lm",
       {R"({"columns": ["a"]})",
        R"({"tokens": {"column": "ids", "max_length": 8, "pack": "none",
            "vocab_size": 20}})",
        R"({"tokens": "y"})"}}};
  return all;
}

inline constexpr const char* kDecoder = R"({
  "model_type": "llama", "vocab_size": 20, "hidden_size": 16,
  "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2,
  "num_key_value_heads": 1, "head_dim": 8, "rms_norm_eps": 1e-6,
  "tie_word_embeddings": true, "hidden_act": "silu"})";

/// A CSV file with what each kind wants.
inline std::string rows_of_kinds(int rows) {
  std::string csv = "a,b,class,lat,lon,ids,heard,pixels\n";
  for (int i = 0; i < rows; ++i) {
    const std::string n = std::to_string(i), place = "50.0" + n;
    csv += n + "," + std::to_string(i * 7 % 5) + "," +
           (i % 3 == 0 ? "p" : "q") + "," + place + ",8.0" + n + ",\"[";
    for (int at = 0; at < 4 + i % 4; ++at)
      csv += (at == 0 ? "" : ",") + std::to_string((i + 3 * at) % 20);
    csv += R"(]","[{""lat"":)" + place + R"(,""lon"":8.1,""db"":)" + n +
           R"(}]","[)";
    for (int at = 0; at < 192; ++at)
      csv += (at == 0 ? "" : ",") + std::to_string((i * 37 + at * 11) % 250);
    csv += "]\"\n";
  }
  return csv;
}

/// The sections of a job that a kind needs, without its source; `folder` gets
/// the files that the model reads.
inline Json job_of_kind(const std::string& kind, const std::string& folder) {
  const Kind& of = kinds().at(kind);
  Json json;
  json["fields"]["x"] = Json::parse(of.field, "x");
  json["fields"]["y"] = Json::parse(of.target, "y");
  json["split"]["val"] = 0.25;
  json["split"]["seed"] = 1;
  json["loader"]["cache"] = "ram";
  json["device"] = "cpu";
  json["model"] = Json::parse(of.model, "model");
  json["model"]["kind"] = kind;
  json["train"]["warmup_steps"] = 3;
  json["train"]["threads"] = 1;
  if (kind != "causal_lm") return json;
  std::ofstream(folder + "/config.json") << kDecoder;
  json["model"]["config"] = folder + "/config.json";
  return json;
}

}  // namespace penstock
