#pragma once

#include <memory>
#include <string>
#include <vector>

#include "penstock/tokenizer/file_value.h"

namespace penstock {

/// A step from the tokens of a text to the text, given them one after the
/// other. For one thread.
class DecodeStep {
 public:
  using Out = std::vector<std::string>;
  virtual ~DecodeStep() = default;
  /// Appends what the step makes of the next token, which may be held back.
  virtual void add(std::string token, Out& out) = 0;
  /// Appends what it held back.
  virtual void finish(Out&) {}
};

/// How the part "decoder" of a tokenizer.json makes a text of tokens.
class Decoding {
 public:
  /// Throws Error(request), see Tokenizer::parse.
  explicit Decoding(const FileValue& part);

  /// What is in progress. For one thread.
  class Run {
   public:
    /// The text that a token completes.
    std::string add(std::string token);
    std::string finish();

   private:
    friend class Decoding;
    std::string through(std::size_t step, DecodeStep::Out tokens);
    std::vector<std::unique_ptr<DecodeStep>> steps_;
  };
  Run begin() const;

 private:
  std::vector<std::shared_ptr<const class DecodeKind>> kinds_;
};

}  // namespace penstock
