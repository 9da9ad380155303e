#include "penstock/tokenizer/matches.h"

#include "penstock/tokenizer/pattern.h"
#include "penstock/tokenizer/scanner.h"

namespace penstock {
namespace {

class PlainText final : public Matching {
 public:
  explicit PlainText(std::string what) : what_(std::move(what)) {}
  void find(std::string_view text, std::vector<ByteRange>& out) const override {
    for (std::size_t at = 0; (at = text.find(what_, at)) != text.npos;) {
      out.push_back({at, at + what_.size()});
      at += what_.size();
    }
  }

 private:
  const std::string what_;
};

class Expression final : public Matching {
 public:
  explicit Expression(Pattern pattern) : pattern_(std::move(pattern)) {}
  void find(std::string_view text, std::vector<ByteRange>& out) const override {
    PatternSearch search(pattern_, text);
    std::size_t at = 0;
    while (auto match = search.next(at)) {
      out.push_back({match->begin, match->end});
      at = match->end;
    }
  }

 private:
  const Pattern pattern_;
};

/// A pattern that is known, of which every word is a match.
class Words final : public Matching {
 public:
  explicit Words(Family family) : family_(family) {}
  void find(std::string_view text, std::vector<ByteRange>& out) const override {
    find_words(family_, text, {0, text.size()}, out);
  }

 private:
  const Family family_;
};

}  // namespace

void find_words(Family family, std::string_view text, ByteRange part,
                std::vector<ByteRange>& out) {
  Scanner scanner(family, text.substr(part.begin, part.size()));
  std::uint32_t ends[64];
  std::size_t begin = part.begin;
  while (std::size_t count = scanner.next(ends, 64))
    for (std::size_t i = 0; i < count; begin = part.begin + ends[i++])
      out.push_back({begin, part.begin + ends[i]});
}

std::unique_ptr<Matching> read_matching(const FileValue& pattern) {
  if (FileValue text = pattern.at("String"); !text.is_null()) {
    if (text.text().empty()) text.unknown("a pattern that is empty");
    return std::make_unique<PlainText>(text.text());
  }
  const FileValue regex = pattern.at("Regex");
  if (std::optional<Family> family = family_of(regex.text()))
    return std::make_unique<Words>(*family);
  std::string why;
  std::optional<Pattern> read = Pattern::parse(regex.text(), why);
  if (!read) regex.unknown("this pattern, for " + why + ",");
  return std::make_unique<Expression>(std::move(*read));
}

}  // namespace penstock
