#include "penstock/cli/options.h"

#include <CLI/CLI.hpp>
#include <charconv>

namespace penstock {
namespace {

/// Refuses what CLI11 would take for the end of T's range, too.
template <class T>
CLI::Validator check(WholeRule<T> rule) {
  auto why_not = [rule](const std::string& text) {
    T value{};
    const char* end = text.data() + text.size();
    auto [to, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && to == end && value >= rule.least &&
        value <= rule.most)
      return std::string();
    return "found '" + text + "', expected a whole number from " +
           std::to_string(rule.least) + " to " + std::to_string(rule.most);
  };
  const bool any = rule.least == std::numeric_limits<T>::min();
  return CLI::Validator(why_not, any ? "" : ">= " + std::to_string(rule.least));
}

}  // namespace

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
  app_->add_option(name, to, help)->take_all()->default_str("");
}

void Options::add(const std::string& name, std::int64_t& to,
                  const std::string& help, WholeRule<std::int64_t> rule) {
  app_->add_option(name, to, help)->check(check(rule));
}

void Options::add(const std::string& name, std::uint64_t& to,
                  const std::string& help, WholeRule<std::uint64_t> rule) {
  app_->add_option(name, to, help)->check(check(rule));
}

void Options::add(const std::string& name, int& to, const std::string& help) {
  app_->add_option(name, to, help);
}

void Options::add(const std::string& name, double& to,
                  const std::string& help) {
  app_->add_option(name, to, help);
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
