#pragma once

namespace penstock {

/// To be called in a catch block: throws what was caught as an Error. What
/// libtorch throws becomes out_of_memory where memory was short, device where
/// the accelerator failed, else internal; an Error stays unchanged. `doing`
/// says what went on: "taking a step of the model".
[[noreturn]] void throw_as_error(const char* doing);

/// Runs `work`; what it throws is an Error.
template <class Work>
auto in_torch(const char* doing, Work work) -> decltype(work()) {
  try {
    return work();
  } catch (...) {
    throw_as_error(doing);
  }
}

}  // namespace penstock
