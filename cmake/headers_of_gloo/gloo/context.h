#pragma once

// libtorch holds gloo, but its packages do not carry gloo's headers. The header
// of ProcessGroupGloo only needs the names of these classes: we hold pointers
// that libtorch made and give them back to libtorch. Nothing of gloo:: is
// defined in our objects, and none of its functions is called from them;
// tests/shared_core.py reads the symbols.
#include <chrono>
#include <memory>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

namespace transport {
class UnboundBuffer;
}  // namespace transport

}  // namespace gloo
