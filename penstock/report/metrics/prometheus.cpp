#include "penstock/report/metrics/prometheus.h"

#include <cmath>
#include <utility>

#include "penstock/base/base.h"
#include "penstock/base/printable.h"

namespace penstock {
namespace {

/// In a label's value a quote, a backslash and a line's end are escaped.
std::string label_of(const std::string& run) {
  std::string escaped;
  for (const char c : printable_lines(run)) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return "{run=\"" + escaped + "\"}";
}

/// Names are of letters, digits and underscores.
std::string name_of(const std::string& metric) {
  std::string name = "penstock_";
  for (const char c : metric) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       (c >= '0' && c <= '9');
    name += plain ? c : '_';
  }
  return name;
}

}  // namespace

PrometheusFile::PrometheusFile(const std::filesystem::path& folder)
    : file_(folder / "metrics.prom"),
      label_(label_of(folder.filename().string())) {}

void PrometheusFile::add(std::int64_t step, double, const Metrics& metrics) {
  newest_["penstock_steps"] = static_cast<double>(step);
  for (const auto& [name, value] : metrics) newest_[name_of(name)] = value;
  write();
}

void PrometheusFile::add_epoch(std::int64_t step, double,
                               const Metrics& metrics) {
  newest_["penstock_steps"] = static_cast<double>(step);
  for (const auto& [name, value] : metrics)
    newest_[name_of("epoch_" + name)] = value;
  write();
}

void PrometheusFile::write() {
  std::string text;
  for (const auto& [name, value] : newest_) {
    if (!std::isfinite(value)) continue;
    text += "# TYPE " + name + " gauge\n" + name + label_ + " " +
            Json(value).dump() + "\n";
  }
  real_files().write(file_, text, Lasting::later);
}

}  // namespace penstock
