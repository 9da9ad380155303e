// Ways that are left are kept on a stack. When a match takes long, the pairs of
// step and place that were tried are remembered: each leads to the same end
// whatever came before, so that none is tried twice.
#include "penstock/tokenizer/pattern.h"

#include "penstock/base/error.h"
#include "penstock/tokenizer/unicode.h"

namespace penstock {
namespace {

using Kind = Pattern::Step::Kind;

constexpr std::size_t kQuick = 2048;  // steps before they are remembered
constexpr std::size_t kMostRemembered = std::size_t{1} << 20;
constexpr std::size_t kMostWork = 256;  // for each byte, and
constexpr std::size_t kFreeWork = std::size_t{1} << 22;

std::size_t before(std::string_view text, std::size_t at) {
  do --at;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

}  // namespace

bool PatternSearch::holds(const Pattern::Step& step, std::size_t at) const {
  std::uint32_t size;
  switch (step.kind) {
    case Kind::behind:
    case Kind::no_behind: {
      const bool found =
          at > 0 && program_->sets[step.set].has(unicode::code_at(
                        text_.data() + before(text_, at), size));
      return found == (step.kind == Kind::behind);
    }
    case Kind::line_begin:
      return at == 0 || (text_[at - 1] == '\n' && at < text_.size());
    case Kind::line_end:
      return at == text_.size() || text_[at] == '\n';
    case Kind::text_begin:
      return at == 0;
    default:
      return at == text_.size();
  }
}

std::size_t PatternSearch::run_end(const Pattern::Step& step, std::size_t at,
                                   std::size_t& least) {
  const Pattern::Set& set = program_->sets[step.set];
  least = step.least == 0 ? at : kNone;
  const std::size_t begin = at;
  std::uint32_t size;
  for (std::uint32_t count = 0; at < text_.size();) {
    if (!set.has(unicode::code_at(text_.data() + at, size))) break;
    at += size;
    if (++count == step.least) least = at;
  }
  spend(at - begin, at);
  return least == kNone ? kNone : at;
}

void PatternSearch::spend(std::size_t work, std::size_t at) {
  work_ += work;
  if (work_ / kMostWork <= text_.size() + kFreeWork / kMostWork) return;
  throw Error(ErrorKind::transform,
              {.code = "tokenizer.document",
               .what = "cannot tokenise a document",
               .why = "the tokenizer's pattern takes too long at byte " +
                      std::to_string(at) + " of a part",
               .next = "split the document into several"});
}

// Why remembering a pair of step and place is right:
// 1. There are no back references and no captures, so what a step matches from
//    a place on depends on nothing that came before.
// 2. Ways are tried last in, first out: all that a pair leads to was tried
//    before any way older than it.
// 3. No repeat has a body that may be empty (the parser refuses it), so a pair
//    cannot be met again while it is still being tried.
// It follows that a pair that was seen has failed. This also holds for another
// beginning of the match, so next() forgets only after a match. What could take
// exponential time tries at most steps times characters pairs.
bool PatternSearch::failed_before(std::uint32_t step, std::size_t at) {
  spend(1, at);
  if (++steps_ < kQuick || failed_.size() >= kMostRemembered) return false;
  return !failed_.insert(std::uint64_t{step} << 40 | at).second;
}

// A condition or an atomic group is a search that ends at its own `end` step.
// Its ways are dropped once it has matched, which is what makes a group atomic.
// The work it did counts for the whole.
std::size_t PatternSearch::part(const Pattern::Step& step, std::uint32_t number,
                                std::size_t at) {
  // What leads to its end is remembered as tried, so it has a memory of its
  // own.
  PatternSearch inner(*this, steps_, work_);
  const std::size_t end = inner.run(number + 1, at);
  steps_ = inner.steps_;
  work_ = inner.work_;
  if (step.kind == Kind::atomic) return end;
  return (end != kNone) == (step.kind == Kind::ahead) ? at : kNone;
}

// A run is one way with a range: each time it is taken, `at` goes back by one
// character, down to `least`. So the stack has one entry per run, not one per
// character.
inline bool PatternSearch::take_way(std::size_t bottom, std::uint32_t& step,
                                    std::size_t& at) {
  for (;;) {
    if (ways_.size() == bottom) return false;
    Way& way = ways_.back();
    if (way.at > way.least) {
      way.at = before(text_, way.at);
      step = way.step;
      at = way.at;
      if (way.at == way.least) ways_.pop_back();
    } else {
      step = way.step;
      at = way.at;
      ways_.pop_back();
    }
    if (!failed_before(step, at)) return true;
  }
}

std::size_t PatternSearch::run(std::uint32_t step, std::size_t at) {
  const std::size_t bottom = ways_.size();
  for (;;) {
    const Pattern::Step& now = program_->steps[step];
    std::size_t next = kNone;  // where it goes on, if it does
    std::uint32_t then = step + 1, size;
    switch (now.kind) {
      case Kind::end:
        ways_.resize(bottom);
        return at;
      case Kind::one:
        if (at < text_.size() && program_->sets[now.set].has(
                                     unicode::code_at(text_.data() + at, size)))
          next = at + size;
        break;
      case Kind::all: {
        std::size_t least;
        next = run_end(now, at, least);
        break;
      }
      case Kind::run: {
        std::size_t least;
        next = run_end(now, at, least);
        if (next != kNone && next > least)
          ways_.push_back({step + 1, next, least});
        break;
      }
      case Kind::split:
        ways_.push_back({now.other, at, at});
        next = at;
        then = now.to;
        break;
      case Kind::jump:
        next = at;
        then = now.to;
        break;
      case Kind::ahead:
      case Kind::no_ahead:
      case Kind::atomic:
        next = part(now, step, at);
        then = now.to;
        break;
      default:
        if (holds(now, at)) next = at;
    }
    if (next != kNone && !failed_before(then, next)) {
      step = then;
      at = next;
      continue;
    }
    if (!take_way(bottom, step, at)) return kNone;
  }
}

std::optional<PatternSearch::Match> PatternSearch::next(std::size_t from) {
  std::uint32_t size;
  for (std::size_t at = from; at < text_.size(); at += size) {
    unicode::code_at(text_.data() + at, size);
    const std::size_t end = run(0, at);
    if (end == kNone || end == at) continue;
    steps_ = 0;
    failed_.clear();
    return Match{at, end};
  }
  return std::nullopt;
}

}  // namespace penstock
