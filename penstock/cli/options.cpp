#include "penstock/cli/options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <optional>
#include <type_traits>

namespace penstock {
namespace {

/// The number that the whole text is, in decimal; nullopt: none of T.
template <class T>
std::optional<T> number_of(const std::string& text) {
  T value{};
  const char* end = text.data() + text.size();
  auto [to, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || to != end) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>)
    if (!std::isfinite(value)) return std::nullopt;
  return value;
}

template <class T>
std::string shown(T value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), value).ptr};
}

/// The bounds that say something, for the help.
template <class T>
std::string bounds_of(const NumberRule<T>& rule) {
  using Limits = std::numeric_limits<T>;
  const bool least = rule.least > Limits::lowest();
  const bool most = rule.most < Limits::max();
  if (least && most) return shown(rule.least) + " to " + shown(rule.most);
  if (least) return ">= " + shown(rule.least);
  return most ? "<= " + shown(rule.most) : "";
}

/// Not as CLI11 reads numbers, to which 010 is 8 and 0x2 is 2.
template <class T>
void add_number(CLI::App& app, const std::string& name, T& to,
                const std::string& help, NumberRule<T> rule) {
  constexpr bool whole = std::is_integral_v<T>;
  auto take = [&to, name, rule](const CLI::results_t& given) {
    const std::string& text = given.front();
    std::optional<T> value = number_of<T>(text);
    if (!value || *value < rule.least || *value > rule.most)
      throw CLI::ValidationError(name, "found '" + text + "', expected a " +
                                           (whole ? "whole " : "") +
                                           "number from " + shown(rule.least) +
                                           " to " + shown(rule.most));
    to = *value;
    return true;
  };
  const std::string bounds = bounds_of(rule);
  app.add_option(name, take, help, true, [&to] { return shown(to); })
      ->type_name((whole ? "INT" : "FLOAT") +
                  (bounds.empty() ? "" : ":" + bounds));
}

}  // namespace

// `program_` owns the parser of the whole program. Options of a verb have none
// and refer to a part of it, so they are valid only as long as the program's.
Options::Options(const std::string& program, const std::string& help)
    : program_(std::make_unique<CLI::App>(help, program)),
      app_(program_.get()) {
  app_->option_defaults()->always_capture_default();
}

Options::Options(CLI::App& app) : app_(&app) {}
Options::Options(Options&&) noexcept = default;
Options::~Options() = default;

void Options::add(const std::string& name, std::string& to,
                  const std::string& help, TextRule rule) {
  CLI::Option* option = app_->add_option(name, to, help);
  if (rule.required) option->required();
  if (!rule.one_of.empty()) option->check(CLI::IsMember(rule.one_of));
}

void Options::add(const std::string& name, std::vector<std::string>& to,
                  const std::string& help) {
  CLI::Option* option = app_->add_option(name, to, help)->default_str("");
  if (name.starts_with("-"))
    option->take_all()->allow_extra_args(false);
  else
    option->expected(0, 1 << 20);
}

void Options::add_pair(const std::string& name, std::vector<std::string>& to,
                       const std::string& help) {
  app_->add_option(name, to, help)->expected(2)->default_str("");
}

void Options::add(const std::string& name, std::int64_t& to,
                  const std::string& help, NumberRule<std::int64_t> rule) {
  add_number(*app_, name, to, help, rule);
}

void Options::add(const std::string& name, std::uint64_t& to,
                  const std::string& help, NumberRule<std::uint64_t> rule) {
  add_number(*app_, name, to, help, rule);
}

void Options::add(const std::string& name, int& to, const std::string& help,
                  NumberRule<int> rule) {
  add_number(*app_, name, to, help, rule);
}

void Options::add(const std::string& name, double& to, const std::string& help,
                  NumberRule<double> rule) {
  add_number(*app_, name, to, help, rule);
}

void Options::flag(const std::string& name, bool& to, const std::string& help) {
  app_->add_flag(name, to, help);
}

void Options::version(const std::string& text) {
  app_->set_version_flag("--version", text);
}

Options Options::verb(const std::string& name, const std::string& help,
                      std::function<void()> chosen) {
  app_->require_subcommand(1);
  CLI::App* added = app_->add_subcommand(name, help);
  if (chosen) added->callback(std::move(chosen));
  return Options(*added);
}

void Options::footer(const std::string& text) { app_->footer(text); }

bool Options::read(int argc, char** argv) try {
  if (argc == 1) throw CLI::CallForHelp();
  app_->parse(argc, argv);
  return true;
} catch (const CLI::CallForHelp& help) {
  return app_->exit(help), false;
} catch (const CLI::CallForVersion& version) {
  return app_->exit(version), false;
} catch (const CLI::ParseError& error) {
  throw BadArguments(error.what());
}

}  // namespace penstock
