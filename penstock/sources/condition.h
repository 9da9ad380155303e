#pragma once

#include <string>

namespace penstock {

// An SQL condition of the user is checked in both of these forms before it is
// used. "a) OR (b" would take in rows that the conditions next to it leave out:
// no database can read it bare. What is more than a condition, "a LIMIT 1", it
// cannot read in parentheses.

/// The condition as statements hold it. On a line of its own: it may end in a
/// comment.
inline std::string in_parentheses(const std::string& condition) {
  return "(" + condition + "\n)";
}
inline std::string bare(const std::string& condition) {
  return condition + "\n";
}

}  // namespace penstock
