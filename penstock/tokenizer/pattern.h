#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace penstock {

/// A regular expression with the meaning that Oniguruma, which `tokenizers`
/// uses, gives it, on our classes of Unicode: characters, sets, groups,
/// alternatives, repeats (greedy, lazy, possessive), what follows or stands
/// before, ends of lines, and (?i:...) of ASCII. Immutable.
class Pattern {
 public:
  /// Nothing where it holds what we do not know exactly, which `why` says.
  static std::optional<Pattern> parse(std::string_view text, std::string& why);

  struct Step;  ///< of the program that it becomes
  struct Set {  ///< of code points
    std::vector<std::uint64_t> bits;
    bool has(std::uint32_t code) const {
      return (bits[code >> 6] >> (code & 63) & 1) != 0;
    }
  };
  struct Program {
    std::vector<Step> steps;
    std::vector<Set> sets;
  };
  const Program& program() const { return *program_; }

 private:
  std::shared_ptr<const Program> program_;
};

struct Pattern::Step {
  enum class Kind : std::uint8_t {
    one,       ///< a character of `set`
    run,       ///< as many of them as there are; `least`: how many at least
    all,       ///< the same, of which none is given back
    split,     ///< continues at `to`, and if that fails at `other`
    jump,      ///< continues at `to`
    ahead,     ///< what is from the next step to `to` must match here
    no_ahead,  ///< must not match here
    atomic,    ///< the same part, of which only the first way counts
    behind,    ///< a character of `set` stands before
    no_behind,
    line_begin,
    line_end,
    text_begin,
    text_end,
    end,  ///< of the whole, or of a part
  };
  Kind kind;
  std::uint32_t set = 0, least = 0, to = 0, other = 0;
};

/// Finds a pattern in one text. What would take it too long for a text of that
/// size, as hostile patterns do, is an error.
class PatternSearch {
 public:
  /// Both must outlive it; the text is UTF-8.
  PatternSearch(const Pattern& pattern, std::string_view text)
      : program_(&pattern.program()), text_(text) {}

  struct Match {
    std::size_t begin, end;
  };
  /// The first match that begins at `from` or behind; it is never empty.
  /// Throws Error(transform) `tokenizer.document` where it takes too long.
  std::optional<Match> next(std::size_t from);

 private:
  struct Way {
    std::uint32_t step;
    std::size_t at, least;  ///< of a run: `at` may go back down to `least`
  };
  static constexpr std::size_t kNone = SIZE_MAX;

  PatternSearch(const PatternSearch& outer, std::size_t steps, std::size_t work)
      : program_(outer.program_),
        text_(outer.text_),
        steps_(steps),
        work_(work) {}

  /// Where it ends from `step` at `at` on, or kNone.
  std::size_t run(std::uint32_t step, std::size_t at);
  /// Goes on by the latest way above `bottom` that was not tried; false where
  /// none is left.
  bool take_way(std::size_t bottom, std::uint32_t& step, std::size_t& at);
  bool failed_before(std::uint32_t step, std::size_t at);
  void spend(std::size_t work, std::size_t at);
  std::size_t part(const Pattern::Step& step, std::uint32_t number,
                   std::size_t at);
  bool holds(const Pattern::Step& step, std::size_t at) const;
  std::size_t run_end(const Pattern::Step& step, std::size_t at,
                      std::size_t& least);

  const Pattern::Program* program_;
  std::string_view text_;
  std::vector<Way> ways_;
  std::size_t steps_ = 0;  // since the last match
  std::size_t work_ = 0;   // in all, characters that were looked at included
  std::unordered_set<std::uint64_t> failed_;  // step and place
};

}  // namespace penstock
