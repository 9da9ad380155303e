#include "penstock/run/job.h"

namespace penstock {

// JSON Schema draft 2020-12. tests/end_to_end/schema_test.py holds it against
// the parser: the same keys, and the same verdict on what a schema can say.
std::string job_schema() {
  return R"json({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "Penstock job",
  "type": "object",
  "required": ["source", "fields"],
  "additionalProperties": false,
  "properties": {
    "source": {
      "type": "object",
      "description": "Where the rows are.",
      "required": ["kind"],
      "oneOf": [
        {"properties": {"kind": {"const": "sqlite"}}, "required": ["path"],
         "not": {"anyOf": [{"required": ["uri"]}, {"required": ["connections"]}]}},
        {"properties": {"kind": {"const": "postgres"}}, "required": ["uri"],
         "not": {"required": ["path"]}}
      ],
      "additionalProperties": false,
      "properties": {
        "kind": {"enum": ["sqlite", "postgres"]},
        "path": {"type": "string", "minLength": 1, "description": "sqlite: the file"},
        "uri": {"type": "string", "minLength": 1, "description": "postgres: a libpq connection string; secrets come from libpq's own places"},
        "table": {"type": "string", "description": "default: the only table"},
        "key": {"type": "string", "description": "a unique column without nulls; default: the single-column primary key"},
        "where": {"type": "string", "description": "an SQL condition"},
        "on_bad": {"enum": ["stop", "skip"], "default": "stop"},
        "fingerprint": {"type": "string", "minLength": 16, "description": "of the rows that must be read: dataset.fingerprint of a report, or its first 16 digits"},
        "round_trip_ms": {"type": "number", "minimum": 0, "maximum": 60000, "default": 0, "description": "a declared delay per statement sent"},
        "connections": {"type": "integer", "minimum": 1, "maximum": 64, "default": 2}
      }
    },
    "fields": {
      "type": "object",
      "minProperties": 1,
      "description": "Name of a tensor -> how it is made.",
      "additionalProperties": {
        "type": "object",
        "oneOf": [
          {"required": ["json_set"],
           "not": {"anyOf": [{"required": ["columns"]}, {"required": ["dtype"]}]}},
          {"required": ["columns"], "not": {"required": ["json_set"]}}
        ],
        "additionalProperties": false,
        "properties": {
          "json_set": {
            "type": "object",
            "description": "A JSON list of objects -> [max, keys] and NAME_mask [max].",
            "required": ["column", "keys", "max"],
            "oneOf": [
              {"properties": {"overflow": {"const": "strongest"}}, "required": ["overflow", "sort_by"]},
              {"properties": {"overflow": {"enum": ["first", "error"]}}, "not": {"required": ["sort_by"]}}
            ],
            "additionalProperties": false,
            "properties": {
              "column": {"type": "string"},
              "keys": {"type": "array", "minItems": 1, "uniqueItems": true, "items": {"type": "string"}},
              "max": {"type": "integer", "minimum": 1, "maximum": 65536},
              "min": {"type": "integer", "minimum": 0, "maximum": 65536, "default": 1, "description": "at most max; shorter lists are left out"},
              "overflow": {"enum": ["first", "strongest", "error"], "default": "first"},
              "sort_by": {"type": "string"},
              "required": {"type": "array", "items": {"type": "string"}}
            }
          },
          "columns": {"type": "array", "minItems": 1, "uniqueItems": true, "items": {"type": "string"}},
          "dtype": {"enum": ["float32", "float64", "int64"], "default": "float32"},
          "standardize": {"type": "boolean", "default": false}
        }
      }
    },
    "split": {
      "type": "object",
      "description": "Sides by a keyed hash; train + val <= 1, the rest is unused.",
      "additionalProperties": false,
      "properties": {
        "train": {"type": "number", "minimum": 0, "maximum": 1, "default": 1},
        "val": {"type": "number", "minimum": 0, "maximum": 1, "default": 0},
        "seed": {"type": "integer", "minimum": 0, "default": 0},
        "by": {"type": "string", "description": "rows that share its value share the side; default: the key"}
      }
    },
    "loader": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "batch_size": {"type": "integer", "minimum": 1, "maximum": 16777216, "default": 256, "description": "global, per step"},
        "seed": {"type": "integer", "minimum": 0, "default": 0},
        "shuffle": {"type": "boolean", "default": true},
        "workers": {"type": "integer", "minimum": 0, "maximum": 1024, "description": "default: from the processors we may use"},
        "prefetch": {"type": "integer", "minimum": 0, "maximum": 4096, "default": 2, "description": "batches ready ahead, in total"},
        "cache": {"enum": ["auto", "device", "ram", "none"], "default": "auto"},
        "read": {"enum": ["batch", "per_sample"], "default": "batch"},
        "tail": {"enum": ["drop", "pad", "exact"], "description": "default: drop for train, exact for val"}
      }
    },
    "device": {
      "description": "auto never picks sim.",
      "oneOf": [
        {"enum": ["auto", "cpu", "sim", "cuda", "gpu"]},
        {
          "type": "object",
          "additionalProperties": false,
          "properties": {
            "kind": {"enum": ["auto", "cpu", "sim", "cuda", "gpu"], "default": "auto"},
            "step_ms": {
              "oneOf": [
                {"type": "number", "minimum": 0, "maximum": 3600000},
                {"type": "object", "additionalProperties": false, "required": ["mean"],
                 "properties": {
                   "mean": {"type": "number", "minimum": 0, "maximum": 3600000},
                   "deviation": {"type": "number", "minimum": 0, "maximum": 3600000, "default": 0}
                 }}
              ]
            },
            "copy_gb_s": {"type": "number", "minimum": 0.001, "maximum": 100000},
            "memory_gib": {"type": "number", "minimum": 0.001, "maximum": 100000},
            "clock": {"enum": ["wall", "virtual"], "default": "wall"}
          }
        }
      ]
    },
    "model": {
      "description": "none: the device alone takes the steps.",
      "oneOf": [
        {"const": "none"},
        {
          "type": "object",
          "additionalProperties": false,
          "required": ["kind", "set", "target", "latitude", "longitude", "strength"],
          "properties": {
            "kind": {"const": "set_position", "description": "where something is, and how surely, from a set of receivers"},
            "set": {"type": "string", "description": "a json_set field"},
            "target": {"type": "string", "description": "a columns field: latitude, longitude in degrees"},
            "latitude": {"type": "string", "description": "key of the set, in degrees"},
            "longitude": {"type": "string", "description": "key of the set, in degrees"},
            "strength": {"type": "string", "description": "key of the set, in dB"},
            "width": {"type": "integer", "minimum": 8, "maximum": 4096, "multipleOf": 8, "default": 64},
            "dropout": {"type": "number", "minimum": 0, "maximum": 0.9, "default": 0.1, "description": "share of receivers left out while learning"},
            "noise_db": {"type": "number", "minimum": 0, "maximum": 100, "default": 3, "description": "deviation of the noise added to strengths while learning"},
            "seed": {"type": "integer", "minimum": 0, "default": 0, "description": "of the weights at the beginning, and of what is drawn while learning"}
          }
        }
      ]
    },
    "train": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "epochs": {"type": "integer", "minimum": 1, "default": 1},
        "max_steps": {"type": "integer", "minimum": 1},
        "checkpoint_every_steps": {"type": "integer", "minimum": 1, "description": "default: a model is saved at the end of every epoch"},
        "lr": {"type": "number", "minimum": 0, "maximum": 1000, "default": 0.002, "description": "the peak, after the warm-up"},
        "warmup_steps": {"type": "integer", "minimum": 0, "default": 50},
        "weight_decay": {"type": "number", "minimum": 0, "maximum": 1000, "default": 0.01},
        "clip_norm": {"type": "number", "minimum": 0, "maximum": 1000000000, "default": 1, "description": "of all gradients together; 0: no clipping"},
        "threads": {"type": "integer", "minimum": 0, "maximum": 1024, "default": 0, "description": "of the model's mathematics; 0: all that we may use"}
      }
    },
    "output": {
      "type": "object",
      "additionalProperties": false,
      "properties": {"dir": {"type": "string", "default": "runs"}}
    }
  }
}
)json";
}

}  // namespace penstock
