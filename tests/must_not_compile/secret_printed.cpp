#include <sstream>

#include "penstock/base/secret.h"

// A secret is shown only where somebody wrote reveal().
std::string shown(const penstock::Secret& secret) {
  std::ostringstream out;
#ifdef MISUSE
  out << secret;
#else
  out << secret.reveal();
#endif
  return out.str();
}
