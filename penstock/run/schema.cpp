#include "penstock/run/job.h"

namespace penstock {

// JSON Schema draft 2020-12. job_test.cpp holds it against the parser: every
// key that the parser knows stands here, and the other way round.
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
      "required": ["kind", "table"],
      "additionalProperties": false,
      "properties": {
        "kind": {"enum": ["sqlite", "postgres"]},
        "path": {"type": "string", "description": "sqlite: the file"},
        "uri": {"type": "string", "description": "postgres: a libpq connection string; secrets come from libpq's own places"},
        "table": {"type": "string"},
        "key": {"type": "string", "description": "a unique column without nulls; default: the single-column primary key"},
        "where": {"type": "string", "description": "an SQL condition"},
        "on_bad": {"enum": ["stop", "skip"], "default": "stop"},
        "round_trip_ms": {"type": "number", "minimum": 0, "default": 0, "description": "a declared delay per statement sent"},
        "connections": {"type": "integer", "minimum": 1, "default": 2}
      }
    },
    "fields": {
      "type": "object",
      "minProperties": 1,
      "description": "Name of a tensor -> how it is made.",
      "additionalProperties": {
        "type": "object",
        "additionalProperties": false,
        "properties": {
          "json_set": {
            "type": "object",
            "description": "A JSON list of objects -> [max, keys] and NAME_mask [max].",
            "required": ["column", "keys", "max"],
            "additionalProperties": false,
            "properties": {
              "column": {"type": "string"},
              "keys": {"type": "array", "minItems": 1, "items": {"type": "string"}},
              "max": {"type": "integer", "minimum": 1},
              "min": {"type": "integer", "minimum": 0, "default": 1},
              "overflow": {"enum": ["first", "strongest", "error"], "default": "first"},
              "sort_by": {"type": "string"},
              "required": {"type": "array", "items": {"type": "string"}}
            }
          },
          "columns": {"type": "array", "minItems": 1, "items": {"type": "string"}},
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
        "batch_size": {"type": "integer", "minimum": 1, "default": 256, "description": "global, per step"},
        "seed": {"type": "integer", "minimum": 0, "default": 0},
        "shuffle": {"type": "boolean", "default": true},
        "workers": {"type": "integer", "minimum": 0, "description": "default: from the processors we may use"},
        "prefetch": {"type": "integer", "minimum": 0, "default": 2, "description": "batches ready ahead, in total"},
        "cache": {"enum": ["auto", "device", "ram", "none"], "default": "auto"},
        "read": {"enum": ["batch", "per_sample"], "default": "batch"},
        "tail": {"enum": ["drop", "pad", "exact"], "description": "default: drop for train, exact for val"}
      }
    },
    "device": {
      "description": "auto never picks sim.",
      "oneOf": [
        {"enum": ["auto", "cpu", "sim", "cuda"]},
        {
          "type": "object",
          "additionalProperties": false,
          "properties": {
            "kind": {"enum": ["auto", "cpu", "sim", "cuda"], "default": "auto"},
            "step_ms": {
              "oneOf": [
                {"type": "number", "minimum": 0},
                {"type": "object", "additionalProperties": false,
                 "properties": {"mean": {"type": "number"}, "deviation": {"type": "number"}}}
              ]
            },
            "copy_gb_s": {"type": "number"},
            "memory_gib": {"type": "number"},
            "clock": {"enum": ["wall", "virtual"], "default": "wall"}
          }
        }
      ]
    },
    "model": {"const": "none"},
    "train": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "epochs": {"type": "integer", "minimum": 1, "default": 1},
        "max_steps": {"type": "integer", "minimum": 1}
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
