#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {
class App;  // CLI11's; options.cpp alone includes it: ten seconds per file
}

namespace penstock {

/// The arguments cannot be read. what() says why.
class BadArguments : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A rule for texts.
struct TextRule {
  bool required = false;
  std::vector<std::string> one_of = {};  ///< none: any text
};

/// A rule for numbers, written in decimal: those of T from `least` to `most`.
template <class T>
struct NumberRule {
  T least = 0;
  T most = std::numeric_limits<T>::max();
};

/// The options of the program, or of one of its verbs. What an option is read
/// into must stay until read() has returned, and holds its default until then.
class Options {
 public:
  /// The options of a program, --help among them.
  Options(const std::string& program, const std::string& help);
  Options(Options&&) noexcept;
  ~Options();

  /// `name` is "--name", or "name" for what is known by its place.
  void add(const std::string& name, std::string& to, const std::string& help,
           TextRule rule = {});
  void add(const std::string& name, std::vector<std::string>& to,
           const std::string& help);  ///< "--name" several times: a value each
  /// "--name FIRST SECOND": both, or none.
  void add_pair(const std::string& name, std::vector<std::string>& to,
                const std::string& help);
  void add(const std::string& name, std::int64_t& to, const std::string& help,
           NumberRule<std::int64_t> rule);
  void add(const std::string& name, std::uint64_t& to, const std::string& help,
           NumberRule<std::uint64_t> rule);
  void add(const std::string& name, int& to, const std::string& help,
           NumberRule<int> rule);
  void add(const std::string& name, double& to, const std::string& help,
           NumberRule<double> rule);
  void flag(const std::string& name, bool& to, const std::string& help);
  void version(const std::string& text);  ///< what --version prints

  /// The options of a verb, one of which must then be given. `chosen` is called
  /// by read() when it is.
  Options verb(const std::string& name, const std::string& help,
               std::function<void()> chosen = {});

  /// Stands below the help of this verb, and of its own verbs that have none.
  void footer(const std::string& text);

  /// Reads the arguments of a program. False: help or the version was asked
  /// for, and is printed. Throws BadArguments.
  bool read(int argc, char** argv);

 private:
  explicit Options(CLI::App& app);

  std::unique_ptr<CLI::App> program_;  ///< null for a verb
  CLI::App* app_;
};

}  // namespace penstock
